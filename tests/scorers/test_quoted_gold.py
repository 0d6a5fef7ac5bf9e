"""Gold without headings: quotes and whole files, from a run to its numbers; each value by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from tests.rows import each_row

from ragmetrics.gold import NO_QUOTED_TEXT
from records.results import Reference, RetrievedChunk, Search, SearchedChunk, TestResult
from records.scores import read_whole_scores
from scorers.common import BY_DOCUMENT, NOT_BY_DOCUMENT
from scorers.contract import ScoringJob
from scorers.retrieval import UNRESOLVED
from scorers.sections import SectionOutcome, try_section

SALE = "Goods that were bought on sale are taken back within 30 days."
KEYS = "Keys are handed out at the gate against a signature."
SENTENCES = (
    "Cranes are cleaned every Friday by the evening shift.",
    SALE,
    "Goods that were bought on sale are taken back within 90 days.",
    "The stores are closed on Sundays and on public holidays.",
    "Invoices are sent by post unless the customer asks for mail.",
    KEYS,
    "Visitors wear a badge at all times while on the premises.",
)
TEXTS = [f"Chapter {n} of the handbook. {words}" for n, words in enumerate(SENTENCES)]

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


FILE, QUOTE = {"rel_path": "book.pdf"}, {"rel_path": "book.pdf", "snippets": [SALE]}


def scored_lines(
    folder: Path, section: str, cases: list[Any], results: list[TestResult], **options: Any
) -> tuple[dict[str, Any], list[Any]]:
    """A section of metrics.json and its lines."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    asked = [{"question": "?", "answerable": True} | case for case in cases]
    (folder / "set.jsonl").write_bytes(b"".join(orjson.dumps(case) + b"\n" for case in asked))
    lines = b"".join(msgspec.json.encode(result) + b"\n" for result in results)
    (run / "results.jsonl").write_bytes(lines)
    job = ScoringJob(run, folder / "set.jsonl", folder / "labels")
    outcome = try_section(section, job, options)
    assert outcome.section is not None, outcome.reason
    return outcome.section, list(read_whole_scores(run, section, ()))


def searching(case_id: str, *numbers: int) -> TestResult:
    """An answer after a search for each of the passages, which saw the first one alone."""
    searches = [
        Search(f"{n}", retrieved=[SearchedChunk(**msgspec.to_builtins(chunk(n)))]) for n in numbers
    ]
    return TestResult(case_id, answer="x", retrieved=[chunk(numbers[0])], searches=searches)


def test_searches_of_whole_files_have_metrics_of_their_own(tmp_path: Path) -> None:
    """a: a file, which both searches bring: 1 and 1. b: a quote, which the second brings: 0 and 1,
    and which the answer did not see."""
    cases = [{"id": "a", "gold_supports": [FILE]}, {"id": "b", "gold_supports": [QUOTE]}]
    results = [searching("a", 3, 4), searching("b", 3, 1)]
    section, (first, second) = scored_lines(tmp_path, "searches", cases, results)
    assert section["mean"]["search_evidence_recall"] == 0.5
    assert section["mean"]["search_evidence_recall (by document)"] == 1.0
    assert section["n"]["union_evidence_recall"] == section["n"]["lost_supports"] == 1
    assert first.reasons["union_evidence_recall"] == BY_DOCUMENT
    assert first.scores["complete_at_search (by document)"] == 1.0
    assert second.scores["lost_supports"] == 1.0
    assert second.reasons["lost_supports (by document)"] == NOT_BY_DOCUMENT
    assert section["mean"]["search_count"] == 2.0
    by_search = section["by_search"]["1"]
    assert (by_search["n"], by_search["evidence_recall"]) == (1, 0.0)
    assert by_search["evidence_recall (by document)"] == 1.0
    section, _ = scored_lines(tmp_path, "searches", cases, results, match="doc")
    assert section["mean"]["search_evidence_recall"] == 1.0
    assert not [name for name in section["mean"] if "by document" in name]


def test_turns_that_need_whole_files_have_metrics_of_their_own(tmp_path: Path) -> None:
    """Turn 2 needs the file that turn 1 had brought, and brings none."""
    other = RetrievedChunk("z", rel_path="z.pdf", text="Other words.")
    cases = [
        {"id": name, "conversation": "c", "turn": turn, "gold_supports": [FILE]}
        for turn, name in enumerate("ab", 1)
    ]
    results = [
        TestResult("a", answer="x", retrieved=[chunk(3)], asked_with="live"),
        TestResult("b", answer="x", retrieved=[other], asked_with="live"),
    ]
    section, (_, line) = scored_lines(tmp_path, "conversations", cases, results)
    assert section["mean"]["evidence_in_history"] is None
    assert line.reasons["evidence_in_history"] == BY_DOCUMENT
    assert section["mean"]["evidence_in_history (by document)"] == 1.0


@each_row(
    ("reference", "hit"),
    [
        (Reference(chunk_id="c1"), 1.0),
        (Reference(chunk_id="c3"), 0.0),
        (Reference(rel_path="other.pdf"), 0.0),
        (Reference(rel_path="book.pdf"), None),  # one of two passages: nobody knows which
        (Reference(index=2), None),  # of which list?
        (Reference(index=3), 0.0),  # there are two
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


def paged(page: int | str | None, file: str = "book.pdf") -> RetrievedChunk:
    return RetrievedChunk(f"{file}-{page}", rel_path=file, text="Other words.", page=page)


def test_a_page_is_a_place_only_where_it_is_asked_for(tmp_path: Path) -> None:
    """Gold on pages 0 and 7, the latter named twice. Ranks: page 7 at 2, page 0 at 4.

    Two of two at 5, one hit of each: precision 2/5; complete at 4. Page 7 of another file is none.
    """
    gold: list[dict[str, Any]] = [{"snippets": [SALE], "page": "7"}]
    gold += [{"snippets": [KEYS], "page": 7}, {"page": 0}]
    pages = [paged(3), paged("7"), paged(7, "other.pdf"), paged(0), paged(None)]
    result = TestResult("a", answer="x", retrieved=[*pages])
    _, line = scored(tmp_path, gold[:2], result)
    assert line.scores["recall@5"] == 0.0
    _, line = scored(tmp_path, gold, result, match="page")
    assert (line.scores["recall@5"], line.scores["mrr"]) == (1.0, 0.5)
    assert line.scores["precision@5"] == pytest.approx(0.4)
    assert line.evidence["found"] == [2, 4]
    _, line = scored(tmp_path, [*gold, {"snippets": [KEYS]}], result, match="page")
    assert line.reasons == {"*": "no page gold"}
    _, line = scored(tmp_path, gold, result_of(1, 2), match="page")
    assert line.reasons == {"*": "no page in the result"}


def test_lines_without_pages_keep_their_bytes() -> None:
    assert b"page" not in msgspec.json.encode(result_of(1))
    (stored,) = TestResult("a", retrieved=[paged(0)]).to_dict()["retrieved"]
    assert stored["page"] == 0
