"""In which order an experiment asks: at random, every kind of case in its share, clusters whole."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ragmetrics.stats.means import generator
from records.cases import TestCase
from records.clusters import label_of

Cluster = tuple[TestCase, ...]
"""Cases that are asked together, since together they are less informative than as many of different
documents."""


def random_order(cases: Sequence[TestCase], seed: int) -> list[Cluster]:
    """The clusters of the cases, shuffled within their kind, the kinds evenly mixed.

    The kind of a cluster is the category of its first case, and whether that has an answer. The
    n-th of m clusters of a kind gets a random place in the n-th m-th part of the order.
    """
    clusters: dict[str, list[TestCase]] = {}
    for case in cases:
        clusters.setdefault(label_of(case) or f"case: {case.id}", []).append(case)
    kinds: dict[tuple[str, str], list[Cluster]] = {}
    for members in clusters.values():
        first = members[0]
        kinds.setdefault((str(first.category), str(first.answerable)), []).append(tuple(members))
    rng = generator(seed, "order of cases")
    placed: list[tuple[float, Cluster]] = []
    for _, own in sorted(kinds.items()):
        for rank, index in enumerate(rng.permutation(len(own)).tolist()):
            placed.append(((rank + float(rng.random())) / len(own), own[index]))
    placed.sort(key=lambda pair: pair[0])
    return [cluster for _, cluster in placed]


def portions(clusters: Sequence[Cluster], count: int) -> list[list[TestCase]]:
    """The order cut into at most ``count`` portions of about the same number of cases, none empty;
    no cluster is cut."""
    ends = list(accumulate(map(len, clusters)))
    total = ends[-1] if ends else 0
    parts: list[list[TestCase]] = [[] for _ in range(count)]
    for cluster, end in zip(clusters, ends, strict=True):
        middle = end - len(cluster) / 2
        parts[min(count - 1, int(middle * count / total))].extend(cluster)
    return [part for part in parts if part]
