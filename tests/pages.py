"""Reads a document as ``--json`` prints it: its sections, tables and texts by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Blocks:
    """Some blocks of a document, with all that is inside of them."""

    def __init__(self, blocks: list[dict[str, Any]]) -> None:
        self.top = blocks
        self.all = list(_inside(blocks))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [block for block in self.all if block["kind"] == kind]

    def section(self, title: str) -> Blocks:
        """The section whose title begins so."""
        found = next(one for one in self.of("section") if one["title"].startswith(title))
        return Blocks(found["blocks"])

    def titles(self) -> list[str]:
        return [one["title"] for one in self.of("section")]

    def table(self, title: str) -> list[dict[str, Any]]:
        """The rows of the table whose title begins so, by column."""
        found = next(one for one in self.of("table") if one["title"].startswith(title))
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]

    def chart(self, name: str) -> Any:
        return next(one["data"] for one in self.of("chart") if one["name"] == name)

    @property
    def texts(self) -> list[str]:
        """All sentences and items, in order."""
        return [one["words"] for one in self.all if one["kind"] in ("prose", "heading")]

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """All values behind labels."""
        return [(one["label"], one["words"]) for one in self.of("labelled")]

    @property
    def verdict(self) -> str:
        return str(self.of("conclusion")[0]["words"])

    @property
    def listed(self) -> list[dict[str, Any]]:
        """The rows of the list of cases."""
        names = ("case_id", "repeat", "state", "why", "category", "values", "question", "marks")
        rows = (
            self.chart("cases")["rows"] if "cases" in [c["name"] for c in self.of("chart")] else []
        )
        return [dict(zip(names, row, strict=True)) for row in rows]

    @property
    def in_full(self) -> dict[str, Blocks]:
        """The cases in full, by id, in their order."""
        worst = next(one for one in self.of("section") if one.get("anchor") == "worst")
        own = [one for one in worst["blocks"] if one["kind"] == "section"]
        return {one["anchor"].removeprefix("case-"): Blocks(one["blocks"]) for one in own}


def _inside(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        yield block
        yield from _inside([*block.get("blocks", ()), *block.get("more", ())])
        if block["kind"] == "sides":
            for row in block["rows"]:
                yield from (own for side in row for own in _inside(side))


def page_of(data: dict[str, Any]) -> Blocks:
    """The blocks of a document."""
    return Blocks(data["blocks"])
