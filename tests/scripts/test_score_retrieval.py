"""score_retrieval.py as a user runs it: three states, four modes, files, refusal, any order."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import score_retrieval
import storage
from storage import ErrorInfo, FolderSelection, Reference, ResultsWriter, RetrievedChunk, TestResult

Run = Callable[..., Result]
Chunks = list[RetrievedChunk | str]
SCRIPT = Path(score_retrieval.__file__)


def chunk(place: str, **fields: Any) -> RetrievedChunk:
    """A chunk at ``path > heading``."""
    path, _, heading = place.partition(" > ")
    text = fields.pop("text", f"Text of {place}.")
    return RetrievedChunk(f"id of {place}", path, path, heading, text=text, **fields)


def gold(*places: str, **fields: Any) -> list[dict[str, Any]]:
    parts = [place.partition(" > ") for place in places]
    return [{"rel_path": path, "heading_path": heading} | fields for path, _, heading in parts]


@pytest.fixture
def evaluated(tmp_path: Path) -> Callable[..., Path]:
    """Write a set and a finished run; returns the folder that holds both."""

    def make(cases: list[dict[str, Any]], results: list[TestResult], full: bool = True) -> Path:
        lines = [json.dumps({"question": f"About {case['id']}?"} | case) for case in cases]
        (tmp_path / "set.jsonl").write_text("\n".join(lines) + "\n")
        writer = ResultsWriter(tmp_path / "results", "run", store_full_text=full)
        sha = storage.sha256_file(tmp_path / "set.jsonl")
        writer.write_config(storage.RunConfig("run", dataset={"sha256": sha}))
        for result in results:
            writer.write_result(result)
        writer.finish(case["id"] for case in cases)
        return tmp_path

    return make


def score(folder: Path, *options: str) -> Result:
    words = ["--eval-set", str(folder / "set.jsonl"), "--results-dir", str(folder / "results")]
    words += options
    return CliRunner().invoke(score_retrieval.main, words, env={"COLUMNS": "100"})


def section(folder: Path, *options: str) -> dict[str, Any]:
    done = score(folder, "--json", *options)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(folder: Path) -> dict[str, Any]:
    lines = (folder / "results/run/scores/retrieval.jsonl").read_text().splitlines()
    return {row["case_id"]: row for row in map(json.loads, lines)}


def test_three_states_of_a_case(evaluated: Callable[..., Path]) -> None:
    folder = evaluated(
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
    found = section(folder)
    assert found["n"]["recall_any@5"] == 2
    assert found["not_applicable"]["recall_any@5"] == 2
    assert found["failed"]["recall_any@5"] == 1
    assert found["mean"]["recall_any@5"] == 0.5
    assert found["mean"]["mrr"] == 0.25  # 1/2 and 0
    assert found["definitions"]["ndcg@5"] == "retrieval/ndcg@1"
    by_case = rows(folder)
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
    assert by_case["found"]["evidence"] == {"match": "anchor", "found": [2], "hits": [2]}
    header = json.loads((folder / "results/run/metrics.json").read_text())
    assert (header["cases"], header["errors"], header["run_id"]) == (5, 1, "run")


def test_each_mode_matches_what_it_says(evaluated: Callable[..., Path]) -> None:
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
    folder = evaluated([case], [TestResult("q", retrieved=results)])
    ranks = {"chunk": 3, "anchor": 4, "doc": 2, "text": 5, "auto": 3}
    for mode, rank in ranks.items():
        found = section(folder, "--match", mode)
        assert found["mean"]["mrr"] == round(1 / rank, 6), mode
        assert found["options"]["match"] == mode
    assert section(folder)["by"]["match"] == {"chunk": section(folder)["by"]["match"]["chunk"]}


def test_documents_of_another_unicode_form_are_the_same(evaluated: Callable[..., Path]) -> None:
    # é as one character (NFC), and as e with an accent (NFD), as macOS spells paths.
    grades = {"cafe\u0301.md": 2, "b.md": 1}
    case = {"id": "q", "relevant_docs": ["caf\u00e9.md"], "relevance_grades": grades}
    listed: Chunks = [
        RetrievedChunk("1", "b.md"),
        RetrievedChunk("2", None, "caf\u00e9.md"),
        RetrievedChunk("3", "cafe\u0301.md"),
    ]
    folder = evaluated([case], [TestResult("q", retrieved=listed)])
    found = section(folder)["mean"]
    # The explicit grade 2 counts: (1 + 2 / log2 3) / (2 + 1 / log2 3) = 2.261860 / 2.630930.
    assert (found["recall@3"], found["ndcg@3"]) == (1.0, 0.859719)
    assert rows(folder)["q"]["evidence"] == {"match": "doc", "found": [2, 1], "hits": [1, 2, 3]}


@pytest.mark.parametrize(
    ("gold_fields", "reason"),
    [
        ({"gold_supports": gold("a.md > A")}, "no rel_path in the result"),
        ({"relevant_docs": ["a.md"]}, "no doc_id or rel_path in the result"),
        ({"gold_contexts": ["some text"]}, "no chunk texts in the result"),
    ],
)
def test_what_the_bot_does_not_send_is_no_miss(
    evaluated: Callable[..., Path], gold_fields: dict[str, Any], reason: str
) -> None:
    retrieved: Chunks = [RetrievedChunk("c1"), RetrievedChunk("c2")]
    folder = evaluated([{"id": "q"} | gold_fields], [TestResult("q", retrieved=retrieved)])
    assert section(folder)["n"]["mrr"] == 0
    assert rows(folder)["q"]["reasons"] == {"*": reason}


def test_an_empty_list_is_a_miss(evaluated: Callable[..., Path]) -> None:
    folder = evaluated([{"id": "q", "gold_supports": gold("a.md > A")}], [TestResult("q")])
    assert section(folder)["mean"]["mrr"] == 0.0


def test_a_case_and_repeat_that_stands_twice_is_refused(evaluated: Callable[..., Path]) -> None:
    folder = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    path = folder / "results/run/results.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    done = score(folder)
    assert done.exit_code == 2
    assert "'q', repeat 0, stands there 2 times" in done.stderr


def test_a_file_in_the_way_is_one_sentence(evaluated: Callable[..., Path]) -> None:
    folder = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    (folder / "results/run/scores").write_text("a file where a folder should be")
    done = score(folder)
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr
    assert not (folder / "results/run/metrics.json").exists()


def test_a_closed_pipe_is_no_error(evaluated: Callable[..., Path]) -> None:
    folder = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    command = [sys.executable, str(SCRIPT), "--eval-set", str(folder / "set.jsonl")]
    command += ["--results-dir", str(folder / "results")]
    for words in ([], ["--json"]):
        process = subprocess.Popen(
            [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
        assert process.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_sentence(evaluated: Callable[..., Path]) -> None:
    folder = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    command = [sys.executable, str(SCRIPT), "--eval-set", str(folder / "set.jsonl"), "--json"]
    command += ["--results-dir", str(folder / "results")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"the output cannot be written" in done.stderr
    assert b"Traceback" not in done.stderr


def test_retrieved_may_be_plain_ids(evaluated: Callable[..., Path]) -> None:
    case = {"id": "q", "chunk_relevance_grades": {"c1": 1, "c9": 3}}
    folder = evaluated([case], [TestResult("q", retrieved=["c0", "c1"])])
    assert section(folder)["mean"]["recall@3"] == 0.5


def test_rank_decides_not_the_place_in_the_list(evaluated: Callable[..., Path]) -> None:
    case = {"id": "q", "relevant_chunks": ["b"]}
    listed: Chunks = [RetrievedChunk("a", rank=2), RetrievedChunk("b", rank=1)]
    folder = evaluated([case], [TestResult("q", retrieved=listed)])
    assert section(folder)["mean"]["mrr"] == 1.0


def test_multi_hop_needs_one_whole_group(evaluated: Callable[..., Path]) -> None:
    supports = gold("a.md > A", "b.md > B", "c.md > C")
    case = {"id": "q", "gold_supports": supports, "required_support_groups": [[0, 1], [2]]}
    retrieved: Chunks = [chunk("a.md > A"), chunk("x.md > X"), chunk("b.md > B")]
    found = section(evaluated([case], [TestResult("q", retrieved=retrieved)]))
    assert [found["mean"][f"recall_all@{k}"] for k in (1, 3)] == [0.0, 1.0]
    assert found["mean"]["recall@3"] == round(2 / 3, 6)


def test_scope_attribution_snippets_and_recency(evaluated: Callable[..., Path]) -> None:
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
    found = section(evaluated([case], [result]))
    assert found["mean"]["scope_miss"] == 1.0
    assert found["mean"]["attribution_hit"] == 1.0
    assert found["mean"]["snippet_recall@1"] == 0.5
    assert found["mean"]["snippet_recall@3"] == 1.0
    assert found["mean"]["recency_rule_ok"] == 1.0


def test_a_cut_text_is_not_applicable_instead_of_a_miss(evaluated: Callable[..., Path]) -> None:
    case = {"id": "q", "gold_supports": gold("a.md > A", snippets=["far behind"])}
    long = chunk("a.md > A", text="word " * 100 + "far behind")
    folder = evaluated([case], [TestResult("q", retrieved=[long])], full=False)
    assert section(folder)["mean"]["snippet_recall@5"] is None
    assert rows(folder)["q"]["reasons"]["snippet_recall@5"] == "text was truncated"
    assert section(folder, "--match", "text")["n"]["mrr"] == 0


def test_repeats_are_one_case(evaluated: Callable[..., Path]) -> None:
    case = {"id": "q", "relevant_chunks": ["a"]}
    results = [
        TestResult("q", retrieved=["a"]),
        TestResult("q", retrieved=["x"], repeat=1),
        TestResult("q", status="error", error=ErrorInfo("timeout"), repeat=2),
    ]
    found = section(evaluated([case], results))
    assert found["n"]["mrr"] == 1
    assert found["mean"]["mrr"] == 0.5


def many(count: int) -> tuple[list[dict[str, Any]], list[TestResult]]:
    cases = [
        {
            "id": f"q{n}",
            "chunk_relevance_grades": {f"c{n % 7}": n % 3 + 1, f"c{n % 5 + 3}": 1},
            "category": ("factual", "reasoning")[n % 2],
        }
        for n in range(count)
    ]
    results = [
        TestResult(f"q{n}", retrieved=[f"c{(n * k) % 11}" for k in range(1, 9)])
        for n in range(count)
        if n % 17
    ]
    return cases, results


def test_processes_and_order_change_no_byte(evaluated: Callable[..., Path]) -> None:
    cases, results = many(400)
    folder = evaluated(cases, results)
    kept = {}
    for jobs in ("1", "2", "3"):
        assert score(folder, "--jobs", jobs).exit_code == 0
        scores = (folder / "results/run/scores/retrieval.jsonl").read_bytes()
        kept[jobs] = (scores, (folder / "results/run/metrics.json").read_bytes())
    assert kept["1"] == kept["2"] == kept["3"]
    path = folder / "results/run/results.jsonl"
    path.write_bytes(b"".join(sorted(path.read_bytes().splitlines(keepends=True))[::-1]))
    assert score(folder).exit_code == 0
    assert (folder / "results/run/metrics.json").read_bytes() == kept["1"][1]


def test_problems_of_set_and_results_come_together_and_nothing_is_written(
    evaluated: Callable[..., Path],
) -> None:
    cases, results = many(50)
    folder = evaluated(cases, results)
    run = folder / "results/run"
    lines = (folder / "set.jsonl").read_text().splitlines()
    lines[3] = '{"id": "q3"}'
    lines[44] = lines[43]
    (folder / "set.jsonl").write_text("\n".join(lines) + "\n")
    with open(run / "results.jsonl", "a") as file:
        file.write('{"test_case_id": 5}\n')
    before = sorted(path.name for path in run.rglob("*"))
    for jobs in ("1", "2"):
        done = score(folder, "--jobs", jobs)
        assert done.exit_code == 2
        assert f"{folder / 'set.jsonl'}:4: question: is missing" in done.stderr
        assert f"{folder / 'set.jsonl'}:45: id: 'q43' is also the id of line 44" in done.stderr
        assert "results.jsonl:48: not a result line" in done.stderr
        assert sorted(path.name for path in run.rglob("*")) == before


def test_a_result_of_an_unknown_case_is_refused(evaluated: Callable[..., Path]) -> None:
    folder = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    with open(folder / "results/run/results.jsonl", "a") as file:
        file.write('{"test_case_id": "stranger"}\n')
    done = score(folder)
    assert done.exit_code == 2
    assert "'stranger' is not in" in done.stderr


def test_an_unfinished_run_is_refused(evaluated: Callable[..., Path]) -> None:
    folder = evaluated([{"id": "q"}], [])
    (folder / "results/run/results.jsonl").unlink()
    done = score(folder, "--run", "run")
    assert done.exit_code == 2
    assert "--resume" in done.stderr


def test_the_tables_show_targets_slices_and_worst_cases(evaluated: Callable[..., Path]) -> None:
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
    done = score(evaluated(cases, results), "--by", "category", "--worst", "1")
    assert done.exit_code == 0
    shown = done.stdout
    assert "recall@5" in shown
    assert "> 0.7" in shown
    assert "factual" in shown
    assert "reasoning" in shown
    assert "wanted    missed  a.md > A" in shown
    assert "wanted    rank 2  b.md > [red]B" in shown  # markup is text
    assert "Is [bold]this[/]" in shown
    assert "\x1b]0" not in shown
    assert "\x1b[2J" not in shown


def test_the_note_when_the_set_has_changed(evaluated: Callable[..., Path]) -> None:
    folder = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    with open(folder / "set.jsonl", "a") as file:
        file.write('{"id": "new", "question": "Later?"}\n')
    done = score(folder)
    assert done.exit_code == 0
    assert "the eval set has changed" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--k", "0"],
        ["--k", "a"],
        ["--k", "9" * 21],
        ["--k", "١"],
        ["--seed", "-5"],
        ["--min-similarity", "nan"],
        ["--worst-by", "nonsense"],
        ["--run", "none"],
        ["--match", "x"],
        ["--labels-dir", "/no/such/folder"],
    ],
)
def test_usage_errors_end_with_2(evaluated: Callable[..., Path], options: list[str]) -> None:
    folder = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    assert score(folder, *options).exit_code == 2


def test_twice_gives_the_same_bytes_as_a_process(evaluated: Callable[..., Path]) -> None:
    cases, results = many(60)
    folder = evaluated(cases, results)
    command = [sys.executable, str(SCRIPT), "--eval-set", str(folder / "set.jsonl")]
    command += ["--results-dir", str(folder / "results")]
    kept = []
    for _ in range(2):
        done = subprocess.run([*command, "--json"], capture_output=True, cwd=folder)
        assert done.returncode == 0, done.stderr
        kept.append((done.stdout, (folder / "results/run/metrics.json").read_bytes()))
    assert kept[0] == kept[1]
    stored = json.loads(kept[0][1])["sections"]["retrieval"]
    assert stored == json.loads(kept[0][0])
