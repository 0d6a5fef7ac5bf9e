"""What is said of watched figures: sentences, notes, pictures, JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import date, timedelta

import pytest
from rich.console import Console

from decisions.watch import WatchedFigure, as_dict, daily_shares, verdict, watch_figure
from decisions.watch_print import limits, picture, watch_blocks
from ragmetrics.stats.rise import DayCount
from terminal.page import Page, fine_percent, print_page

Counts = Sequence[tuple[int, int]]


def figure(
    before: Counts,
    after: Counts,
    start: date = date(2026, 2, 21),
    label: str = "Refusals",
    unit: str = "traces",
) -> WatchedFigure:
    def days(first: date, counts: Counts) -> list[DayCount]:
        return [DayCount(first + timedelta(i), bad, n) for i, (bad, n) in enumerate(counts)]

    reference = days(date(2025, 11, 1), before)
    name = label.lower()
    return watch_figure(name, label, reference, days(start, after), figures=7, unit=unit)


STEADY: Counts = [(4, 100)] * 27 + [(5, 100)] * 3
"""123 of 3,000: 4.1 %."""
RISEN = figure(STEADY, [(4, 100)] * 10 + [(8, 100), (9, 100), (9, 100)] * 8)
"""Ten days from 21 February at 4 %, then 26 a day in three hundred from 3 March: 8.7 %."""
ENDED = figure(STEADY, [(4, 100)] * 10 + [(14, 100)] * 6 + [(2, 100)] * 15)
QUIET = figure([(0, 60)] * 50, [(0, 30), (1, 30)], label="Errors", unit="sessions")


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        (RISEN, "Refusals rose from 4.1 % to 8.7 % since 3 March (certain enough at any look)."),
        (
            ENDED,
            "Refusals rose from 4.1 % to 14.0 % from 3 to 8 March (certain enough at any look); "
            "2.0 % after that.",
        ),
        (
            QUIET,
            "Errors: 1.7 % of 60 sessions since 21 February, 0.0 % in the reference: "
            "no evidence of a rise.",
        ),
        (figure(STEADY, []), "Refusals: 4.1 % in the reference; no traces to watch yet."),
    ],
)
def test_the_sentence(shown: WatchedFigure, sentence: str) -> None:
    assert shown.sentence == sentence
    assert shown.alarm == ("rose" in sentence)


def test_the_verdict_of_all_figures() -> None:
    assert verdict([QUIET]) == "No alarm in 1 figure."
    assert verdict([RISEN, QUIET, ENDED]) == (
        "ALARM in 2 of 3 figures: Refusals since 3 March; Refusals from 3 to 8 March."
    )


def test_a_rise_of_a_single_day_and_one_over_a_month_s_end() -> None:
    single = figure(STEADY, [(60, 100), *[(0, 100)] * 30])
    assert "rose from 4.1 % to 60.0 % on 21 February (" in single.sentence
    longer = figure(STEADY, [(4, 100)] * 5 + [(14, 100)] * 6 + [(2, 100)] * 15)
    assert "from 26 February to 3 March" in longer.sentence


def test_an_alarm_of_the_last_quarter_is_not_the_current_one_s() -> None:
    shown = figure(STEADY, [(20, 100)] * 39 + [(4, 100)])  # 39 days from 21 February to 31 March
    assert (shown.alarm, [quarter.alarm for quarter in shown.earlier]) == (False, [True])
    assert shown.sentence.startswith("Refusals: 4.0 % of 100 traces since 1 April")


def test_an_alarm_of_an_earlier_quarter_is_still_told() -> None:
    # 3 to 31 March: 9 * 26 + 17 = 251 of 2,900; then a day of the next quarter.
    over = figure(
        STEADY,
        [(4, 100)] * 10 + [(8, 100), (9, 100), (9, 100)] * 9 + [(8, 100), (9, 100), (0, 100)],
    )
    assert not over.alarm
    before = "In the quarter from 1 January 2026 it rose from 4.1 % to 8.7 % since 3 March."
    assert over.notes == (before,)
    assert RISEN.notes == ()


def test_what_limits_an_answer_is_said_with_the_figures_that_it_limits() -> None:
    few = (
        "The reference has 3 days; with fewer than 14 little is known of how much days differ, so "
        "an alarm may be early."
    )
    small = (
        "The reference has 300 sessions; with fewer than 3,000 a rise is found late or not at all."
    )
    short = figure([(3, 100)] * 3, [(1, 10)], label="Leaks", unit="sessions")
    assert RISEN.notes == QUIET.notes == ()
    assert short.notes == (small, few)
    assert limits([RISEN, short]) == [f"Leaks: {small}", f"Leaks: {few}"]
    assert limits([short, short]) == [small, few]


def test_shares_as_people_read_them() -> None:
    assert [fine_percent(share) for share in (0, 0.0004, 0.0123, 0.5, 1)] == [
        "0.0 %",
        "0.04 %",
        "1.2 %",
        "50.0 %",
        "100.0 %",
    ]


def test_days_without_units_are_gaps() -> None:
    gap = figure([(4, 100)] * 30, [(1, 4), (0, 0), (2, 4), (0, 0)])
    assert gap.current is not None
    assert daily_shares(gap.current) == [
        (date(2026, 2, 21), 0.25),
        (date(2026, 2, 22), None),
        (date(2026, 2, 23), 0.5),
    ]


def test_the_picture_points_at_the_day_named_and_at_the_day_of_the_alarm() -> None:
    """34 days in 34 columns: 3 March is the eleventh, and the alarm comes some days later."""
    assert RISEN.current is not None
    assert RISEN.current.sounded is not None
    *drawn, axis, legend = printed(RISEN, 80, "ascii")
    margin = len("9.0 %") + 1
    sounded = (RISEN.current.sounded - date(2026, 2, 21)).days
    assert drawn[-1] == f"{' ' * (margin + 10)}^{' ' * (sounded - 11)}^"
    assert axis.startswith("21 February - 26 March; dotted: reference 4.1 % and its upper limit ")
    assert legend == f"^ rose since 3 March, alarm on {RISEN.current.sounded.day} March"
    assert drawn[2].startswith("9.0 %")
    assert "▲ rose since 3 March" in printed(RISEN, 80, "utf-8")[-1]
    assert picture(figure(STEADY, [])) is None
    assert max(map(len, printed(RISEN, 20, "ascii")[2:-2])) <= 20, "a narrow plot"


def printed(shown: WatchedFigure, width: int, encoding: str) -> list[str]:
    """The lines of a figure's plot."""
    plot = picture(shown)
    assert plot is not None
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    print_page(Console(file=file, width=width), Page("", [plot]))
    file.seek(0)
    return file.read().splitlines()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_terminal_ends_with_the_verdict(encoding: str) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    print_page(Console(file=file, width=90), Page("", list(watch_blocks([RISEN, QUIET]))))
    file.flush()
    lines = raw.getvalue().decode(encoding).splitlines()
    assert lines[:2] == [f"! {RISEN.sentence}", f"  {QUIET.sentence}"]
    assert "Refusals: share of traces by day" in lines
    assert "Errors: share of sessions by day" not in lines
    assert lines[-1] == "ALARM in 1 of 2 figures: Refusals since 3 March."


def test_json_holds_what_the_words_rest_on() -> None:
    shown = json.loads(json.dumps(as_dict(RISEN)))
    current = shown["current"]
    assert (shown["alarm"], shown["sentence"]) == (True, RISEN.sentence)
    assert shown["reference"] | {"upper": 0} == {
        "bad": 123, "n": 3000, "days": 30, "share": 0.041, "upper": 0, "scatter": 0.0
    }  # fmt: skip
    assert (current["since"], current["until"]) == ("2026-03-03", "2026-03-26")
    assert (current["bad"], current["n"], current["share"]) == (208, 2400, 0.086667)
    assert current["threshold"] == 140
    assert current["days"][0] == {
        "day": "2026-02-21", "bad": 4, "n": 100, "e_value": current["days"][0]["e_value"]
    }  # fmt: skip
    assert as_dict(figure(STEADY, []))["current"] is None
