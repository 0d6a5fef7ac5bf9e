"""The cells that the terminal's and the Markdown's tables share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from comparing.flips import Flip, Flips, Ranks
from comparing.metric_rows import TOO_FEW
from comparing.rows import SIGNS, Comparison, Row, Verdict
from ragmetrics.significance import ALPHA, power
from ragmetrics.stats import UNRELIABLE_BELOW
from tables import number

HEAD = ("metric", "base", "new", "delta", "95 % interval", "p", "n", "verdict")
POWER_NS = (60, 200, 1000)
FIRST: dict[Verdict, int] = {"worse": 0, "better": 1, "differs": 2, "only in base": 3}
NAMED = 8
"""Metrics of one verdict that the headline names."""


def headline(comparison: Comparison) -> list[str]:
    """The answer before the tables: what the declared metrics say, and which ones say it.

    Without a tested one among them the others speak, which are called exploratory.
    """
    declared = [row for row in comparison.rows if row.family and row.p is not None]
    rows = declared or [row for row in comparison.rows if row.p is not None]
    gone = [row.metric for row in comparison.rows if row.family and row.verdict == "only in base"]
    lost = [f"no longer measured: {', '.join(gone)}"] if gone else []
    if not rows:
        return ["No metric could be tested: no case has one in both runs.", *lost]
    counts = Counter(row.verdict for row in rows)
    said: list[Verdict] = [name for name in ("worse", "better", "differs") if counts[name]]
    word = "MIXED" if len(said) > 1 else said[0].upper() if said else "NO EVIDENCE of a difference"
    parts = [f"{counts[name]} {name}" for name in said]
    if rest := counts["no evidence"]:
        parts.append(f"{rest} without evidence of a difference")
    kind = "declared" if declared else "exploratory (none is declared)"
    lines = [f"{word}: of {len(rows)} {kind} metrics {', '.join(parts)}."]
    for name in said:
        found = [row for row in rows if row.verdict == name]
        names = [f"{row.metric} {signed(row.delta)}" for row in found[:NAMED]]
        more = f", and {len(found) - NAMED} more" if len(found) > NAMED else ""
        lines.append(f"{SIGNS[name]} {name}: {', '.join(names)}{more}")
    return lines + lost


def legend(rows: Iterable[Row]) -> list[str]:
    """What the words of the tables mean, as far as they occur."""
    unseen = [row for row in rows if row.verdict == "no evidence" and row.mde]
    lines = [f"A verdict asks for a p below {ALPHA:g}, corrected for the number of tests."]
    if unseen:
        lines.append(
            "No evidence is not «no change»: MDE is the smallest true difference that this number "
            "of cases would show 4 times in 5; a smaller one may be there, unseen."
        )
    if any(row.interval and not row.interval[0] <= 0 <= row.interval[1] for row in unseen):
        lines.append(
            "An interval is that of one metric alone, so it may leave out 0 where the corrected p "
            "gives no evidence; fewer declared metrics (--metrics) show smaller differences."
        )
    return lines


def cells(row: Row) -> tuple[str, ...]:
    """Metric, both means, difference, interval, corrected p, paired cases, verdict."""
    interval = "–"
    if row.interval is not None:
        mark = "*" if row.n < UNRELIABLE_BELOW else ""
        interval = f"{signed(row.interval[0])} to {signed(row.interval[1])}{mark}"
    return (
        row.metric if row.slice is None else row.slice.partition("=")[2],
        number(row.base if row.base is not None else row.base_mean),
        number(row.new if row.new is not None else row.new_mean),
        signed(row.delta),
        interval,
        p_value(row.p_adjusted),
        f"{row.n:,}" if row.n else "–",
        verdict(row),
    )


def verdict(row: Row) -> str:
    """The verdict in words; with no evidence, what this n could have shown."""
    if row.verdict == "no evidence":
        return f"no evidence (MDE {number(row.mde)})" if row.mde else "same"
    if row.verdict == "not tested" and row.delta is not None:
        return f"n < {TOO_FEW}: no test" if row.slice else "no test (whole run)"
    sign = SIGNS.get(row.verdict)
    return f"{sign} {row.verdict}" if sign else row.verdict


def signed(value: float | None) -> str:
    """A difference with its sign."""
    if value is None:
        return "–"
    shown = number(value)
    return f"+{shown}" if value > 0 else shown.replace("-", "−")


def p_value(p: float | None) -> str:
    """Three decimals; below that ``<.001``."""
    if p is None:
        return "–"
    return "<.001" if p < 0.001 else f"{p:.3f}"


def parts(comparison: Comparison) -> tuple[list[Row], list[Row], list[Row]]:
    """Rows of the family (worse ones first), other rows with something to say, and the rest;
    measured ones only."""
    measured = [row for row in comparison.rows if is_measured(row)]
    family = sorted((row for row in measured if row.family), key=_rank)
    others = [row for row in measured if not row.family]
    telling = {"better", "worse", "differs", "only in base", "only in new"}
    loud = [row for row in others if row.verdict in telling]
    return family, loud, [row for row in others if row.verdict not in telling]


def _rank(row: Row) -> int:
    return FIRST.get(row.verdict, len(FIRST) if row.mde else len(FIRST) + 1)


def is_measured(row: Row) -> bool:
    """Whether any of the two runs has a value."""
    return row.base_mean is not None or row.new_mean is not None


def remarks(comparison: Comparison) -> list[str]:
    """The comparison's notes, and what was declared but cannot be seen in the tables."""
    absent = [row.metric for row in comparison.rows if row.family and not is_measured(row)]
    notes = list(comparison.notes)
    if absent:
        notes.append(f"Declared, but no case of either run has a score: {', '.join(absent)}.")
    return [*notes, *_uneven(comparison)]


