"""score_retrieval.py: what matches what, the states of a case, outputs, what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.definitions import definition_of
from tests.processes import refused

import score_retrieval
from decisions.diagnosis import diagnose
from records.labels import read_cases
from records.metrics import load_metrics
from records.runs import EVAL_SET
from scorers.retrieval import RetrievalScorer
from storage import ErrorInfo, FolderSelection, Reference, RetrievedChunk, TestResult

Chunks = list[RetrievedChunk | str]


def test_each_mode_matches_what_it_says(evaluated: Any, chunk: Any, gold: Any) -> None:
    support = gold("a.md > A", snippets=["the lease ends at noon"])
    case = {
        "id": "q",
        "gold_supports": support,
        "relevant_chunks": ["id of c.md > C"],
        "relevance_grades": {"d.md": 2, "e.md": 0},
    }
    held = chunk("x.md > X", text="It is said that THE lease\nends at noon, always.")
    results: Chunks = [
        chunk("e.md > E"),
        chunk("d.md > D"),
        chunk("c.md > C"),
        chunk("a.md > A"),
        held,
    ]
    run = evaluated([case], [TestResult("q", retrieved=results)])
    ranks = {"chunk": 3, "anchor": 4, "doc": 2, "text": 5, "auto": 3}
    for mode, rank in ranks.items():
        found = run.section("--match", mode)
        assert found["mean"]["mrr"] == round(1 / rank, 6), mode
        assert found["options"]["match"] == mode
    assert run.section()["by"]["match"] == {"chunk": run.section()["by"]["match"]["chunk"]}


def test_documents_of_another_unicode_form_are_the_same(evaluated: Any) -> None:
    # é as one character (NFC), and as e with an accent (NFD), as macOS spells paths.
    grades = {"cafe\u0301.md": 2, "b.md": 1}
    case = {"id": "q", "relevant_docs": ["caf\u00e9.md"], "relevance_grades": grades}
    listed: Chunks = [
        RetrievedChunk("1", "b.md"),
        RetrievedChunk("2", None, "caf\u00e9.md"),
        RetrievedChunk("3", "cafe\u0301.md"),
    ]
    run = evaluated([case], [TestResult("q", retrieved=listed)])
    found = run.section()["mean"]
    # The explicit grade 2 counts: (1 + 2 / log2 3) / (2 + 1 / log2 3) = 2.261860 / 2.630930.
    assert (found["recall@3"], found["ndcg@3"]) == (1.0, 0.859719)
    assert run.rows()["q"]["evidence"] == {"match": "doc", "found": [2, 1], "hits": [1, 2, 3]}


def test_rank_decides_not_the_place_in_the_list(evaluated: Any) -> None:
    case = {"id": "q", "relevant_chunks": ["b"]}
    listed: Chunks = [RetrievedChunk("a", rank=2), RetrievedChunk("b", rank=1)]
    run = evaluated([case], [TestResult("q", retrieved=listed)])
    assert run.section()["mean"]["mrr"] == 1.0


def test_groups_count_by_their_files_where_documents_are_matched(
    evaluated: Any, chunk: Any, gold: Any
) -> None:
    supports = gold("a.md > A", "a.md > B", "b.md > C", "c.md > D")
    groups = [[0, 1, 2], [3]]
    files = {"a.md": 2, "b.md": 2, "c.md": 1}
    case = {"gold_supports": supports, "required_support_groups": groups}
    known = case | {"id": "known", "relevance_grades": files}
    # Documents under other names than the files: the groups cannot be told apart.
    other = case | {"id": "other", "relevant_docs": ["one", "two"]}
    results = [
        TestResult("known", retrieved=[chunk("a.md > X"), chunk("x.md > X"), chunk("b.md > Y")]),
        TestResult("other", retrieved=[RetrievedChunk("1", "one"), RetrievedChunk("2", "three")]),
    ]
    run = evaluated([known, other], results)
    run.section("--match", "doc")
    scores = {name: row["scores"] for name, row in run.rows().items()}
    # The files of the first group are a.md and b.md (once each): 1 of 2, then both.
    assert [scores["known"][f"evidence_recall@{k}"] for k in (1, 3)] == [0.5, 1.0]
    assert [scores["known"][f"recall_all@{k}"] for k in (1, 3)] == [0.0, 1.0]
    assert scores["known"]["recall@3"] == 2 / 3
    assert scores["other"]["evidence_recall@3"] == scores["other"]["recall@3"] == 0.5


def test_exactly_the_sufficient_evidence_is_whole_on_the_set_of_the_toolkit() -> None:
    """One group first, nothing else: the smallest, then the largest of each case."""
    scorer = RetrievalScorer()
    column = [metric.name for metric in scorer.metrics].index("evidence_recall@5")
    for size in (min, max):
        scored = []
        for case in read_cases(EVAL_SET):
            groups = case.required_support_groups or [list(range(len(case.gold_supports)))]
            group = size([group for group in groups if len(group) <= 5], key=len, default=[])
            places = [case.gold_supports[index] for index in group]
            listed: Chunks = [
                RetrievedChunk(
                    str(n), None, gold.rel_path, gold.heading_path, text=" ".join(gold.snippets)
                )
                for n, gold in enumerate(places)
            ]
            row, _ = scorer.score(case, TestResult(case.id, retrieved=listed))
            if row.values[column] is not None and group:
                scored.append(row.values[column])
        assert set(scored) == {1.0}
        assert len(scored) == 75 + 51  # all questions and turns that can be answered


def test_scope_attribution_snippets_and_recency(evaluated: Any, chunk: Any, gold: Any) -> None:
    supports = [
        *gold("old/a.md > A", snippets=["ten days"], date="2020-01-01"),
        *gold("new/b.md > B", snippets=["twelve days"], date="2024-01-01"),
    ]
    case = {"id": "q", "gold_supports": supports, "recency_conflict_rule": "cite_newer"}
    old = chunk("old/a.md > A", text="You get ten days.", rank=1)
    new = chunk("new/b.md > B", text="You now get twelve days.", rank=2)
    result = TestResult(
        "q",
        answer="Twelve days [1].",
        references=[Reference(1, chunk_id=new.chunk_id)],
        retrieved=[old, new],
        folder_selection=FolderSelection(["other"], "guessed"),
    )
    found = evaluated([case], [result]).section()
    assert found["mean"]["scope_miss"] == 1.0
    assert found["mean"]["attribution_hit"] == 1.0
    assert found["mean"]["snippet_recall@1"] == 0.5
    assert found["mean"]["snippet_recall@3"] == 1.0
    assert found["mean"]["recency_rule_ok"] == 1.0


def test_three_states_of_a_case(evaluated: Any, chunk: Any, gold: Any) -> None:
    run = evaluated(
        [
            {"id": "found", "gold_supports": gold("a.md > A")},
            {"id": "missed", "gold_supports": gold("a.md > A")},
            {"id": "unanswerable", "answerable": False, "gold_supports": gold("a.md > A")},
            {"id": "unlabelled"},
            {"id": "broken", "gold_supports": gold("a.md > A")},
            {"id": "not asked", "gold_supports": gold("a.md > A")},
        ],
        [
            TestResult("found", retrieved=[chunk("b.md > B"), chunk("a.md > A > Deep")]),
            TestResult("missed", retrieved=[chunk("b.md > B")]),
            TestResult("unanswerable", retrieved=[chunk("a.md > A")]),
            TestResult("unlabelled", retrieved=[chunk("a.md > A")]),
            TestResult("broken", status="error", error=ErrorInfo("timeout")),
        ],
    )
    found = run.section()
    assert found["n"]["recall_any@5"] == 2
    assert found["not_applicable"]["recall_any@5"] == 2
    assert found["failed"]["recall_any@5"] == 1
    assert found["mean"]["recall_any@5"] == 0.5
    assert found["mean"]["mrr"] == 0.25  # 1/2 and 0
    assert found["definitions"]["ndcg@5"] == definition_of("retrieval", "ndcg")
    by_case = run.rows()
    assert {name: row["status"] for name, row in by_case.items()} == {
        "found": "scored",
        "missed": "scored",
        "unanswerable": "not_applicable",
        "unlabelled": "not_applicable",
        "broken": "failed",
    }
    assert by_case["unanswerable"]["reasons"] == {"*": "unanswerable"}
    assert by_case["unlabelled"]["reasons"] == {"*": "no gold"}
    assert by_case["broken"]["reasons"] == {"*": "call failed: timeout"}
    assert by_case["broken"]["scores"]["mrr"] is None
    found_at = {"match": "anchor", "found": [2], "hits": [2], "heading_found": True}
    assert by_case["found"]["evidence"] == found_at
    header = load_metrics(run.path / "metrics.json")
    assert (header["cases"], header["errors"], header["run_id"]) == (5, 1, "run")


def test_what_the_bot_does_not_send_is_no_miss(evaluated: Any, gold: Any) -> None:
    fields: dict[str, Any] = {
        "no rel_path in the result": {"gold_supports": gold("a.md > A")},
        "no doc_id or rel_path in the result": {"relevant_docs": ["a.md"]},
        "no chunk texts in the result": {"gold_contexts": ["some text"]},
    }
    chunks: Chunks = [RetrievedChunk("c1"), RetrievedChunk("c2")]
    cases = [{"id": reason} | fields[reason] for reason in fields]
    run = evaluated(cases, [TestResult(reason, retrieved=chunks) for reason in fields])
    assert run.section()["n"]["mrr"] == 0
    assert [row["reasons"]["*"] for row in run.rows().values()] == [*fields]


def test_a_cut_text_is_not_applicable_instead_of_a_miss(
    evaluated: Any, chunk: Any, gold: Any
) -> None:
    case = {"id": "q", "gold_supports": gold("a.md > A", snippets=["far behind"])}
    long = chunk("a.md > A", text="word " * 100 + "far behind")
    run = evaluated([case], [TestResult("q", retrieved=[long])], full=False)
    assert run.section()["mean"]["snippet_recall@5"] is None
    assert run.rows()["q"]["reasons"]["snippet_recall@*"] == "text was truncated"
    assert run.section("--match", "text")["n"]["mrr"] == 0


def test_the_tables_show_targets_slices_and_worst_cases(
    evaluated: Any, chunk: Any, gold: Any
) -> None:
    hostile = "Is [bold]this[/] \x1b]0;owned\x07 safe?"
    cases = [
        {"id": "good", "gold_supports": gold("a.md > A"), "category": "factual"},
        {
            "id": "bad",
            "gold_supports": gold("a.md > A", "b.md > [red]B"),
            "category": "reasoning",
            "question": hostile,
        },
    ]
    results = [
        TestResult("good", retrieved=[chunk("a.md > A")]),
        TestResult("bad", retrieved=[chunk("x.md > X\x1b[2J"), chunk("b.md > [red]B")]),
    ]
    done = evaluated(cases, results).score("--by", "category", "--worst", "1")
    assert done.exit_code == 0
    shown = done.stdout
    assert "recall@5" in shown
    assert "> 0.7" in shown
    assert "factual" in shown
    assert "reasoning" in shown
    assert "gold not retrieved: a.md > A" in shown
    assert "gold found at 2: b.md > [red]B" in shown  # markup is text
    assert "Is [bold]this[/]" in shown
    assert "\x1b]0" not in shown
    assert "\x1b[2J" not in shown


def test_the_note_when_the_set_has_changed(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    with open(run.folder / "set.jsonl", "a") as file:
        file.write('{"id": "new", "question": "Later?"}\n')
    done = run.score()
    assert done.exit_code == 0
    assert "the eval set has changed" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_sentence(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    places = ["--eval-set", str(run.folder / "set.jsonl"), "--results-dir"]
    script = str(score_retrieval.__file__)
    command = [sys.executable, script, *places, str(run.folder / "results"), "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"the output cannot be written" in done.stderr
    assert b"Traceback" not in done.stderr


FILES = [f"part{n}/f{n}.md" for n in range(14)]


@pytest.fixture
def asked(evaluated: Any, chunk: Any, gold: Any) -> Any:
    """``asked(paths)``: the bot names the right file of each case so."""

    def make(paths: list[str]) -> Any:
        cases = [{"id": f"q{n}", "gold_supports": gold(f"{FILES[n]} > A")} for n in range(14)]
        results = [
            TestResult(f"q{n}", retrieved=[chunk(f"{path} > A")]) for n, path in enumerate(paths)
        ]
        return evaluated(cases, results)

    return make


def test_the_last_part_is_told_and_the_embedding_is_not_blamed(asked: Any) -> None:
    run = asked([path.rpartition("/")[2] for path in FILES])
    text = " ".join(run.score().stdout.split())
    expected = "gold files seen 0 of 14; 14 of 14 by their last part: the labels say part0/f0.md"
    assert expected in text
    section = load_metrics(run.path / "metrics.json")["sections"]["retrieval"]
    findings = diagnose({}, {"retrieval": section})
    assert findings[0].rule == "paths_never_match"
    assert expected in findings[0].says
    assert not any("embedding" in finding.look_at for finding in findings)


def test_two_name_spaces_are_told(asked: Any) -> None:
    run = asked([f"node-{n}" for n in range(14)])
    assert "the bot names none of the labels' files" in " ".join(run.score().stdout.split())


def test_a_case_and_repeat_that_stands_twice_is_refused(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    path = run.path / "results.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    assert "'q', repeat 0, is there 2 times" in refused(run.score())


def test_problems_of_set_and_results_come_together_and_nothing_is_written(
    evaluated: Any,
) -> None:
    names = [f"q{n}" for n in range(50)]
    cases = [{"id": name, "relevant_chunks": ["a"]} for name in names]
    run = evaluated(cases, [TestResult(name, retrieved=["a"]) for name in names])
    lines = (run.folder / "set.jsonl").read_text().splitlines()
    lines[3] = '{"id": "q3"}'
    lines[44] = lines[43]
    (run.folder / "set.jsonl").write_text("\n".join(lines) + "\n")
    with open(run.path / "results.jsonl", "a") as file:
        file.write('{"test_case_id": 5}\n')
    before = sorted(path.name for path in run.path.rglob("*"))
    for jobs in ("1", "2"):
        done = refused(run.score("--jobs", jobs))
        assert f"{run.folder / 'set.jsonl'}:4: question: is missing" in done
        assert f"{run.folder / 'set.jsonl'}:45: id: 'q43' is also the id of line 44" in done
        assert "results.jsonl:51: not a result line" in done
        assert sorted(path.name for path in run.path.rglob("*")) == before


def test_a_result_of_an_unknown_case_is_refused(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    with open(run.path / "results.jsonl", "a") as file:
        file.write('{"test_case_id": "stranger"}\n')
    assert "'stranger' is not in" in refused(run.score())


def test_an_unfinished_run_is_refused(evaluated: Any) -> None:
    run = evaluated([{"id": "q"}], [])
    (run.path / "results.jsonl").unlink()
    assert "--resume" in refused(run.score("--run", "run"))


def test_a_file_in_the_way_is_one_sentence(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    (run.path / "scores").write_text("a file where a folder should be")
    assert "cannot be written" in refused(run.score())
    assert not (run.path / "metrics.json").exists()


def test_usage_errors_end_with_2(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    wrong = [("--k", k) for k in ("0", "a", "9" * 21, "١")]
    wrong += [("--seed", "-5"), ("--set", "min_similarity=nan"), ("--worst-by", "nonsense")]
    wrong += [("--run", "none"), ("--match", "x"), ("--labels-dir", "/no/such/folder")]
    assert {words: run.score(*words).exit_code for words in wrong} == dict.fromkeys(wrong, 2)
