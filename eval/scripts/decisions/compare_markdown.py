"""A comparison as Markdown, in which no text of the bot or of the set can end its code span."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from decisions.case_changes import CaseChanges
from decisions.compare_words import (
    HEAD,
    PRIMARY_TITLE,
    answers,
    cases_line,
    changed_words,
    explored_title,
    flip_title,
    flips_summary,
    headline,
    legend,
    matrix_lines,
    remarks,
    row_cells,
    row_groups,
    slice_tables,
)
from decisions.conversations import SHOWN, ConversationChanges
from decisions.flips import Flips
from decisions.rows import Comparison, MetricRow
from terminal.tables import harmless

_MOST = 2000
"""Characters of an answer that are written."""


def render(
    comparisons: Sequence[Comparison],
    flips: Flips | None = None,
    failures: Sequence[str] = (),
    talks: ConversationChanges | None = None,
    cases: CaseChanges | None = None,
) -> str:
    """The whole document."""
    lines: list[str] = []
    if failures:
        lines += ["**Failed:**", "", *(f"- {code(text)}" for text in failures), ""]
    if len(comparisons) > 1:
        lines += _matrix(comparisons)
    for comparison in comparisons:
        lines += [
            f"# {code(comparison.base_id)} → {code(comparison.new_id)}",
            "",
            *_comparison_lines(comparison),
        ]
    if cases is not None:
        lines += _cases(cases)
    if flips is not None:
        lines += _flips(flips)
    if talks is not None:
        lines += _conversations(talks)
    return "\n".join(lines).rstrip() + "\n"


def _cases(cases: CaseChanges) -> Iterator[str]:
    yield "## Cases that broke or were fixed"
    yield ""
    yield cases.says()
    yield ""
    for case in cases.changed:
        yield f"- {case.way}: {code(case.case_id)} ({code(changed_words(case))})"
    yield ""


def _conversations(talks: ConversationChanges) -> Iterator[str]:
    yield f"## {talks.summary()}"
    yield ""
    for talk in (*talks.broke[:SHOWN], *talks.earlier[:SHOWN], *talks.fixed[:SHOWN]):
        yield f"- {code(talk.conversation)}: {talk.says()} ({code(talk.question)})"
    yield ""


def _comparison_lines(comparison: Comparison) -> Iterator[str]:
    first, *more = headline(comparison)
    yield f"**{first}**"
    yield ""
    yield from _list([*more, cases_line(comparison)])
    for title, differences in (
        ("Must be the same, but differs", comparison.controls),
        ("Changed", comparison.varied),
    ):
        if differences:
            yield f"**{title}:**"
            yield ""
            yield from (f"- {code(str(difference))}" for difference in differences)
            yield ""
    yield from _list(remarks(comparison))
    primary, loud, rest = row_groups(comparison)
    tested = sum(row.p_bh is not None for row in loud + rest)
    yield from _markdown_table(PRIMARY_TITLE, primary)
    yield from _markdown_table(explored_title(tested), loud)
    if rest:
        yield f"<details><summary>{len(rest)} metrics without evidence</summary>"
        yield ""
        yield from _rows(rest)
        yield ""
        yield "</details>"
        yield ""
    for name, rows in slice_tables(comparison).items():
        yield from _markdown_table(f"{code(name)} (exploratory)", rows)
    yield from (*_list(legend(comparison)), "")


def _list(texts: Iterable[str]) -> Iterator[str]:
    items = [f"- {code(text)}" for text in texts]
    if items:
        yield from [*items, ""]


def _markdown_table(title: str, rows: Sequence[MetricRow]) -> Iterator[str]:
    if rows:
        yield f"## {title}"
        yield ""
        yield from _rows(rows)
        yield ""


def _rows(rows: Sequence[MetricRow]) -> Iterator[str]:
    yield "| " + " | ".join(HEAD) + " |"
    yield "|---|" + "--:|" * (len(HEAD) - 2) + "---|"
    for row in rows:
        name, *cells = row_cells(row)
        yield "| " + " | ".join([cell(name), *cells]) + " |"


def _matrix(comparisons: Sequence[Comparison]) -> Iterator[str]:
    names = [comparisons[0].base_id, *(comparison.new_id for comparison in comparisons)]
    yield "# All runs"
    yield ""
    yield "Primary metrics: mean, difference from the first run, verdict."
    yield ""
    yield "| metric | " + " | ".join(cell(name) for name in names) + " |"
    yield "|---|" + "--:|" * len(names)
    for name, *cells in matrix_lines(comparisons):
        yield "| " + " | ".join([cell(name), *cells]) + " |"
    yield ""


def _flips(flips: Flips) -> Iterator[str]:
    yield "## Cases that changed most"
    yield ""
    yield code(flips_summary(flips))
    yield ""
    for title, changed in (("Worse", flips.worse), ("Better", flips.better)):
        for flip in changed:
            yield f"### {title}: {code(flip.case_id)}"
            yield ""
            yield flip_title(flip)
            yield ""
            yield from _fence(
                "\n".join([f"Q: {flip.question}", *(f"{n}: {t}" for n, t in answers(flip))])
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


def _fence(text: str) -> list[str]:
    """A fenced block that the text cannot end, cut to 2,000 characters."""
    clean = clean_text(text if len(text) <= _MOST else f"{text[:_MOST]}…")
    ticks = "`" * max(3, _longest_run(clean) + 1)
    return [f"{ticks}text", *clean.split("\n"), ticks]


def clean_text(text: str) -> str:
    """Without control, direction and hidden characters; line ends stay."""
    lines = re.split(r"\r\n|\r|\n", text)
    return "\n".join(harmless(line) for line in lines)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
