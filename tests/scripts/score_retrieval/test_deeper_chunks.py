"""Sections below the labelled heading count by the words of the label's quote, for all who ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clients.place_check import asked_of, check_places
from labeller.passages import Chunk, _verdict
from ragmetrics.gold import gold_of, match_chunks
from records.cases import GoldSupport
from records.checked_results import checked_result
from records.judged import key_of_passage
from records.labels import read_cases
from storage import RetrievedChunk, TestResult

QUOTE = "The lock file names the tree of packages that was made, so that later runs make it again."
"""18 words; the first 9 end with "that"."""
HALF = "For each install. The lock file names the tree of packages that"
BELOW = "lock.md > Description > File format > name"


@pytest.fixture
def asked(evaluated: Any, chunk: Any, gold: Any) -> Any:
    """``asked([texts of the passages], …)``: an answer each, all of them below the labelled
    heading; ``cut``: only the texts' beginnings are kept."""

    def make(*answers: list[str | None], cut: bool = False, **more: Any) -> Any:
        support = gold("lock.md > Description", snippets=[QUOTE])
        cases = [{"id": f"q{n}", "gold_supports": support} for n in range(len(answers))]
        results = []
        for n, texts in enumerate(answers):
            listed = [chunk(BELOW, text=text) for text in texts]
            for place, passage in enumerate(listed):
                passage.chunk_id = f"c{place}"
                passage.text_length = 900 if cut else None
            results.append(TestResult(f"q{n}", answer="x", retrieved=listed, **more))
        return evaluated(cases, results)

    return make


def test_a_section_without_the_quote_is_no_hit(asked: Any) -> None:
    """Ranks of the quote: 1, 2, none; so recall 2/3 and MRR (1 + 1/2) / 3. By the heading alone
    each was found at rank 1."""
    run = asked([QUOTE, "The name."], ["The name.", HALF], ["The name.", "The version."])
    section = run.section()
    assert section["mean"]["recall@5"] == round(2 / 3, 6)
    assert section["mean"]["mrr"] == 0.5
    assert section["mean"]["precision@1"] == round(1 / 3, 6)
    assert [run.rows()[f"q{n}"]["evidence"]["found"] for n in range(3)] == [[1], [2], [None]]
    assert not {"by_heading_only", "text_cut", "place_mismatch"} & section.keys()
    assert "heading" not in run.score().stdout


def test_sections_without_the_quote_are_no_headings_of_another_form(asked: Any) -> None:
    run = asked(*[["The name."]] * 5)
    assert run.section()["mean"]["recall@5"] == 0.0
    assert "place_mismatch" not in run.section()
    assert run.rows()["q0"]["evidence"]["heading_found"] is True


def test_passages_without_a_text_are_counted_by_heading_only(asked: Any) -> None:
    run = asked([None, None], ["The name.", None], [QUOTE], ["The name."])
    section = run.section()
    assert section["by_heading_only"] == 2
    assert section["mean"]["recall@5"] == 0.75
    assert section["mean"]["mrr"] == (1 + 1 / 2 + 1 + 0) / 4
    text = " ".join(run.score().stdout.split())
    assert "By heading only: in 2 answers a passage below the labelled heading has no text" in text


def test_a_cut_text_without_the_quote_leaves_the_answer_open(asked: Any) -> None:
    """q0: found in what is there. q1: found at rank 1, and rank 2 may hold it. q2: it may."""
    run = asked([HALF], [HALF, "The name."], ["The name."], cut=True)
    section = run.section()
    assert section["text_cut"] == {"not_scored": 1, "without_precision": 1}
    assert (section["n"]["recall@5"], section["mean"]["recall@5"]) == (2, 1.0)
    assert (section["n"]["precision@1"], section["n"]["precision@5"]) == (2, 1)
    assert run.rows()["q2"]["reasons"] == {"*": "text was truncated"}
    text = " ".join(run.score().stdout.split())
    assert (
        "Text was truncated before a quote was found: 1 answer not scored, and 1 without "
        "precision, F1 and MAP. Ask again with run_eval.py --store-full-text."
    ) in text


def test_several_searches_count_by_heading_only_too(evaluated: Any, gold: Any) -> None:
    place = {"rel_path": "lock.md", "heading_path": "Description > name"}
    lists = [[{"chunk_id": "a", "text": "The name."} | place], [{"chunk_id": "b"} | place]]
    searches = [{"query": "?", "retrieved": listed} for listed in lists]
    result = checked_result({"answer": "x", "searches": searches}, "q", "?")
    case = {"id": "q", "gold_supports": gold("lock.md > Description", snippets=[QUOTE])}
    section = evaluated([case], [result]).section()
    assert (section["by_heading_only"], section["mean"]["recall@1"]) == (1, 1.0)


def test_a_section_judged_irrelevant_stays_so_without_the_quote(asked: Any) -> None:
    """It is no gold whose mark came later: R = 1, N = 1 at rank 1, so bpref is 0."""
    run = asked(["The name.", QUOTE])
    wrong = RetrievedChunk("c0", rel_path="lock.md", heading_path=BELOW[10:], text="The name.")
    place = {"rel_path": wrong.rel_path, "heading_path": wrong.heading_path}
    row = {"key": key_of_passage(wrong), **place, "grade": 0}
    folder = run.folder / "labels" / "judgements" / "set"
    folder.mkdir(parents=True)
    line = json.dumps({"case_id": "q0", "decision": "answerable", "rows": [row]})
    (folder / "gold.jsonl").write_text(line + "\n")
    assert run.section()["mean"]["bpref"] == 0.0


PASSAGES = [
    # heading, text, cut, whether it is the labelled place
    ("Description", "The name.", False, True),
    ("Description > name", f"First. {QUOTE}", False, True),
    ("Description > name", HALF, False, True),
    ("Description > name", HALF.removesuffix(" that"), False, False),
    ("Description > name", HALF, True, True),
    ("Description > name", "The name.", False, False),
    ("Description > name", "The name.", True, None),
    ("Description > name", "", False, True),
    ("", QUOTE, False, True),
    ("", HALF, False, False),
    ("", HALF, True, True),
    ("", "The name.", True, False),
    ("Other", QUOTE, False, False),
]


@pytest.mark.parametrize(("heading", "text", "cut", "verdict"), PASSAGES)
def test_all_who_ask_get_one_answer(
    evaluated: Any, gold: Any, heading: str, text: str, cut: bool, verdict: bool | None
) -> None:
    supports = gold("lock.md > Description", snippets=[QUOTE])
    passage = RetrievedChunk(
        "c", rel_path="lock.md", heading_path=heading, text=text, text_length=900 if cut else None
    )
    result = TestResult("q", answer="x", retrieved=[passage])
    run = evaluated([{"id": "q", "gold_supports": supports}], [result])
    score = run.section()["mean"]["recall@1"]
    assert score == (None if verdict is None else float(verdict))
    (case,) = read_cases(run.folder / "set.jsonl")
    matched = gold_of(case, "auto")
    assert matched is not None
    matches = match_chunks(matched, [passage])
    assert (bool(matches.hits), matches.open) == (verdict is True, verdict is None)
    check = check_places([asked_of(result, [GoldSupport(**supports[0])])])
    assert (check.headings, check.untold) == (verdict is True, verdict is None)
    labelled = Chunk("lock.md", heading, text, cut=cut)
    assert _verdict(supports[0], labelled) is verdict
