"""The first line: what two runs amount to, in sentences that every tool prints alike.

The verdict is that of the primary metrics alone, in cases of a hundred. Behind it come what the
others could not hide, what else to look at, what it costs, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil

from decisions.effects import minimum_detectable_effect, power_of
from decisions.engine import FEWEST_CLUSTERS, Headline, range_of
from decisions.rows import Comparison, MetricRow, missed_targets, with_targets
from ragmetrics.catalogue import find
from ragmetrics.catalogue.metric import Metric, at_cutoff
from records.errors import StorageError
from records.sweeps import Sweep
from records.targets import Target
from terminal.page import from_to, number, percent
from terminal.tables import counted, plain

NAMED = 2
"""Metrics that a verdict's sentence names, the surest first."""

MOST_ADDED = 3
"""Other metrics that are named to look at."""

POWER, MOST_CASES = 0.8, 10_000_000

REPEATS = 3
"""Answers a case that the advice reckons with."""

SLOW = 1.1
"""Ratio from which times are given as a multiple."""

TRY_REPEATS = (
    "run_eval.py --repeat 2 --limit 30 tells whether asking each question again would help."
)

CALLS, COST, TOKENS = "pipeline.latency_ms", "pipeline.cost_usd", "pipeline.total_tokens"

_REST: Mapping[Headline, str] = {
    "BETTER": "it is better",
    "WORSE": "it is worse",
    "MIXED": "some metrics are better and some worse",
    "NO CLEAR DIFFERENCE": "no difference is clear",
    "SAME": "it is the same within the margin",
    "TOO FEW": "there are too few to tell",
}


def with_headline(
    comparison: Comparison, targets: Mapping[str, Mapping[str, Target]]
) -> Comparison:
    """The comparison with its verdict in a word and in sentences, and the targets that were met
    and are missed."""
    missed = missed_targets(comparison.rows, targets)
    rows = with_targets(comparison.rows, targets)
    comparison = replace(comparison, rows=rows, missed=missed)
    if any(comparison.missing) or comparison.half or _apart(comparison):
        comparison = replace(comparison, headline="INCOMPLETE")
    return replace(comparison, says=tuple(_sentences(comparison)))


def _apart(comparison: Comparison) -> list[str]:
    """Primary metrics that both runs have, of other cases each."""
    rows = [row for row in comparison.rows if row.primary and row.verdict == "not tested"]
    return [row.name for row in rows if row.base_n and row.new_n and not row.n]


def _sentences(comparison: Comparison) -> Iterator[str]:
    """The verdict first. Each sentence is made to be a line of its own."""
    scope = f", {comparison.scope}." if comparison.scope else "."
    price = list(_price(comparison))
    first = verdict_sentence(comparison)
    if comparison.headline == "SAME" and price:
        first = (
            f"{first.removesuffix('.')}; calls of the new run {' and '.join(price)}: you choose."
        )
        price = []
    yield first.removesuffix(".") + scope
    yield from _not_shown(comparison)
    yield from _to_see_more(comparison)
    if price:
        yield f"Calls {' and '.join(price)}."
    if names := list(_look_at(comparison))[:MOST_ADDED]:
        yield f"Look at: {'; '.join(names)}."
    if step := _next(comparison):
        yield f"Next: {step}."


def verdict_sentence(comparison: Comparison) -> str:
    """The verdict of the primary metrics, and its basis."""
    rows = _tested(comparison)
    word = comparison.headline
    better, worse = (_surest(rows, name) for name in ("better", "worse"))
    if word == "INCOMPLETE":
        return f"INCOMPLETE: {'; '.join(_incomplete(comparison))}."
    if word == "BETTER":
        suspects = [row for row in rows if row.look]
        doubt = f", but {_suspicion(suspects[0])}" if suspects else ""
        return f"BETTER{doubt}{'. It ' if doubt else ': '}{_named(better)}."
    if word == "WORSE":
        return f"WORSE: {_named(worse)}."
    if word == "MIXED":
        return f"MIXED: {_named(better)}, but {_named(worse)}."
    if word == "SAME":
        margin = comparison.margin or 0.0
        return f"SAME within {points(margin)}."
    if word == "TOO FEW":
        if not rows:
            return "TOO FEW: no case has a primary metric in both runs."
        most = max(row.units for row in rows)
        unit = "case" if most == max(row.n for row in rows) else "group"
        fewest = f"{FEWEST_CLUSTERS} are needed"
        return (
            f"TOO FEW: {counted(most, unit)} of cases that count alone; {fewest}."
            if (unit == "group")
            else f"TOO FEW: {counted(most, unit)} to compare; {fewest}."
        )
    suspects = [row for row in rows if row.look]
    doubt = f"; {_suspicion(suspects[0])}" if suspects else ""
    return f"NO CLEAR DIFFERENCE: {_what_would_show(rows)}{doubt}."


