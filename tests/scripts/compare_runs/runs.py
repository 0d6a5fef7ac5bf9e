"""The runs that are compared: their size, a hostile text in them, and how scripts are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from click.testing import CliRunner, Result

CASES = 24
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/] ``` <script>alert(1)</script> ![i](http://e/) @all"
Compare = Callable[..., Result]


def run(command: click.Command, folder: Path, *words: str, columns: int = 100) -> Result:
    places = ("--eval-set", str(folder / "set.jsonl"), "--results-dir", str(folder / "results"))
    return CliRunner().invoke(command, [*words, *places], env={"COLUMNS": str(columns)})
