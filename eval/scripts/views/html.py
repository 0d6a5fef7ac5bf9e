"""The blocks of a document as HTML, in which no foreign text is markup."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from terminal.page import (
    AnyColumn,
    BarColumn,
    Block,
    CaseLinks,
    CaseRef,
    CasesColumn,
    Chart,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Labelled,
    Link,
    Part,
    PassageBlock,
    Prose,
    Quotation,
    Quoted,
    Section,
    Sides,
    Tag,
    Term,
    TimeBar,
    TrendColumn,
    Whisker,
    WhiskerColumn,
    Words,
)
from views.page import PASSAGE, TEXT
from views.text import anchor, left_out_words, one_line, shortened, visible, visible_part

if TYPE_CHECKING:
    from markupsafe import Markup


def _html(template: str, *values: Any) -> Markup:
    """Markup with values, of which texts that are no markup are escaped."""
    from markupsafe import Markup, escape

    shown = [escape(value) if isinstance(value, str) else value for value in values]
    return Markup(template.format(*shown))


_TAGS = {"good": "tag hit", "bad": "tag miss"}


class HtmlWriter:
    """Writes blocks as HTML, in which no foreign text is markup.

    Tables are numbered; a folded one is not printed. ``anchors``: of the cases that the page has.
    ``chart``, ``whisker``: draw a picture, and that of an interval.
    """

    def __init__(
        self,
        anchors: Collection[str],
        chart: Callable[[Chart], Markup],
        whisker: Callable[[Whisker], Markup],
    ) -> None:
        self._tables = 0
        self._anchors = anchors
        self._chart, self._whisker = chart, whisker

    def write(self, blocks: Iterable[Block]) -> Markup:
        """Write the blocks in order; an open table is beside the picture before it."""
        html = []
        beside = False
        for list_of, own in groupby(blocks, _list_of):
            group = list(own)
            if list_of:
                html.append(self._list(group, *list_of))
                continue
            for block, after in pairwise([*group, None]):
                pictured = isinstance(block, Chart) and _is_open_table(after)
                html += [_html('<div class="figures">')] * pictured
                html.append(self._block(block))
                html += [_html("</div>")] * beside
                beside = pictured
        return _html("\n").join(html)

    def _list(self, blocks: Sequence[Block], kind: str, look: str) -> Markup:
        """Items of a list, or values behind their labels."""
        if kind == "dl":
            pair = "<div><dt{0}>{1}</dt><dd{0}>{2}</dd></div>\n"
            rows = (
                _html(pair, _tone(block), visible(block.label), self._inline(block.words))
                for block in blocks
                if isinstance(block, Labelled)
            )
            return _html('<dl class="{}">\n{}</dl>', look, _html("").join(rows))
        items = (self._item(block) for block in blocks if isinstance(block, Prose) and block.words)
        return _html('<ul class="{}">\n{}</ul>', look or "plain", _html("").join(items))

    def _item(self, block: Prose) -> Markup:
        own = _tone(block, "deep" * (block.item > 1))
        return _html('<li dir="auto"{}>{}</li>\n', own, self._inline(block.words))

    def _block(self, block: Block | None) -> Markup:
        if isinstance(block, Heading):
            name = _html(' id="{}"', block.anchor) if block.anchor else ""
            note = _html(' <span class="small">{}</span>', visible(block.note)) * bool(block.note)
            return _html(
                "<h{0}{1}>{2}{3}</h{0}>", block.level, name, self._inline(block.words), note
            )
        if isinstance(block, Prose) and block.words:
            classes = " ".join(filter(None, (block.look, "small" * (block.tone == "quiet"))))
            own = _html(' class="{}"', classes) if classes else ""
            return _html("<p{}>{}</p>", own, self._inline(block.words))
        if isinstance(block, Conclusion):
            more = (_html('<p class="small">{}</p>', self._inline(p.words)) for p in block.more)
            return _html(
                '<p class="says">{}</p>\n{}', self._inline(block.words), _html("\n").join(more)
            )
        if isinstance(block, Chart):
            drawn = self._chart(block)
            caption = self._inline(block.caption)
            caption = _html("<figcaption>{}</figcaption>", caption) if caption else caption
            return _html("<figure>{}{}</figure>", drawn, caption) if drawn.strip() else drawn
        if isinstance(block, Quotation):
            name = _html("<h4>{}</h4>\n", visible(block.name)) if block.name else _html("")
            return name + _text(block.text, TEXT, block.changed)
        if isinstance(block, PassageBlock):
            return self._passage(block)
        if isinstance(block, Sides):
            return self._sides(block)
        if isinstance(block, Section):
            return self._section(block)
        if isinstance(block, DataTable) and block.rows:
            table = self._table(block)
            folded = '<details class="on-screen"><summary>{}</summary>\n{}</details>'
            return _html(folded, visible(block.folded), table) if block.folded else table
        return _html("")

    def _inline(self, words: Words) -> Markup:
        parts = words if isinstance(words, tuple) else (words,)
        return _html("").join(map(self._part, parts))

    def _part(self, part: Part) -> Markup:
        if isinstance(part, CaseRef):
            return self.case_link(part.text, part.repeat)
        if isinstance(part, Tag):
            if part.tone == "strong":
                return _html("<b>{}</b>", one_line(part.text, 400))
            look = _TAGS.get(part.tone or "", "tag")
            return _html('<span class="{}">{}</span>', look, one_line(part.text, 400))
        if isinstance(part, Link):
            note = _html(' <span class="name">{}</span>', _broken(part.note)) * bool(part.note)
            return _html('<a href="#{}">{}{}</a>', part.anchor, visible(part.text), note)
        if isinstance(part, TimeBar):
            return _bar("time", part.start, part.size) + " "
        if isinstance(part, Quoted):
            return _html("<code>{}</code>", visible(part.text))
        return _html("{}", visible(part))

    def case_link(self, case_id: str, repeat: int = 0) -> Markup:
        """A case by its id; a link where the page has it."""
        name = one_line(case_id, 60) + (f" r{repeat}" if repeat else "")
        place = anchor(case_id, repeat)
        return _html('<a href="#{}">{}</a>' if place in self._anchors else "{1}", place, name)

    def _case_links(self, cases: CaseLinks) -> Markup:
        """The answers behind a figure, at most 20 of them; the rest is counted."""
        if not cases.count:
            return _html("")
        label = cases.label or ("answer" if cases.count == 1 else "answers")
        listed = _html(", ").join(self.case_link(*key) for key in cases.listed)
        more = cases.count - len(cases.listed)
        rest = f"{' and ' * bool(listed)}{more:,} more" if more > 0 else ""
        shape = '<details class="ids"><summary>{:,} {}</summary>{}{}</details>'
        return _html(shape, cases.count, label, listed, rest)

    def _passage(self, passage: PassageBlock) -> Markup:
        shape = (
            '<details class="passage{}"{}><summary><span class="place" dir="auto">{}. {}</span>{}{}'
            "</summary>\n{}</details>"
        )
        tags = _html("").join(map(self._part, passage.tags))
        note = _html(' <span class="small">{}</span>', passage.note) if passage.note else ""
        text = _html('<p class="small">The run keeps no text of it.</p>')
        if passage.text:
            cut = max(0, (passage.length or 0) - len(passage.text))
            text = _text(passage.text, PASSAGE, left_out=cut)
        return _html(
            shape,
            " gold" * passage.gold,
            " open" * passage.loud,
            passage.rank,
            one_line(passage.place),
            tags,
            note,
            text,
        )

    def _sides(self, sides: Sides) -> Markup:
        """Two columns; on a narrow screen one below the other, each row under its side's name."""
        named = any(sides.names)
        html = [_html('<p class="side">{}</p>', name) for name in sides.names if named]
        for row in sides.rows:
            for name, blocks in zip(sides.names, row, strict=True):
                own = _html(' class="level" data-side="{}"', name) if named else ""
                if blocks or named:
                    html.append(_html("<div{}>{}</div>", own, self.write(blocks)))
        return _html('<div class="{}">{}</div>', sides.look, _html("\n").join(html))

    def _section(self, section: Section) -> Markup:
        """A section of the page, a case in it, or some folded lines."""
        parts = section.title if isinstance(section.title, tuple) else (section.title,)
        tags = [part for part in parts if isinstance(part, Tag)]
        title = self._inline(tuple(part for part in parts if not isinstance(part, Tag)))
        after = _html("").join(map(self._part, tags)) + _html("").join(
            _html('\n<span class="why">{}</span>', self._inline(line)) for line in section.lines
        )
        screen = " on-screen" * section.screen
        opened = " open" * section.open
        inside = self.write(section.blocks)
        name = _html(' id="{}"', section.anchor) if section.anchor else ""
        if not section.level:
            shape = "<details{}><summary>{}{}</summary>\n{}</details>"
            look = _html(' class="{}"', screen.strip()) if screen else ""
            return _html(shape, look, title, after, inside)
        body = _html('<div class="in-full"{}>\n{}\n</div>', name, inside)
        if section.level > 2:
            shape = (
                '<details class="case{0}"{1}><summary><h{2}>{3}</h{2}>{4}</summary>\n{5}</details>'
            )
            return _html(shape, screen, opened, section.level, title, after, body)
        shape = (
            '<section aria-labelledby="{0}-title"{1}><details class="fold"{2}><summary>'
            '<h2 id="{0}-title">{3}</h2>{4}</summary>\n{5}</details></section>'
        )
        look = _html(' class="{}"', screen.strip()) if screen else ""
        return _html(shape, section.anchor, look, opened, title, after, body)

    def _table(self, table: DataTable[Any]) -> Markup:
        """A table that scrolls by itself; on a phone a row can be a card."""
        self._tables += 1
        drawn = {column.draws for column in table.columns if isinstance(column, WhiskerColumn)}
        columns = [
            column
            for column in table.columns
            if not isinstance(column, TrendColumn)
            and getattr(column, "name", "") not in drawn - {""}
        ]
        names = [
            visible(c.name)
            if isinstance(c, DataColumn | CasesColumn)
            else ("share" if isinstance(c, BarColumn) else "picture")
            for c in columns
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
                "<tr{}>{}</tr>\n",
                _html(' class="{}"', table.tone(row)) if table.tone and table.tone(row) else "",
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
        elif isinstance(column, BarColumn):
            text = _bar("share", 0.0, column.share(row))
        elif isinstance(column, CasesColumn):
            cases = column.cases(row)
            text = self._case_links(cases) if cases else text
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


def _bar(title: str, start: float, size: float) -> Markup:
    """A part of a whole on its axis, each in [0, 1]."""
    shape = (
        '<svg class="inline" viewBox="0 0 100 16" preserveAspectRatio="none" aria-hidden="true" '
        'focusable="false"><title>{}</title><line class="axis" x1="0" x2="100" y1="8" y2="8"/>'
        '<rect class="bar" x="{:.1f}" width="{:.1f}" y="3" height="10"/></svg>'
    )
    return _html(shape, title, 100 * start, 100 * size)


def _tone(block: Labelled | Prose, look: str = "") -> Markup:
    """The class of a block's tone, after another one."""
    names = {"quiet": "small", "good": "better", "bad": "worse", "strong": "strong"}
    classes = " ".join(filter(None, (look, names.get(block.tone or "", ""))))
    return _html(' class="{}"', classes) if classes else _html("")


def _list_of(block: Block) -> tuple[str, str] | None:
    """The list that a block is an item of, by element and look; None for other blocks."""
    if isinstance(block, Labelled):
        return "dl", block.look
    return ("ul", block.look) if isinstance(block, Prose) and block.item else None


def _is_open_table(block: Block | None) -> bool:
    return isinstance(block, DataTable) and not block.folded


def _text(
    text: str, most: int, changed: Sequence[tuple[int, int]] = (), left_out: int = 0
) -> Markup:
    """A foreign text with its line ends; ``changed``: stretches to mark."""
    shown, cut = shortened(text, most)
    pieces, last = [], 0
    for start, end in changed:
        if start < min(end, len(shown)):
            pieces += [_html("{}", visible_part(shown, last, start))]
            pieces += [_html("<mark>{}</mark>", visible_part(shown, start, end))]
            last = end
    more = left_out_words(cut + left_out)
    more = _html('<span class="small"> {}</span>', more) if more else _html("")
    body = _html("").join([*pieces, _html("{}", visible_part(shown, last))])
    return _html('<div class="text" dir="auto">{}{}</div>', body, more)


def _broken(text: str) -> Markup:
    """A name that may be broken behind its underscores."""
    return _html("_<wbr>").join(one_line(text, 80).split("_"))


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
