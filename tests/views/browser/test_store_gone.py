"""Files of a run that are taken away while one looks at a case."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.views.browser.case_lines import JUDGE, add_verdict

from views.library import RunLibrary

Wait = Callable[..., None]


def test_a_case_without_the_files_that_were_taken_away(runs: Any, wait_until: Wait) -> None:
    runs.cases({"id": "a", "question": "?"})
    score = {"case_id": "a", "scores": {"recall@5": 1.0}}
    folder = runs.run("r", [{"id": "a"}], config=JUDGE, retrieval=[score])
    add_verdict(runs.eval_set, folder)
    run = RunLibrary(runs.results_dir, runs.eval_set, None).open("r")
    run.start(lambda: None)

    def judged_and_scored() -> tuple[int, int]:
        detail = run.detail(("a", 0))
        assert detail is not None
        assert detail.problems == ()  # also before it is known that a file is gone
        return len(detail.judged), len(detail.lines)

    assert judged_and_scored() == (1, 1)
    before = run.table
    (folder / "verdicts.jsonl").unlink()
    assert judged_and_scored() == (0, 1)
    wait_until(lambda: run.table is not before, "the run is read anew")
    (folder / "scores" / "retrieval.jsonl").unlink()
    assert judged_and_scored() == (0, 0)
    wait_until(lambda: "recall@5" not in run.table.metrics, "its column is gone, too")
    run.close()


def test_it_is_told_that_verdicts_are_gone(runs: Any, wait_until: Wait) -> None:
    folder = runs.run("r", [{"id": "a"}])
    verdict = {"case_id": "a", "metric": "groundedness", "status": "ok"}
    (folder / "verdicts.jsonl").write_text(json.dumps(verdict) + "\n")
    told: list[int] = []
    run = RunLibrary(runs.results_dir, runs.eval_set, None).open("r")
    run.start(lambda: told.append(1))
    before = len(told)
    (folder / "verdicts.jsonl").unlink()
    wait_until(lambda: len(told) > before, "that they are gone is told")
    run.close()


def test_a_run_that_leads_elsewhere_is_not_opened(runs: Any, tmp_path: Path) -> None:
    runs.cases({"id": "a", "question": "?"})
    (runs.run("r", [{"id": "a"}]) / "pairs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"r/pairs: is a link to .*, outside of"):
        RunLibrary(runs.results_dir, runs.eval_set, None).open("r")
