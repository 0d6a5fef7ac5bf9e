"""One row for every metric: its range, unit, direction, needs, source and definition.

Reports, comparisons, gates and EVAL.md's tables read these rows. To add a metric: one function,
one row here, one test. A definition that changes gets a new version: numbers of different versions
are never compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ragmetrics import retrieval

KS = (1, 3, 5, 10)
"""Cut-offs that retrieval metrics are reported at unless the user asks for others."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number means.

    ``low``, ``high``: the ends of its range (None: unbounded). ``binary``: a case scores 0 or 1,
    so the mean is a proportion. ``at_k``: computed at each cut-off, named ``name@k``. ``needs``:
    what a case must bring, else it is not applicable. ``function``: for metrics of one Ranking.
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
    function: Callable[..., float] | None = None

    @property
    def definition(self) -> str:
        """The definition's id, such as ``retrieval/ndcg@1``; the number is its version."""
        return f"{self.family}/{self.name.partition('@')[0]}@{self.version}"


def _retrieval(name: str, meaning: str, source: str, function: Any = None, **more: Any) -> Metric:
    row: dict[str, Any] = {"needs": "gold supports", "at_k": function is not None} | more
    return Metric(name, "retrieval", meaning, source=source, function=function, **row)


TREC = "trec_eval"
RETRIEVAL: tuple[Metric, ...] = (
    _retrieval(
        "recall_any",
        "1 when any gold support is in the top k (hit rate)",
        f"{TREC} success",
        retrieval.recall_any,
        binary=True,
    ),
    _retrieval(
        "recall_all",
        "1 when the needed evidence is complete in the top k: one whole support group, else all",
        "multi-hop retrieval (HotpotQA, Yang et al. 2018)",
        retrieval.recall_all,
        binary=True,
    ),
    _retrieval(
        "recall",
        "distinct gold supports in the top k / gold supports",
        f"{TREC} recall",
        retrieval.recall,
    ),
    _retrieval(
        "precision",
        "chunks in the top k that match any gold support / k",
        f"{TREC} P",
        retrieval.precision,
    ),
    _retrieval(
        "f1",
        "harmonic mean of precision and recall at k, 0 when both are 0",
        "van Rijsbergen 1979",
        retrieval.f1,
    ),
    _retrieval(
        "ndcg",
        "discounted gain of the supports' grades / the ideal one over all gold cut at k; "
        "a support pays once",
        f"Järvelin and Kekäläinen 2002; {TREC} ndcg_cut",
        retrieval.ndcg,
    ),
    _retrieval(
        "map",
        "precision at the rank of each gold support found in the top k, summed / gold supports",
        f"{TREC} map_cut",
        retrieval.average_precision,
    ),
    _retrieval(
        "mrr",
        "1 / rank of the first match, 0 when none",
        f"Voorhees 1999; {TREC} recip_rank",
        retrieval.reciprocal_rank,
    ),
    _retrieval(
        "scope_miss",
        "1 when folder selection left out every folder that holds gold",
        "this toolkit",
        higher_is_better=False,
        binary=True,
        needs="gold paths; folder_selection in the result",
    ),
    _retrieval(
        "attribution_hit",
        "1 when a cited reference matches a gold support",
        "this toolkit",
        binary=True,
        needs="gold supports; an answer with references",
    ),
    _retrieval(
        "snippet_recall",
        "gold snippets that a chunk of the top k holds (substring, else Levenshtein) / snippets",
        "this toolkit",
        needs="gold snippets; full chunk texts",
        at_k=True,
    ),
    _retrieval(
        "recency_rule_ok",
        "1 when the answer treats conflicting supports as recency_conflict_rule asks",
        "this toolkit",
        binary=True,
        needs="recency_conflict_rule; an answer",
    ),
)

METRICS: tuple[Metric, ...] = (*RETRIEVAL,)


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


def find(name: str, metrics: Iterable[Metric] = METRICS) -> Metric:
    """The row of a metric by name, with or without ``@k``. Raises KeyError for unknown ones."""
    stem = name.partition("@")[0]
    for metric in metrics:
        if metric.name == stem:
            return metric
    raise KeyError(f"no metric is named {name!r}; the catalogue lists all names")
