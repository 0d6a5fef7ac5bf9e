"""What a judge said of the pairs of two runs, where runs are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from extras.pairs.deciding import decided_runs, pair_blocks, pair_verdicts
from records.clusters import Clustering
from terminal.page import Block


def of_runs(
    base: Path, runs: Sequence[Path], clustering: Clustering | None, seed: int
) -> Iterator[Block]:
    """The decisions on runs and their base, each under its heading; none without judged pairs."""
    for decision, file in decided_runs(base, runs, clustering, seed=seed):
        yield from pair_blocks(decision, file)


def of_case(base: Path, run: Path, key: tuple[str, int]) -> list[tuple[str, str, str]]:
    """What was said of one case: the question asked, the verdict and its quote."""
    return pair_verdicts(run, base, key)
