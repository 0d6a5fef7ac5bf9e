"""The first line: what two runs amount to, in sentences that every tool prints alike.

The verdict is that of the primary metrics alone. Behind it come what the others could not hide,
what it costs, what else to look at, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from decisions.change import FEWEST_CLUSTERS, Change, miss_of
from decisions.comparison import Comparison, missed_targets, with_targets
from decisions.effects import minimum_detectable_effect, power_of
from decisions.joint import Headline
from decisions.metric_words import (
    amounts,
    changed_both_ways,
    chosen_words,
    could_miss,
    finding,
    left_out_words,
    lost_words,
    points,
    proven_within,
    remainder_words,
    shares,
    size_words,
    suspicion,
    topic,
    would_show,
)
from records.errors import StorageError
from records.targets import Target
from terminal.page import from_to, percent
from terminal.tables import counted, plain

NAMED = 2
"""Metrics that a verdict's sentence names, the surest first."""

MOST_ADDED = 3
"""Other metrics that are named to look at."""

POWER, MOST_CASES = 0.8, 10_000_000

REPEATS = 3
"""Answers a case that the advice reckons with."""

TRY_REPEATS = (
    "run_eval.py --repeat 2 --limit 30 tells whether asking each question again would help."
)

CALLS, COST, TOKENS = "pipeline.latency_ms", "pipeline.cost_usd", "pipeline.total_tokens"

_REST: Mapping[Headline, str] = {
    "NO CLEAR DIFFERENCE": "no difference is clear",
    "SAME": "it is the same within the margin",
    "TOO FEW": "there are too few to tell",
}


def with_headline(
    comparison: Comparison, targets: Mapping[str, Mapping[str, Target]]
) -> Comparison:
    """The comparison with its verdict in a word and in sentences, and the targets that were met
    and are missed.

    Where results or metrics are missing it is INCOMPLETE, unless what both runs have is worse.
    """
    missed = missed_targets(comparison.rows, targets)
    rows = with_targets(comparison.rows, targets)
    comparison = replace(comparison, rows=rows, missed=missed)
    word = comparison.rest if any(comparison.missing) else comparison.headline
    lacks = any(comparison.missing) or comparison.half or _unjudged(comparison)
    if word is None or (lacks and word not in ("WORSE", "MIXED")):
        word = "INCOMPLETE"
    comparison = replace(comparison, headline=word)
    return replace(comparison, says=tuple(_sentences(comparison)))


def _unjudged(comparison: Comparison) -> list[Change]:
    """Primary metrics without a verdict, but for those that others judge."""
    without = ("no verdict", "not comparable")
    rows = [row for row in comparison.rows if row.primary and row.verdict in without]
    return [row for row in rows if not row.left_out]


def _sentences(comparison: Comparison) -> Iterator[str]:
    """The verdict first. Each sentence is made to be a line of its own."""
    if comparison.labels_of:
        yield labels_words(comparison)
        return
    yield from first_lines(comparison)
    yield from _not_shown(comparison)
    yield from _to_see_more(comparison)
    if comparison.headline != "SAME" and (price := list(_price(comparison))):
        yield f"Calls {' and '.join(price)}."
    yield from _times(comparison)
    if names := list(_look_at(comparison))[:MOST_ADDED]:
        yield f"Look at {'; and at '.join(names)}."
    if step := _next(comparison):
        yield f"Next: {step}."


def first_lines(comparison: Comparison) -> Iterator[str]:
    """The verdict, the settings and slices behind it, the pinned baseline, and other labels."""
    scope = f", {comparison.scope}" if comparison.scope else ""
    if comparison.set_changes is not None:
        scope = f", on the {comparison.set_changes.words()}{scope}"
    parts = [f"{verdict_sentence(comparison)}{scope}", *_behind(comparison)]
    if comparison.headline == "SAME" and (price := list(_price(comparison))):
        parts.append(f"calls of the new run {' and '.join(price)}: you choose")
    yield f"{'; '.join(parts)}."
    yield from filter(None, (comparison.changed, *comparison.fell, comparison.since))
    if comparison.set_changes is not None and comparison.set_changes.rescored:
        yield rescored_words(comparison.set_changes.rescored, comparison.base_id)


