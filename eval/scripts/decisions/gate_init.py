"""A gates file for one eval set, drawn from a run: rules for what its labels can measure."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor
from pathlib import Path

from decisions.conditions import Conditions
from decisions.gate_checks import run_number
from decisions.primary import primary_names
from ragmetrics import catalogue
from ragmetrics.catalogue.metric import Metric
from records.targets import TARGETS
from terminal.page import number

ROOM = 0.05
"""Distance of a floor below its figure where it has no interval, as a share of the range."""

SLACK = {"latency_p95_ms": 2.0, "cost_per_case_usd": 1.5}
"""How many times the measured time or cost may be reached."""

HEAD = """\
# Gates for one eval set, written by gate_run.py --init from run {run}. A number under its floor, or
# one that can no longer be measured, fails. Each floor is the bad end of the 95 % interval measured
# then: raise it where you need more, delete what you do not want.
#
# Built in, without a line here:
# - against --baseline, a primary metric that got worse by more than chance explains (they are
#   declared in targets.toml, [decide] primary);
# - more failed calls than 2 % of failures explains;
# - asked cases without a result (--allow-missing N), and a stopped run (--set allow_stopped=true).

[gates]
# Rules on what no case of the set has labels for are listed as skipped; "fail" makes them fail.
unlabelled = "skip"
# A primary metric that cannot be tested (fewer than six cases, sections or documents) fails.
# untested = "allow"
# require_baseline = true
"""

TAIL = """
# Cases that must not fail whatever the means say, by id or tag; [cases] of targets.toml says when
# one does. With metric = "section.metric" every repeat must be at that metric's good end instead.
# [[gates.must_pass]]
# tags = ["critical"]

# Slices that must not fall: more of their cases broke than were fixed, by more than chance.
# [gates.slices]
# "tag.de" = "no fall"

# Rules of your own against the baseline; they replace the built-in test of that metric:
# "drop 10 %", "drop 0.05", "margin 0.05", "regression", or "none".
#
# With few cases, or few documents, the built-in test fails at large falls alone: "Gate passed, but
# 7 of 14 cases broke: too few cases to tell". A "drop" rule waits for no evidence, so it fails then
# (and now and then by chance). Write one for each metric that you cannot afford to lose.
# [gates.baseline]
# "pipeline.pass" = "drop 10 %"
# "context.redundancy_ngram" = "drop 10 %"
"""


def gates_text(side: Conditions, targets: Path = TARGETS) -> str:
    """The gates file for the set of a run, as TOML with comments."""
    parts = [HEAD.format(run=side.id), *_limits(side)]
    left_out = []
    for name, section in catalogue.SECTIONS.items():
        rules, missing = _floors(side, name, targets)
        if name == "judged" and rules:
            note = (
                "# A judged number needs a judge that people have checked (calibrate_judge.py).\n"
            )
            rules = [f"# {line}" for line in rules]
            parts.append(f"\n{note}# [{name}]\n" + "".join(rules))
        elif rules:
            parts.append(f"\n[{name}]\n" + "".join(rules))
        if missing and not ("verdicts" in section.needs and name not in side.sections):
            left_out.append(f"# [{name}] {', '.join(missing)}\n")
    if left_out:
        parts.append(f"\n# Not measured in {side.id} (no labels for it, or not scored):\n")
        parts += left_out
    return "".join((*parts, TAIL))


def _floors(side: Conditions, section: str, targets: Path) -> tuple[list[str], list[str]]:
    """A line for each metric that decides or has a target; the names that were not measured."""
    row = catalogue.SECTIONS[section]
    names = (name.partition(".") for name in primary_names(targets))
    primary = [metric for own, _, metric in names if own == section]
    rules, missing = [], []
    for name in dict.fromkeys((*primary, *row.targets)):
        mean = side.part(section, "mean", name)
        if mean is None:
            missing.append(name)
            continue
        try:
            metric = catalogue.find(name, row.metrics)
        except KeyError:
            continue
        rules.append(f'"{name}" = "{_bound(side, section, name, metric)}"\n')
        rules[-1] = rules[-1].rstrip("\n") + f"  # {_measured(side, section, name)}\n"
    return rules, missing


def _bound(side: Conditions, section: str, name: str, metric: Metric) -> str:
    """A bound at the bad end of the interval, two decimals, or ``ROOM`` off where it has none."""
    mean, interval = side.part(section, "mean", name), side.part(section, "ci95", name)
    if interval and interval[0] == interval[1]:
        interval = None
    room = ROOM * ((metric.high or 0.0) - (metric.low or 0.0) or 1.0)
    if metric.higher_is_better:
        low = min(interval[0], mean) if interval else mean - room
        low = low if metric.low is None else max(low, metric.low)
        return f">= {floor(100 * low) / 100:g}"
    high = max(interval[1], mean) if interval else mean + room
    high = high if metric.high is None else min(high, metric.high)
    return f"<= {ceil(100 * high) / 100:g}"


def _measured(side: Conditions, section: str, name: str) -> str:
    mean, interval = side.part(section, "mean", name), side.part(section, "ci95", name)
    n = side.counts(section, name)[0]
    reach = f", 95 % {number(interval[0])} to {number(interval[1])}" if interval else ""
    return f"measured {number(mean)}{reach}, n = {n}"


def _limits(side: Conditions) -> Iterator[str]:
    """Time and cost of the whole run, where the bot reports them."""
    lines = []
    for name, times in SLACK.items():
        value = run_number(side, name)
        if value:
            shown = f"{value:,.0f}" if value >= 100 else f"{value:.4g}"
            bound = ceil(times * value) if value >= 100 else float(f"{times * value:.2g}")
            lines.append(f'{name} = "<= {bound:g}"  # measured {shown}, {times:g} times that\n')
    if lines:
        yield "\n# Numbers of the whole run.\n[gates.run]\n"
        yield from lines
