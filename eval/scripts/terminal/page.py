"""A document as a list of typed blocks, how its numbers are worded, and its JSON form.

A room makes the blocks from its own typed rows: what ``--json`` prints, a table of a terminal and
one of a document hold the same rows. ``terminal/print_page.py`` prints the blocks on a terminal,
``views/page.py`` writes them as Markdown and HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Generic, Literal, TypeVar

from terminal.tables import ROOMY

Row = TypeVar("Row")

Tone = Literal["good", "bad", "doubt", "quiet", "strong"]


@dataclass(frozen=True, slots=True)
class Quoted:
    """Foreign text among a document's own words: an id, a name, what a bot wrote."""

    text: str


@dataclass(frozen=True, slots=True)
class CaseRef:
    """A case by its id and repeat: a link where the document shows it in full."""

    text: str
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class Tag:
    """A word in a frame that marks its neighbour: ``relevant``, ``failed``."""

    text: str
    tone: Tone | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead to a section of the document, by its anchor."""

    text: str
    anchor: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class TimeBar:
    """When a step ran, as a bar: its beginning and size, each in [0, 1] of the whole time."""

    start: float
    size: float


Part = str | Quoted | CaseRef | Tag | Link | TimeBar

Words = Part | tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the document's own. ``note``: what is in grey behind it."""

    words: Words
    level: int = 2
    tone: Tone | None = None
    note: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Prose:
    """A sentence or a short line. ``item``: how deep in a list it is, 0 outside one. ``look``: a
    class of a page's style, for a list that of all its items."""

    words: Words
    tone: Tone | None = None
    item: int = 0
    look: str = ""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A value behind its label. ``look``: a class of a page's style for all that follow."""

    label: str
    words: Words
    tone: Tone | None = None
    look: str = "pairs"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict of a document: last on a terminal, where it stays in sight, else first."""

    words: Words
    tone: Tone | None = None
    more: tuple[Prose, ...] = ()


@dataclass(frozen=True, slots=True)
class TextMark:
    """A stretch of a text with its tone, and the sign that follows it."""

    start: int
    end: int
    tone: Tone | None
    sign: str = ""


@dataclass(frozen=True, slots=True)
class Quotation:
    """A foreign text under its name: a question, an answer.

    ``marks``: its claims; ``changed``: stretches whose words another text does not have.
    """

    name: str
    text: str
    marks: Sequence[TextMark] = ()
    changed: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class PassageBlock:
    """A retrieved text: its place and marks, and the text, which is folded unless ``loud``.

    ``rank``: from 1. ``gold``: it is relevant. ``snippets``: texts that are marked in it.
    ``length``: its characters where the run keeps a part of it.
    """

    rank: int
    place: str
    text: str
    gold: bool = False
    loud: bool = False
    tags: tuple[Tag, ...] = ()
    note: str = ""
    snippets: Sequence[str] = ()
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Sides:
    """Blocks of two runs beside each other, row by row. ``look``: a class of a page's style."""

    rows: Sequence[tuple[Sequence[Block], Sequence[Block]]]
    names: tuple[str, str] = ("", "")
    look: str = "sides"


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading, which a page folds.

    ``lines``: what the folded section shows below its heading. ``anchor``: where a link leads to.
    ``open``: a page shows it unfolded. ``screen``: a page does not print it. ``page_only``: neither
    Markdown nor a terminal has it. ``level`` 0: no heading but a line.
    """

    title: Words
    blocks: Sequence[Block]
    anchor: str = ""
    level: int = 2
    lines: Sequence[Words] = ()
    open: bool = False
    screen: bool = False
    page_only: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture that only a page has room for: its ``kind`` names who draws the data."""

    kind: str
    data: Any
    caption: Words = ""


@dataclass(frozen=True, slots=True)
class Whisker:
    """A value within its interval, and a mark beside it (a target, or no change).

    ``low``, ``high``: ends of the scale on a page, None where it has none. ``before``: the value
    that an arrow comes from; ``tone``: of that arrow. ``unseen``: the smallest difference that can
    be detected.
    """

    interval: Sequence[float] | None
    value: float | None
    mark: float | None = None
    low: float | None = 0.0
    high: float | None = 1.0
    before: float | None = None
    tone: Tone | None = None
    unseen: float | None = None

    @property
    def size(self) -> float:
        """The largest distance from 0 of the value or of an end."""
        return max(map(abs, (self.value or 0.0, *(self.interval or ()))))


@dataclass(frozen=True, slots=True)
class CaseLinks:
    """The answers behind a figure: how many, and some by id and repeat. ``label``: which ones."""

    count: int
    listed: Sequence[tuple[str, int]] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """A metric by its name; a page shows it in plain words, too, and explains it."""

    name: str
    words: str = ""
    meaning: str = ""
    note: str = ""


