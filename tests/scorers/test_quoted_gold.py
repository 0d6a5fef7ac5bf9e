"""Gold without headings: quotes and whole files, from a run to its numbers; each value by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from ragmetrics.gold import NO_QUOTED_TEXT
from records.results import Reference, RetrievedChunk, TestResult
from records.scores import read_whole_scores
from scorers.contract import ScoringJob
from scorers.retrieval import BY_DOCUMENT, UNRESOLVED
from scorers.sections import SectionOutcome, try_section

TEXTS = [
    f"Chapter {n} of the handbook. {words}"
    for n, words in enumerate(
        (
            "Cranes are cleaned every Friday by the evening shift.",
            "Goods that were bought on sale are taken back within 30 days.",
            "Goods that were bought on sale are taken back within 90 days.",
            "The stores are closed on Sundays and on public holidays.",
            "Invoices are sent by post unless the customer asks for mail.",
            "Keys are handed out at the gate against a signature.",
            "Visitors wear a badge at all times while on the premises.",
        )
    )
]

SALE = "Goods that were bought on sale are taken back within 30 days."
KEYS = "Keys are handed out at the gate against a signature."


def chunk(number: int, **more: Any) -> RetrievedChunk:
    text: dict[str, Any] = {"text": TEXTS[number], "text_length": len(TEXTS[number])} | more
    return RetrievedChunk(f"c{number}", rel_path="book.pdf", heading_path="", **text)


def scored(
    folder: Path, gold: list[dict[str, Any]], result: TestResult, **options: Any
) -> tuple[SectionOutcome, Any]:
    """The section and the only line of a run of one case."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    supports = [{"rel_path": "book.pdf", "heading_path": ""} | support for support in gold]
    case = {"id": "a", "question": "?", "answerable": True, "gold_supports": supports}
    (folder / "set.jsonl").write_bytes(orjson.dumps(case) + b"\n")
    (run / "results.jsonl").write_bytes(msgspec.json.encode(result) + b"\n")
    job = ScoringJob(run, folder / "set.jsonl", folder / "labels")
    outcome = try_section("retrieval", job, {"ks": (1, 5)} | options)
    return outcome, next(iter(read_whole_scores(run, "retrieval", ())))


def result_of(*numbers: int, **more: Any) -> TestResult:
    return TestResult("a", answer="30 days [1]", retrieved=[chunk(n) for n in numbers], **more)


def test_the_five_worst_passages_have_recall_0(tmp_path: Path) -> None:
    """All passages are of the file, none holds the quote: the 90 days least of all."""
    _, line = scored(tmp_path, [{"snippets": [SALE]}], result_of(2, 3, 4, 0, 6))
    for name in ("recall@5", "evidence_recall@5", "mrr", "ndcg@5", "precision@1"):
        assert line.scores[name] == 0.0
    _, line = scored(tmp_path, [{"quote": {"exact": SALE}}], result_of(2, 1, 4, 0, 6))
    assert (line.scores["recall@5"], line.scores["mrr"]) == (1.0, 0.5)


def test_a_question_that_needs_two_passages_is_not_complete_with_one(tmp_path: Path) -> None:
    gold = [{"snippets": [SALE]}, {"snippets": [KEYS]}]
    _, line = scored(tmp_path, gold, result_of(3, 1, 0, 4, 2))
    assert (line.scores["recall@5"], line.scores["recall_all@5"]) == (0.5, 0.0)
    assert line.evidence["found"] == [2, None]


def test_a_cut_text_leaves_a_quote_undecided(tmp_path: Path) -> None:
    """Missing: the case is n/a. Found above the cut text: only what counts every hit is."""
    gold = [{"snippets": [SALE]}]
    cut = chunk(4, text="Chapter 4", text_length=90)
    result = TestResult("a", answer="x", retrieved=[chunk(3), cut])
    outcome, _ = scored(tmp_path, gold, result)
    assert outcome.reason == "text was truncated (1 case)"
    result.retrieved = [chunk(1), cut]
    _, line = scored(tmp_path, gold, result)
    assert (line.scores["recall@5"], line.scores["mrr"], line.scores["ndcg@5"]) == (1.0, 1.0, 1.0)
    assert line.scores["precision@1"] == 1.0
    for name in ("precision@5", "f1@5", "map@5"):
        assert (line.scores[name], line.reasons[name]) == (None, "text was truncated")


def test_quotes_without_any_text_are_not_applicable(tmp_path: Path) -> None:
    bare = TestResult("a", answer="x", retrieved=[chunk(1, text=None, text_length=None)])
    outcome, _ = scored(tmp_path, [{"snippets": [SALE]}], bare)
    assert outcome.reason == f"{NO_QUOTED_TEXT} (1 case)"
    _, line = scored(tmp_path, [{"snippets": [SALE]}], bare, match="doc")
    assert line.scores["recall@5"] == 1.0


def test_a_whole_file_has_metrics_of_its_own(tmp_path: Path) -> None:
    """No target, gate or verdict knows their names; --match doc asks for the plain ones."""
    outcome, line = scored(tmp_path, [{}], result_of(3, 4))
    assert line.scores.get("recall@5") is None
    assert line.reasons.get("recall@5", BY_DOCUMENT) == BY_DOCUMENT
    assert line.scores["recall@5 (by document)"] == 1.0
    assert line.scores["precision@5 (by document)"] == pytest.approx(0.4)
    section = outcome.section
    assert section is not None
    assert section["mean"]["recall@5"] is None
    assert list(section["by"]["match"]) == ["document"]
    _, line = scored(tmp_path, [{}], result_of(3, 4), match="doc")
    assert line.scores["recall@5"] == 1.0
    assert "recall@5 (by document)" not in line.scores


@pytest.mark.parametrize(
    ("reference", "hit"),
    [
        (Reference(chunk_id="c1"), 1.0),
        (Reference(chunk_id="c3"), 0.0),
        (Reference(rel_path="other.pdf"), 0.0),
        (Reference(rel_path="book.pdf"), None),  # one of two passages: nobody knows which
    ],
)
def test_a_reference_counts_by_the_passage_that_it_names(
    tmp_path: Path, reference: Reference, hit: float | None
) -> None:
    gold = [{"snippets": [SALE]}]
    _, line = scored(tmp_path, gold, result_of(1, 3, references=[reference]))
    assert line.scores["attribution_hit"] == hit
    if hit is None:
        assert line.reasons["attribution_hit"] == UNRESOLVED
    reference = Reference(rel_path="book.pdf")
    _, line = scored(tmp_path, gold, result_of(1, references=[reference]))
    assert line.scores["attribution_hit"] == 1.0  # the only passage of the file