def _tested(comparison: Comparison) -> list[MetricRow]:
    return [row for row in comparison.rows if row.primary and row.effect is not None]


def _surest(rows: Iterable[MetricRow], verdict: str) -> list[MetricRow]:
    names = ("worse", "mixed") if verdict == "worse" else (verdict,)
    of_verdict = [row for row in rows if row.verdict in names]
    return sorted(of_verdict, key=lambda row: (row.p_adjusted or 0.0, -abs(row.delta or 0.0)))


def _named(rows: Sequence[MetricRow]) -> str:
    """``finds the needed evidence for 81 of 100 questions (68 before) and …``."""
    text = " and ".join(finding(row) for row in rows[:NAMED])
    return text + (f", and {len(rows) - NAMED} more" if len(rows) > NAMED else "")


def _suspicion(row: MetricRow) -> str:
    metric = catalogue_row(row.metric)
    words = (metric.in_words(row.metric) if metric else "") or plain(row.metric, 80)
    way = "risen" if row.higher_is_better is False else "fallen"
    before, now = of_hundred(row)
    unit = " of 100" if _is_share(metric, row) else ""
    return f"{words[0].lower()}{words[1:]} may have {way}: {before} → {now}{unit}"


def finding(row: MetricRow) -> str:
    """The value of a metric now and before, in words."""
    metric = catalogue_row(row.metric)
    before, now = of_hundred(row)
    if row.ratio is not None:
        return f"{plain(row.metric, 80)} is {row.ratio:.2g} times what it was"
    value = f"{now} of 100" if _is_share(metric, row) else now
    return f"{sentence(metric, row.metric, value)} ({before} before)"


def sentence(metric: Metric | None, name: str, value: str) -> str:
    """A metric's value as a sentence without a subject and an end: ``finds the needed evidence for
    81 of 100 questions``; of a metric without one its words and the value."""
    if metric is not None and metric.says:
        return at_cutoff(metric.says, name).replace("{value}", value)
    words = (metric.in_words(name) if metric else "") or plain(name, 80)
    return f"{words[0].lower()}{words[1:]}: {value}"


def value_in_words(metric: Metric | None, value: float) -> str:
    """A share as cases of a hundred, another number with three digits."""
    if metric is not None and metric.unit == "share" and 0 <= value <= 1:
        return f"{_hundredth(value, 0)} of 100"
    return number(value)


def of_hundred(row: MetricRow) -> tuple[str, str]:
    """Both means over the compared cases, of shares as cases of a hundred, in as many digits as
    show that they differ."""
    before, now = row.base or 0.0, row.new or 0.0
    if not _is_share(catalogue_row(row.metric), row):
        old, _, new = from_to(before, now).partition(" → ")
        return old, new
    digits = 0 if before == now or round(100 * before) != round(100 * now) else 1
    return _hundredth(before, digits), _hundredth(now, digits)


def _hundredth(share: float, digits: int) -> str:
    """Cases of a hundred; never rounded up to all of them or down to none."""
    text = f"{100 * share:.{digits}f}"
    if 0 < share < 1 and float(text) in (0, 100):
        return f"{min(max(100 * share, 0.1), 99.9):.1f}"
    return text


def points(size: float) -> str:
    """A difference of shares: ``7 points``; never less than it is."""
    shown = ceil(100 * size - 1e-9)
    return counted(shown, "point")


def catalogue_row(name: str) -> Metric | None:
    """The catalogue's row of a metric by its name; None for those of plugins."""
    try:
        return find(name)
    except KeyError:
        return None


