"""The blocks of a document as Markdown and as HTML, in which no foreign text is markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from terminal.page import (
    AnyColumn,
    Block,
    CaseRef,
    CasesColumn,
    Chart,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quotation,
    Quoted,
    Term,
    Tone,
    TrendColumn,
    Whisker,
    WhiskerColumn,
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


def _is_open_table(block: Block | None) -> bool:
    return isinstance(block, DataTable) and not block.folded


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
            else _cell(column, row)
            for column in columns
        ]
        yield "| " + " | ".join(cells) + " |"
    if table.folded:
        yield from ("", "</details>")


def _html(template: str, *values: Any) -> Markup:
    """Markup with values, of which those that are no markup are escaped."""
    from markupsafe import Markup

    return Markup(template).format(*values)


class HtmlPage:
    """Writes blocks as HTML, in which no foreign text is markup.

    Tables are numbered; a folded one is not printed. What only a page can do is handed in, as
    functions that return markup. ``case_link``: a case as a link where the page has it.
    ``case_links``: the cases behind a figure. ``chart``: a picture. ``whisker``: the picture of an
    interval.
    """

    def __init__(
        self,
        case_link: Callable[[str, int], Markup],
        case_links: Callable[[Any], Markup],
        chart: Callable[[Chart], Markup],
        whisker: Callable[[Whisker], Markup],
    ) -> None:
        self._tables = 0
        self._case_link, self._case_links = case_link, case_links
        self._chart, self._whisker = chart, whisker

    def write(self, blocks: Iterable[Block]) -> Markup:
        """Write the blocks in order; an open table is beside the picture before it."""
        html = []
        beside = listed = False
        for block, after in pairwise([*blocks, None]):
            pictured = isinstance(block, Chart) and _is_open_table(after)
            html += [_html('<ul class="plain">')] * (_is_item(block) and not listed)
            html += [_html('<div class="figures">')] * pictured
            html.append(self._block(block))
            html += [_html("</div>")] * beside
            html += [_html("</ul>")] * (_is_item(block) and not _is_item(after))
            beside, listed = pictured, _is_item(block)
        return _html("\n").join(html)

    def _block(self, block: Block | None) -> Markup:
        if isinstance(block, Heading):
            return _html("<h{0}>{1}</h{0}>", block.level, self._inline(block.words))
        if isinstance(block, Prose) and block.words:
            small = _html(' class="small"') if block.tone == "quiet" else ""
            shape = '<li dir="auto"{}>{}</li>' if block.item else "<p{}>{}</p>"
            return _html(shape, small, self._inline(block.words))
        if isinstance(block, Chart):
            caption = self._inline(block.caption)
            caption = _html("<figcaption>{}</figcaption>", caption) if caption else caption
            return _html("<figure>{}{}</figure>", self._chart(block), caption)
        if isinstance(block, DataTable) and block.rows:
            table = self._table(block)
            folded = '<details class="on-screen"><summary>{}</summary>\n{}</details>'
            return _html(folded, visible(block.folded), table) if block.folded else table
        return _html("")

    def _inline(self, words: Words) -> Markup:
        parts = words if isinstance(words, tuple) else (words,)
        return _html("").join(
            self._case_link(part.text, part.repeat)
            if isinstance(part, CaseRef)
            else visible(part if isinstance(part, str) else part.text)
            for part in parts
        )

    def _table(self, table: DataTable[Any]) -> Markup:
        """A table that scrolls by itself; on a phone a row can be a card."""
        self._tables += 1
        columns = [column for column in table.columns if not isinstance(column, TrendColumn)]
        names = [
            "picture" if isinstance(c, WhiskerColumn) else visible(c.name.strip()) for c in columns
        ]
        kinds = [_FIRST, *map(_html_class, columns[1:])]
        head = '<th scope="col" class="{}">{}</th>'
        box = (
            '<div class="scroll" tabindex="0" role="region" aria-labelledby="t{0}">\n'
            '<table class="{1}">\n<caption><span id="t{0}">{2}</span></caption>\n'
            "<thead><tr>{3}</tr></thead>\n<tbody>\n{4}</tbody></table></div>"
        )
        labels = ["", *names[1:]] if "cards" in table.look else [""] * len(names)
        rows = (
            _html(
                "<tr>{}</tr>\n",
                _html("").join(
                    self._cell(column, row, kind, label)
                    for column, kind, label in zip(columns, kinds, labels, strict=True)
                ),
            )
            for row in table.rows
        )
        return _html(
            box,
            self._tables,
            table.look,
            visible(table.caption or table.title or table.folded),
            _html("").join(_html(head, *pair) for pair in zip(kinds, names, strict=True)),
            _html("").join(rows),
        )

    def _cell(self, column: AnyColumn[Any], row: Any, kind: str, label: str) -> Markup:
        """A cell of the kind of its column."""
        shade, text = "", _html("")
        if isinstance(column, DataColumn):
            shade = column.shade(row) if column.shade else ""
            text = (
                _term(column.term(row)) if column.term else _html("{}", visible(column.cell(row)))
            )
            if column.small and (small := column.small(row)):
                text += _html(" <small>{}</small>", small)
            if column.words and shade:
                text = text and _html('<span class="{}">{}</span>', shade, text)
                shade = ""
        elif isinstance(column, CasesColumn):
            cases = column.cases(row)
            text = self._case_links(cases).strip() if cases else text
        elif isinstance(column, WhiskerColumn):
            whisker = column.whisker(row)
            text = self._whisker(whisker).strip() if whisker else text
        attributes = {
            "class": "" if kind == _FIRST else f"{kind} {shade}".strip(),
            "data-l": label,
            "dir": "auto" if "wrapped" in kind else "",
        }
        own = (_html(' {}="{}"', *pair) for pair in attributes.items() if pair[1])
        cell = '<th scope="row"{}>{}</th>' if kind == _FIRST else "<td{}>{}</td>"
        return _html(cell, _html("").join(own), text)


_FIRST = "left"
"""The class of the first column, whose cells are the heads of the rows."""


def _html_class(column: AnyColumn[Any]) -> str:
    if isinstance(column, CasesColumn):
        return "left ids-cell"
    if isinstance(column, DataColumn):
        return "left " + ("mark" if column.shade else "wrapped") if column.words else ""
    return "left picture"


def _term(term: Term) -> Markup:
    """A metric in words, its name in grey behind them; what it means on hover, and when it has the
    focus."""
    name = _html("_<wbr>").join(visible(term.name).split("_"))
    shown = _html("{}", visible(term.words)) if term.words else name
    if term.meaning:
        span = '<span class="term" tabindex="0" title="{}">{}</span>'
        shown = _html(span, visible(term.meaning), shown)
    elif not term.words:
        shown = _html("")
    if term.words or not term.meaning:
        shown += _html(' <span class="name">{}</span>', name)
    return shown + _html(' <span class="small">{}</span>', term.note) if term.note else shown


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
        code(part.text)
        if isinstance(part, Quoted)
        else _escaped(part if isinstance(part, str) else part.text)
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


def _fence(text: str) -> list[str]:
    """A fenced block that the text cannot end."""
    clean = visible(text)
    ticks = "`" * max(3, _longest_run(clean) + 1)
    return [f"{ticks}text", *clean.split("\n"), ticks]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
