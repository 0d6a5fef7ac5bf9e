"""The blocks of a document as Markdown, in which no foreign text is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from terminal.page import (
    Block,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Labelled,
    Page,
    PassageBlock,
    Prose,
    Quotation,
    Quoted,
    Section,
    Sides,
    Tone,
    Words,
    plain_words,
)
from views.text import left_out_words, markdown_escape, shortened, visible

TEXT, PASSAGE = 6_000, 4_000
"""Characters of a question or an answer, and of a passage, that a document shows."""

_MARKS: dict[Tone | None, str] = {"good": "✅", "bad": "❌", "doubt": "⚠️", "quiet": "➖"}
"""What stands for a tone where there are no colours; other tones have no sign."""


def markdown(pages: Iterable[Page], *, head: str = "", most: int = 0, rest: str = "") -> str:
    """Documents, one below the other, each with its verdict first.

    ``head``: a line before them. ``most``: characters; what is folded goes first, then the end,
    and ``rest`` says where the whole is.
    """
    blocks = [block for page in pages for block in _blocks(page)]
    text = _joined(head, blocks)
    if most and len(text) > most:
        open_ = [block for block in blocks if not (isinstance(block, DataTable) and block.folded)]
        text = _joined(head, open_)
        cut = f"\n… cut here; {rest}.\n"
        whole = len(text) + len(cut) <= most
        return (text if whole else text[: most - len(cut)].rpartition("\n")[0]) + cut
    return text


def _blocks(page: Page) -> Iterator[Block]:
    """The blocks with the verdict first, which is the heading of a page without a title."""
    if page.title:
        yield Heading(page.title, 1)
    for block in page.ordered(verdict_first=True):
        if page.title or not isinstance(block, Conclusion):
            yield block
        else:
            yield Heading(_marked(block))
            yield from block.more


def _marked(block: Conclusion) -> Words:
    words = block.words if isinstance(block.words, tuple) else (block.words,)
    mark = _MARKS.get(block.tone)
    return (f"{mark} ", *words) if mark else words


def _joined(head: str, blocks: Iterable[Block]) -> str:
    """The blocks, an empty line between them, none between the items of a list."""
    lines = [head] if head else []
    before: Block | None = None
    for block in blocks:
        own = list(_lines(block))
        listed = _is_item(before) and _is_item(block)
        if own and lines and not listed and not (before is None and head):
            lines.append("")
        lines += own
        before = block if own else before
    return "\n".join(lines) + "\n"


def _is_item(block: Block | None) -> bool:
    return isinstance(block, Labelled) or (isinstance(block, Prose) and block.item > 0)


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        note = f" ({_escaped(block.note)})" if block.note else ""
        yield f"{'#' * block.level} {_inline(block.words)}{note}"
    elif isinstance(block, Prose):
        if text := _inline(block.words):
            yield f"{'  ' * (block.item - 1)}- {text}" if block.item else text
    elif isinstance(block, Labelled):
        yield f"- {_escaped(block.label)}: {_inline(block.words)}"
    elif isinstance(block, Conclusion):
        yield f"**{_inline(_marked(block))}**"
        if block.more:
            yield ""
            yield from (f"- {_inline(line.words)}" for line in block.more)
    elif isinstance(block, Quotation):
        yield from ((f"{_escaped(block.name)}:", "") if block.name else ())
        yield from _fence(block.text, TEXT)
    elif isinstance(block, PassageBlock):
        marks = ", ".join(tag.text for tag in block.tags)
        yield _escaped(f"{block.rank}. {block.place}" + (f" ({marks})" if marks else ""))
        if block.loud and block.text:  # a page has the text of the others
            yield from ("", *_fence(block.text, PASSAGE))
    elif isinstance(block, Sides):
        for name, side in zip(block.names, zip(*block.rows, strict=True), strict=True):
            yield _joined(f"**{_escaped(name)}**\n" if name else "", _flat(side)).rstrip("\n")
            yield ""
    elif isinstance(block, Section) and not block.page_only:
        yield from _section(block)
    elif isinstance(block, DataTable) and block.rows:
        yield from _table(block)


def _flat(side: Iterable[Iterable[Block]]) -> list[Block]:
    return [block for blocks in side for block in blocks]


def _section(section: Section) -> Iterator[str]:
    inside = _joined("", section.blocks).rstrip("\n")
    if section.level:
        yield f"{'#' * section.level} {_inline(section.title)}"
        yield from ("", inside) if inside else ()
    else:
        yield from (_summary(plain_words(section.title)), "", inside, "", "</details>")


def _summary(text: str) -> str:
    """The head of what is folded: HTML, in which Markdown's escapes mean nothing."""
    return f"<details><summary>{escape(' '.join(visible(text).split()))}</summary>"


def _table(table: DataTable[Any]) -> Iterator[str]:
    columns = [column for column in table.columns if isinstance(column, DataColumn)]
    if table.folded:
        yield from (_summary(table.folded), "")
    elif table.title:
        yield from (f"## {_escaped(table.title)}", "")
    heads = (_escaped(column.short or column.name) for column in columns)
    yield f"| {' | '.join(heads)} |"
    lines = ("---" if column.words or not at else "--:" for at, column in enumerate(columns))
    yield f"|{'|'.join(lines)}|"
    group = ""
    for row in table.rows:
        if table.group and table.group(row) != group:
            group = table.group(row)
            yield f"| **{_escaped(group)}** |" + " |" * (len(columns) - 1)
        cells = [
            _MARKS.get(table.tone(row) if table.tone else None, "")
            if column.mark
            else _cell(column, row)
            for column in columns
        ]
        yield "| " + " | ".join(cells) + " |"
    if table.folded:
        yield from ("", "</details>")


def _cell(column: DataColumn[Any], row: Any) -> str:
    """Foreign text as a code span, which a bar ends unless a backslash stands before it; two of
    them would not do."""
    text = column.cell(row)
    if column.small and (small := column.small(row)):
        text += f" {small}"
    if not column.foreign:
        return _escaped(text)
    return code(text.replace("\\|", "\\ |")).replace("|", "\\|")


def _inline(words: Words) -> str:
    parts = words if isinstance(words, tuple) else (words,)
    return "".join(
        code(part.text) if isinstance(part, Quoted) else _escaped(plain_words(part))
        for part in parts
    )


def _escaped(text: str) -> str:
    """Own words, in which names may be: on one line, every sign of Markdown escaped."""
    line = markdown_escape(visible(text).replace("\n", " "))
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", line)  # else it would begin a list


def code(text: str) -> str:
    """Foreign text as a code span that it cannot end, on one line: no reader obeys markup, makes
    links or calls people in one."""
    clean = visible(text).replace("\n", " ") or " "
    ticks = "`" * (_longest_run(clean) + 1)
    pad = " " if clean[0] == "`" or clean[-1] == "`" else ""
    return f"{ticks}{pad}{clean}{pad}{ticks}"


def _fence(text: str, most: int) -> list[str]:
    """A fenced block that the text cannot end, with at most so many characters of it."""
    text, left_out = shortened(text, most)
    clean = visible(f"{text} {left_out_words(left_out)}" if left_out else text)
    ticks = "`" * max(3, _longest_run(clean) + 1)
    return [f"{ticks}text", *clean.split("\n"), ticks]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
