"""Runs as they are read: lists of runs, columns, files that changed, nothing written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.score_lines import write_lines
from tests.views.browser.case_lines import JUDGE, add_verdict

from views.browser.answers import UNKNOWN
from views.library import RunLibrary, RunReader

Wait = Callable[..., None]


def opened(runs: Any, name: str, *, start: bool = True) -> RunReader:
    library = RunLibrary(runs.results_dir, runs.eval_set, None)
    run = library.open(name)
    if start:
        run.start(lambda: None)
    return run


def column(run: RunReader, name: str) -> dict[str, float | None]:
    table = run.table
    return {table.ids[row]: table.number(name, row) for row in range(table.count)}


def recall(case_id: str, value: float | None, **more: Any) -> dict[str, Any]:
    return {"case_id": case_id, "scores": {"recall@5": value, "mrr": value}, **more}


def test_runs_are_listed_newest_first_with_their_means(runs: Any) -> None:
    means = {"retrieval": {"mean": {"recall@5": 0.5, "mrr": None}, "n": {"recall@5": 2}}}
    runs.run(
        "old",
        [{"id": "a"}],
        config={"started": "2026-01-01T00:00:00", "retriever": {"k": 5, "requested": {"k": 5}}},
        metrics={"cases": 2, "errors": 1, "sections": means},
    )
    runs.run("new", [{"id": "a"}], config={"started": "2026-02-01T00:00:00"})
    (runs.results_dir / "no run").mkdir()
    library = RunLibrary(runs.results_dir, runs.eval_set, None)
    new, old = library.refresh()
    assert (new.run_id, new.state, new.done, new.errors) == ("new", "complete", 1, None)
    assert (old.run_id, old.done, old.errors, old.mean("recall@5")) == ("old", 2, 1, 0.5)
    assert old.mean("mrr") is None
    assert old.config == (("retriever.k", "5"),)


def test_states_of_a_run_in_progress(runs: Any) -> None:
    config = {"run": {"selected": 3, "repeat": 2}}
    folder = runs.run("live", [{"id": "a"}, {"id": "b"}], partial=True, config=config)
    library = RunLibrary(runs.results_dir, runs.eval_set, None)
    (info,) = library.refresh()
    assert (info.state, info.done, info.planned, info.missing) == ("running", 2, 6, "")
    os.utime(folder / "results.partial.jsonl", (0, 0))
    assert library.refresh()[0].state == "stopped"
    (folder / "results.partial.jsonl").unlink()
    assert library.refresh()[0].state == "empty"


def test_what_has_no_result_is_told_scored_or_not(runs: Any) -> None:
    config = {"run": {"selected": 3, "repeat": 1}}
    runs.run("lost", [{"id": "a"}, {"id": "b"}], config=config)
    (info,) = RunLibrary(runs.results_dir, runs.eval_set, None).refresh()
    assert (info.state, info.missing) == ("complete", "1 of 3 asked cases has no result")
    run = opened(runs, "lost", start=False)
    assert "1 of 3 asked cases has no result" in run.notices
    assert run.info.done == 2
    # scored: metrics.json tells
    means = {"retrieval": {"mean": {"mrr": 1.0}, "n": {"mrr": 2}}}
    head = {"asked": 90, "missing": 11, "cases": 79, "errors": 0, "sections": means}
    runs.run("lost", [{"id": "a"}], config=config, metrics=head)
    (info,) = RunLibrary(runs.results_dir, runs.eval_set, None).refresh()
    assert info.missing == "11 of 90 asked cases have no result"
    runs.run("lost", [{"id": "a"}, {"id": "b"}, {"id": "c"}], config=config, metrics={"cases": 3})
    (info,) = RunLibrary(runs.results_dir, runs.eval_set, None).refresh()
    assert info.missing == ""


@each_row("text", ["{", "[]", '{"sections":{"x":{"mean":{"y":"high"}}}}', "\x00"])
def test_a_damaged_metrics_file_is_named_and_the_run_still_listed(runs: Any, text: str) -> None:
    folder = runs.run("a", [{"id": "a"}])
    (folder / "metrics.json").write_text(text)
    (info,) = RunLibrary(runs.results_dir, runs.eval_set, None).refresh()
    assert info.problem.startswith("metrics.json cannot be read")
    assert info.done == 1


def test_columns_come_from_results_scores_and_the_set(runs: Any, wait_until: Wait) -> None:
    runs.cases(
        {"id": "a", "question": "?", "category": "factual", "tags": ["x"], "answerable": True},
        {"id": "b", "question": "?", "category": "general"},
    )
    runs.run(
        "r",
        [
            {"id": "a", "latency_ms": {"total": 12.5}, "policy_flags": ["late"]},
            {"id": "b", "status": "error", "error": {"kind": "timeout"}},
        ],
        retrieval=[recall("a", 0.25), recall("b", None), recall("nobody", 1.0)],
        pipeline=[{"case_id": "b", "scores": {"pass": 0.0}}],
    )
    run = opened(runs, "r")
    table = run.table
    assert table.ids == ["a", "b"]
    assert column(run, "recall@5") == {"a": 0.25, "b": None}
    assert column(run, "pass") == {"a": None, "b": 0.0}
    assert column(run, "latency") == {"a": 12.5, "b": None}
    assert table.words["category"] == ["factual", "general"]
    assert table.words["error"] == ["", "timeout"]
    assert (table.sets["tag"][0], table.sets["flag"][0]) == (("x",), ("late",))
    assert table.metrics == {"recall@5": "retrieval", "mrr": "retrieval", "pass": "pipeline"}
    assert table.codes["pipeline"][0] == UNKNOWN
    assert column(run, "mrr") == {"a": 0.25, "b": None}
    run.close()


def test_scores_in_another_order_and_of_repeats_find_their_rows(runs: Any) -> None:
    results = [{"id": "a"}, {"id": "a", "repeat": 1}, {"id": "b"}]
    scores = [recall("b", 0.1), recall("a", 0.2, repeat=1), recall("a", 0.3)]
    runs.run("r", results, retrieval=scores)
    run = opened(runs, "r")
    assert [run.table.number("recall@5", row) for row in range(3)] == [0.3, 0.2, 0.1]
    run.close()


def test_a_run_is_read_again_only_after_a_change(runs: Any) -> None:
    folder = runs.run("r", [{"id": "a"}])
    run = opened(runs, "r", start=False)
    run._refresh(lambda: None)
    before = run.table
    run._refresh(lambda: None)
    assert run.table is before
    write_lines(folder, "retrieval", [recall("a", 1.0)])
    run._refresh(lambda: None)
    assert run.table is not before
    assert column(run, "recall@5") == {"a": 1.0}


def test_a_wish_to_read_again_does_not_wait_for_the_next_turn(
    runs: Any, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread looks each ten minutes here, the test waits a minute at most."""
    monkeypatch.setattr("views.library.POLL_SECONDS", 600.0)
    folder = runs.run("r", [{"id": "a"}])
    run = opened(runs, "r")
    for value in (1.0, 0.5):  # twice: the first wish is not kept for ever
        write_lines(folder, "retrieval", [recall("a", value)])
        run.read_again()
        wait_until(lambda value=value: column(run, "recall@5") == {"a": value}, "the new score")
    run.close()


