"""The report as one HTML file: nothing loaded, charts drawn as SVG by the templates.

The one script filters and sorts the list of cases and opens what a link leads to. Its text is
always the same, no data is in it, and the page's policy lets no other script run.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisions.compare_words import HEAD
from decisions.watch import WatchedFigure, as_dict, verdict
from decisions.watch_print import limits
from records.errors import StorageError
from records.files import json_bytes, replace_bytes
from records.runs import VERSION
from terminal.page import between, fine_percent, number, percent
from views.page import html_table, markdown
from views.report import charts, tables, words
from views.report.case_rows import case_rows
from views.report.text import anchor, one_line, told_apart, visible

if TYPE_CHECKING:
    from jinja2 import Environment


TEMPLATES = Path(__file__).with_name("templates")


def _page(report: Mapping[str, Any]) -> bytes:
    """The whole page. All text of the report is escaped; nothing in it can run or load."""
    from markupsafe import Markup

    answers = report["worst"]["listed"]
    in_full = frozenset(anchor(answer["case_id"], answer["repeat"]) for answer in answers)
    listed = {anchor(case_id, repeat) for case_id, repeat, *_ in report["case_list"]["rows"]}
    return _drawn(
        "report.html.j2",
        report=report,
        rows=map(Markup, case_rows(report["case_list"], in_full)),
        anchors=listed | in_full,
    )


def _drawn(template: str, **values: Any) -> bytes:
    """A template's page, encoded piece by piece: as one text it would take twice the memory."""
    return b"".join(
        piece.encode() for piece in _environment().get_template(template).generate(values)
    )


def comparison_page(report: Mapping[str, Any]) -> bytes:
    """The page of a comparison alone: its verdicts, and the cases that changed, in full."""
    answers = report["answers"]
    anchors = {anchor(answer["case_id"], answer["repeat"]) for answer in answers}
    return _drawn("comparison.html.j2", report=report, anchors=anchors)


def watch_page(figures: Sequence[WatchedFigure], title: str, notes: Sequence[str] = ()) -> bytes:
    """The page of watched figures: the verdict, the shares by day as pictures and as tables.

    ``notes`` stand below the verdict, beside what limits the answers.
    """
    return _drawn(
        "watch.html.j2",
        report={
            "title": title,
            "verdict": verdict(figures),
            "figures": [as_dict(figure) for figure in figures],
            "notes": [*limits(figures), *notes],
            "tool_version": VERSION,
        },
    )


@cache
def _script() -> tuple[str, str]:
    """The script of the page, and its hash for the policy."""
    text = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(sha256(text.encode()).digest()).decode()
    return text, f"sha256-{digest}"


@cache
def _environment() -> Environment:
    """The templates, which are compiled once for all reports of a process."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "percent": percent,
        "between": between,
        "share": fine_percent,
        "count": words.count,
        "ms": words.milliseconds,
        "visible": visible,
        "one_line": one_line,
        "shade": _shade,
        "unbroken": _unbroken,
    }
    script, digest = _script()
    environment.globals |= {"charts": charts, "words": words, "marks": words.MARKS}
    environment.globals |= {"told_apart": told_apart, "tables": tables, "table": html_table}
    environment.globals |= {
        "script": Markup(script),
        "script_hash": digest,
        "anchor": anchor,
        "compare_head": HEAD,
    }
    return environment


def _shade(r: float | None) -> str:
    """The class of a correlation's cell: c-4 … c4, or none for an undefined one."""
    return "none" if r is None else f"c{round(r * 4)}".replace("c-", "m").replace("c", "p")


def _unbroken(text: str) -> str:
    """A sentence in which no line ends before a percent sign or within a p-value."""
    for sign in (" %", " = ", " < "):
        text = text.replace(sign, sign.replace(" ", "\u00a0"))
    return text


def write(report: Mapping[str, Any], formats: Sequence[str], stem: Path) -> list[Path]:
    """Write STEM.md, STEM.json, STEM.html as asked; their paths.

    All are drawn before the first is written. Raises StorageError when a folder cannot be written.
    """
    drawn = {stem.with_name(f"{stem.name}.{form}"): _draw(report, form) for form in formats}
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{stem.parent}: cannot be made ({error.strerror}).") from None
    for path, content in drawn.items():
        replace_bytes(path, content)
    return list(drawn)


def _draw(report: Mapping[str, Any], form: str) -> bytes:
    """The report in one form: ``md``, ``json`` or ``html``."""
    if form == "json":
        return json_bytes(report)
    if form == "md":
        from views.report.markdown import report_page

        return markdown([report_page(report)]).encode()

    return _page(report)
