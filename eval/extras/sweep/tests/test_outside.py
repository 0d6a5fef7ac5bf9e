"""sweep_runs as a process: a grid that is not there, a terminal's width."""

from __future__ import annotations

from pathlib import Path

from tests.scripts import on_terminals

import options

SCRIPT = "extras.sweep.sweep_runs"
GRID = """[grid]
k = [3, 10]
demo_args = [["lexical_only=true"]]
"""
SCRIPTS = Path(options.__file__).parents[1]


def test_no_line_is_wider_than_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    widths = (60, 80)
    words = [str(tmp_path / "grid.toml"), "--api-url", "demo", "--filter", "tag=scopes"]
    words += ["--results-dir", str(tmp_path / "results"), "--run-id"]
    calls = [(columns, 24, SCRIPT, [*words, f"at-{columns}"]) for columns in widths]
    printed = on_terminals.outputs(calls, SCRIPTS, SCRIPTS.parent)
    for columns, (text, code) in zip(widths, printed, strict=True):
        assert code == 0, text
        assert on_terminals.too_wide(text, columns) == [], f"at {columns} columns"
