"""Sets with conversations and bots that tell their searches, as a user scores them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import CliRunner
from tests.scripts.conftest import FinishedRun

import compare_runs
import eval_suite
import score_conversations
import score_pipeline
import score_retrieval
import score_searches
from records.results import Search, SearchedChunk
from storage import ErrorInfo, RetrievedChunk, TestResult

CONVERSATIONS = 6
WRONG = "winter tyres of boats"


def passages(*letters: str) -> list[SearchedChunk | str]:
    return [
        SearchedChunk(
            letter, rel_path=f"{letter}.md", heading_path="H", text=f"Text of {letter}.", rank=rank
        )
        for rank, letter in enumerate(letters, 1)
    ]


def case(conversation: int, turn: int) -> dict[str, Any]:
    return {
        "id": f"c{conversation}-{turn}",
        "conversation": f"c{conversation}",
        "turn": turn,
        "standalone": turn == 1,
        "answerable": True,
        "expected_outcome": "success",
        "gold_supports": [
            {"rel_path": "a.md", "heading_path": "H"},
            {"rel_path": "b.md", "heading_path": "H"},
        ],
    }


def result(conversation: int, turn: int) -> TestResult:
    """Three searches a question: a, then b, then nothing new; the second one of turn 4 was
    rewritten wrongly and finds neither."""
    wrong = turn == 4
    searches = [
        Search("tyres", retrieved=passages("a", "x"), start_ms=0.0),
        Search(WRONG if wrong else "tyres price", retrieved=passages("z" if wrong else "b")),
        Search("tyres again", retrieved=passages("a")),
    ]
    seen = ["a"] if wrong else ["a", "b"]
    return TestResult(
        f"c{conversation}-{turn}",
        answer="It costs nothing." if wrong else "It costs 20 EUR [1].",
        retrieved=[RetrievedChunk(one, rel_path=f"{one}.md", heading_path="H",
                                  text=f"Text of {one}.", rank=rank)
                   for rank, one in enumerate(seen, 1)],
        searches=searches,
        asked_with="live",
    )  # fmt: skip


TURNS = [(conversation, turn) for conversation in range(CONVERSATIONS) for turn in (1, 2, 3, 4)]
CASES = [case(*key) for key in TURNS]
RESULTS = [result(*key) for key in TURNS]


def test_the_wrong_search_is_named_with_its_turn(finished: Any) -> None:
    """Union recall is 1 but at turn 4, where it is .5: (3 + .5) / 4 = .875. Each search has half of
    the evidence, the wrong one nothing: 18 of 24 cases have (.5 + .5 + .5) / 3, 6 have 1 / 3."""
    finished.write(CASES, RESULTS)
    section = finished.section(score_searches.main)
    assert section["mean"]["union_evidence_recall"] == 0.875
    assert section["mean"]["search_evidence_recall"] == round((18 * 0.5 + 6 / 3) / 24, 6)
    assert (section["mean"]["never_complete"], section["mean"]["complete_at_search"]) == (0.25, 2.0)
    assert (section["mean"]["searches_without_new"], section["mean"]["search_count"]) == (1.0, 3.0)
    assert section["by"]["turn"]["3+"]["mean"]["union_evidence_recall"] == 0.75
    assert section["by_turn"]["4"]["2"]["evidence_recall"] == 0.0
    done = finished.score(score_searches.main, "--worst", "1", columns=120)
    assert "The weakest search is search 2 of turn 4" in done.stdout
    assert f"    {WRONG}\n    1 passage, 1 new, no gold, evidence_recall 0.00" in done.stdout
    assert "conversation: turn 4 of c0" in done.stdout


def test_turns_are_slices_and_their_loss_has_an_interval(
    finished: Any, same_bytes: Callable[..., None]
) -> None:
    """evidence_recall@5 of turn 1 is 1, of the later ones (1 + 1 + .5) / 3: a loss of 1/6."""
    finished.write(CASES, RESULTS)
    section = finished.section(score_retrieval.main)
    loss = section["turn_loss"]["evidence_recall@5"]
    assert (loss["mean"], loss["conversations"]) == (round(-1 / 6, 6), 6)
    assert loss["ci95"][0] <= loss["mean"] <= loss["ci95"][1]
    assert section["clustered_by"] == "conversation"
    means = {name: part["mean"]["recall@5"] for name, part in section["by"]["standalone"].items()}
    assert means == {"yes": 1.0, "no": round(2.5 / 3, 6)}
    done = finished.score(score_retrieval.main, "--by", "turn", "-v", columns=120)
    assert "Later turns against first turns" in done.stdout
    same_bytes(finished, score_conversations.main, "conversations")


def test_whole_conversations(finished: Any) -> None:
    """All break at turn 4, which cites nothing; one broke at turn 2 already, by a failed call."""
    results = [*RESULTS]
    results[1] = TestResult("c0-2", status="error", error=ErrorInfo("timeout"))
    results[1].asked_with = "live"
    finished.write(CASES, results)
    section = finished.section(score_conversations.main)
    assert section["conversations"]["broke_at_turn"] == {"2": 1, "4": 5}
    assert (section["mean"]["conversation_pass"], section["n"]["conversation_pass"]) == (0.0, 6)
    # what turn 4 lacks (b) came at turns 1 to 3, but the turn does not pass
    assert section["mean"]["evidence_in_history"] == 1.0
    assert section["mean"]["answered_from_history"] == 0.0
    done = finished.score(score_conversations.main, "--worst", "1", "--worst-by",
                          "answered_from_history", columns=120)  # fmt: skip
    assert "6 conversations; in 6 a turn fails, first: 1 at turn 2, 5 at turn 4." in done.stdout
    names = "c0-2, c1-4, c2-4, c3-4, c4-4, c5-4"
    assert f"First failing turns: {names}." in done.stdout
    assert "missing here, brought at turn 3: b.md" in done.stdout


def test_sections_of_conversations_and_searches_only_where_there_are_some(finished: Any) -> None:
    """The suite scores both by itself for this run, and neither for a set without turns of a bot
    that does not tell its searches."""

    def sections() -> dict[str, Any]:
        done = finished.score(eval_suite.main, "--run", "run", "--suite", "smoke", "--json")
        assert done.exit_code == 0, done.output
        return dict(json.loads(done.stdout)["sections"])

    finished.write([{"id": "s", "relevant_docs": ["a.md"]}], [TestResult("s", answer="Yes.")])
    single = sections()
    assert not {"searches", "conversations"} & single.keys()
    assert not any("turn_loss" in section for section in single.values())
    for command, why in (
        (score_searches.main, "reports its searches"),
        (score_conversations.main, "has no conversation"),
    ):
        done = finished.score(command)
        assert done.exit_code == 0, "make score runs both, whatever the bot tells"
        assert why in done.stderr
    assert not list((finished.run / "scores").glob("searches*"))
    finished.folder = finished.folder / "second"
    finished.folder.mkdir()
    finished.run = finished.folder / "results" / "run"
    finished.write(CASES, RESULTS)
    assert {"searches", "conversations"} <= sections().keys()


def test_a_comparison_lists_the_conversations_that_were_fixed(finished: Any) -> None:
    """In the run all six break at turn 4; its copy has a citation there in two of them."""
    finished.write(CASES, RESULTS)
    fixed = [result(*key) for key in TURNS]
    for one in fixed:
        if one.test_case_id in ("c1-4", "c2-4"):
            one.answer = "It costs nothing [1]."
    FinishedRun(finished.folder, "new").write(CASES, fixed)
    for run in ("run", "new"):
        assert finished.score(score_pipeline.main, "--run", run).exit_code == 0
    where = ["--eval-set", str(finished.folder / "set.jsonl")]
    where += ["--results-dir", str(finished.folder / "results"), "run", "new"]
    markdown = finished.folder / "changes.md"
    done = CliRunner().invoke(compare_runs.main, [*where, "-v", "--markdown", str(markdown)])
    assert done.exit_code == 0, done.output
    for text in (done.stdout, markdown.read_text("utf-8")):
        assert "Of 6 conversations 0 broke and 2 were fixed." in text
        assert "turn 4 failed, now all 4 turns are ok" in text
    found = json.loads(CliRunner().invoke(compare_runs.main, [*where, "--json"]).stdout)
    assert [row["conversation"] for row in found["conversations"]["fixed"]] == ["c1", "c2"]
