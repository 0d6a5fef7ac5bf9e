"""The report as one HTML file: nothing loaded, charts drawn as SVG by the templates.

The one script filters and sorts the list of cases and opens what a link leads to. Its text is
always the same, no data is in it, and the page's policy lets no other script run.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from records.errors import StorageError
from records.files import replace_bytes
from records.runs import VERSION
from terminal.page import Block, Chart, Page, Section, number, plain_words
from views.html import HtmlWriter
from views.page import markdown
from views.report import charts
from views.report.answers import CaseRow, CaseTable
from views.report.compared import short
from views.report.metrics import MARKS
from views.text import anchor, one_line, visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


TEMPLATES = Path(__file__).with_name("templates")


class PageBlocks(HtmlWriter):
    """Draws blocks on a page, with links to the answers that it has."""

    def __init__(self, anchors: Collection[str] = ()) -> None:
        draw: Any = _environment().get_template("charts.html.j2").module
        super().__init__(
            anchors,
            lambda chart: (
                _list(chart.data)
                if chart.kind == "cases"
                else getattr(draw, chart.kind)(chart.data)
            ),
            draw.whisker,
        )


def html_page(page: Page, foot: str) -> bytes:
    """A document as one HTML file. All text of it is escaped; nothing in it can run or load."""
    blocks = page.ordered(verdict_first=True)
    at = next((n for n, one in enumerate(blocks) if _is_folded(one)), len(blocks))
    folded = [block for block in blocks[at:] if isinstance(block, Section)]
    contents = [(section.anchor, plain_words(section.title)) for section in folded]
    return drawn_page(
        "page.html.j2",
        anchors=frozenset(_anchors(blocks)),
        title=plain_words(page.title),
        contents=contents,
        head=blocks[:at],
        main=blocks[at:],
        foot=f"{foot} of RAG Eval Toolkit {VERSION}",
    )


def _is_folded(block: Block) -> bool:
    return isinstance(block, Section) and block.level == 2


def _anchors(blocks: Iterable[Block]) -> Iterator[str]:
    """The cases that a page has, in full or in its list."""
    for block in blocks:
        if isinstance(block, Section):
            yield block.anchor
            yield from _anchors(block.blocks)
        elif isinstance(block, Chart) and isinstance(block.data, CaseTable):
            yield from (anchor(row.case_id, row.repeat) for row in block.data.rows)


def drawn_page(
    template: str, folder: Path = TEMPLATES, anchors: Collection[str] = (), **values: Any
) -> bytes:
    """The HTML of a template, in which ``html`` draws blocks. ``folder``: of the template; it finds
    those of the report, too.

    It is encoded piece by piece: as one text it would take twice the memory."""
    values |= {"anchors": anchors, "html": PageBlocks(anchors), "tool_version": VERSION}
    pieces = _environment(folder).get_template(template).generate(values)
    return b"".join(piece.encode() for piece in pieces)


@cache
def _script() -> tuple[str, str]:
    """The script of the page, and its hash for the policy."""
    text = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(sha256(text.encode()).digest()).decode()
    return text, f"sha256-{digest}"


@cache
def _environment(folder: Path = TEMPLATES) -> Environment:
    """The templates, which are compiled once for all reports of a process."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES], encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "count": "{:,}".format,
        "visible": visible,
        "one_line": one_line,
        "unbroken": _unbroken,
    }
    script, digest = _script()
    environment.globals |= {"charts": charts, "marks": MARKS}
    environment.globals |= {"script": Markup(script), "script_hash": digest}
    return environment


def _unbroken(text: str) -> str:
    """A sentence in which no line ends before a percent sign or within a p-value."""
    for sign in (" %", " = ", " < "):
        text = text.replace(sign, sign.replace(" ", "\u00a0"))
    return text


WITHOUT_SCRIPT = 100
"""Rows of the list of cases that a browser without JavaScript shows."""


