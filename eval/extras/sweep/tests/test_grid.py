"""grid.toml: the documents' example, names of settings, and which one the baseline names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.processes import call_script
from tests.rows import each_row

from extras.sweep.grid import read_grid
from storage import StorageError

GRID = "[grid]\nk = [2, 5]\nrerank = [true, false]\n[[setting]]\nname = 'all at once'\nk = 30\n"


def test_the_example_of_the_manual_can_be_run(tmp_path: Path) -> None:
    manual = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    text = manual.partition("## A grid of settings")[2]
    example = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert example
    (tmp_path / "grid.toml").write_text(example[1], encoding="utf-8")
    grid = read_grid(tmp_path / "grid.toml")
    assert grid.baseline == "k=5 rerank=true"
    names = [f"k={k} rerank={word}" for k in (2, 5, 10) for word in ("true", "false")]
    names += ["no reranker, more passages"]
    assert [setting.name for setting in grid.settings] == names


PARTS = [(name, "k=2 rerank=false") for name in ("k=2 rerank=false", "rerank=false k=2")]


@each_row(("text", "baseline"), [*PARTS, ("all", "all at once")])
def test_a_part_of_a_name_is_enough_for_the_baseline(
    tmp_path: Path, text: str, baseline: str
) -> None:
    (tmp_path / "grid.toml").write_text(f"baseline = '{text}'\n{GRID}")
    assert read_grid(tmp_path / "grid.toml").baseline == baseline


def test_a_part_that_fits_several_settings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(f"baseline = 'k=5'\n{GRID}")
    fits = r"'k=5' fits 2 settings \(k=5 rerank=true, k=5 rerank=false\); write a longer part"
    with pytest.raises(StorageError, match=fits):
        read_grid(tmp_path / "grid.toml")
    (tmp_path / "grid.toml").write_text(f"baseline = 'k=50'\n{GRID}")
    with pytest.raises(StorageError, match="no setting is named 'k=50': k=2 rerank=true, "):
        read_grid(tmp_path / "grid.toml")


def test_a_command_gets_values_as_the_file_has_them(tmp_path: Path) -> None:
    text = "command = 'bot --rerank {rerank}'\n" + GRID.partition("[[")[0]
    (tmp_path / "grid.toml").write_text(text)
    grid = read_grid(tmp_path / "grid.toml")
    assert grid.command_of(grid.settings[1]) == ["bot", "--rerank", "false"]


@each_row("text", [None, "own = " + "[" * 300 + "]" * 300])
def test_a_grid_that_cannot_be_read_is_one_sentence(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "grid.toml"
    if text is not None:
        path.write_text(text)
    done = call_script("extras.sweep.sweep_runs", str(path), "--api-url", "demo", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("Error: ") == 1
    assert str(path) in done.stderr
    assert ("no such file" if text is None else "nested") in done.stderr
