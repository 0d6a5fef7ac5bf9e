"""What a metric is: its range, unit, direction, needs, source and definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number means.

    ``low``, ``high``: the ends of its range (None: unbounded). ``binary``: a case scores 0 or 1,
    so the mean is a proportion. ``at_k``: computed at each cut-off, named ``name@k``. ``needs``:
    what a case must bring, else it is not applicable. ``function``: for metrics of one Ranking,
    and those of a plugin.
    """

    name: str
    family: str
    meaning: str
    needs: str
    source: str
    low: float | None = 0.0
    high: float | None = 1.0
    unit: str = "share"
    higher_is_better: bool = True
    binary: bool = False
    at_k: bool = False
    version: int = 1
    function: Callable[..., float | None] | None = None

    @property
    def definition(self) -> str:
        """The definition's id, such as ``retrieval/ndcg@1``; the number is its version."""
        return f"{self.family}/{self.name.partition('@')[0]}@{self.version}"


def at_cutoffs(metrics: Iterable[Metric], ks: Iterable[int]) -> tuple[Metric, ...]:
    """The metrics as computed: ``name@k`` for each cut-off, MRR once more over the whole list."""
    named: list[Metric] = []
    cutoffs = tuple(ks)
    for metric in metrics:
        if not metric.at_k:
            named.append(metric)
            continue
        if metric.name == "mrr":
            named.append(metric)
        named.extend(replace(metric, name=f"{metric.name}@{k}") for k in cutoffs)
    return tuple(named)