def _is_share(metric: Metric | None, row: MetricRow) -> bool:
    unit = metric.unit == "share" if metric else range_of(row.name) == 1
    return unit and all(0 <= value <= 1 for value in (row.base or 0.0, row.new or 0.0))


def _shares(rows: Iterable[MetricRow]) -> list[MetricRow]:
    return [row for row in rows if row.mde is not None and range_of(row.name) == 1]


def _not_shown(comparison: Comparison) -> Iterator[str]:
    """What a fall of the other primary metrics must have been to be seen; never that none fell."""
    if comparison.headline not in ("BETTER", "MIXED"):
        return
    rows = _tested(comparison)
    quiet = [row for row in rows if row.verdict == "no evidence" and not row.look]
    if seen := _shares(quiet):
        most = max(row.mde or 0.0 for row in seen)
        others = counted(len(seen), "other primary metric")
        yield f"No fall is shown in {others}: {would_show(most, 'fall')}."
    few = [row.metric for row in rows if row.verdict == "too few"]
    if few:
        yield f"Too few cases to tell: {', '.join(few)}."


def would_show(size: float, way: str = "change") -> str:
    """The smallest difference of shares that is found 4 times in 5, in the words of every tool."""
    return f"a {way} of {points(size)} or more would show"


def largest_unseen(rows: Iterable[MetricRow]) -> MetricRow | None:
    """Of the primary metrics that could be tested the one whose change must be largest to show."""
    shares = _shares(row for row in rows if row.verdict != "too few")
    return max(shares, key=lambda row: row.mde or 0.0, default=None)


def _what_would_show(rows: Sequence[MetricRow]) -> str:
    """How large a change these cases would show."""
    row = largest_unseen(rows)
    if row is None or row.mde is None:
        return "no primary metric differs by more than chance"
    return f"with {counted(row.n, 'case')} {would_show(row.mde)}"


def _to_see_more(comparison: Comparison) -> Iterator[str]:
    """What it takes to show half of the change that these cases would."""
    row = largest_unseen(_tested(comparison))
    if comparison.headline != "NO CLEAR DIFFERENCE" or row is None or row.mde is None:
        return
    size = ceil(100 * row.mde - 1e-9)
    if size < 2:
        return
    smaller, repeated = size // 2, repeated_mde(row)
    needed = cases_needed(row, smaller / 100)
    options = [f"about {_rounded(needed):,} cases are needed"] if needed else []
    enough = repeated is not None and 100 * repeated <= smaller + 0.5
    if enough:
        options.append(f"ask each of these {REPEATS} times (--repeat {REPEATS})")
    if options:
        yield f"To see {counted(smaller, 'point')}, {', or '.join(options)}."
    if row.noise is None:
        yield TRY_REPEATS
    elif repeated is not None and is_noisy(row) and not enough:
        yield f"With --repeat {REPEATS} {would_show(repeated)}."


def is_noisy(row: MetricRow) -> bool:
    """Whether the differences of a metric vary more by the bot than by the cases."""
    if row.noise is None or row.effect is None or row.effect.spread is None:
        return False
    return 2 * row.noise[0] > row.effect.spread.variance > 0


def repeated_mde(row: MetricRow) -> float | None:
    """The smallest difference that these cases would show with ``REPEATS`` answers each: what
    repeats leave of the bot's own variance; None where that is not known."""
    spread = row.effect.spread if row.effect else None
    if row.noise is None or spread is None or not spread.variance or spread.step is None:
        return None
    now, repeated = row.noise
    left = max(0.0, spread.variance - now) + repeated
    if left >= spread.variance:
        return None
    shrink = (left / spread.variance) ** 0.5
    smaller = replace(spread, variance=left, step=spread.step * shrink)
    return minimum_detectable_effect(smaller, row.critical)


def repeat_advice(rows: Iterable[MetricRow]) -> str:
    """The advice to repeat questions if the bot's own variance is most of the uncertainty."""
    noisy = [row for row in rows if row.primary and is_noisy(row) and row.verdict == "no evidence"]
    for row in noisy:
        if (size := repeated_mde(row)) is not None and row.mde is not None:
            return (
                f"{row.metric} varies more by the bot than by the cases: with --repeat {REPEATS} "
                f"{would_show(size)}, now {points(row.mde)}."
            )
    return ""