def labels_words(comparison: Comparison) -> str:
    """How far other labels moved the primary metrics of the same answers."""
    moved = []
    for row in comparison.rows:
        if row.primary and row.delta:
            before, now, unit = amounts(row)
            moved.append(f"{topic(row.name)}: {before} → {now}{unit}")
    since = f"the labels of {plain(comparison.labels_of)}, on the same answers of "
    change = f"moved {'; '.join(moved)}" if moved else "moved no primary metric"
    same = f"{plain(comparison.new_id)}, {change}. The bot is the same."
    return f"LABELS: those of now, against {since}{same}"


def rescored_words(count: int, base: str) -> str:
    """The limit of a comparison for which base was scored again with other labels."""
    return (
        f"{plain(base)} was scored again with the labels of the new run, which changed in "
        f"{counted(count, 'case')}; labels that were corrected only where one bot failed favour "
        "that bot."
    )


def verdict_sentence(comparison: Comparison) -> str:
    """The verdict of the primary metrics and its basis, without an end."""
    rows, word = _tested(comparison), comparison.headline
    better, worse = (_surest(rows, name) for name in ("better", "worse"))
    if word == "INCOMPLETE":
        return f"INCOMPLETE: {'; '.join(_incomplete(comparison))}"
    lead = next((row for row in rows if row.name == comparison.lead), None)
    if lead is not None and (text := _led(comparison, lead, better, worse)):
        return text
    size = size_words((better or worse or rows)[0], comparison.margin) if rows else ""
    if any(not size_words(row, comparison.margin) for row in (*better, *worse)):
        size = ""
    suspects = [row for row in rows if row.look]
    if word == "BETTER":
        doubt = f", but {suspicion(suspects[0])}. It " if suspects else ": "
        return f"BETTER{size}{doubt}{_named(better)}"
    if word == "WORSE":
        return f"WORSE{size}: {_named(worse)}{_on_the_rest(comparison)}"
    if word == "MIXED":
        return f"MIXED{size}: {_named(better)}, but {_named(worse)}{_on_the_rest(comparison)}"
    if word == "SAME":
        proven = [text for row in rows if (text := proven_within(row))]
        about = f" ({'; '.join(proven)})" if proven else ""
        return f"SAME within {points(comparison.margin or 0.0)}{about}"
    if word == "TOO FEW":
        return f"TOO FEW: {_too_few(rows)}"
    doubt = f"; {suspicion(suspects[0])}" if suspects else ""
    return f"NO CLEAR DIFFERENCE: {_what_would_show(rows)}{doubt}"


def _led(
    comparison: Comparison,
    lead: Change,
    better: Sequence[Change],
    worse: Sequence[Change],
) -> str:
    """The verdict where the lead gives the word; "" where it is as without one."""
    word = comparison.headline
    others = {
        "worse": [row for row in worse if row is not lead],
        "better": [row for row in better if row is not lead],
    }
    beside = "".join(f"; {way}: {_named(rows)}" for way, rows in others.items() if rows)
    if lead in (*better, *worse):
        start = f"{word} in what you lead by{size_words(lead, comparison.margin)}"
        return f"{start}: {finding(lead)}{_on_the_rest(comparison)}{beside}"
    if word != "NO CLEAR DIFFERENCE" or not others["better"]:
        return ""
    seen = "which is the same within the margin" if lead.verdict == "equal" else ""
    if lead.verdict == "too few":
        seen = _too_few([lead])
    elif lead.look:
        seen = suspicion(lead)
    elif not seen and shares([lead]):
        seen = f"a fall of {points(lead.mde or 0.0)} would have been seen"
    return f"{word} in what you lead by{f' ({seen})' if seen else ''}{beside}"


def _too_few(rows: Sequence[Change]) -> str:
    if not rows:
        return "no case has a primary metric in both runs"
    most = max(row.units for row in rows)
    if most == max(row.n for row in rows):
        return f"{counted(most, 'case')} to compare; {FEWEST_CLUSTERS} are needed"
    return f"{counted(most, 'group')} of cases that count alone; {FEWEST_CLUSTERS} are needed"


def _on_the_rest(comparison: Comparison) -> str:
    """The cases that a verdict is about, where others have no result."""
    if not any(comparison.missing):
        return ""
    return f", on the {comparison.compared:,} cases that both runs have results of"


