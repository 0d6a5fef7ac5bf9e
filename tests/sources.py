"""The sources of the toolkit as the tests read them: files, scripts, trees, imports."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from tests.rows import each_row

import options
from records.extras import EXTRAS

SCRIPTS_DIR = Path(options.__file__).resolve().parents[1]
GUARD = 'if __name__ == "__main__":'
SLOW = {
    "textual",
    "sentence_transformers",
    "torch",
    "sklearn",
    "bm25s",
    "jmespath",
    "numpy",
    "requests",
    "rich",
}


def sources(folder: Path = SCRIPTS_DIR) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def name_of(path: Path) -> str:
    return path.relative_to(SCRIPTS_DIR).as_posix()


def part_of(path: Path) -> str:
    return path.relative_to(SCRIPTS_DIR).parts[0].removesuffix(".py")


SOURCES = sources()
SCRIPTS = [path for path in SCRIPTS_DIR.glob("*.py") if GUARD in path.read_text("utf-8")]
OF_EXTRAS = [path for path in EXTRAS.glob("*/*.py") if GUARD in path.read_text("utf-8")]
each_source = each_row("path", SOURCES)
each_script = each_row("script", sorted(SCRIPTS))


def command_of(script: Path) -> click.Command:
    """The command of a script of the core or of an extra."""
    module = f"extras.{script.parent.name}.{script.stem}" if script in OF_EXTRAS else script.stem
    command = importlib.import_module(module).main
    assert isinstance(command, click.Command)
    return command


@dataclass(frozen=True)
class Import:
    module: str
    line: int
    late: bool
    """Inside a function, or for the type checker only."""

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Every import of a file, those inside functions too."""
    return tuple(imports(tree_of(path)))


def imports(tree: ast.AST, late: bool = False) -> Iterator[Import]:
    """``late``: whether all of it runs late."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, late)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            for alias in node.names:
                # `from urllib import request` and `from clients import embedder` name modules.
                yield Import(f"{node.module}.{alias.name}", node.lineno, late)
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from imports(node, late or _runs_late(node))


def _runs_late(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
