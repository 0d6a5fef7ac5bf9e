"""Documents and docstrings name rooms, files and functions that are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources import SCRIPTS_DIR, SOURCES, TREES, name_of
from tests.test_architecture import MAY

ROOT = SCRIPTS_DIR.parents[1]
MAP = ROOT / "docs" / "architecture.md"
GUIDE = ROOT / "CONTRIBUTING.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "EVAL.md", GUIDE, *sorted((ROOT / "docs").glob("*.md"))]
ROOMS = sorted(set(MAY) - {"storage", "options"})

STEP = re.compile(r"`([\w/]+\.py):([\w.]+)`")
"""A step of a way: a file below eval/scripts and a function, class or method in it."""

MENTION = re.compile(rf"(?<![\w/.])(?:{'|'.join(ROOMS)})/[\w/]*\w(?:\.py)?(?![\w/*<]|\.\w)")
"""A path below eval/scripts, such as ``records/cases.py`` or ``ragmetrics/catalogue``."""

TEST_FOLDER = re.compile(rf"tests/(?:{'|'.join(ROOMS)})[\w/]*")


def defined(tree: ast.Module) -> set[str]:
    """What a file defines: functions, classes, and methods as ``Class.method``."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (ast.FunctionDef, ast.AsyncFunctionDef)
            names |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, methods)}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def missing_steps(text: str) -> Iterator[str]:
    """The steps of a text whose file or function is not there."""
    for path, name in STEP.findall(text):
        tree = TREES.get(SCRIPTS_DIR / path)
        if tree is None or name not in defined(tree):
            yield f"{path}:{name}"


def missing_paths(text: str) -> Iterator[str]:
    """The paths below eval/scripts that a text names and that are not there."""
    for path in MENTION.findall(TEST_FOLDER.sub("", text)):
        target = SCRIPTS_DIR / path
        if not (target.exists() or target.with_suffix(".py").exists()):
            yield path


@pytest.mark.parametrize("path", [MAP, GUIDE], ids=lambda path: path.name)
def test_every_step_is_a_file_and_a_function(path: Path) -> None:
    text = path.read_text("utf-8")
    assert STEP.search(text)
    assert list(missing_steps(text)) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_name_files_that_are_there(path: Path) -> None:
    assert list(missing_paths(path.read_text("utf-8"))) == []


def test_sources_name_files_that_are_there() -> None:
    faults = {
        name_of(path): faulty
        for path in SOURCES
        if (faulty := list(missing_paths(path.read_text("utf-8"))))
    }
    assert faults == {}


def rooms_of_table(text: str) -> list[str]:
    return re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)


@pytest.mark.parametrize("path", [MAP, GUIDE], ids=lambda path: path.name)
def test_the_table_of_rooms_is_whole(path: Path) -> None:
    assert sorted(rooms_of_table(path.read_text("utf-8"))) == ROOMS


def test_a_wrong_step_or_path_is_found() -> None:
    text = "`records/cases.py:iter_cases`, `records/cases.py:gone`, `records/gone.py:iter_cases`"
    assert list(missing_steps(text)) == ["records/cases.py:gone", "records/gone.py:iter_cases"]
    paths = "records/cases.py, ragmetrics/catalogue, tests/records/gone.py and records/gone.py"
    assert list(missing_paths(paths)) == ["records/gone.py"]
