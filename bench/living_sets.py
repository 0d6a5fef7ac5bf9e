"""Simulate runs of a set that lives: how often is a verdict false, and what does growth cost?

Each pair is of one bot that answers a share of the questions anew, each with its own chance of
success. A part of the cases is re-labelled (of those that base fails, of those that the new run
fails, or at random) and left out, as without a new score; or the set grows. Counted are pairs with
a verdict in any metric. Seeds are fixed.

    python bench/living_sets.py [PAIRS]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "eval" / "scripts"))

from decisions.committed import compare_scores
from decisions.primary import PrimaryScores
from decisions.same_cases import Alignment

NAMES = ("retrieval.evidence_recall@5", "pipeline.pass")


def scores(label: str, values: np.ndarray, ids: list[str]) -> PrimaryScores:
    return PrimaryScores(label, NAMES, tuple(ids), values.astype(float))


def pair(
    rng: np.random.Generator, n: int, anew: float, fall: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of two runs: 0 or 1, four of five questions are mostly answered well."""
    chance = rng.beta(2.4, 0.6, n)
    base = np.stack([rng.random(n) < chance, rng.random(n) < chance], 1).astype(int)
    again = np.stack([rng.random(n) < chance, rng.random(n) < chance], 1).astype(int)
    new = np.where((rng.random(n) < anew)[:, None], again, base)
    return base, np.where((rng.random(n) < fall)[:, None], 0, new)


def verdict(base: np.ndarray, new: np.ndarray, changed: np.ndarray, more: int = 0) -> str:
    """The word on two runs, of which some cases changed and ``more`` are new."""
    ids = [f"q{i}" for i in range(len(base) + more)]
    own = ids[: len(base)]
    left_out = frozenset(case_id for case_id, out in zip(own, changed, strict=True) if out)
    sections = dict.fromkeys(("retrieval", "pipeline"), left_out)
    alignment = Alignment(
        new=frozenset(ids[len(base) :]), relabelled=sections, shared=frozenset(own), differs=True
    )
    grown = np.concatenate([new, np.ones((more, 2))])
    found = compare_scores(
        scores("base", base, own), scores("new", grown, ids), None, lead="", margin=None,
        changes=alignment,
    )  # fmt: skip
    rows = {row.verdict for row in found.rows}
    return "worse" if "worse" in rows else "better" if "better" in rows else ""


def relabelled(
    rng: np.random.Generator, whom: str, base: np.ndarray, new: np.ndarray, share: float
) -> np.ndarray:
    """Which cases are labelled anew: up to a share of all, of those that one run fails."""
    among = {"base": base[:, 0] == 0, "new": new[:, 0] == 0, "random": np.ones(len(base), bool)}
    rows = rng.permutation(np.flatnonzero(among[whom]))[: round(share * len(base))]
    changed = np.zeros(len(base), bool)
    changed[rows] = True
    return changed


def main(pairs: int) -> None:
    print("re-labelled and left out, one bot: share of pairs with a verdict (false)")
    for n in (140, 300):
        for anew in (0.1, 0.3):
            for share in (0.09, 0.20):
                row = []
                for whom in ("base", "new", "random"):
                    rng = np.random.default_rng([n, int(100 * anew), int(100 * share), len(whom)])
                    hits = 0
                    for _ in range(pairs):
                        base, new = pair(rng, n, anew)
                        changed = relabelled(rng, whom, base, new, share)
                        new[changed] = 1
                        hits += bool(verdict(base, new, changed))
                    row.append(f"{whom} {hits / pairs:.3f}")
                print(
                    f"  n {n}, {anew:.0%} answered anew, {share:.0%}:", ", ".join(row), flush=True
                )
    print("growth by a fifth, one bot: share of pairs with a verdict (false)")
    for n in (140, 300):
        rng = np.random.default_rng(n)
        hits = sum(
            bool(verdict(*pair(rng, n, 0.2), np.zeros(n, bool), n // 5)) for _ in range(pairs)
        )
        print(f"  n {n}: {hits / pairs:.3f}", flush=True)
    print("power: a fall in 8 % of the cases, found in a grown set and in a set of that size")
    for n in (140, 300):
        found = []
        for more in (n // 5, 0):
            rng = np.random.default_rng(n + more)
            own = (verdict(*pair(rng, n, 0.2, 0.08), np.zeros(n, bool), more) for _ in range(pairs))
            found.append(sum(word == "worse" for word in own) / pairs)
        print(f"  n {n}: {found[0]:.3f} and {found[1]:.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
