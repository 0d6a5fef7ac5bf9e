"""What is said of watched figures: sentences, notes, pictures, JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from rich.console import Console
from tests.rows import each_row

from extras.watch.rise import DayCount, Rise
from extras.watch.show import limits, watch_blocks
from extras.watch.watched import (
    WatchedFigure,
    as_dict,
    daily_shares,
    not_found,
    shown_days,
    spoken,
    watch_figure,
    with_seen,
)
from terminal.page import Page, fine_percent
from terminal.plot import ASCII_BARS, BARS
from terminal.print_page import print_page

Counts = Sequence[tuple[int, int]]


def figure(
    before: Counts, after: Counts, label: str = "Refusals", unit: str = "traces", known: Any = ()
) -> WatchedFigure:
    """The reference ends on 20 February."""

    def days(first: date, counts: Counts) -> list[DayCount]:
        return [DayCount(first + timedelta(i), bad, n) for i, (bad, n) in enumerate(counts)]

    start = date(2026, 2, 21)
    reference = days(start - timedelta(len(before)), before)
    name = label.lower()
    return watch_figure(
        name, label, reference, days(start, after), figures=7, unit=unit, known=known
    )


STEADY: Counts = [(4, 100)] * 49 + [(5, 100)] * 7
"""231 of 5,600: 4.1 %."""
RISEN = figure(STEADY, [(4, 100)] * 10 + [(8, 100), (9, 100), (9, 100)] * 8)
"""Ten days from 21 February at 4 %, then 26 a day in three hundred from 3 March: 8.7 %."""
SOUNDED = RISEN.rises[0].sounded
ENDED = figure(STEADY, [(4, 100)] * 10 + [(14, 100)] * 10 + [(2, 100)] * 20)
EARLY = Rise(date(2026, 2, 21), date(2026, 2, 28))
SEEN = figure(STEADY, [(12, 100)] * 20, known=[replace(EARLY, seen=SOUNDED)])
QUIET = figure([(0, 60)] * 56, [(0, 30), (1, 30)], label="Errors", unit="sessions")


@each_row(
    ("shown", "sentence"),
    [
        (
            RISEN,
            "Refusals rose from 4.1 % to 8.7 % since 3 March "
            f"(alarm of {SOUNDED.day} March, until two weeks are back, or --seen).",
        ),
        (ENDED, "Refusals: 5.4 % of 2,800 traces in the last four weeks, 4.1 % in the reference."),
        (QUIET, "Errors: 1.7 % of 60 sessions in the last four weeks, 0.0 % in the reference."),
        (
            SEEN,
            "Refusals rose from 4.1 % to 12.0 % since 21 February; "
            f"seen on {SOUNDED.day} March, an alarm only if it rises further.",
        ),
        (figure(STEADY, []), "Refusals: 4.1 % in the reference; no traces to watch yet."),
        (
            figure(STEADY, [], known=[EARLY]),
            "Refusals: 4.1 % in the reference; no traces to watch yet; the alarm since 21 February "
            "lasts.",
        ),
    ],
)
def test_the_sentence(shown: WatchedFigure, sentence: str) -> None:
    assert shown.sentence == sentence
    assert shown.alarm == ("(alarm of" in sentence or "lasts" in sentence)


def test_what_was_seen_is_marked_once_and_never_before_it_was_found() -> None:
    rise = Rise(date(2026, 3, 3), date(2026, 3, 14))
    assert with_seen([], SOUNDED) == []
    (seen,) = with_seen([rise], date(2026, 3, 20))
    assert seen.seen == date(2026, 3, 20)
    assert with_seen([seen], date(2026, 4, 1)) == [seen]
    (early,) = with_seen([rise], date(2026, 3, 1))  # a clock that went back
    assert early.seen == date(2026, 3, 14)
    over = Rise(rise.since, rise.sounded, date(2026, 4, 1))
    assert with_seen([over], date(2026, 4, 3)) == [over]


def test_what_limits_an_answer_is_said_with_the_figures_that_it_limits() -> None:
    daily = "A fixed set asked daily does not have this problem: --canaries."
    few = "The reference has sessions in 1 whole week; with fewer than 8, expect false alarms."
    few = f"{few} {daily}"
    waves = f"The weeks of this figure differ too much: expect false alarms. {daily}"
    short = figure([(3, 100)] * 7, [(1, 10)], label="Leaks", unit="sessions")
    wavy = figure(([(1, 100)] * 7 + [(9, 100)] * 7) * 4, [(3, 100)], label="Slow answers")
    assert RISEN.notes == QUIET.notes == []
    assert (short.notes, wavy.notes) == ([few], [waves])
    assert limits([RISEN, short, wavy]) == [f"Leaks: {few}", f"Slow answers: {waves}"]
    assert limits([short, short]) == [few]
    ended = ENDED.rises[0].ended
    assert ended is not None
    assert ENDED.notes == [f"It rose on 3 March and was back on {spoken(ended)}."]


def test_what_traffic_cannot_show_is_said_with_its_size() -> None:
    limit = fine_percent(RISEN.reference.limit)
    assert RISEN.reference.limit > 0.06, "4 to 6 % is not found"
    assert not_found([RISEN]) == (
        "Weeks differ, so four whole weeks must reach this share for an alarm, and smaller rises "
        f"are not found: refusals {limit}. Use --canaries for those."
    )
    assert not_found([]) == ""


def test_shares_as_people_read_them() -> None:
    shown = [fine_percent(share) for share in (0, 0.0004, 0.0123, 0.5, 1)]
    assert shown == ["0.0 %", "0.04 %", "1.2 %", "50.0 %", "100.0 %"]


def test_days_without_units_are_gaps() -> None:
    gap = figure([(4, 100)] * 56, [(1, 4), (0, 0), (2, 4), (0, 0)])
    shares = zip((21, 22, 23), (0.25, None, 0.5), strict=True)
    assert daily_shares(gap) == [(date(2026, 2, day), share) for day, share in shares]
    assert daily_shares(figure(STEADY, [])) == []


def test_the_last_quarter_of_a_year_is_drawn_or_more_where_a_rise_began_before() -> None:
    assert len(shown_days(figure(STEADY, [(4, 100)] * 300))) == 91
    risen = figure(STEADY, [(4, 100)] * 100 + [(12, 100)] * 200)
    assert len(shown_days(risen)) == 200 + 14


@each_row("encoding", ["utf-8", "ascii"])
def test_the_terminal_ends_with_the_verdict(encoding: str) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    print_page(Console(file=file, width=200), Page("", list(watch_blocks([RISEN, QUIET]))))
    file.flush()
    lines = raw.getvalue().decode(encoding).splitlines()
    assert lines[0] == f"! {RISEN.sentence}"
    assert lines[1] == not_found([QUIET])
    limit = fine_percent(RISEN.reference.limit)
    (row,) = [line for line in lines if line.startswith("Refusals ")]
    _, trend, *figures = row.replace("|", " ").split()
    assert figures == ["4.1", "%", *limit.split()]
    low, high = (BARS[0], BARS[-1]) if encoding == "utf-8" else (ASCII_BARS[0], ASCII_BARS[-1])
    assert (len(trend), trend[0], trend[-1]) == (34, low, high), "a character a day; it rose"
    assert not any(line.startswith("Errors ") for line in lines)
    assert lines[-1] == "ALARM in 1 of 2 figures: Refusals since 3 March."


def test_json_holds_what_the_words_rest_on() -> None:
    shown = json.loads(json.dumps(as_dict(RISEN)))
    current = shown["current"]
    assert (shown["alarm"], shown["sentence"]) == (True, RISEN.sentence)
    assert shown["reference"] | {"limit": 0} == {
        "bad": 231, "n": 5600, "weeks": 8, "share": 0.04125, "limit": 0, "wave": 0.3,
        "promises": True,
    }  # fmt: skip
    assert (current["since"], current["ended"], current["seen"]) == ("2026-03-03", None, None)
    assert (current["bad"], current["n"], current["share"]) == (208, 2400, 0.086667)
    assert current["days"][0] == {"day": "2026-02-21", "bad": 4, "n": 100}
    assert shown["earlier"] == []
    ended = as_dict(ENDED)
    assert (ended["current"]["since"], ended["earlier"][0]["since"]) == (None, "2026-03-03")
    assert as_dict(figure(STEADY, []))["current"]["share"] is None