def _list(table: CaseTable) -> Markup:
    """The list of cases: its rows as data, and the first ones as they are without a script."""
    from markupsafe import Markup

    in_full = frozenset(anchor(*key) for key in table.in_full)
    template: Any = _environment().get_template("cases.html.j2").module
    drawn: Markup = template.cases(
        table,
        map(Markup, case_rows(table)),
        map(Markup, rows_without_script(table, in_full)),
        WITHOUT_SCRIPT,
    )
    return drawn


ROW_BYTES = 250
"""Largest size of a row of the list, with its line end."""

MOST_ID, MOST_CATEGORY, MOST_WHY = 40, 20, 30
MOST_SCORE = 12
"""Characters of a score: one of a damaged file must not take the room of the rest."""


def case_rows(case_list: CaseTable) -> Iterator[str]:
    """The rows as data of the page, harmless: of each a JSON list of its place (an anchor without
    ``case-``), id ("" where that is the place), state, why, question, category, scores and marks.

    The question is cut to the room that is left.
    """
    rows = ([*_cells(row), *([row.marks] if row.marks else [])] for row in case_list.rows)
    return (f"{escape(_json(cells), quote=False)}\n" for cells in rows)


def rows_without_script(case_list: CaseTable, in_full: Collection[str]) -> Iterator[str]:
    """HTML of the first rows, harmless. ``in_full``: anchors of the answers that are shown in full.

    A row leads to its answer in full; one without is itself the place that a link leads to.
    """
    for row in case_list.rows[:WITHOUT_SCRIPT]:
        key, shown, *texts, scores = _cells(row)
        name, head = f"case-{key}", escape(shown or key)
        opening = "<tr>" if name in in_full else f'<tr id="{name}">'
        if name in in_full:
            head = f'<a href="#{name}">{head}</a>'
        cells = "".join(f"<td>{escape(text)}</td>" for text in (*texts, *scores.split()))
        yield f'{opening}<th scope="row">{head}</th>{cells}</tr>\n'


def _cells(row: CaseRow) -> list[str]:
    """What the page shows of a row, in ``ROW_BYTES`` bytes as data."""
    key = anchor(row.case_id, row.repeat).removeprefix("case-")
    scores = " ".join(map(_score, row.values))
    why, category = one_line(row.why, MOST_WHY), one_line(row.category or "", MOST_CATEGORY)
    for own_category, longest in ((category, MOST_ID), (category, 20), ("", 20), ("", 5), ("", 0)):
        shown = one_line(row.case_id, longest) + (f" r{row.repeat}" if row.repeat else "")
        cells = [key, "" if shown == key else shown, row.state, why, "", own_category, scores]
        room = ROW_BYTES - _bytes(_json(cells)) - len(f',"{row.marks}",\n')
        if room >= 0:
            cells[4] = _cut(row.question, room)
            return cells
    raise ValueError(f"{len(row.values)} scores leave no room for a case's id")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _bytes(text: str) -> int:
    return len(escape(text, quote=False).encode())


def _cut(text: str, room: int) -> str:
    """As much of a text as its escaped bytes leave room for."""
    shown = one_line(text, 160)
    if _bytes(_json(shown)) - 2 <= room:
        return shown
    used = len("…".encode())
    for end, char in enumerate(shown):
        used += _bytes(_json(char)) - 2
        if used > room:
            return f"{shown[:end]}…" if end else ""
    return shown


def _score(score: float | None) -> str:
    """A score, in few characters whatever its size; an en dash for none."""
    if score is None:
        return "–"
    shown = short(score)
    return shown if len(shown) <= MOST_SCORE else f"{score:.3g}"


def write(page: Page, formats: Sequence[str], stem: Path) -> list[Path]:
    """Write STEM.md and STEM.html as asked; their paths.

    Both are drawn before the first is written. Raises StorageError when a folder cannot be written.
    """
    drawn = {stem.with_name(f"{stem.name}.{form}"): render(page, form) for form in formats}
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{stem.parent}: cannot be made ({error.strerror}).") from None
    for path, content in drawn.items():
        replace_bytes(path, content)
    return list(drawn)


def render(page: Page, form: str) -> bytes:
    """The report in one form: ``md`` or ``html``."""
    if form == "md":
        return markdown([page]).encode()
    return html_page(page, "Made by report_run.py")
