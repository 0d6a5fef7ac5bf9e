"""Measures how far two annotators agree, on plain lists of labels.

Every figure is None where it is undefined, never 0 or NaN. Kappa corrects for agreement by chance,
which makes it low and jumpy where one label is rare: two supports among twenty rows. So positive
agreement and overlap, which look at the rare label alone, belong beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence


def raw_agreement(a: Sequence[Hashable], b: Sequence[Hashable]) -> float | None:
    """Share of items with equal labels, in [0, 1]; None without items.

    Raises ValueError when the lists differ in length, as do all functions of two lists here.
    """
    same = sum(x == y for x, y in zip(a, b, strict=True))
    return same / len(a) if a else None


def cohen_kappa(a: Sequence[Hashable], b: Sequence[Hashable]) -> float | None:
    """Agreement of two annotators beyond chance (Cohen 1960), in [-1, 1]; 0 is chance, 1 perfect.

    kappa = (p_o - p_e) / (1 - p_e), p_e from each annotator's own shares of the labels. None
    without items, and where both give one and the same label throughout (p_e = 1).
    """
    observed = raw_agreement(a, b)
    if observed is None:
        return None
    n = len(a)
    shares_a, shares_b = Counter(a), Counter(b)
    chance = sum(count * shares_b[label] for label, count in shares_a.items()) / n**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


def positive_agreement(a: Sequence[bool], b: Sequence[bool]) -> float | None:
    """Agreement on the marked items: 2 both / (marked by a + marked by b), in [0, 1] (Dice).

    None where neither marked anything.
    """
    both = sum(x and y for x, y in zip(a, b, strict=True))
    marks = sum(a) + sum(b)
    return 2 * both / marks if marks else None


def overlap(a: Sequence[bool], b: Sequence[bool]) -> float | None:
    """Share of the items marked by either that both marked, in [0, 1] (Jaccard).

    None where neither marked anything.
    """
    both = sum(x and y for x, y in zip(a, b, strict=True))
    either = sum(x or y for x, y in zip(a, b, strict=True))
    return both / either if either else None
