"""The order of asking: random, clusters whole, every kind of case in its share at any time."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from extras.sweep.order import portions, random_order
from records.cases import TestCase


def cases(count: int) -> list[TestCase]:
    """Three quarters factual; every tenth document holds five cases."""
    return [
        TestCase(
            id=f"q{n}",
            question=f"question {n}",
            category="reasoning" if n % 4 == 0 else "factual",
            group=f"g{n // 5}" if n // 5 % 10 == 0 else None,
        )
        for n in range(count)
    ]


def test_every_case_once_and_clusters_whole() -> None:
    order = random_order(cases(200), seed=1)
    assert sorted(case.id for cluster in order for case in cluster) == sorted(
        case.id for case in cases(200)
    )
    sizes = Counter(map(len, order))
    assert sizes == {5: 4, 1: 180}  # g0, g10, g20, g30 hold 5 cases each
    assert all(len({case.group for case in cluster}) == 1 for cluster in order)


def test_the_seed_decides_and_the_order_of_the_set_is_gone() -> None:
    first, same, other = (random_order(cases(100), seed) for seed in (1, 1, 2))
    assert first == same
    assert first != other
    ids = [case.id for cluster in first for case in cluster]
    assert ids != sorted(ids, key=lambda name: int(name[1:]))


def test_kinds_are_mixed_evenly() -> None:
    """Of m clusters of a kind, any share t of the order holds t·m of them, give or take three."""
    order = [c for c in random_order(cases(400), seed=3) if len(c) == 1]
    for category in ("reasoning", "factual"):
        own = [cluster[0].category == category for cluster in order]
        total = sum(own)
        for at, count in enumerate(accumulate(own), 1):
            assert abs(count - total * at / len(own)) <= 3


def test_portions_are_equal_and_cut_no_cluster() -> None:
    order = random_order(cases(200), seed=1)
    parts = portions(order, 5)
    assert [case for part in parts for case in part] == [c for cluster in order for c in cluster]
    assert len(parts) == 5
    assert all(abs(len(part) - 40) <= 5 for part in parts)
    groups = [{case.group for case in part} - {None} for part in parts]
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_fewer_clusters_than_portions() -> None:
    assert [len(part) for part in portions(random_order(cases(5), 0), 5)] == [5]
    assert portions([], 5) == []


def test_a_conversation_is_asked_whole_and_in_order() -> None:
    """Two conversations of a group stand together, too: as the set has them."""
    talks = [
        TestCase(
            f"{name}{turn}", "?", conversation=name, turn=turn, group="g" if name in "ab" else None
        )
        for name in "abcdefgh"
        for turn in (1, 2, 3)
    ]
    order = random_order(talks, seed=3)
    names = ["".join(case.id for case in cluster) for cluster in order]
    assert sorted(names) == ["a1a2a3b1b2b3", *(f"{name}1{name}2{name}3" for name in "cdefgh")]
    for part in portions(order, 5):
        turns = [case.turn for case in part]
        assert turns == [1, 2, 3] * (len(part) // 3)
