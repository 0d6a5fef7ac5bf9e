"""--run-id is another name of --run, also where it names a new run."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import click
import pytest

import convert_data
import eval_suite
from storage import TestResult

SCRIPTS = Path(eval_suite.__file__).parent


def scripts_with_run() -> list[str]:
    commands = {}
    for path in sorted(SCRIPTS.glob("*.py")):
        module = importlib.import_module(path.stem)
        if isinstance(command := getattr(module, "main", None), click.Command):
            commands[path.stem] = {name for param in command.params for name in param.opts}
    return [
        name for name, names in commands.items() if "--run" in names and "--run-id" not in names
    ]


def test_every_script_takes_it() -> None:
    assert scripts_with_run() == []


@pytest.mark.parametrize("option", ["--run", "--run-id"])
def test_the_suite_scores_that_run(finished: Any, option: str) -> None:
    finished.write([{"id": "q", "answerable": True}], [TestResult("q", "?", answer="yes")])
    finished.run.rename(finished.run.with_name("other"))
    done = finished.score(eval_suite.main, option, "other", "--sections", "abstention", "--json")
    assert json.loads(done.stdout)["run_id"] == "other"


def test_an_export_takes_it(finished: Any) -> None:
    finished.write([{"id": "q"}], [TestResult("q", "?", answer="yes")])
    target = finished.folder / "out.jsonl"
    words = ("export", "json", "--run-id", "run", "--output", str(target))
    done = finished.score(convert_data.main, *words)
    assert done.exit_code == 0, done.output
    assert target.exists()
