"""Compares the tools that a bot called with those that its case expects and forbids; pure.

E is what is expected, C what was called. A call that repeats one that has just failed, with the
same name and arguments, is a retry: both are one call of C, at the place of the first and with the
outcome of the last. A call fits an expected one when the names are equal and every stated argument
fits. Equal to the exact, in-order and any-order trajectories of Google's ADK where arguments match
exactly and no call fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum
from typing import Any, Protocol

from ragmetrics.case_scores import CaseScores, Collector

NOT_REPORTED = "tool calls are not reported"

NOT_KEPT = "arguments of a call were too long to keep"

NO_LABEL = "no {}"

NO_CALLS = "no tool was called"

NONE_EXPECTED = "no call is expected"


class Named(Protocol):
    """A tool with arguments."""

    name: str
    arguments: dict[str, Any]


class Called(Named, Protocol):
    """A call of a tool; ``arguments_length`` is None where its arguments are known."""

    error: str | None
    arguments_length: int | None


class Stated(Named, Protocol):
    """A call that a case expects or forbids; ``match`` is ``subset`` or ``exact``."""

    match: Any


@dataclass(frozen=True)
class ToolLabels:
    """A case's tool labels. ``expected`` None: no label; ``order``: none, partial, strict."""

    expected: Sequence[Stated] | None = None
    forbidden: Sequence[Stated] = ()
    most_calls: int | None = None
    order: str | None = None


def argument_fits(stated: Any, value: Any) -> bool:
    """Whether an argument fits: equal as JSON, by a regular expression over all of it, or a number
    within a tolerance."""
    if isinstance(stated, Mapping):
        if stated.keys() == {"regex"}:
            text = value if isinstance(value, str) else canonical(value)
            return re.fullmatch(stated["regex"], text) is not None
        if stated.keys() in ({"number"}, {"number", "tolerance"}):
            if type(value) not in (int, float):
                return False
            numbers = (stated["number"], value, stated.get("tolerance", 0))
            aim, reached, tolerance = (Fraction(str(number)) for number in numbers)
            return abs(aim - reached) <= tolerance
        if stated.keys() == {"equals"}:
            stated = stated["equals"]
    return canonical(stated) == canonical(value)


def canonical(value: Any) -> str:
    """JSON that is the same for equal values: keys sorted, 1.0 as 1."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def fits(stated: Stated, call: Named) -> bool:
    """Whether a call fits the stated one; more arguments are allowed unless ``match`` is exact."""
    if stated.name != call.name or share_of_arguments(stated, call) < 1:
        return False
    return stated.match != "exact" or stated.arguments.keys() == call.arguments.keys()


def share_of_arguments(stated: Stated, call: Named) -> float:
    """Stated arguments that fit / stated arguments, in [0, 1]; 1 without any."""
    fitting = sum(
        name in call.arguments and argument_fits(value, call.arguments[name])
        for name, value in stated.arguments.items()
    )
    return fitting / len(stated.arguments) if stated.arguments else 1.0


def assign(gains: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return the one-to-one pairs of rows and columns with the largest sum of gains. Pairs without
    a gain are left out."""
    if not gains or not gains[0]:
        return []
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(gains, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(row, column) for row, column in pairs if gains[row][column] > 0]


@dataclass
class _Call:
    """A call with its retries: the places of all of them, and whether it was redundant."""

    places: list[int]
    redundant: bool


def _without_retries(calls: Sequence[Called]) -> list[_Call]:
    """C: each call once, its retries with it.

    A call is redundant when the same one came before and no call failed from then on.
    """
    distinct: list[_Call] = []
    last: dict[tuple[str, str], _Call] = {}
    failed_at = -1
    for place, call in enumerate(calls):
        if place and calls[place - 1].error is not None:
            failed_at = place - 1
        key = call.name, canonical(call.arguments)
        before = last.get(key)
        if before is not None and calls[before.places[-1]].error is not None:
            before.places.append(place)
            continue
        redundant = before is not None and failed_at < before.places[-1]
        last[key] = _Call([place], redundant)
        distinct.append(last[key])
    return distinct


