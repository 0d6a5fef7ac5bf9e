"""Catalogue rows of tool calls: those expected, forbidden, repeated and failed."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection


def _row(name: str, meaning: str, needs: str = "", **more: Any) -> Metric:
    row: dict[str, Any] = {"source": "this toolkit"} | more
    return Metric(name, "tools", meaning, "; ".join(filter(None, (needs, REPORTED))), **row)


def _bad(name: str, meaning: str, needs: str = "", **more: Any) -> Metric:
    return _row(name, meaning, needs, higher_is_better=False, **more)


REPORTED = "tool calls in the result"

EXPECTED = "expected_tools that are not empty"

CALLED = "a call"

ROWS: tuple[Metric, ...] = (
    _row(
        "tool_f1",
        "2M / (expected calls + calls); M: the largest one-to-one matching of calls that fit",
        EXPECTED,
        source="ragas, tool call F1",
        headline=1,
        words="Expected tool calls and no others",
    ),
    _row(
        "tool_precision",
        "M / calls",
        f"{EXPECTED}; {CALLED}",
        headline=3,
        words="Tool calls that were expected",
    ),
    _row(
        "tool_recall",
        "M / expected calls",
        EXPECTED,
        headline=2,
        words="Expected tool calls that were made",
        says="Makes {value} of the expected tool calls",
    ),
    _row(
        "argument_match",
        "mean over the expected calls: stated arguments that fit / stated arguments, where as many "
        "calls as possible are paired by name; 1 without any, 0 without a call",
        EXPECTED,
        headline=4,
        words="Stated arguments of tools that fit",
    ),
    _row(
        "order_match",
        "1 when the calls are the expected ones in order (tool_order strict), or these are among "
        "them in order (partial); none: not applicable",
        f"{EXPECTED}; tool_order",
        source="Google ADK, tool trajectories",
        binary=True,
        words="Questions whose tool calls came in order",
    ),
    _row(
        "no_call_ok",
        "1 when no tool was called where none is expected",
        "an empty list of expected_tools",
        binary=True,
        words="Questions that need no tool and called none",
    ),
    _bad(
        "forbidden_called",
        "1 when a forbidden call was made",
        "forbidden_tools",
        binary=True,
        headline=5,
        words="Questions with a forbidden tool call",
    ),
    _bad(
        "forbidden_tool_rate",
        "forbidden calls / calls",
        f"forbidden_tools; {CALLED}",
        words="Tool calls that are forbidden",
    ),
    _bad(
        "redundant_call_rate",
        "calls whose name and arguments came before without an error between / calls",
        CALLED,
        headline=7,
        words="Tool calls that repeat another",
    ),
    _bad(
        "failed_call_rate",
        "calls that failed, with their retries / calls",
        CALLED,
        headline=8,
        words="Tool calls that failed",
    ),
    _row(
        "within_calls",
        "1 when there were at most max_tool_calls calls",
        "max_tool_calls",
        binary=True,
        headline=6,
        words="Questions within their number of tool calls",
    ),
    _bad(
        "tool_calls",
        "calls of the case, a retry with the same arguments after an error counted with its call",
        unit="calls",
        high=None,
        headline=9,
        words="Tool calls a question",
    ),
)

SECTION = MetricSection(
    "tools",
    "Tools",
    ROWS,
    "score_tools.py",
    labels=("expected_tools", "forbidden_tools", "max_tool_calls", "tool_order"),
    needs=("tools",),
    worst_by="tool_f1",
)