@dataclass(frozen=True)
class DataColumn(Generic[Row]):
    """A column of a table: its head and the cell of each row.

    ``drop``: where a terminal is narrow, columns go by rising numbers; those of 0 stay. ``words``:
    the cell is text, to the left. ``foreign``: that no one here wrote. ``mark``: a sign, for which
    a document shows the row's tone. ``small``: what a document adds to the cell. ``shade``: how a
    page colours it, a class of its style. ``term``: the metric that a page explains. ``short``: its
    head where columns are narrow, but not on a page.
    """

    name: str
    cell: Callable[[Row], str]
    drop: int = 0
    words: bool = False
    foreign: bool = False
    mark: bool = False
    small: Callable[[Row], str] | None = None
    shade: Callable[[Row], str] | None = None
    term: Callable[[Row], Term] | None = None
    short: str = ""


@dataclass(frozen=True)
class WhiskerColumn(Generic[Row]):
    """A column of pictures of intervals, on a terminal that has room for them.

    ``around_zero``: one scale around 0 for all rows, whose values are at most 1; else from 0 to 1.
    ``changes``: pictures of a difference with the value before at 0. ``legend``: what the signs
    mean, in UTF-8 and in ASCII. ``draws``: the column of the numbers that they show, for which
    there is room on a wide terminal alone. ``least``: columns of a terminal that has them.
    """

    whisker: Callable[[Row], Whisker | None]
    drop: int = 0
    around_zero: bool = False
    changes: bool = False
    legend: tuple[str, str] = ("", "")
    draws: str = ""
    least: int = ROOMY


@dataclass(frozen=True)
class BarColumn(Generic[Row]):
    """A column of bars: of each row a share in [0, 1]. ``drop``: as that of a DataColumn."""

    share: Callable[[Row], float]
    drop: int = 0


@dataclass(frozen=True)
class TrendColumn(Generic[Row]):
    """A column of sparklines, as wide as the others leave: the values, and the places of breaks."""

    name: str
    values: Callable[[Row], tuple[Sequence[float | None], Sequence[int]]]


@dataclass(frozen=True)
class CasesColumn(Generic[Row]):
    """A column of a page's links to cases; None for a row without any."""

    name: str
    cases: Callable[[Row], CaseLinks | None]


AnyColumn = (
    DataColumn[Row] | WhiskerColumn[Row] | BarColumn[Row] | TrendColumn[Row] | CasesColumn[Row]
)


@dataclass(frozen=True)
class DataTable(Generic[Row]):
    """Typed rows, and the columns to show.

    ``tone``: of a row. ``group``: the heading that a row stands under, among the rows. ``folded``:
    the words under which a document folds the table; a terminal prints ``hint`` in its place.
    ``caption``: what a page says above the rows; ``look``: a class of its style.
    """

    columns: Sequence[AnyColumn[Row]]
    rows: Sequence[Row]
    title: str = ""
    tone: Callable[[Row], Tone | None] | None = None
    group: Callable[[Row], str] | None = None
    folded: str = ""
    hint: str = ""
    caption: str = ""
    look: str = ""


Block = (
    Heading
    | Prose
    | Labelled
    | Conclusion
    | Quotation
    | PassageBlock
    | Sides
    | Section
    | Chart
    | DataTable[Any]
)


@dataclass(frozen=True, slots=True)
class Page:
    """A document: its title, which a terminal does without, and its blocks in order."""

    title: Words
    blocks: Sequence[Block] = field(default_factory=tuple)

    def ordered(self, *, verdict_first: bool) -> list[Block]:
        """The blocks with the verdicts where a document, or a terminal, has them."""
        return sorted(self.blocks, key=lambda b: isinstance(b, Conclusion) is not verdict_first)


def conclusion(page: Page) -> str:
    """The verdict of a document, as text; "" without one."""
    verdicts = (block for block in page.blocks if isinstance(block, Conclusion))
    return next((plain_words(block.words) for block in verdicts), "")


def plain_words(words: Words) -> str:
    """Words as text; a case is its id, a bar nothing."""
    parts = words if isinstance(words, tuple) else (words,)
    return "".join(
        part if isinstance(part, str) else "" if isinstance(part, TimeBar) else part.text
        for part in parts
    )


# As JSON data


def page_data(page: Page) -> dict[str, Any]:
    """A document as JSON data: its title, and its blocks in order, each with its ``kind``.

    Cells of tables are texts, pictures and links to cases their values.
    """
    return {"title": plain_words(page.title), "blocks": list(map(_data, page.blocks))}


def _data(value: Any) -> Any:
    """A block, or a part of one, without what is as usual in it."""
    if isinstance(value, DataTable):
        return _table_data(value)
    if isinstance(value, Chart):
        drawn = value.data
        return {"kind": "chart", "name": value.kind, "data": _plain(drawn)}
    if not isinstance(value, _BLOCKS):
        return _plain(value)
    data: dict[str, Any] = {"kind": type(value).__name__.removesuffix("Block").lower()}
    for one in fields(value):
        content = getattr(value, one.name)
        if one.name in ("words", "title"):
            data[one.name] = plain_words(content)
        elif one.name in ("blocks", "more"):
            data[one.name] = list(map(_data, content))
        elif one.name == "rows":
            data[one.name] = [[list(map(_data, side)) for side in row] for row in content]
        elif one.name == "lines":
            data[one.name] = list(map(plain_words, content))
        elif content != one.default and one.name != "look":
            data[one.name] = _plain(content)
    return data


