"""Scripts called in the test's own process, and files of lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result


def call(script: Any, *words: str, ends: int = 0, env: Mapping[str, str] | None = None) -> Result:
    """A script that must end with this code; a traceback fails the test."""
    done = CliRunner().invoke(script.main, list(words), env=env, catch_exceptions=False)
    assert done.exit_code == ends, done.output
    return done


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
