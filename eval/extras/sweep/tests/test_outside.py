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
    words = [str(tmp_path / "grid.toml"), "--api-url", "demo", "--filter", "tag=scopes"]
    words += ["--results-dir", str(tmp_path / "results"), "--run-id", "own"]
    ((text, code),) = on_terminals.outputs([(60, 24, SCRIPT, words)], SCRIPTS, SCRIPTS.parent)
    assert code == 0, text
    assert on_terminals.too_wide(text, 60) == []