def test_a_run_in_progress_and_its_end(runs: Any, wait_until: Wait) -> None:
    folder = runs.run("live", [{"id": "b"}], partial=True)
    partial = folder / "results.partial.jsonl"
    run = opened(runs, "live")
    with open(partial, "ab") as file:
        file.write(b'{"test_case_id":"a","question":"torn')
        file.flush()
        wait_until(lambda: run.table.count == 1, "a torn line is no case")
        file.write(b'?"}\n')
    wait_until(lambda: run.table.ids == ["b", "a"], "its end makes it one")
    assert run.table.questions[1] == "torn?"
    growing = run.table
    runs.run("live", [{"id": "a"}, {"id": "b"}])
    partial.unlink()
    wait_until(lambda: run.table.ids == ["a", "b"], "the finished file takes its place")
    assert run.table is not growing
    write_lines(folder, "retrieval", [recall("a", 1.0)])
    wait_until(lambda: column(run, "recall@5") == {"a": 1.0, "b": None}, "scores that come later")
    write_lines(folder, "retrieval", [recall("a", 0.5)])
    wait_until(lambda: column(run, "recall@5") == {"a": 0.5, "b": None}, "scores made again")
    wait_until(lambda: run.info.state == "complete", "the state of the run")
    run.close()


def test_a_run_without_results_gets_them_later(runs: Any, wait_until: Wait) -> None:
    runs.run("r", None)
    run = opened(runs, "r")
    assert run.table.count == 0
    runs.run("r", [{"id": "a"}], partial=True)
    wait_until(lambda: run.table.ids == ["a"], "the first result")
    run.close()


