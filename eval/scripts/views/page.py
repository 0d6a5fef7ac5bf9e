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
    TermColumn,
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
    columns = [_document_column(column) for column in table.columns if _in_markdown(column)]
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


def _in_markdown(column: AnyColumn[Any]) -> bool:
    return isinstance(column, DataColumn | TermColumn)


def _document_column(column: AnyColumn[Any]) -> DataColumn[Any]:
    if isinstance(column, DataColumn):
        return column
    assert isinstance(column, TermColumn)
    term = column.term

    def name(row: Any) -> str:
        return " ".join(filter(None, (term(row).name, term(row).note)))

    return DataColumn(column.name, name, words=True)


class HtmlPage:
    """Writes blocks as HTML, in which no foreign text is markup; tables are numbered.

    ``case_link``: a case as a link where the page has it. ``case_links``: the cases behind a
    figure. ``chart``: a picture. ``whisker``: the picture of an interval.
    """

    def __init__(
        self,
        case_link: Callable[[str, int], str],
        case_links: Callable[[Any], str],
        chart: Callable[[Chart], str],
        whisker: Callable[[Whisker], str],
    ) -> None:
        from markupsafe import Markup

        self._markup, self._tables = Markup, 0
        self._case_link, self._case_links = case_link, case_links
        self._chart, self._whisker = chart, whisker

    def write(self, blocks: Iterable[Block]) -> Markup:
        """The blocks in order; a table stands beside the picture before it."""
        html = []
        beside = listed = False
        for block, after in pairwise([*blocks, None]):
            if _is_item(block) and not listed:
                html.append(self._markup('<ul class="plain">'))
            pictured = (
                isinstance(block, Chart) and isinstance(after, DataTable) and not after.folded
            )
            if pictured:
                html.append(self._markup('<div class="figures">'))
            html.append(self._block(block))
            if beside:
                html.append(self._markup("</div>"))
            beside, listed = pictured, _is_item(block)
            if listed and not _is_item(after):
                html.append(self._markup("</ul>"))
        return self._markup("\n").join(html)

    def _block(self, block: Block | None) -> Markup:
        if isinstance(block, Heading):
            return self._markup("<h{0}>{1}</h{0}>").format(block.level, self._inline(block.words))
        if isinstance(block, Prose) and block.words:
            shape = _HTML_ITEM if block.item else _HTML_PROSE[block.tone == "quiet"]
            return self._markup(shape).format(self._inline(block.words))
        if isinstance(block, Chart):
            caption = self._inline(block.caption)
            figure = "<figure>{}\n<figcaption>{}</figcaption></figure>" if caption else _FIGURE
            return self._markup(figure).format(self._chart(block), caption)
        if isinstance(block, DataTable) and block.rows:
            table = self.table(block)
            return self._markup(_FOLDED).format(block.folded, table) if block.folded else table
        return self._markup("")

    def _inline(self, words: Words) -> Markup:
        parts = words if isinstance(words, tuple) else (words,)
        return self._markup("").join(
            self._case_link(part.text, part.repeat)
            if isinstance(part, CaseRef)
            else visible(part if isinstance(part, str) else part.text)
            for part in parts
        )

    def table(self, table: DataTable[Any]) -> Markup:
        """A table that scrolls by itself."""
        self._tables += 1
        columns = [column for column in table.columns if not isinstance(column, TrendColumn)]
        head = self._markup('<th scope="col"{}>{}</th>')
        heads = (
            head.format(_html_class(column, at), _name_of(column))
            for at, column in enumerate(columns)
        )
        lines = [
            self._markup(_SCROLL).format(f"t{self._tables}"),
            self._markup('<table class="{}">' if table.look else "<table>").format(table.look),
            self._markup('<caption><span id="{}">{}</span></caption>').format(
                f"t{self._tables}", visible(table.caption or table.title or table.folded)
            ),
            self._markup("<thead><tr>{}</tr></thead>\n<tbody>").format(
                self._markup("").join(heads)
            ),
        ]
        cards = "cards" in table.look
        for row in table.rows:
            cells = (self._cell(column, row, at, cards) for at, column in enumerate(columns))
            lines.append(self._markup("<tr>{}</tr>").format(self._markup("").join(cells)))
        lines.append(self._markup("</tbody></table></div>\n"))
        return self._markup("\n").join(lines)

    def _cell(self, column: AnyColumn[Any], row: Any, at: int, cards: bool) -> Markup:
        """A cell; on a phone that of a card names its column."""
        shade, text = "", self._markup("")
        if isinstance(column, DataColumn):
            text = self._markup.escape(visible(column.cell(row)))
            shade = column.shade(row) if column.shade else ""
            if column.small and (small := column.small(row)):
                text += self._markup(" <small>{}</small>").format(small)
            if shade and column.words and text:
                text, shade = self._markup('<span class="{}">{}</span>').format(shade, text), ""
        elif isinstance(column, CasesColumn):
            cases = column.cases(row)
            text = self._markup(self._case_links(cases).strip()) if cases else text
        elif isinstance(column, WhiskerColumn):
            whisker = column.whisker(row)
            text = self._markup(self._whisker(whisker).strip()) if whisker else text
        elif isinstance(column, TermColumn):
            text = self._term(column.term(row))
        if not at:
            return self._markup('<th scope="row">{}</th>').format(text)
        own = _html_class(column, at, shade)
        own += self._markup(' data-l="{}"').format(_name_of(column)) if cards else ""
        own += self._markup(' dir="auto"' if getattr(column, "words", False) else "")
        return self._markup("<td{}>{}</td>").format(own, text)

    def _term(self, term: Term) -> Markup:
        """A metric in words, its name in grey behind them; what it means on hover, and when it has
        the focus."""
        name = self._markup("_<wbr>").join(visible(term.name).split("_"))
        shown = visible(term.words) or name
        if term.meaning:
            span = '<span class="term" tabindex="0" title="{}">{}</span>'
            shown = self._markup(span).format(visible(term.meaning), shown)
        if term.words or not term.meaning:
            grey = self._markup(' <span class="name">{}</span>').format(name)
            shown = (self._markup.escape(shown) if term.words else self._markup("")) + grey
        if term.note:
            shown += self._markup(' <span class="small">{}</span>').format(term.note)
        return self._markup.escape(shown)


_HTML_ITEM = '<li dir="auto">{}</li>'

_HTML_PROSE = {False: "<p>{}</p>", True: '<p class="small">{}</p>'}

_FIGURE = "<figure>{}{}</figure>"

_FOLDED = "<details><summary>{}</summary>\n{}</details>"

_SCROLL = '<div class="scroll" tabindex="0" role="region" aria-labelledby="{}">'


def _name_of(column: AnyColumn[Any]) -> str:
    return "picture" if isinstance(column, WhiskerColumn) else column.name.strip()


def _html_class(column: AnyColumn[Any], at: int, shade: str = "") -> Markup:
    from markupsafe import Markup

    names = [shade] if shade else []
    if isinstance(column, CasesColumn):
        names.append("left ids-cell")
    elif isinstance(column, DataColumn) and column.words and at and not column.shade:
        names.append("left wrapped")
    elif not isinstance(column, DataColumn) or column.words or not at:
        names.append("left")
    return Markup(' class="{}"').format(" ".join(names)) if names else Markup("")


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
