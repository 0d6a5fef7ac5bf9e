"""The reader of TOML: types, ranges and what is between keys; the line of each fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from tests.rows import each_row

from records.errors import StorageError
from records.toml_files import KeyPath, Line, Parsed, TomlReader, key_lines, read_file


def _even(value: Any) -> int:
    if isinstance(value, int) and value % 2 == 0:
        return value // 2
    raise ValueError(f"{value!r} is not even")


class Tree(msgspec.Struct):
    name: Annotated[Line, Meta(description="write a name")]
    height: Annotated[float, Meta(gt=0, le=100)] = 1.0
    rings: Annotated[int, Meta(ge=1)] = 1
    kind: Literal["oak", "ash"] = "oak"


class Wood(msgspec.Struct):
    trees: list[Tree] = []
    halves: list[Annotated[int, Parsed(_even)]] = []
    shares: dict[str, Annotated[float, Meta(gt=0, lt=1)]] = {}
    site: Tree | None = None
    paths: tuple[str, ...] = ()

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        if len(self.trees) > 1 and self.site:
            yield ("site",), "is for a single tree"


def of(folder: Path, text: str) -> Any:
    path = folder / "wood.toml"
    path.write_text(text, "utf-8")
    return read_file(path, Wood, "write one")


def test_a_file_becomes_its_types(tmp_path: Path) -> None:
    text = "halves = [4, 6]\npaths = ['a']\n[[trees]]\nname = 'x'\nheight = 3\n"
    text += "[shares]\n'a.b' = 0.5\n"
    wood = of(tmp_path, text)
    assert wood == Wood([Tree("x", 3.0)], [2, 3], {"a.b": 0.5}, None, ("a",))
    assert isinstance(wood.trees[0].height, float)


@each_row(
    ("text", "faults"),
    [
        ("tres = 1", ["1: tres: is unknown; write trees"]),
        ("q = 1", ["1: q: is unknown; known here: trees, halves, shares, site, paths"]),
        ("trees = 3", ["1: trees: must be a list of tables; write [[trees]]"]),
        ("site = 3", ["1: site: must be a table; write [site] and its keys below"]),
        ("paths = 'a'", ["1: paths: must be a list of texts"]),
        ("halves = [2, 3]", ["1: halves[2]: 3 is not even"]),
        ("[shares]\n'a.b' = 1.0", ['2: shares."a.b": must be a number above 0, below 1']),
        ("shares = {x = 2}", ["1: shares.x: must be a number above 0, below 1"]),
        (
            "[[trees]]\nname = 'x'\n[[trees]]\nheight = 0\n",
            [
                "3: trees[2].name: is missing; write a name",
                "4: trees[2].height: must be a number above 0, up to 100",
            ],
        ),
        (
            '[site]\nname = "a\\nb"\nrings = 0\nkind = "elm"\nheight = true',
            [
                "2: site.name: must be one line of text",
                "3: site.rings: must be a whole number from 1 up",
                "4: site.kind: must be one of oak, ash",
                "5: site.height: must be a number above 0, up to 100",
            ],
        ),
        ("[[trees]]\nname='a'\n[[trees]]\nname='b'\n[site]\nname='c'", ["5: site: is for a"]),
    ],
)
def test_each_fault_has_its_line_key_and_remedy(
    tmp_path: Path, text: str, faults: list[str]
) -> None:
    with pytest.raises(StorageError) as caught:
        of(tmp_path, text)
    shown = [str(problem).partition("wood.toml:")[2] for problem in caught.value.problems]
    assert len(shown) == len(faults)
    assert all(line.startswith(fault) for line, fault in zip(shown, faults, strict=True)), shown


def test_no_clause_of_a_type_shows_the_value() -> None:
    reader = TomlReader("--set")
    assert reader.read("sk-secret", Tree, ("a",)) is None
    assert reader.read("sk-secret", int, ("b",)) is None
    assert reader.read("sk-secret\n", Line, ("c",)) is None
    assert not any("sk-" in str(problem) for problem in reader.problems)
    assert len(reader.problems) == 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"none\.toml: no such file; write one\."):
        read_file(tmp_path / "none.toml", Wood, "write one")


def test_lines_of_quoted_and_dotted_keys() -> None:
    text = '# a = 1\n[a."b.c"] # d\n"e=f" = "x = y"\ng.h = 2\n\n[[i]]\nj = [\n1]\n[[i]]\n'
    assert key_lines(text) == {
        ("a", "b.c"): 2,
        ("a", "b.c", "e=f"): 3,
        ("a", "b.c", "g", "h"): 4,
        ("i",): 6,
        ("i[1]",): 6,
        ("i[1]", "j"): 7,
        ("i[2]",): 9,
    }


@given(st.text(max_size=200))
def test_lines_of_any_text(text: str) -> None:
    for line in key_lines(text).values():
        assert 1 <= line <= len(text.splitlines())
