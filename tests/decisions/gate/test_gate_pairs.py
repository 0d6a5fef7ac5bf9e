"""gate_run.py: each rule fails and passes on a made-up pair of runs, in a process of its own."""

from __future__ import annotations

from typing import Any

import pytest

N = 40
BASELINE = ("--baseline", "base")
PAIRS = {
    # rule: (gates file, options, section and scores or head that fail it, the failing check)
    "floor": (
        '[retrieval]\n"recall@5" = ">= 0.75"\n', (), {"hits": 29}, "retrieval.recall@5"
    ),
    "floor of what should be low": (
        '[retrieval]\nscope_miss = "<= 0.1"\n', (), {"misses": 5}, "retrieval.scope_miss"
    ),
    "relative drop": (
        '[gates.baseline]\n"retrieval.recall@5" = "drop 10 %"\n', BASELINE, {"hits": 28},
        "retrieval.recall@5",
    ),
    "absolute drop": (
        '[gates.baseline]\n"retrieval.*" = "drop 0.05"\n', BASELINE, {"hits": 29},
        "retrieval.recall@5",
    ),
    "drop of what should be low": (
        '[gates.baseline]\n"*" = "drop 10 %"\n', BASELINE, {"misses": 5}, "retrieval.scope_miss"
    ),
    "margin": (
        '[gates.baseline]\n"retrieval.recall@5" = "margin 0.05"\n', BASELINE, {"hits": 30},
        "retrieval.recall@5",
    ),
    "margin of what should be low": (
        '[gates.baseline]\n"retrieval.scope_miss" = "margin 0.05"\n', BASELINE, {"misses": 6},
        "retrieval.scope_miss",
    ),
    "regression": (
        '[gates.baseline]\n"retrieval.*" = "regression"\n', BASELINE, {"hits": 20},
        "retrieval.recall@5",
    ),
    "regression of what should be low": (
        '[gates.baseline]\n"retrieval.*" = "regression"\n', BASELINE, {"misses": 20},
        "retrieval.scope_miss",
    ),
    "cases": ('[gates.run]\ncases = ">= 40"\n', (), {"cases": 39}, "cases"),
    "errors": ('[gates.run]\nerrors = "<= 0"\n', (), {"errors": 1}, "errors"),
    "error share": (
        '[gates.run]\nerror_share = "<= 0.02"\n', (), {"errors": 1}, "error_share"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_each_rule_fails_and_passes(gate: Any, name: str) -> None:
    """margin: 2 of 40 lost, a difference of -0.05 whose interval goes beyond 0.05. errors: 1 of 40
    is a share of 0.025."""
    text, words, change, failing = PAIRS[name]
    gate.rules(text)
    assert gate.failures(*words) == {}
    wanted = {"hits": 32, "misses": 4} | change
    gate.new.scores |= gate.scores(wanted.pop("hits"), wanted.pop("misses"))
    gate.new.head |= wanted
    gate.new.write()
    assert set(gate.failures(*words)) == {failing}


@pytest.mark.parametrize(
    ("rule", "section", "failing"),
    [
        ('cost_usd = "<= 1"', {"cost_usd": 1.5}, "cost_usd"),
        ('cost_per_case_usd = "<= 0.03"', {"cost_usd": 1.5}, "cost_per_case_usd"),
        ('tokens = "<= 1000"', {"usage": {"total_tokens": 1001}}, "tokens"),
        ('tokens = "<= 1000"', {"usage": {"input_tokens": 900, "output_tokens": 101}}, "tokens"),
        ('latency_p95_ms = "<= 100"', {"latency_ms": {"total": {"p95": 101}}}, "latency_p95_ms"),
        (
            'latency_generate_max_ms = "<= 100"',
            {"latency_ms": {"generate": {"max": 101}}},
            "latency_generate_max_ms",
        ),
    ],
)
def test_cost_and_time(gate: Any, rule: str, section: dict[str, Any], failing: str) -> None:
    """1.5 dollars for 40 cases are 0.0375 a case. What is not known fails too."""
    gate.rules(f"[gates.run]\n{rule}\n")
    assert set(gate.failures()) == {f"{failing}:measured"}
    gate.new.scores["pipeline"] = {"pass": [1.0] * N}
    good: dict[str, Any] = {
        "cost_usd": 0.5,
        "usage": {"total_tokens": 10},
        "latency_ms": {"total": {"p95": 5}, "generate": {"max": 5}},
    }
    gate.new.more["pipeline"] = good
    gate.new.write()
    assert gate.failures() == {}
    gate.new.more["pipeline"] = good | section
    gate.new.write()
    assert set(gate.failures()) == {failing}


def test_a_number_of_the_run_against_the_baseline(gate: Any) -> None:
    gate.rules('[gates.baseline]\n"run.latency_p95_ms" = "drop 20 %"\n')
    for run, time in ((gate.base, 100), (gate.new, 119)):
        run.scores["pipeline"] = {"pass": [1.0] * N}
        run.more["pipeline"] = {"latency_ms": {"total": {"p95": time}}}
        run.write()
    assert gate.failures(*BASELINE) == {}
    gate.new.more["pipeline"] = {"latency_ms": {"total": {"p95": 121}}}
    gate.new.write()
    assert set(gate.failures(*BASELINE)) == {"latency_p95_ms"}
