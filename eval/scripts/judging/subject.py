"""One answer made ready for its judge: contexts, claims and facts with ids of ours."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from judging.tasks import Item
from ragmetrics.abstention import ABSTENTION_RULES
from ragmetrics.casescores import unusable
from ragmetrics.claimfilter import extract
from ragmetrics.text import clean, words
from scorers.abstention import decide
from scorers.chunks import in_rank_order
from storage import RetrievedChunk, TestCase, TestResult

UNANSWERABLE = "unanswerable"
NO_REFERENCE = "no reference answer and no key facts"
NO_CLAIMS = "no claims"
ABSTENTION = "abstention"
EMPTY = "empty answer"
NO_ANSWER = "no answer"


@dataclass
class Subject:
    """A case with one of its results. What it lacks is told by the ``why_no_…`` functions.

    ``k``: only the first chunks count; None: all.
    """

    case: TestCase
    result: TestResult
    k: int | None = None
    atomic: list[dict[str, Any]] | None = field(default=None)

    @cached_property
    def answer(self) -> str:
        return clean(self.result.answer or "")

    @cached_property
    def chunks(self) -> Sequence[RetrievedChunk]:
        return in_rank_order(self.result)[: self.k]

    @cached_property
    def contexts(self) -> list[Item]:
        """The chunks as ``c1``, ``c2`` … in rank order."""
        return [
            {"id": f"c{place}", "chunk_id": chunk.chunk_id, "text": clean(chunk.text or "")}
            for place, chunk in enumerate(self.chunks, start=1)
        ]

    @cached_property
    def abstained(self) -> bool:
        return bool(decide(self.result).abstained)

    @cached_property
    def fingerprint(self) -> str:
        """What a judgement rests on: question, answer, contexts, reference, labels.

        A verdict line of another one belongs to an answer or a label that is no longer there.
        """
        case = self.case
        parts = [
            case.question,
            self.result.answer,
            [[chunk.chunk_id, chunk.text, chunk.truncated] for chunk in self.chunks],
            case.reference_answer,
            case.expected_key_facts,
            case.answerable,
            [self.result.abstained, ABSTENTION_RULES],
        ]
        return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:24]

    @property
    def reference(self) -> str:
        """The reference answer, else the key facts as a text."""
        return clean(self.case.reference_answer or "; ".join(self.case.expected_key_facts))

    @cached_property
    def sentences(self) -> list[dict[str, Any]]:
        """The claims of the answer by our own rules, with their spans."""
        return [
            {"id": str(number), "text": claim.text, "span": [claim.start, claim.end]}
            | ({"lead": claim.lead} if claim.lead else {})
            for number, claim in enumerate(extract(self.answer).claims, start=1)
        ]

    def whole_answer(self) -> list[dict[str, Any]]:
        """The answer as one claim: for "15 days", which is too short to be a claim of its own."""
        text = " ".join(self.answer.split())
        if self.abstained or not words(text):
            return []
        return [{"id": "1", "text": text, "span": [0, len(self.answer)]}]

    def why_no_answer(self) -> str | None:
        if self.result.answer is None:
            return NO_ANSWER
        return None if self._has_words else EMPTY

    @cached_property
    def _has_words(self) -> bool:
        return bool(words(self.answer))

    def why_no_claims(self) -> str | None:
        """Why nothing can be said of the claims, before they are cut out."""
        return self.why_no_answer() or (ABSTENTION if self.abstained else None)

    def why_no_texts(self) -> str | None:
        """The chunks were stored without their full texts (None also when there are no chunks)."""
        return unusable(self.chunks)

    def why_no_reference(self) -> str | None:
        if self.case.answerable is False:
            return UNANSWERABLE
        return None if self.reference.strip() else NO_REFERENCE