def _behind(comparison: Comparison) -> Iterator[str]:
    """What the verdict leaves open: differences on a chosen rest, metrics that others judge, and
    beside what is worse all that is missing."""
    rows = [row for row in comparison.rows if row.primary]
    chosen = [text for row in rows if (text := chosen_words(row))]
    yield from chosen
    undecided = [row for row in rows if row.verdict in ("no evidence", "equal")]
    is_open = comparison.headline in ("NO CLEAR DIFFERENCE", "SAME")
    if is_open and not chosen and (text := remainder_words(undecided)):
        yield text
    for row in rows:
        if row.verdict == "no verdict" and row.left_out:
            yield left_out_words(row)
    if comparison.headline in ("WORSE", "MIXED"):
        yield from _lacking(comparison)


def _tested(comparison: Comparison) -> list[Change]:
    """The primary metrics that have a verdict: on what both runs have results of, where that is
    known."""
    rows = comparison.rows
    if any(comparison.missing) and comparison.rest_rows:
        rows = comparison.rest_rows
    return [row for row in rows if row.primary and row.n and row.verdict in _TOLD]


_TOLD = frozenset({"better", "worse", "mixed", "no evidence", "equal", "too few"})


def _surest(rows: Iterable[Change], verdict: str) -> list[Change]:
    names = ("worse", "mixed") if verdict == "worse" else (verdict,)
    of_verdict = [row for row in rows if row.verdict in names]
    return sorted(of_verdict, key=lambda row: (row.p_adjusted or 0.0, -abs(row.delta or 0.0)))


def _named(rows: Sequence[Change]) -> str:
    """``finds 81 % of the needed evidence (68 % before) and …``."""
    text = " and ".join(finding(row) for row in rows[:NAMED])
    return text + (f", and {len(rows) - NAMED} more" if len(rows) > NAMED else "")


def _not_shown(comparison: Comparison) -> Iterator[str]:
    """What a fall of the other primary metrics must have been to be seen; never that none fell."""
    if comparison.headline not in ("BETTER", "MIXED"):
        return
    rows = _tested(comparison)
    quiet = [row for row in rows if row.verdict == "no evidence" and not row.look]
    if seen := shares(quiet):
        most = max(row.mde or 0.0 for row in seen)
        others = counted(len(seen), "other primary metric")
        yield f"No fall is shown in {others}: {would_show(most, 'fall')}."
    few = [row.metric for row in rows if row.verdict == "too few"]
    if few:
        yield f"Too few cases to tell: {', '.join(few)}."


def largest_unseen(rows: Iterable[Change]) -> Change | None:
    """Of the primary metrics that could be tested the one whose change must be largest to show."""
    tested = shares(row for row in rows if row.verdict != "too few")
    return max(tested, key=lambda row: row.mde or 0.0, default=None)


def _what_would_show(rows: Sequence[Change]) -> str:
    """How large a change these cases may miss, and whether many changed both ways."""
    row = largest_unseen(rows)
    if row is None:
        return "no primary metric differs by more than chance"
    if text := changed_both_ways(row):
        return f"{text}; they {could_miss(row)}"
    return f"{counted(row.n, 'case')} {could_miss(row)}"


def _to_see_more(comparison: Comparison) -> Iterator[str]:
    """What it takes to show half of the change that these cases would."""
    row = largest_unseen(_tested(comparison))
    if comparison.headline != "NO CLEAR DIFFERENCE" or row is None or row.mde is None:
        return
    size = ceil(100 * row.mde - 1e-9)
    if size < 2:
        return
    smaller, repeated = size // 2, repeated_mde(row)
    if comparison.margin is not None and row.mde > comparison.margin:
        yield _against_margin(row, comparison.margin)
        return
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


def _against_margin(row: Change, margin: float) -> str:
    """The smallest visible change against the one that matters: ``146 cases cannot see 2 points;
    about 900 can.``"""
    text = f"{counted(row.n, 'case')} cannot see {points(margin)}"
    needed = cases_needed(row, margin)
    return f"{text}; about {_rounded(needed):,} can." if needed else f"{text}."


