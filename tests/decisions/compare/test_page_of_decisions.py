"""docs/decisions.md: each situation is made anew, and the page prints what the tools print."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from decisions.compare import CompareOptions, compare
from decisions.invariants import IncomparableError

PAGE = Path(__file__).parents[3] / "docs" / "decisions.md"
N = 146


def shares(count: int, rose: range = range(0), fell: range = range(0)) -> list[float]:
    """Scores of 0 and 1: the first ``count`` cases score 1; some rise, some of these fall."""
    return [float((case < count and case not in fell) or case in rose) for case in range(N)]


class Situations:
    def __init__(self, runs: Any) -> None:
        self.runs = runs

    def run(
        self,
        name: str,
        recall: Sequence[float],
        passed: Sequence[float],
        *,
        slower: float = 1.0,
        dearer: float = 1.0,
        redundancy: float = 0.186,
        lines: int = N,
        sha: str = "5" * 64,
    ) -> Path:
        ids = [f"q{case}" for case in range(lines)]
        times = [
            {"latency_ms": {"total": (900 + case) * slower}, "cost_usd": (1 + case) * 1e-4 * dearer}
            for case in range(lines)
        ]
        asked = [f"q{case}" for case in range(N)]
        config = {
            "dataset": {"sha256": sha, "cases": N},
            "run": {"selected": N, "asked": asked},
            "retriever": {"k": 5 if name == "base" else 10},
        }
        more: dict[str, Any] = {"ids": ids, "config": config, "eval_set": sha}
        self.runs.make(name, {"evidence_recall@5": recall[:lines]}, **more)
        self.runs.make(name, {"redundancy_tfidf": [redundancy] * lines}, "context", **more)
        scores = {"pass": passed[:lines], "answered": [1.0] * lines}
        run: Path = self.runs.make(name, scores, "pipeline", evidence=times, **more)
        return run

    def says(self, base: Path, new: Path, **options: Any) -> str:
        return "\n".join(compare(base, new, CompareOptions(**options)).says)

    def clear_win(self) -> str:
        base = self.run("base", shares(99), shares(72))
        rise = range(99, 118)
        return self.says(base, self.run("new", shares(99, rise), shares(72), slower=2.4))

    def clear_loss(self) -> str:
        base = self.run("base", shares(118), shares(72))
        return self.says(base, self.run("new", shares(118, fell=range(99, 118)), shares(72)))

    def trade_off(self) -> str:
        base = self.run("base", shares(99), shares(90))
        new = self.run("new", shares(99, range(99, 118)), shares(90, fell=range(75, 90)))
        return self.says(base, new)

    def no_evidence(self) -> str:
        base = self.run("base", shares(110), shares(72))
        moved = shares(110, range(110, 114), range(100, 105))
        return self.says(base, self.run("new", moved, shares(72, range(72, 76), range(2))))

    def primary_better_others_worse(self) -> str:
        base = self.run("base", shares(99), shares(100))
        new = self.run(
            "new",
            shares(99, range(99, 118)),
            shares(100, range(100, 103), range(90, 100)),
            redundancy=0.206,
        )
        return self.says(base, new)

    def latency_against_cost(self) -> str:
        base = self.run("base", shares(110), shares(72))
        new = self.run("new", shares(110), shares(72), slower=1.4, dearer=0.59)
        return self.says(base, new, margin=0.05)

    def partial_run(self) -> str:
        base = self.run("base", shares(110), shares(72))
        return self.says(base, self.run("new", shares(110), shares(72), lines=106))

    def other_set(self) -> str:
        base = self.run("base", shares(110), shares(72))
        new = self.run("new", shares(110), shares(72), sha="0" * 64)
        with pytest.raises(IncomparableError) as refused:
            self.says(base, new)
        return str(refused.value)


SITUATIONS: dict[str, Callable[[Situations], str]] = {
    "A clear win": Situations.clear_win,
    "A clear loss": Situations.clear_loss,
    "A trade-off": Situations.trade_off,
    "No evidence": Situations.no_evidence,
    "Better where it counts, worse beside it": Situations.primary_better_others_worse,
    "Latency against cost": Situations.latency_against_cost,
    "A partial run": Situations.partial_run,
    "Another eval set": Situations.other_set,
}


@pytest.mark.parametrize("title", SITUATIONS)
def test_the_page_prints_what_the_tools_print(title: str, runs: Any) -> None:
    said = SITUATIONS[title](Situations(runs))
    blocks = dict(
        re.findall(r"^### (.+?)\n.*?```text\n(.*?)\n```", PAGE.read_text("utf-8"), re.M | re.S)
    )
    assert blocks[title] == said
