"""The report as one HTML file: no script, nothing loaded, charts drawn as SVG by the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from records.errors import StorageError
from records.files import json_bytes, replace_bytes
from terminal.tables import number
from views.report import charts, words
from views.report.text import one_line, visible

if TYPE_CHECKING:
    from jinja2 import Environment


TEMPLATES = Path(__file__).with_name("templates")


def _page(report: Mapping[str, Any]) -> str:
    """The whole page. All text of the report is escaped; nothing in it can run or load."""
    return _environment().get_template("report.html.j2").render(report=report)


@cache
def _environment() -> Environment:
    """The templates, which are compiled once for all reports of a process."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "percent": words.percent,
        "count": words.count,
        "ms": words.milliseconds,
        "visible": visible,
        "one_line": one_line,
        "shade": _shade,
    }
    environment.globals |= {"charts": charts, "words": words, "marks": words.MARKS}
    return environment


def _shade(r: float | None) -> str:
    """The class of a correlation's cell: c-4 … c4, or none for an undefined one."""
    return "none" if r is None else f"c{round(r * 4)}".replace("c-", "m").replace("c", "p")


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
        from views.report.markdown import markdown

        return markdown(report).encode()

    return _page(report).encode()