def bot_noise(
    base: Mapping[str, Any], new: Mapping[str, Any], metric: str
) -> tuple[float, float] | None:
    """The bot's own part of n times the variance of a mean difference: of the two runs as they were
    asked, and with ``REPEATS`` answers a case in both; None where no run has repeats."""
    known, asked = [], []
    for section in (base, new):
        stability = section.get("stability") or {}
        asked.append(max(1, stability.get("repeats") or 1))
        within = (stability.get("metrics", {}).get(metric) or {}).get("within")
        known += [] if within is None else [within]
    if not known:
        return None
    variance = sum(known) / len(known)
    return variance * sum(1 / count for count in asked), variance * 2 / REPEATS


def is_noisy(row: Change) -> bool:
    """Whether the differences of a metric vary more by the bot than by the cases."""
    if row.noise is None or row.spread is None:
        return False
    return 2 * row.noise[0] > row.spread.variance > 0


def repeated_mde(row: Change) -> float | None:
    """The smallest difference that these cases would show with ``REPEATS`` answers each: what
    repeats leave of the bot's own variance; None where that is not known."""
    spread = row.spread
    if row.noise is None or spread is None or not spread.variance or spread.step is None:
        return None
    now, repeated = row.noise
    left = max(0.0, spread.variance - now) + repeated
    if left >= spread.variance:
        return None
    shrink = (left / spread.variance) ** 0.5
    smaller = replace(spread, variance=left, step=spread.step * shrink)
    return minimum_detectable_effect(smaller, row.critical)


def repeat_advice(rows: Iterable[Change]) -> str:
    """The advice to repeat questions if the bot's own variance is most of the uncertainty."""
    noisy = [row for row in rows if row.primary and is_noisy(row) and row.verdict == "no evidence"]
    for row in noisy:
        if (size := repeated_mde(row)) is not None and row.mde is not None:
            return (
                f"{row.metric} varies more by the bot than by the cases: with --repeat {REPEATS} "
                f"{would_show(size)}, now {points(row.mde)}."
            )
    return ""


def cases_needed(row: Change, size: float) -> int | None:
    """How many cases a verdict needs to find a difference of ``size`` 4 times in 5."""
    spread = row.spread
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
    """What is missing, then what the rest shows."""
    yield from _lacking(comparison)
    rest = comparison.rest
    if rest is None and any(comparison.missing):
        yield "the others cannot be compared alone, since only metrics.json of one run is there"
    rows = _tested(comparison)
    better = _surest(rows, "better")
    if not rows or rest is None or (rest not in _REST and not better):
        return
    on = f"on the other {comparison.compared:,}" if any(comparison.missing) else "in the others"
    if better:
        yield f"{on} it is better: {_named(better)}"
        return
    row = largest_unseen(rows) if rest == "NO CLEAR DIFFERENCE" else None
    yield f"{on} {_REST[rest]}{f' ({could_miss(row)})' if row else ''}"


def _lacking(comparison: Comparison) -> Iterator[str]:
    """Results and metrics that one run lacks, a phrase each."""
    ids = (comparison.base_id, comparison.new_id)
    for run, count, asked in zip(ids, comparison.missing, comparison.asked, strict=True):
        if count:
            lost = f"{count:,} of {counted(asked, 'case')} {'has' if count == 1 else 'have'}"
            resume = f"run_eval.py --resume --run-id {plain(run)}"
            yield f"{lost} no result in {plain(run)} ({resume})"
    rows = {row.name: row for row in comparison.rows}
    reasons: dict[str, str] = {}  # passages that are not there are the reason of several metrics
    for row in _unjudged(comparison):
        reasons.setdefault(*lost_words(row, ids))
    for name, in_base in comparison.half:
        there, lacking = ids if in_base else ids[::-1]
        text = f"{name} is scored in {plain(there)}, not in {plain(lacking)}"
        half = rows.get(name)
        known = half is not None and half.coverage is not None and half.coverage.why
        reasons.setdefault(*(lost_words(half, ids) if half and known else (text, text)))
    yield from reasons.values()
    lead = comparison.lead
    if lead and (lead not in rows or rows[lead].verdict == "not tested"):
        yield f"{lead}, which you lead by, has no score in either run"


