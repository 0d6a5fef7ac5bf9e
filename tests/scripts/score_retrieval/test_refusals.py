"""Bad input and usage: one sentence, exit code 2, nothing written."""

from __future__ import annotations

from typing import Any

from storage import TestResult


def test_a_case_and_repeat_that_stands_twice_is_refused(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    path = run.path / "results.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    done = run.score()
    assert done.exit_code == 2
    assert "'q', repeat 0, is there 2 times" in done.stderr


def test_problems_of_set_and_results_come_together_and_nothing_is_written(
    evaluated: Any, many: Any
) -> None:
    cases, results = many(50)
    run = evaluated(cases, results)
    lines = (run.folder / "set.jsonl").read_text().splitlines()
    lines[3] = '{"id": "q3"}'
    lines[44] = lines[43]
    (run.folder / "set.jsonl").write_text("\n".join(lines) + "\n")
    with open(run.path / "results.jsonl", "a") as file:
        file.write('{"test_case_id": 5}\n')
    before = sorted(path.name for path in run.path.rglob("*"))
    for jobs in ("1", "2"):
        done = run.score("--jobs", jobs)
        assert done.exit_code == 2
        assert f"{run.folder / 'set.jsonl'}:4: question: is missing" in done.stderr
        assert f"{run.folder / 'set.jsonl'}:45: id: 'q43' is also the id of line 44" in done.stderr
        assert "results.jsonl:48: not a result line" in done.stderr
        assert sorted(path.name for path in run.path.rglob("*")) == before


def test_a_result_of_an_unknown_case_is_refused(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    with open(run.path / "results.jsonl", "a") as file:
        file.write('{"test_case_id": "stranger"}\n')
    done = run.score()
    assert done.exit_code == 2
    assert "'stranger' is not in" in done.stderr


def test_an_unfinished_run_is_refused(evaluated: Any) -> None:
    run = evaluated([{"id": "q"}], [])
    (run.path / "results.jsonl").unlink()
    done = run.score("--run", "run")
    assert done.exit_code == 2
    assert "--resume" in done.stderr


def test_a_file_in_the_way_is_one_sentence(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    (run.path / "scores").write_text("a file where a folder should be")
    done = run.score()
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr
    assert not (run.path / "metrics.json").exists()


def test_usage_errors_end_with_2(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    wrong = [("--k", k) for k in ("0", "a", "9" * 21, "١")]
    wrong += [("--seed", "-5"), ("--set", "min_similarity=nan"), ("--worst-by", "nonsense")]
    wrong += [("--run", "none"), ("--match", "x"), ("--labels-dir", "/no/such/folder")]
    assert {words: run.score(*words).exit_code for words in wrong} == dict.fromkeys(wrong, 2)
