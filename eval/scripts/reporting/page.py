"""The report as one HTML file: no script, nothing loaded, charts drawn as SVG by the templates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reporting import charts, words
from reporting.text import one_line, visible
from tables import number

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")


def page(report: Mapping[str, Any]) -> str:
    """The whole page. All text of the report is escaped; nothing in it can run or load."""
    return _environment().get_template("report.html.j2").render(report=report)


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": number,
        "percent": words.percent,
        "count": words.count,
        "ms": words.milliseconds,
        "visible": visible,
        "one_line": one_line,
        "shade": shade,
    }
    made.globals |= {"charts": charts, "words": words, "marks": words.MARKS}
    return made


def shade(r: float | None) -> str:
    """The class of a correlation's cell: c-4 … c4, or none for an undefined one."""
    return "none" if r is None else f"c{round(r * 4)}".replace("c-", "m").replace("c", "p")
