"""The page of watched figures."""

from __future__ import annotations

import re
from datetime import date, timedelta
from xml.etree import ElementTree

from decisions.watch import watch_figure
from ragmetrics.stats.rise import DayCount
from views.report import charts
from views.report.page import watch_page

FIRST = date(2026, 1, 1)
REFERENCE = [DayCount(date(2025, 11, 6) + timedelta(i), 4, 100) for i in range(56)]
DAYS = [DayCount(FIRST + timedelta(i), 4 if i < 20 else 12, 100) for i in range(31)]
RISEN = watch_figure("refusals", "Refusals", REFERENCE, DAYS, figures=7)
HOSTILE = watch_figure("x", "<b>Bad</b>", REFERENCE, [], figures=7)


def test_the_page_says_draws_and_lists_the_days() -> None:
    page = watch_page([RISEN, HOSTILE], "Traces of <my> bot", ["120 traces were read."]).decode()
    assert "<h1>Traces of &lt;my&gt; bot</h1>" in page
    assert "ALARM in 1 of 2 figures: Refusals since 21 January." in page
    assert "&lt;b&gt;Bad&lt;/b&gt;" in page
    assert "<b>Bad" not in page
    assert "120 traces were read." in page
    assert RISEN.sentence.replace(" %", "\u00a0%") in page
    (picture,) = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    marks = [element.get("class") for element in ElementTree.fromstring(picture).iter()]
    assert [marks.count(name) for name in ("dot", "ring", "goal", "band-area", "trend")] == [
        31, 1, 1, 1, 1
    ]  # fmt: skip
    rows = re.findall(r'<tr><th scope="row">(2026-\d\d-\d\d)</th><td>(\d+)</td>', page)
    assert rows == [(str(count.day), str(count.bad)) for count in DAYS]
    assert "http" not in re.sub(r'http-equiv|"http://www.w3.org[^"]*"', "", page), "loads nothing"


def test_the_rise_stands_where_its_day_stands() -> None:
    """31 days from x = 44 to 388: the 21st stands at 44 + 20/30 of 344."""
    current = {
        "days": [{"day": str(c.day), "bad": c.bad, "n": c.n} for c in DAYS],
        "since": "2026-01-21",
        "sounded": "2026-01-25",
    }
    chart = charts.daily(current, {"share": 0.04, "limit": 0.05})
    assert chart["since"] == [273.3]
    assert [dot["x"] for dot in chart["dots"] if dot["alert"]] == [319.2]
    assert (chart["first"], chart["last"]) == ("2026-01-01", "2026-01-31")
    assert (
        charts.daily(current | {"since": None, "sounded": None}, {"share": 0, "limit": 1})["since"]
        == []
    )
