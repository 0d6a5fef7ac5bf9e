"""One metric of two runs in words that are true: a count is said of cases that were counted, a
share of what is shared."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from decisions.change import Change, range_of
from decisions.coverage import NOTHING
from decisions.effects import ALPHA
from ragmetrics.catalogue import SECTIONS, find
from ragmetrics.catalogue.metric import Metric, at_cutoff
from records.results import passages_are_unknown
from terminal.page import apart, number, signed, times
from terminal.tables import counted, plain

MANY_CHANGED = 0.2
"""Share of the compared cases that changed, from which on that is worth a sentence."""

SMALL = 0.01
"""The share of a range below which a difference is called less than a point."""


def catalogue_row(name: str) -> Metric | None:
    """The catalogue's row of a metric by its name; None for those of plugins."""
    try:
        return find(name)
    except KeyError:
        return None


def amounts(row: Change) -> tuple[str, str, str]:
    """The means of a metric over the compared cases before and now, and their unit: ``("105",
    "115", " of 146")``, ``("72", "79", " %")``, in as many digits as show that they differ."""
    metric = catalogue_row(row.name)
    before, now = row.base or 0.0, row.new or 0.0
    counted_by = metric.counted if metric else "share" if range_of(row.name) == 1 else "number"
    ones = row.ones
    if counted_by == "case" and ones is not None:
        return f"{ones[0]:,}", f"{ones[1]:,}", f" of {row.n:,}"
    if counted_by == "number":
        old, new = apart(before, now)
        return old, new, ""
    digits = 0 if before == now or round(100 * before) != round(100 * now) else 1
    return _percents(before, digits), _percents(now, digits), " %"


def _percents(share: float, digits: int = 0) -> str:
    """A share as percents; never rounded up to all or down to nothing."""
    text = f"{100 * share:.{digits}f}"
    if 0 < share < 1 and float(text) in (0, 100):
        return f"{min(max(100 * share, 0.1), 99.9):.1f}"
    return text


def finding(row: Change) -> str:
    """The value of a metric now and before, in words: ``finds 79 % of the needed evidence (72 %
    before)``."""
    if row.ratio is not None:
        return f"{plain(row.metric, 80)} is {row.ratio:.2g} times what it was"
    before, now, unit = amounts(row)
    old = f"{before}{unit} before" if unit == " %" else f"{before} before"
    if (coverage := row.coverage) and coverage.loss in ("by chance", "chosen"):
        gone = counted(sum(coverage.lost), "case")
        old += f"; {gone} lost {'its' if sum(coverage.lost) == 1 else 'their'} score"
    return f"{sentence(catalogue_row(row.name), row.metric, f'{now}{unit}')} ({old})"


def sentence(metric: Metric | None, name: str, value: str) -> str:
    """A metric's value as a sentence without a subject and an end: ``passes every check on 61 of
    146 questions``; of a metric without one its words and the value."""
    if metric is not None and metric.says:
        if metric.counted == "case" and value.endswith("%"):
            value += " of"  # with repeats a case may score in between
        return at_cutoff(metric.says, name).replace("{value}", value)
    return f"{topic(name)}: {value}"


def topic(name: str) -> str:
    """The subject of a metric, in words within a sentence."""
    metric = catalogue_row(name)
    words = (metric.in_words(name.rpartition(".")[2]) if metric else "") or plain(name, 80)
    return f"{words[0].lower()}{words[1:]}"


def value_in_words(metric: Metric | None, value: float, n: int, *, repeated: bool = False) -> str:
    """The mean of a metric over ``n`` cases: as a count of them only where each scores 0 or 1, so
    not where they were asked several times (``repeated``)."""
    if metric is None or metric.counted == "number":
        return number(value)
    if metric.counted == "case" and not repeated and n:
        return f"{round(value * n):,} of {n:,}"
    return f"{_percents(value)} %"


def suspicion(row: Change) -> str:
    """A fall that is not proven: ``calls that gave a response may have fallen: 146 → 140 of
    146``."""
    before, now, unit = amounts(row)
    way = "risen" if row.higher_is_better is False else "fallen"
    return f"{topic(row.name)} may have {way}: {before} → {now}{unit}"


