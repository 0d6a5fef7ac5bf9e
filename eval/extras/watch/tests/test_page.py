"""The page of watched figures."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any
from xml.etree import ElementTree

from extras.watch.page import daily, page_of
from extras.watch.rise import DayCount
from extras.watch.watched import watch_figure

FIRST = date(2026, 1, 1)
REFERENCE = [DayCount(date(2025, 11, 6) + timedelta(i), 4, 100) for i in range(56)]
DAYS = [DayCount(FIRST + timedelta(i), 4 if i < 20 else 12, 100) for i in range(31)]
RISEN = watch_figure("refusals", "Refusals", REFERENCE, DAYS, figures=7)
HOSTILE = watch_figure("x", "<b>Bad</b>", REFERENCE, [], figures=7)


def test_the_page_says_draws_and_lists_the_days() -> None:
    page = page_of([RISEN, HOSTILE], "Traces of <my> bot", ["120 traces were read."]).decode()
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


def chart_of(share: float = 0.04, limit: float = 0.05, **current: Any) -> Any:
    days = [{"day": str(c.day), "bad": c.bad, "n": c.n} for c in DAYS]
    shown = {"days": days, "since": None, "sounded": None} | current
    return daily({"current": shown, "reference": {"share": share, "limit": limit}})


def test_the_rise_stands_where_its_day_stands() -> None:
    """31 days from x = 44 to 388: the 21st stands at 44 + 20/30 of 344."""
    chart = chart_of(since="2026-01-21", sounded="2026-01-25")
    assert chart["since"] == [273.3]
    assert [dot["x"] for dot in chart["dots"] if dot["alert"]] == [319.2]
    assert (chart["first"], chart["last"]) == ("2026-01-01", "2026-01-31")
    quiet = chart_of()
    assert (quiet["since"], [dot for dot in quiet["dots"] if dot["alert"]]) == ([], [])


def test_shares_and_band_stand_on_one_scale() -> None:
    """Shares of .04 and .12 and a band from .04 to .05: a tenth of .08 is added at both ends, so
    from .032 at y = 102 to .128 at y = 8. Up to .04 it is 94 * .008 / .096 = 7.8, to .05 17.6."""
    chart = chart_of()
    assert (chart["dots"][0]["y"], chart["dots"][-1]["y"]) == (94.2, 15.8)
    assert chart["band"] == (44.0, 84.4, 344.0, 9.8)
    assert chart["ticks"] == [(15.8, 0.12), (94.2, 0.04)]


def test_a_single_day_stands_in_the_middle_and_none_has_no_picture() -> None:
    chart = chart_of(0.1, 0.1, days=[{"day": "2026-01-05", "bad": 1, "n": 10}])
    assert (chart["dots"][0]["x"], chart["band"], len(chart["ticks"])) == (216.0, None, 1)
    assert chart_of(days=[]) is None