def cases_needed(row: MetricRow, size: float) -> int | None:
    """How many cases a verdict needs to find a difference of ``size`` 4 times in 5."""
    spread = row.effect.spread if row.effect else None
    if spread is None:
        return None

    def enough(n: int) -> bool:
        power = power_of(size, spread, row.critical, n)
        return power is not None and power >= POWER

    low = high = max(2, spread.n)
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_CASES:
            return None
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _rounded(count: int) -> int:
    """Two digits, upwards."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step


def _incomplete(comparison: Comparison) -> Iterator[str]:
    """What the rest shows where metrics alone are missing, then what is missing."""
    rows = _tested(comparison)
    whole = comparison.rest is not None and not any(comparison.missing) and not _apart(comparison)
    better, worse = (_surest(rows, name) if whole else [] for name in ("better", "worse"))
    if better or worse:
        shown = ", but ".join(_named(found) for found in (better, worse) if found)
        yield f"in the metrics that both runs have {_REST[comparison.rest or 'WORSE']}: {shown}"
    for run, count, asked in zip(
        (comparison.base_id, comparison.new_id), comparison.missing, comparison.asked, strict=True
    ):
        if count:
            lost = f"{count:,} of {counted(asked, 'case')} {'has' if count == 1 else 'have'}"
            resume = f"run_eval.py --resume --run-id {plain(run)}"
            yield f"{lost} no result in {plain(run)} ({resume})"
    for name, in_base in comparison.half:
        ids = (comparison.base_id, comparison.new_id)
        there, lacking = ids if in_base else ids[::-1]
        yield f"{name} is scored in {plain(there)}, not in {plain(lacking)}"
    for name in _apart(comparison):
        yield f"{name} has no case that both runs scored"
    if comparison.rest is None and any(comparison.missing):
        yield "the others cannot be compared alone, since only metrics.json of one run is there"
    if comparison.rest is not None and not _apart(comparison) and not (better or worse):
        on = f"on the other {comparison.compared:,}" if any(comparison.missing) else "in the others"
        shows = ""
        if comparison.rest == "NO CLEAR DIFFERENCE" and comparison.rest_mde is not None:
            shows = f" ({would_show(comparison.rest_mde)})"
        yield f"{on} {_REST[comparison.rest]}{shows}"


def _price(comparison: Comparison) -> Iterator[str]:
    """What the new run takes more or less of, where that is no chance."""
    for name, more, less in (
        (CALLS, "take {} more time", "take {} less time"),
        (COST, "cost {} more", "cost {} less"),
        (TOKENS, "use {} more tokens", "use {} fewer tokens"),
    ):
        row = comparison.row(name)
        if row is None or row.ratio is None or row.verdict not in ("better", "worse", "mixed"):
            continue
        if name == TOKENS and comparison.row(COST) is not None:
            continue
        change = (more if row.ratio > 1 else less).format(percent(abs(row.ratio - 1)))
        if row.verdict == "mixed":
            yield f"mostly {change} ({row.ratio_totals or 1:.2g} times as much in all)"
        elif row.ratio >= SLOW and name == CALLS:
            yield f"take {row.ratio:.2g} times as long"
        else:
            yield change


def _look_at(comparison: Comparison) -> Iterator[str]:
    """Targets that were met and are missed, then safety metrics that are worse."""
    for name, target in comparison.missed:
        row = comparison.row(name)
        if row is not None:
            change = from_to(row.base_mean, row.new_mean)
            yield f"{plain(row.metric, 80)} misses its target ({change}, target {target})"
    for row in comparison.rows:
        if row.section == "safety" and row.bad and not row.primary:
            yield f"safety: {plain(row.metric, 80)} is worse ({from_to(row.base, row.new)})"


def _next(comparison: Comparison) -> str:
    """The command or the decision that comes next."""
    base, new = plain(comparison.base_id), plain(comparison.new_id)
    if comparison.headline == "BETTER":
        return f"gate_run.py --run {new} --baseline {base}"
    if comparison.headline == "WORSE":
        return f"see which cases broke: browse_runs.py {base} {new}"
    if comparison.headline == "MIXED":
        rows = _tested(comparison)
        lead = (_surest(rows, "better") or rows)[0].name
        return (
            f"browse_runs.py {base} {new} shows what broke; then write which metric counts most, "
            f'such as lead = "{plain(lead)}", under [decide] of eval/targets.toml'
        )
    if comparison.headline == "INCOMPLETE" and any(comparison.missing):
        return "get these results, score them (eval_suite.py), and compare again"
    return ""


def outcome_of(row: MetricRow) -> str:
    """A primary metric in a sentence of its own: what it says, and its verdict."""
    said = finding(row)
    verdicts = {"no evidence": "may be worse" if row.look else "no clear difference"}
    verdicts |= {"equal": "the same within the margin", "too few": f"too few to tell ({row.units})"}
    return f"{said[0].upper()}{said[1:]}: {verdicts.get(row.verdict, row.verdict)}."


def sweep_line(sweep: Sweep) -> str:
    """Which setting of a sweep to take; "" while it goes on."""
    baseline = next((outcome for outcome in sweep.settings if outcome.baseline), None)
    best = next((outcome for outcome in sweep.settings if outcome.name == sweep.best), None)
    if not sweep.ended or baseline is None:
        return ""
    name = plain(baseline.name, 80)
    if best is None:
        return "NONE: no setting keeps the limits."
    if best.name == baseline.name:
        return f"KEEP {name}: nothing beat it."
    ahead = f"{plain(best.name, 80)} has {number(best.quality)}, {name} {number(baseline.quality)}"
    if baseline.state == "broken":
        return f"TAKE {plain(best.name, 80)}: {name} breaks a limit ({ahead})."
    if baseline.state == "worse":
        return f"TAKE {plain(best.name, 80)}: it beat {name} ({ahead})."
    return f"KEEP {name}: nothing is proven better ({ahead}, which may be chance)."


# What fails a comparison

WORSE, TARGET, SAFETY, COSTS, ANY_WORSE = "worse", "target", "safety", "cost", "any-worse"
FAIL_RULES = (WORSE, TARGET, SAFETY, COSTS, ANY_WORSE)


def failures(comparisons: Sequence[Comparison], rules: Sequence[str]) -> list[str]:
    """Why the comparison fails, a sentence each; empty when it passes.

    ``worse``: a primary metric got worse or one run alone has it; ``target``: a target was met and
    is missed; ``safety``: a safety metric got worse; ``cost``: times, costs or tokens did;
    ``any-worse``: any metric that was compared; a metric's name: that one. A section that was left
    out fails, too. Raises StorageError for a name that no row has.
    """
    reasons: dict[str, None] = {}
    for comparison in comparisons:
        for rule in rules:
            rows = _rows(comparison, rule)
            if rule in FAIL_RULES or not rows:
                reasons |= dict.fromkeys(comparison.left_out)
            if not rows and not comparison.left_out and rule not in FAIL_RULES:
                raise StorageError(
                    f"--fail-on {rule}: not compared; write {', '.join(FAIL_RULES)}, or the name "
                    "of a metric (--all compares every one)."
                )
            if rule == TARGET:
                reasons |= dict.fromkeys(
                    f"{name} met its target {target} in {comparison.base_id} and misses it in "
                    f"{comparison.new_id}."
                    for name, target in comparison.missed
                )
            reasons |= dict.fromkeys(_reasons(comparison, rows))
    return list(reasons)


def _rows(comparison: Comparison, rule: str) -> list[MetricRow]:
    if rule == ANY_WORSE:
        return list(comparison.rows)
    if rule == WORSE:
        return [row for row in comparison.rows if row.primary]
    if rule == SAFETY:
        return [row for row in comparison.rows if row.section == SAFETY]
    if rule == COSTS:
        return [row for row in comparison.rows if row.name in (CALLS, COST, TOKENS)]
    return [row for row in comparison.rows if rule in (row.metric, row.name)]


def _reasons(comparison: Comparison, rows: Iterable[MetricRow]) -> Iterator[str]:
    run = comparison.new_id
    for row in rows:
        if row.verdict == "only in base":
            yield f"{row.name} is measured in {comparison.base_id} but not in {run}."
        elif row.bad and row.delta is not None:
            yield (
                f"{row.name} is {row.verdict} in {run}: {row.delta:+.4f} over {row.n} cases, "
                f"corrected p {row.p_adjusted or 0:.4g}."
            )