def test_lines_that_cannot_be_read_are_counted_and_the_rest_is_shown(
    runs: Any, wait_until: Wait
) -> None:
    folder = runs.run("r", [{"id": "a"}, {"id": "b"}], retrieval=[recall("a", 1.0)])
    with open(folder / "results.jsonl", "ab") as file:
        file.write(b'not JSON\n\n{"test_case_id":5}\n\xff\xfe\n{"test_case_id":"c"}\n')
    with open(folder / "scores" / "retrieval.jsonl", "ab") as file:
        file.write(b'{"case_id":"b","scores":{"recall@5":"high"}}\n')
    run = opened(runs, "r")
    assert run.table.ids == ["a", "b", "c"]
    said = " ".join(run.notices)
    assert "results.jsonl: 3 lines cannot be read" in said
    assert "retrieval.jsonl: 1 line cannot be read" in said
    run.close()


def test_a_changed_set_is_told_and_read_again(runs: Any, wait_until: Wait) -> None:
    from records.files import sha256_file

    runs.cases({"id": "a", "question": "?", "category": "factual"})
    dataset = {"dataset": {"sha256": sha256_file(runs.eval_set)}}
    runs.run("r", [{"id": "a"}], config=dataset)
    run = opened(runs, "r")
    assert run.notices == []
    other = runs.root / "other"
    other.write_bytes(runs.eval_set.read_bytes().replace(b"factual", b"general"))
    other.replace(runs.eval_set)
    wait_until(lambda: run.table.words["category"] == ["general"], "the set is read again")
    wait_until(lambda: run.notices, "and the user is told")
    assert "not the set this run was asked with" in run.notices[0]
    run.close()


def test_damage_is_told_before_the_changed_set(runs: Any, wait_until: Wait) -> None:
    runs.cases({"id": "a", "question": "?"})
    folder = runs.run("r", [{"id": "a"}], config={"dataset": {"sha256": "5" * 64}})
    with open(folder / "results.jsonl", "ab") as file:
        file.write(b"{\n")
    run = opened(runs, "r")
    damage, other_set = run.notices
    assert damage.startswith("results.jsonl: 1 line cannot be read")
    assert "not the set this run was asked with" in other_set
    run.close()


