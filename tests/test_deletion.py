"""Each extra can be deleted, and all of them: in a copy of the toolkit, as a user would do it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import call_in_one_process
from tests.sources import SCRIPTS, SCRIPTS_DIR

ROOT = SCRIPTS_DIR.parents[1]
EXTRAS = sorted(path.parent.name for path in (ROOT / "eval" / "extras").glob("*/extra.py"))
LEFT_OUT = (".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "results", "cache", "data")
"""What a copy needs not: environments and caches, runs, data that a benchmark fetched."""

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the toolkit."""
    target = tmp_path / "toolkit"
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return target


def call(copy: Path, *words: str, seconds: int = 3500) -> str:
    """What a command prints in the copy; the test fails where the command does."""
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        words,
        cwd=copy,
        env=environment | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout + done.stderr


def make(copy: Path, *words: str) -> str:
    """A target of the copy's Makefile, with the environment of these tests."""
    return call(copy, "make", f"VENV={sys.prefix}", "UV=", "LIGHT=", *words)


IMPORT_ALL = """
import importlib, pathlib, sys
sys.path.insert(0, "eval/scripts")
for path in sorted(pathlib.Path("eval/scripts").rglob("*.py")):
    parts = path.relative_to("eval/scripts").with_suffix("").parts
    importlib.import_module(".".join(parts).removesuffix(".__init__"))
"""


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_can_be_deleted(copy: Path, name: str) -> None:
    """Modules import, each script has its help, and what is generated is as it should be."""
    shutil.rmtree(copy / "eval" / "extras" / name)
    call(copy, sys.executable, "-c", IMPORT_ALL)
    scripts = [script.stem for script in SCRIPTS]
    scripts += [
        f"extras.{path.parent.name}.{path.stem}"
        for path in (copy / "eval" / "extras").glob("*/*.py")
        if 'if __name__ == "__main__":' in path.read_text("utf-8")
    ]
    paths = [copy / "eval" / "scripts", copy / "eval", copy]
    calls = [(script, "--help") for script in scripts]
    helps = call_in_one_process(paths[0], calls, copy, PYTHONPATH=os.pathsep.join(map(str, paths)))
    for script, (code, text, errors) in zip(scripts, helps, strict=True):
        assert (code, errors) == (0, ""), script
        assert text.startswith("Usage: "), script
        assert f"From eval/extras/{name}" not in text
    call(copy, sys.executable, "bench/make_docs.py", "--check")
    call(copy, sys.executable, "-m", "pytest", "-q", "tests/test_extras.py")


def test_the_demo_and_the_static_checks_need_no_extra(copy: Path) -> None:
    shutil.rmtree(copy / "eval" / "extras")
    printed = make(copy, "demo", "ARGS=--set lexical_only=true")
    assert "The page with all of it:" in printed
    make(copy, "static")


PURE = ("documents", "guardrails", "ragmetrics", "terminal")
"""Rooms that import no other but records, and of it no extras."""


@pytest.mark.timeout(3600)  # nearly all tests of the core, beside those of other workers
def test_the_tests_of_the_core_need_no_extra(copy: Path) -> None:
    shutil.rmtree(copy / "eval" / "extras")
    files = [path for room in PURE for path in (SCRIPTS_DIR / room).rglob("*.py")]
    assert [path for path in files if "extras" in path.read_text("utf-8")] == []
    make(copy, "test", "ARGS=" + " ".join(f"--ignore=tests/{room}" for room in PURE))
