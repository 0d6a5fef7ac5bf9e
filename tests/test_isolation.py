"""What a user has set up does not change what the tests see."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import options
import storage
from options import commands

TESTS = Path(__file__).parent
INNER = """
import os

from options import commands


def test_settings(pytestconfig):
    ours = {name for name in os.environ if name.startswith("RAG_EVAL_")}
    assert ours - {"RAG_EVAL_CHROMIUM"} == {"RAG_EVAL_CONFIG", "RAG_EVAL_DATA"}
    assert commands.settings("score_retrieval") == {}
"""


def test_no_setting_of_a_user_reaches_a_test(tmp_path: Path) -> None:
    """A pytest of its own, with our conftest.py, in an environment full of settings."""
    shutil.copytree(TESTS, tmp_path / "tests", ignore=lambda folder, _: _folders(Path(folder)))
    shutil.copy(TESTS.parent / "conftest.py", tmp_path)
    (tmp_path / "tests" / "test_inner.py").write_text(INNER)
    (tmp_path / "config.toml").write_text("k = 3\n")
    mine = {
        "RAG_EVAL_K": "7",
        "RAG_EVAL_EVAL_SET": "my_set.jsonl",
        "RAG_EVAL_CONFIG": str(tmp_path / "config.toml"),
        "RAG_EVAL_DATA": "here",
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(options.__file__).parents[1]}",
    }
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_inner.py"]
    done = subprocess.run(
        words, cwd=tmp_path, env=os.environ | mine, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def _folders(folder: Path) -> set[str]:
    """All but the few modules that conftest.py needs."""
    return {path.name for path in folder.iterdir() if path.is_dir() or path.stem[:5] == "test_"}


def test_a_settings_file_of_the_user_is_not_read() -> None:
    assert os.environ["RAG_EVAL_CONFIG"] == os.devnull
    assert commands.settings("run_eval") == {}
    assert storage.ROOT / "eval" / "config.toml" == commands.CONFIG
