"""--run-id is another name of --run, also where it names a new run."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import click

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


def test_the_suite_scores_and_an_export_has_that_run(finished: Any) -> None:
    finished.write([{"id": "q", "answerable": True}], [TestResult("q", "?", answer="yes")])
    for option in ("--run", "--run-id"):
        words = (option, "run", "--sections", "abstention", "--json")
        assert json.loads(finished.score(eval_suite.main, *words).stdout)["run_id"] == "run"
    target = finished.folder / "out.jsonl"
    exported = ("export", "json", "--run-id", "run", "--output", str(target))
    done = finished.score(convert_data.main, *exported)
    assert done.exit_code == 0, done.output
    assert target.exists()