def slices(comparison: Comparison) -> dict[str, list[Row]]:
    """The measured slices of each metric, by ``metric by dimension``."""
    found: dict[str, list[Row]] = {}
    for row in comparison.slices:
        if is_measured(row) and row.slice is not None:
            title = f"{row.metric} by {row.slice.partition('=')[0]}"
            found.setdefault(title, []).append(row)
    return found


def _uneven(comparison: Comparison) -> Iterator[str]:
    """Metrics that the two runs scored for different cases; one sentence for those alike."""
    alike: dict[tuple[int, int, str], list[str]] = {}
    for row in comparison.rows:
        if (row.lost or row.gained) and (row.family or row.verdict in ("better", "worse")):
            coverage = f"{_share(row.base_coverage)} → {_share(row.new_coverage)}"
            alike.setdefault((row.lost, row.gained, coverage), []).append(row.metric)
    for (lost, gained, coverage), names in alike.items():
        yield (
            f"Scored in {comparison.base_id} only: {lost} cases, in {comparison.new_id} only: "
            f"{gained} (coverage {coverage}): {', '.join(names)}."
        )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def ranks(found: Ranks | None) -> str:
    """Ranks of the gold supports, – for one that was not found."""
    if found is None:
        return "unknown"
    return ", ".join("–" if rank is None else str(rank) for rank in found) or "no gold"


def flip_title(flip: Flip) -> str:
    """What happened to the score and to the ranks of the gold."""
    kind = f" ({flip.kind})" if flip.kind else ""
    title = f"{number(flip.base.score)} → {number(flip.new.score)}{kind}"
    if flip.base.ranks is None and flip.new.ranks is None:
        return title
    return f"{title}; gold at rank {ranks(flip.base.ranks)} → {ranks(flip.new.ranks)}"


def flips_summary(flips: Flips) -> str:
    """How many cases changed, and how many of them flipped."""
    text = f"{flips.metric}: {flips.gained} cases better, {flips.fell_behind} worse"
    if flips.success is None:
        return f"{text}."
    return f"{text}; success (score {flips.success}) → failure {flips.broke}, back {flips.fixed}."


def power_rows(rows: Iterable[Row], drop: float) -> list[tuple[str, ...]]:
    """For each metric that changed at all: spread, n, MDE, power against a change of ``drop``."""
    found = []
    for row in rows:
        if not row.sd or row.mde is None:
            continue
        chances = [power(drop, row.sd, n) for n in (row.n, *POWER_NS)]
        cells = (number(row.sd), f"{row.n:,}", number(row.mde))
        found.append((row.metric, *cells, *(f"{100 * chance:.0f} %" for chance in chances)))
    return found


def power_head() -> Sequence[str]:
    """The columns of ``power_rows``."""
    return ("metric", "sd", "n", "MDE", "now", *(f"n={n}" for n in POWER_NS))