def _price(comparison: Comparison) -> Iterator[str]:
    """What the new run costs more or less of, where that is no chance."""
    for name, more, less in (
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
        else:
            yield change


def _times(comparison: Comparison) -> Iterator[str]:
    """The times of the calls, where they differ by more than chance. Their cause may be the load of
    the machine, so they are no part of a verdict."""
    row = comparison.row(CALLS)
    medians = row.medians if row is not None else None
    if row is None or medians is None or row.verdict not in ("better", "worse", "mixed"):
        return
    before, now = (f"{ms:,.{int(ms < 100)}f}" for ms in medians)
    text = f"The median call takes {now} ms ({before} before), if the load was the same"
    if row.verdict == "mixed":
        text += f"; all calls together {row.ratio_totals or 1:.2g} times as long"
    yield f"{text}."


def _look_at(comparison: Comparison) -> Iterator[str]:
    """Targets that were met and are missed, the widest miss first, then safety metrics that are
    worse."""
    missed = [(row, aim) for n, aim in comparison.missed if (row := comparison.row(n)) is not None]
    texts = [
        f"{plain(row.metric, 80)} {from_to(row.base_mean, row.new_mean)} (target {target})"
        for row, target in sorted(
            missed, key=lambda pair: -miss_of(pair[0].name, pair[0].new_mean, pair[0].target)
        )
        if row.verdict != "no verdict"
    ]
    if texts:
        yield f"targets no longer met: {', '.join(texts[:MOST_ADDED])}"
    for row in comparison.rows:
        if row.section == "safety" and row.bad and not row.primary:
            yield f"safety: {plain(row.metric, 80)} is worse ({from_to(row.base, row.new)})"


def _next(comparison: Comparison) -> str:
    """The command or the decision that comes next."""
    base, new = plain(comparison.base_id), plain(comparison.new_id)
    rows = _tested(comparison)
    better, worse = (_surest(rows, name) for name in ("better", "worse"))
    if worse:
        broke = f"see which cases broke: browse_runs.py {base} {new}"
        if better and not comparison.lead:
            return (
                f"{broke}; before the next comparison, write which metric counts most as lead "
                "under [decide] of eval/targets.toml"
            )
        return broke
    if comparison.headline == "BETTER":
        return f"gate_run.py --run {new} --baseline {base}"
    if comparison.headline == "INCOMPLETE" and any(comparison.missing):
        return "get these results, score them (eval_suite.py), and compare again"
    return ""


# What fails a comparison

WORSE, TARGET, SAFETY, COSTS, ANY_WORSE = "worse", "target", "safety", "cost", "any-worse"
FAIL_RULES = (WORSE, TARGET, SAFETY, COSTS, ANY_WORSE)


def failures(comparisons: Sequence[Comparison], rules: Sequence[str]) -> list[str]:
    """Why the comparison fails, a sentence each; empty when it passes.

    ``worse``: a primary metric got worse, one run alone has it, or it lost most of its cases, but
    for failed calls and declined answers that other metrics judge; ``target``: a target was met and
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


def _rows(comparison: Comparison, rule: str) -> list[Change]:
    if rule == ANY_WORSE:
        return list(comparison.rows)
    if rule == WORSE:
        return [row for row in comparison.rows if row.primary]
    if rule == SAFETY:
        return [row for row in comparison.rows if row.section == SAFETY]
    if rule == COSTS:
        return [row for row in comparison.rows if row.name in (CALLS, COST, TOKENS)]
    return [row for row in comparison.rows if rule in (row.metric, row.name)]


def _reasons(comparison: Comparison, rows: Iterable[Change]) -> Iterator[str]:
    run = comparison.new_id
    for row in rows:
        if row.verdict == "only in base":
            yield f"{row.name} is measured in {comparison.base_id} but not in {run}."
        elif row.verdict == "no verdict" and not row.left_out:
            _, words = lost_words(row, (comparison.base_id, comparison.new_id))
            yield f"{row.name} has no verdict: {words}."
        elif row.bad and row.delta is not None:
            yield (
                f"{row.name} is {row.verdict} in {run}: {row.delta:+.4f} over {row.n} cases, "
                f"corrected p {row.p_adjusted or 0:.4g}."
            )