def outcome_of(row: Change) -> str:
    """A primary metric in a sentence of its own: what it says, and its verdict."""
    if row.verdict == "no verdict":
        words = topic(row.name)
        return f"{words[0].upper()}{words[1:]}: no verdict, {no_verdict_words(row)}."
    text = finding(row)
    verdicts = {"no evidence": "may be worse" if row.look else "no clear difference"}
    verdicts |= {"equal": "the same within the margin", "too few": f"too few to tell ({row.units})"}
    return f"{text[0].upper()}{text[1:]}: {verdicts.get(row.verdict, row.verdict)}."


def moved_words(row: Change) -> str:
    """A difference with its sign and verdict, for a list: ``−6 points (worse)``."""
    delta = row.delta or 0.0
    text = f"{signed(delta)}"
    if range_of(row.name) == 1:
        size = round(100 * delta)
        text = f"{'+' if size > 0 else '−' if size < 0 else '±'}{counted(abs(size), 'point')}"
    return f"{text} ({row.verdict})" if row.verdict in ("better", "worse") else text


def points(size: float) -> str:
    """A difference of shares: ``7 points``; never less than it is."""
    return counted(_points(size), "point")


def _points(size: float) -> int:
    return ceil(100 * size - 1e-9)


def would_show(size: float, way: str = "change") -> str:
    """The smallest difference of shares that is found 4 times in 5."""
    return f"a {way} of {points(size)} or more would show"


def could_miss(row: Change) -> str:
    """Say how large a true change may go unseen: ``could miss ±9 points of needed evidence``."""
    return f"could miss {unseen_size(row)} of {topic(row.name)}"


def unseen_size(row: Change) -> str:
    """The same in a table: ``±9 points``, of a ratio ``1.22×``."""
    if row.ratio is not None:
        return f"{times(row.mde)}×"
    return f"±{points(row.mde or 0.0) if range_of(row.name) == 1 else number(row.mde)}"


def shares(rows: Iterable[Change]) -> list[Change]:
    """The tested metrics whose range is 0 to 1."""
    return [row for row in rows if row.mde is not None and range_of(row.name) == 1]


def changed_both_ways(row: Change) -> str:
    """How many cases changed, where many did and both ways; "" elsewhere."""
    moved = row.rose + row.fell
    if not (row.rose and row.fell and moved >= MANY_CHANGED * row.n):
        return ""
    better, worse = (row.fell, row.rose) if row.higher_is_better is False else (row.rose, row.fell)
    ways = f"{better:,} each way" if better == worse else f"{better:,} for the better"
    return f"{moved:,} of {counted(row.n, 'case')} changed, {ways}"


def size_words(row: Change, margin: float | None) -> str:
    """How large a proven difference is, where it may not matter: ``, by 1 to 6 points (5
    matter)``; without a margin ``, by less than a point``; "" for a larger one."""
    width = range_of(row.name)
    if width is None or row.interval is None or row.delta is None:
        return ""
    low, high = sorted(abs(end) / width for end in row.interval)
    if margin is None:
        return ", by less than a point" if abs(row.delta) / width < SMALL else ""
    if low >= margin:
        return ""
    unit = "points" if width == 1 else "% of its range"
    matter = f"{_share_points(margin)} {'matters' if margin == SMALL else 'matter'}"
    return f", by {_share_points(low)} to {_share_points(high)} {unit} ({matter})"


def _share_points(share: float) -> str:
    """Points of a hundred, in one digit after the point where that is not 0."""
    text = f"{100 * share:.1f}".removesuffix(".0")
    return text.removeprefix("0") or "0"


def proven_within(row: Change) -> str:
    """A difference that does not matter and is no chance: ``.5 points higher, not by chance``."""
    width = range_of(row.name)
    if row.verdict != "equal" or (row.p_joint or 1.0) > ALPHA or not width or not row.delta:
        return ""
    way = "higher" if row.delta > 0 else "lower"
    size = _share_points(abs(row.delta) / width)
    unit = "% of its range" if width != 1 else "point" if size == "1" else "points"
    return f"{topic(row.name)} {size} {unit} {way}, not by chance"


