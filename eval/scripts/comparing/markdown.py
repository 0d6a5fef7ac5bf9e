"""A comparison as Markdown: the same bytes for the same runs, foreign text inert.

Questions, answers and names come from outside: they stand in code spans and fences that they
cannot end, so that no link, image, mention or markup of theirs is ever interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from comparing import words
from comparing.flips import Flips
from comparing.printing import matrix, sides
from comparing.rows import Comparison, Row
from tables import harmless

MOST = 2000
"""Characters of an answer that are written."""


def render(
    comparisons: Sequence[Comparison], flips: Flips | None = None, failures: Sequence[str] = ()
) -> str:
    """The whole document."""
    lines: list[str] = []
    if failures:
        lines += ["**Failed:**", "", *(f"- {code(text)}" for text in failures), ""]
    if len(comparisons) > 1:
        lines += _matrix(comparisons)
    for one in comparisons:
        lines += [f"# {code(one.base_id)} → {code(one.new_id)}", "", *_one(one)]
    if flips is not None:
        lines += _flips(flips)
    return "\n".join(lines).rstrip() + "\n"


def _one(comparison: Comparison) -> Iterator[str]:
    first, *more = words.headline(comparison)
    yield f"**{first}** {comparison.cases:,} cases in both runs."
    yield ""
    yield from _list(more)
    for title, differences in (
        ("Must be the same, but differs", comparison.controls),
        ("Changed", comparison.varied),
    ):
        if differences:
            yield f"**{title}:**"
            yield ""
            yield from (f"- {code(str(difference))}" for difference in differences)
            yield ""
    yield from _list(words.remarks(comparison))
    family, loud, rest = words.parts(comparison)
    yield from _table("Declared metrics (p after Holm)", family)
    yield from _table("Other metrics with a difference (p after Benjamini-Hochberg)", loud)
    if rest:
        yield f"<details><summary>{len(rest)} metrics without evidence</summary>"
        yield ""
        yield from _rows(rest)
        yield ""
        yield "</details>"
        yield ""
    for name, rows in words.slices(comparison).items():
        yield from _table(f"{code(name)} (p after Benjamini-Hochberg)", rows)
    yield from (*words.legend([*family, *loud, *rest, *comparison.slices]), "")


def _list(texts: Iterable[str]) -> Iterator[str]:
    found = [f"- {code(text)}" for text in texts]
    if found:
        yield from [*found, ""]


def _table(title: str, rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield f"## {title}"
        yield ""
        yield from _rows(rows)
        yield ""


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    yield "| " + " | ".join(words.HEAD) + " |"
    yield "|---|" + "--:|" * (len(words.HEAD) - 2) + "---|"
    for row in rows:
        name, *cells = words.cells(row)
        yield "| " + " | ".join([cell(name), *cells]) + " |"


def _matrix(comparisons: Sequence[Comparison]) -> Iterator[str]:
    names = [comparisons[0].base_id, *(one.new_id for one in comparisons)]
    yield "# All runs"
    yield ""
    yield "Declared metrics: mean, difference from the first run, verdict."
    yield ""
    yield "| metric | " + " | ".join(cell(name) for name in names) + " |"
    yield "|---|" + "--:|" * len(names)
    for name, *cells in matrix(comparisons):
        yield "| " + " | ".join([cell(name), *cells]) + " |"
    yield ""


def _flips(flips: Flips) -> Iterator[str]:
    yield "## Cases that changed most"
    yield ""
    yield code(words.flips_summary(flips))
    yield ""
    for title, found in (("Worse", flips.worse), ("Better", flips.better)):
        for flip in found:
            yield f"### {title}: {code(flip.case_id)}"
            yield ""
            yield words.flip_title(flip)
            yield ""
            yield from fence(
                "\n".join([f"Q: {flip.question}", *(f"{n}: {t}" for n, t in sides(flip))])
            )
            yield ""


def code(text: str) -> str:
    """A code span that the text cannot end; one line."""
    clean = clean_text(text).replace("\n", " ") or " "
    ticks = "`" * (_longest_run(clean) + 1)
    pad = " " if clean[0] == "`" or clean[-1] == "`" else ""
    return f"{ticks}{pad}{clean}{pad}{ticks}"


def cell(text: str) -> str:
    """The same within a table, where a bar ends even a code span, unless a backslash stands before
    it; two of them would not do."""
    return code(text.replace("\\|", "\\ |")).replace("|", "\\|")


def fence(text: str) -> list[str]:
    """A fenced block that the text cannot end, cut to 2,000 characters."""
    clean = clean_text(text if len(text) <= MOST else f"{text[:MOST]}…")
    ticks = "`" * max(3, _longest_run(clean) + 1)
    return [f"{ticks}text", *clean.split("\n"), ticks]


def clean_text(text: str) -> str:
    """Without control, direction and hidden characters; line ends stay."""
    lines = re.split(r"\r\n|\r|\n", text)
    return "\n".join(harmless(line) for line in lines)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