def _in_order(order: str, expected: Sequence[Stated], calls: Sequence[Called]) -> bool:
    """``strict``: the calls are the expected ones in order; ``partial``: these are among them."""
    if order == "strict":
        pairs = zip(expected, calls, strict=False)
        return len(expected) == len(calls) and all(fits(stated, call) for stated, call in pairs)
    left = iter(calls)
    return all(any(fits(stated, call) for call in left) for stated in expected)


def score_tools(
    names: Sequence[str], calls: Sequence[Called] | None, labels: ToolLabels
) -> CaseScores:
    """The metrics ``names`` of one answer; ``calls`` None: the bot reports none.

    Undefined, each with its reason: everything where calls or their arguments are not known; the
    metrics of a label without it; shares of the calls without a call. Evidence: for each call the
    expected one that it fits, and whether it is forbidden, redundant or a retry.
    """
    scores = Collector(names)
    if calls is None or any(call.arguments_length is not None for call in calls):
        scores.nothing(names, NOT_REPORTED if calls is None else NOT_KEPT)
        return scores.result()
    distinct = _without_retries(calls)
    called = [calls[call.places[0]] for call in distinct]
    count = len(called)
    forbidden = [any(fits(stated, call) for stated in labels.forbidden) for call in called]
    failed = [calls[call.places[-1]].error is not None for call in distinct]
    redundant = [call.redundant for call in distinct]

    def share(number: int) -> float | None:
        return number / count if count else None

    scores.set("tool_calls", count, "")
    scores.set("failed_call_rate", share(sum(failed)), NO_CALLS)
    scores.set("redundant_call_rate", share(sum(redundant)), NO_CALLS)
    if labels.forbidden:
        scores.set("forbidden_called", any(forbidden), "")
        scores.set("forbidden_tool_rate", share(sum(forbidden)), NO_CALLS)
    else:
        reason = NO_LABEL.format("forbidden_tools")
        scores.nothing(["forbidden_called", "forbidden_tool_rate"], reason)
    within = None if labels.most_calls is None else count <= labels.most_calls
    scores.set("within_calls", within, NO_LABEL.format("max_tool_calls"))
    pairs = _score_expected(scores, called, labels)
    rows: list[dict[str, Any]] = [{"name": call.name, "retry": True} for call in calls]
    for number, call in enumerate(distinct):
        is_so = {"forbidden": forbidden[number], "redundant": redundant[number]}
        rows[call.places[0]] = {
            "name": called[number].name,
            **({"expected": pairs[number]} if number in pairs else {}),
            **{name: True for name, holds in is_so.items() if holds},
        }
    scores.evidence["calls"] = rows
    if missing := sorted(set(range(len(labels.expected or ()))) - set(pairs.values())):
        scores.evidence["missing"] = missing
    return scores.result()


_OF_EXPECTED = ("tool_precision", "tool_recall", "tool_f1", "argument_match", "order_match")


def _score_expected(
    scores: Collector, called: Sequence[Called], labels: ToolLabels
) -> dict[int, int]:
    """The metrics of the expected calls; which of the calls fits which of these."""
    expected, count = labels.expected, len(called)
    if expected is None:
        reason = NO_LABEL.format("expected_tools")
        scores.nothing([*_OF_EXPECTED, "no_call_ok"], reason)
        return {}
    if not expected:
        scores.nothing(_OF_EXPECTED, NONE_EXPECTED)
        scores.set("no_call_ok", not called, "")
        return {}
    scores.nothing(["no_call_ok"], "calls are expected")
    fitting = [[float(fits(stated, call)) for call in called] for stated in expected]
    pairs = assign(fitting)
    scores.set("tool_precision", len(pairs) / count if count else None, NO_CALLS)
    scores.set("tool_recall", len(pairs) / len(expected), "")
    scores.set("tool_f1", 2 * len(pairs) / (len(expected) + count), "")
    # Of one name everything is paired, for each pair gains more than none; then what fits best.
    shares = [
        [1 + share_of_arguments(stated, call) if stated.name == call.name else 0 for call in called]
        for stated in expected
    ]
    matched = fsum(shares[row][column] - 1 for row, column in assign(shares))
    scores.set("argument_match", matched / len(expected), "")
    ordered = None
    if labels.order not in (None, "none"):
        ordered = _in_order(str(labels.order), expected, called)
    scores.set("order_match", ordered, NO_LABEL.format("tool_order"))
    return {column: row for row, column in pairs}
