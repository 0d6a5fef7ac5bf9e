"""Which cases of a run failed is seen with the matcher of the scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.rows import each_row

from labeller.jobs import failures
from labeller.passages import Chunk, _verdict, locate
from records.metrics import read_metrics
from scorers.loop import score_run
from scorers.retrieval import RetrievalScorer
from storage import RetrievedChunk, TestResult

QUOTE = "Keys are rotated every month by the operator."
TEXT = f"Intro. {QUOTE} More."
SUPPORT = {"rel_path": "n/a.md", "heading_path": "A > B", "snippets": [QUOTE]}


def _retrieved(heading_path: str, text: str = TEXT) -> list[RetrievedChunk]:
    """Another file's chunk, and behind it the one that a case asks for."""
    other = RetrievedChunk("c1", rel_path="n/z.md", heading_path="Z", text="Nothing.", rank=1)
    return [other, RetrievedChunk("c2", "d2", "n/a.md", heading_path, text=text, rank=2)]


@each_row(
    ("labels", "retrieved", "score"),
    [
        # mrr is 1/2 where rank 2 holds the gold, so the order's score is 1 - 1/2.
        ({"gold_supports": [SUPPORT]}, _retrieved("A > B", "Else."), 0.5),
        ({"gold_supports": [SUPPORT]}, _retrieved("A > B > C"), 0.5),
        ({"gold_supports": [SUPPORT]}, _retrieved("A > B > C", "Else."), 1.0),
        ({"gold_supports": [SUPPORT]}, _retrieved("A"), 0.5),
        ({"gold_supports": [SUPPORT]}, _retrieved("A", "Else."), 1.0),
        ({"gold_supports": [SUPPORT]}, _retrieved("Other"), 1.0),
        ({"relevant_chunks": ["c2"]}, _retrieved("Q"), 0.5),
        ({"relevant_chunks": ["c9"]}, _retrieved("Q"), 1.0),
        ({"relevant_docs": ["d2"]}, _retrieved("Q"), 0.5),
        ({"gold_contexts": [QUOTE]}, _retrieved("Q"), 0.5),
        ({"gold_contexts": [QUOTE]}, _retrieved("Q", "Intro."), None),  # its cut end may be gold
        ({}, _retrieved("A"), None),
    ],
)
def test_failures_are_what_retrieval_scores(
    tmp_path: Path, labels: dict[str, Any], retrieved: list[RetrievedChunk], score: float | None
) -> None:
    if score is None:
        retrieved[1].text_length = 1000
    result = TestResult("a", question="Q?", answer="x", retrieved=[*retrieved])
    run, eval_set = tmp_path / "run", tmp_path / "set.jsonl"
    run.mkdir()
    line = json.dumps(result.to_dict(store_full_text=True)) + "\n"
    (run / "results.jsonl").write_text(line)
    eval_set.write_text(json.dumps({"id": "a", "question": "Q?", **labels}) + "\n")
    score_run(run, eval_set, RetrievalScorer(), jobs=1)
    reciprocal_rank = read_metrics(run)["sections"]["retrieval"]["mean"]["mrr"]
    assert reciprocal_rank == (None if score is None else 1 - score)
    assert bool(failures(run, ["a"])) == (score == 1.0)


def test_a_coarser_chunk_with_the_quoted_text_is_no_moved_support() -> None:
    coarser = Chunk("n/a.md", "A", TEXT)
    assert locate(SUPPORT, [coarser]) == ([0], "shown")
    assert locate(SUPPORT, [Chunk("n/a.md", "Other", TEXT)]) == ([0], "moved")
    typo = TEXT.replace("rotated", "rotatet")
    assert locate(SUPPORT, [Chunk("n/a.md", "Other", typo)]) == ([0], "fuzzy")
    assert locate(SUPPORT, [Chunk("n/a.md", "Other", "Quite another text.")]) == ([], "absent")


LONG = "Keys are rotated on the first day of every month by the operator on duty."


def test_a_section_below_is_located_by_the_words_that_count_in_scores() -> None:
    """8 of the quote's 15 words at its end are enough; the heading alone is not."""
    uncounted = "Some words that do not count."
    support: dict[str, Any] = {**SUPPORT, "snippets": [LONG], "quote": {"exact": uncounted}}
    below = Chunk("n/a.md", "A > B > C", f"Intro. {LONG}")
    assert locate(support, [below]) == ([0], "shown")
    part = replace(below, text="Intro. Keys are rotated on the first day of")
    assert locate(support, [part]) == ([0], "fuzzy")
    assert locate(support, [replace(part, text="Quite another text.")]) == ([], "absent")
    assert locate(support, [replace(part, text=uncounted)]) == ([0], "moved")
    cut = replace(part, text="Intro.", cut=True)
    assert locate(support, [cut]) == ([0], "heading")  # its missing part may have the quote
    assert not _verdict(support, cut)
    assert locate(support | {"snippets": []}, [part]) == ([], "absent")
    assert _verdict(support | {"snippets": []}, part)  # without snippets the heading counts