# Cases without a score


def lost_words(row: Change, ids: tuple[str, str]) -> tuple[str, str]:
    """Why there is no verdict on a metric, ``new sends no passages: 114 of 120 answers``, and
    before it what other metrics have the same of. ``ids``: of base and new."""
    coverage = row.coverage or NOTHING
    if row.verdict == "not comparable":
        text = f"{row.name} {row.reason}"
        return text, text
    if coverage.chosen:
        text = chosen_rest_words(row, ids[0])
        return text, text
    if not coverage.both and all(coverage.lost):
        text = f"{row.name} has no case that both runs scored"
        return text, text
    by_new = coverage.lost[1] >= coverage.lost[0]
    run, lost = plain(ids[by_new]), coverage.lost[by_new]
    of = f"{lost:,} of {coverage.cases:,}"
    if passages_are_unknown(coverage.why):
        text = f"{run} sends no passages"
        return text, f"{text}: {of} answers"
    why = f" ({plain(coverage.why, 80)})" if coverage.why else ""
    text = f"{run} has no score of {row.name} in {of} cases{why}"
    return text, text


def no_verdict_words(row: Change) -> str:
    """Why there is no verdict on a metric, for a list of several."""
    coverage = row.coverage or NOTHING
    if row.verdict == "not comparable":
        return row.reason
    if coverage.chosen:
        return chosen_rest_words(row)
    if not coverage.both:
        text = "no case has a score in both runs"
    else:
        text = f"{coverage.both:,} of {coverage.cases:,} cases have a score in both runs"
    if coverage.left_out:
        return f"{text}; the others failed or declined, which other primary metrics judge"
    return f"{text} ({plain(coverage.why, 80)})" if coverage.why else text


def chosen_rest_words(row: Change, base: str = "base") -> str:
    """Why cases that changed decide too much for a verdict on the others."""
    chosen = row.coverage.chosen if row.coverage else None
    if chosen is None:
        return ""
    means, cases = apart(chosen.mean, chosen.left), counted(chosen.cases, "case")
    remedy = f"ask and score {plain(base)} again with the set of the new run"
    if chosen.labels_alone:
        script = SECTIONS[row.section].script
        remedy = f"score it again with the labels of the new run ({script} --run {plain(base)})"
    return (
        f"{plain(base)} scores {means[0]} in {row.name} in the {cases} that changed and {means[1]} "
        f"in the others, so leaving them out decides; {remedy}"
    )


def left_out_words(row: Change) -> str:
    """A metric without a verdict for the sake of calls that other primary metrics judge."""
    coverage = row.coverage or NOTHING
    lost = f"{coverage.counted:,} of {coverage.cases:,} answers"
    return f"{row.name} is left out ({lost} failed or declined)"


def chosen_words(row: Change) -> str:
    """Why a difference on the cases that are left is no verdict; "" where there is no such."""
    coverage = row.coverage
    if coverage is None or coverage.loss != "chosen" or row.verdict != "no evidence":
        return ""
    if row.interval is None or row.interval[0] <= 0 <= row.interval[1]:
        return ""
    lost, kind = sum(coverage.lost), "harder" if coverage.harder else "easier"
    left = f"{row.name} differs on the {coverage.both:,} cases left"
    return f"{left}; {lost:,}, mostly {kind} ones, lost their score"


def remainder_words(rows: Iterable[Change]) -> str:
    """On how many cases metrics are compared where others lost their score; "" where few did.
    Of several metrics the one that lost most is named."""
    lost = [
        (sum(row.coverage.lost), row.coverage.cases, row.name)
        for row in rows
        if row.coverage is not None and row.coverage.loss in ("by chance", "chosen")
    ]
    if not lost:
        return ""
    count, cases, name = max(lost)
    return f"{count:,} of {cases:,} cases lost their score of {name}"