_BLOCKS = (Heading, Prose, Labelled, Conclusion, Quotation, PassageBlock, Sides, Section)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(map(_plain, value))
    return value


def _table_data(table: DataTable[Any]) -> dict[str, Any]:
    rows = [[_cell_data(column, row) for column in table.columns] for row in table.rows]
    names = [getattr(column, "name", "picture").strip() for column in table.columns]
    title = table.caption or table.title or table.folded
    return {"kind": "table", "title": title, "columns": names, "rows": rows}


def _cell_data(column: AnyColumn[Any], row: Any) -> Any:
    if isinstance(column, DataColumn):
        small = column.small(row) if column.small else ""
        return f"{column.cell(row)} {small}".rstrip() if small else column.cell(row)
    if isinstance(column, WhiskerColumn):
        return _plain(column.whisker(row))
    if isinstance(column, BarColumn):
        return column.share(row)
    if isinstance(column, CasesColumn):
        return _plain(column.cases(row))
    return _plain(column.values(row))


# How numbers are worded


def number(value: float | None) -> str:
    """Three decimals, fewer from 10 up, and a true minus; an en dash for an undefined value."""
    if value is None:
        return "–"
    size = abs(value)
    shown = f"{size:.3f}" if size < 10 else f"{size:,.{1 if size < 100 else 0}f}"
    return f"−{shown}" if value < 0 and float(shown.replace(",", "")) else shown


def signed(value: float | None) -> str:
    """A difference: its sign (a true minus) and three decimals, more where it is smaller."""
    if value is None:
        return "–"
    size = apart(abs(value), 0.0)[0]
    return ("+" if value > 0 else "−" if value < 0 else "") + size


def apart(*values: float | None) -> tuple[str, ...]:
    """Numbers of one measure in as many digits as show that they differ, at most six."""
    shown = tuple(map(number, values))
    different = len({value for value in values if value is not None})
    digits = 3
    while len({*shown} - {"–"}) < different and digits < 6:
        digits += 1
        shown = tuple(
            "–" if value is None else f"{value:.{digits}f}".replace("-", "−") for value in values
        )
    return shown if len({*shown} - {"–"}) == different else tuple(map(number, values))


def from_to(before: float | None, after: float | None) -> str:
    """``0.668 → 0.630``, in as many digits as show that they differ."""
    return " → ".join(apart(before, after))


def p_value(p: float | None) -> str:
    """Three decimals without the 0 before the point; below them ``< .001``."""
    if p is None:
        return "–"
    if p < 0.001:
        return "< .001"
    return f"{p:.3f}".removeprefix("0")


def p_words(p: float) -> str:
    """The same in a sentence: ``p = .034``, ``p < .001``."""
    return f"p {'' if p < 0.001 else '= '}{p_value(p)}"


def between(ends: Sequence[float] | None) -> str:
    """Both ends of an interval: ``0.512 – 0.740``."""
    return "–" if ends is None else f"{number(ends[0])} – {number(ends[1])}"


def signed_between(ends: Sequence[float] | None) -> str:
    """Both ends of a difference's interval: ``−0.072 to +0.005``."""
    return "–" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"


def percent(share: float | None) -> str:
    """A share in whole percents, never rounded up to 100 or down to 0; an en dash for None."""
    if share is None:
        return "–"
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def fine_percent(share: float) -> str:
    """A share with one digit after the point, two below 1 %."""
    return f"{100 * share:.1f} %" if share >= 0.01 or not share else f"{100 * share:.2f} %"


def times(ratio: float | None) -> str:
    """A ratio in two decimals, or three significant digits if it is small."""
    if ratio is None:
        return "–"
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3g}"


def term_column(name: str, term: Callable[[Row], Term]) -> DataColumn[Row]:
    """A column of metrics, by their names where there is no room for their words."""

    def cell(row: Row) -> str:
        return " ".join(filter(None, (term(row).name, term(row).note)))

    return DataColumn(name, cell, words=True, term=term)


def items(texts: Iterable[Words], tone: Tone | None = None) -> Iterator[Prose]:
    """A list, an item each."""
    return (Prose(text, tone, item=1) for text in texts)


def plain_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str = "",
    *,
    words: int = 1,
    foreign: bool = False,
    caption: str = "",
    folded: str = "",
) -> DataTable[Sequence[str]]:
    """A table of cells that are text already; the first ``words`` columns are to the left.

    ``foreign``: no one here wrote the names in the first column. ``caption``, ``folded``: see
    DataTable.
    """

    def column(at: int, name: str) -> DataColumn[Sequence[str]]:
        return DataColumn(name, lambda row: row[at], words=at < words, foreign=foreign and not at)

    columns = [column(at, name) for at, name in enumerate(head)]
    return DataTable(columns, list(rows), title, caption=caption, folded=folded)
