"""People's spans in an answer as labels of its claims, the form that calibrate_judge.py reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from converting.item import Answer


def verdicts(answer: Answer, annotator: str) -> Iterator[dict[str, Any]]:
    """A line for each claim of the answer, cut out as for the judge.

    A claim that a marked span touches is not_supported, every other one supported: the people who
    marked spans read the whole answer.
    """
    from ragmetrics.claimfilter import extract

    result = answer.result
    text = result.answer or ""
    marked = [(span["start"], span["end"]) for span in answer.spans or ()]
    for number, claim in enumerate(extract(text).claims, start=1):
        hit = any(start < claim.end and claim.start < end for start, end in marked)
        yield {
            "case_id": result.test_case_id,
            "repeat": result.repeat,
            "metric": "groundedness",
            "claim_id": str(number),
            "claim": claim.text,
            "answer_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "label": "not_supported" if hit else "supported",
            "annotator": annotator,
            "at": "",
        }
