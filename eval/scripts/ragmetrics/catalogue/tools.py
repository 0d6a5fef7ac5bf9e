"""Catalogue rows of tool calls: those expected, forbidden, repeated and failed."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection

REPORTED = "tool calls in the result"
EXPECTED = f"expected_tools that are not empty; {REPORTED}"
FORBIDDEN = f"forbidden_tools; {REPORTED}"


def _row(name: str, meaning: str, needs: str, words: str, headline: int = 0, **more: Any) -> Metric:
    row: dict[str, Any] = {"source": "this toolkit", "headline": headline} | more
    return Metric(name, "tools", meaning, needs, words=words, **row)


_BAD: dict[str, Any] = {"higher_is_better": False}

ROWS: tuple[Metric, ...] = (
    _row(
        "tool_f1",
        "2M / (expected calls + calls); M: the largest one-to-one matching of calls that fit",
        EXPECTED,
        "Balance of expected tool calls and no others",
        1,
        source="ragas, tool call F1",
        counted="number",
    ),
    _row(
        "tool_precision",
        "M / calls",
        f"{EXPECTED}; a call",
        "Tool calls that were expected",
        3,
    ),
    _row(
        "tool_recall",
        "M / expected calls",
        EXPECTED,
        "Expected tool calls that were made",
        2,
        says="makes in an average answer {value} of the expected tool calls",
    ),
    _row(
        "argument_match",
        "mean over the expected calls: stated arguments that fit / stated arguments, where as many "
        "calls as possible are paired by name; 1 without any, 0 without a call",
        EXPECTED,
        "Stated arguments of tools that fit",
        4,
    ),
    _row(
        "order_match",
        "1 when the calls are the expected ones in order (tool_order strict), or these are among "
        "them in order (partial); none: not applicable",
        f"tool_order; {EXPECTED}",
        "Questions whose tool calls came in order",
        source="Google ADK, tool trajectories",
        binary=True,
    ),
    _row(
        "no_call_ok",
        "1 when no tool was called where none is expected",
        f"an empty list of expected_tools; {REPORTED}",
        "Questions that need no tool and called none",
        binary=True,
    ),
    _row(
        "forbidden_called",
        "1 when a forbidden call was made",
        FORBIDDEN,
        "Questions with a forbidden tool call",
        5,
        binary=True,
        **_BAD,
    ),
    _row(
        "forbidden_tool_rate",
        "forbidden calls / calls",
        f"{FORBIDDEN}; a call",
        "Tool calls that are forbidden",
        **_BAD,
    ),
    _row(
        "redundant_call_rate",
        "calls whose name and arguments came before without an error between / calls",
        f"a call; {REPORTED}",
        "Tool calls that repeat another",
        7,
        **_BAD,
    ),
    _row(
        "failed_call_rate",
        "calls that failed, with their retries / calls",
        f"a call; {REPORTED}",
        "Tool calls that failed",
        8,
        **_BAD,
    ),
    _row(
        "within_calls",
        "1 when there were at most max_tool_calls calls",
        f"max_tool_calls; {REPORTED}",
        "Questions within their limit of tool calls",
        6,
        binary=True,
    ),
    _row(
        "tool_calls",
        "calls of the case, a retry with the same arguments after an error counted with its call",
        REPORTED,
        "Tool calls a question",
        9,
        unit="calls",
        high=None,
        **_BAD,
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