def test_verdicts_that_come_while_one_looks_are_told_and_shown(runs: Any, wait_until: Wait) -> None:
    runs.cases({"id": "a", "question": "?"})
    folder = runs.run("r", [{"id": "a"}], config=JUDGE)
    told: list[int] = []
    run = RunLibrary(runs.results_dir, runs.eval_set, None).open("r")
    run.start(lambda: told.append(1))
    metrics = ["groundedness", "groundedness (opinion 2)"]
    for number in range(2):
        before = len(told)
        add_verdict(runs.eval_set, folder, judge_repeat=number)

        def judged() -> list[str]:
            detail = run.detail(("a", 0))
            assert detail is not None
            return [one.metric for one in detail.judged]

        shown = metrics[: number + 1]
        wait_until(lambda: judged() == shown, "the new verdict is shown")  # noqa: B023
        wait_until(lambda: len(told) > before, "the new verdict is told")  # noqa: B023
    assert run.detail(("a", 1)) is None
    assert run.detail(("b", 0)) is None
    run.close()


def test_nothing_is_written(runs: Any) -> None:
    def files() -> dict[Path, tuple[bytes, int]]:
        paths = [path for path in runs.root.rglob("*") if path.is_file()]
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}

    runs.cases({"id": "a", "question": "?"})
    runs.run("r", [{"id": "a"}], retrieval=[recall("a", 1.0)], metrics={"cases": 1})
    before = files()
    library = RunLibrary(runs.results_dir, runs.eval_set, None)
    library.refresh()
    run = library.open("r")
    run.start(lambda: None)
    assert run.detail(("a", 0)) is not None
    run.close()
    assert files() == before


def test_labelling_needs_a_complete_run(runs: Any) -> None:
    runs.cases({"id": "a", "question": "?"})
    runs.run("live", [{"id": "a"}], partial=True)
    folder = runs.run("done", [{"id": "a"}])
    labeller = ("python", "label_eval.py")
    library = RunLibrary(runs.results_dir, runs.eval_set, None, labeller=labeller)
    said = library.label_command("live", "a")
    assert isinstance(said, str)
    assert "not complete" in said
    command = library.label_command("done", "-a b")
    assert not isinstance(command, str)
    assert tuple(command[:2]) == labeller
    assert command[command.index("--from-run") + 1] == str(folder)
    assert command[-1] == "--case=-a b"  # one word, so that no id is taken for an option
    assert "--labels-dir" not in command
    labels = runs.root / "labels"
    library = RunLibrary(runs.results_dir, runs.eval_set, labels, labeller=labeller)
    command = library.label_command("done", "a")
    assert command[command.index("--labels-dir") + 1] == str(labels)
    with pytest.raises(ValueError, match="no such folder"):
        library.open("gone")


def test_a_case_without_the_files_that_were_taken_away(runs: Any, wait_until: Wait) -> None:
    runs.cases({"id": "a", "question": "?"})
    score = {"case_id": "a", "scores": {"recall@5": 1.0}}
    folder = runs.run("r", [{"id": "a"}], config=JUDGE, retrieval=[score])
    add_verdict(runs.eval_set, folder)
    run = RunLibrary(runs.results_dir, runs.eval_set, None).open("r")
    told: list[int] = []
    run.start(lambda: told.append(1))

    def judged_and_scored() -> tuple[int, int]:
        detail = run.detail(("a", 0))
        assert detail is not None
        assert detail.problems == ()  # also before it is known that a file is gone
        return len(detail.judged), len(detail.lines)

    assert judged_and_scored() == (1, 1)
    before, count = run.table, len(told)
    (folder / "verdicts.jsonl").unlink()
    assert judged_and_scored() == (0, 1)
    wait_until(lambda: run.table is not before, "the run is read anew")
    wait_until(lambda: len(told) > count, "and this is told")
    (folder / "scores" / "retrieval.jsonl").unlink()
    assert judged_and_scored() == (0, 0)
    wait_until(lambda: "recall@5" not in run.table.metrics, "its column is gone, too")
    run.close()


def test_a_run_that_leads_elsewhere_is_not_opened(runs: Any, tmp_path: Path) -> None:
    runs.cases({"id": "a", "question": "?"})
    (runs.run("r", [{"id": "a"}]) / "pairs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"r/pairs: is a link to .*, outside of"):
        RunLibrary(runs.results_dir, runs.eval_set, None).open("r")
