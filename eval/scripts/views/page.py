"""The blocks of a document as Markdown and as HTML, in which no foreign text is markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from terminal.page import (
    Block,
    CasesColumn,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quotation,
    Quoted,
    Tone,
    Words,
)
from views.report.text import markdown_escape, visible

if TYPE_CHECKING:
    from markupsafe import Markup

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
    return isinstance(block, Prose) and block.item > 0


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"{'#' * block.level} {_inline(block.words)}"
    elif isinstance(block, Prose):
        if text := _inline(block.words):
            yield f"{'  ' * (block.item - 1)}- {text}" if block.item else text
    elif isinstance(block, Conclusion):
        yield f"**{_inline(_marked(block))}**"
        if block.more:
            yield ""
            yield from (f"- {_inline(line.words)}" for line in block.more)
    elif isinstance(block, Quotation):
        yield from (f"{_escaped(block.name)}:", "", *_fence(block.text))
    elif isinstance(block, DataTable) and block.rows:
        yield from _table(block)


def _table(table: DataTable[Any]) -> Iterator[str]:
    columns = [column for column in table.columns if isinstance(column, DataColumn)]
    if table.folded:
        yield from (f"<details><summary>{_escaped(table.folded)}</summary>", "")
    elif table.title:
        yield from (f"## {_escaped(table.title)}", "")
    yield "| " + " | ".join(_escaped(column.name) for column in columns) + " |"
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
            else _cell(column.cell(row), column)
            for column in columns
        ]
        yield "| " + " | ".join(cells) + " |"
    if table.folded:
        yield from ("", "</details>")


def html_table(
    table: DataTable[Any],
    ident: str,
    caption: str,
    links: Callable[[Mapping[str, Any]], Markup] | None = None,
) -> Markup:
    """A table of a page that scrolls by itself. ``links`` draws the cases behind a row."""
    from markupsafe import Markup

    scroll = Markup('<div class="scroll" tabindex="0" role="region" aria-labelledby="{}"><table>')
    lines = [scroll.format(ident)]
    lines.append(Markup('<caption><span id="{}">{}</span></caption>').format(ident, caption))
    columns = [c for c in table.columns if isinstance(c, DataColumn | CasesColumn)]
    kinds = [_html_class(column, at) for at, column in enumerate(columns)]
    heads = zip(columns, kinds, strict=True)
    head = Markup('<th scope="col" class="{}">{}</th>')
    cells = Markup("").join(head.format(kind, column.name) for column, kind in heads)
    lines.append(Markup("<thead><tr>{}</tr></thead>\n<tbody>").format(cells))
    for row in table.rows:
        cells = Markup("")
        for at, (column, kind) in enumerate(zip(columns, kinds, strict=True)):
            if isinstance(column, CasesColumn):
                cases = column.cases(row)
                text: str = links(cases).strip() if cases and links else ""
            else:
                text = visible(column.cell(row))
            shape = (
                '<td class="{}" dir="auto">{}</td>' if at else '<th scope="row" class="{}">{}</th>'
            )
            cells += Markup(shape).format(kind, text)
        lines.append(Markup("<tr>{}</tr>").format(cells))
    lines.append(Markup("</tbody></table></div>\n"))
    return Markup("\n").join(lines)


def _html_class(column: DataColumn[Any] | CasesColumn[Any], at: int) -> str:
    if isinstance(column, CasesColumn):
        return "left ids-cell"
    return "left" if not at else "left wrapped" if column.words else ""


def _cell(text: str, column: DataColumn[Any]) -> str:
    """Foreign text as a code span, which a bar ends unless a backslash stands before it; two of
    them would not do."""
    if not column.foreign:
        return _escaped(text)
    return code(text.replace("\\|", "\\ |")).replace("|", "\\|")


def _inline(words: Words) -> str:
    parts = words if isinstance(words, tuple) else (words,)
    return "".join(
        code(part.text) if isinstance(part, Quoted) else _escaped(part) for part in parts
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


def _fence(text: str) -> list[str]:
    """A fenced block that the text cannot end."""
    clean = visible(text)
    ticks = "`" * max(3, _longest_run(clean) + 1)
    return [f"{ticks}text", *clean.split("\n"), ticks]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
