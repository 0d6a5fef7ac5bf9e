"""Which cases of a metric are left to compare, and were the others lost by chance?

A case is lost where both runs were asked it and one of them alone has a score. Pure: arrays in,
values out; draws are seeded. Run a is the base, b the new one; a missing score is not a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

from decisions.effects import cluster_sums, compact
from ragmetrics.stats.arrays import Floats, Ints, np
from ragmetrics.stats.means import generator

if TYPE_CHECKING:
    from records.section_table import Mask

LEAST_LEFT = 0.5
"""Share of the cases that any run scored below which the rest tells nothing."""

FEW_LOST = 0.05
"""Share of these cases that may be lost without a question."""

CHOSEN = 0.1
"""The p up to which the lost cases are taken for others than the ones that are left."""

Loss = Literal["none", "few", "by chance", "chosen", "too many"]

_DRAWS = 2_000

_NORMAL_FROM = 4_000
"""Cases above which the draws are replaced by the normal distribution of their sums."""

OF_ANSWERS = frozenset({"groundedness", "embedding", "judged", "rubrics", "conversations"})
"""Sections whose metrics do not apply to an answer that declines."""


class Unscored(NamedTuple):
    """Why a run may have no score, by case. ``counted``: its call failed, or it declined a question
    that has an answer: ``answered`` and ``decision_right`` count that. ``rightly``: it declined one
    that has none, so the case is not lost."""

    counted: Mask
    rightly: Mask


def too_many(both: int, lost: int) -> bool:
    """Whether the cases that are left are too few of those that any run scored."""
    return both < LEAST_LEFT * (both + lost)


class ChosenRest(NamedTuple):
    """Cases that are not compared since they changed, and that base scores otherwise than those
    that are left. ``cases``: how many of them base scored; ``mean``, ``left``: its means in them
    and in those that are left. ``labels_alone``: whether no question changed, and its answers are
    there."""

    cases: int
    mean: float
    left: float
    labels_alone: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """The cases of one metric that are left to compare.

    ``both``: scored in both runs. ``lost``: scored in one alone: those that base has no score of,
    and those of new. ``counted``: of the lost ones those that other primary metrics count.
    ``loss``: what the lost cases are; with ``too many`` there is no verdict, with ``chosen`` a
    verdict must hold against the worst that they could have scored. ``harder``: of chosen ones,
    whether the run that has their scores does worse in them. ``why``: the usual reason, as score
    lines say it. ``chosen``: cases that changed, where leaving them out may decide; then there is
    no verdict.
    """

    both: int
    lost: tuple[int, int] = (0, 0)
    counted: int = 0
    loss: Loss = "none"
    harder: bool = False
    why: str = ""
    chosen: ChosenRest | None = None

    @property
    def cases(self) -> int:
        """The cases that any run scored."""
        return self.both + sum(self.lost)

    @property
    def decides(self) -> bool:
        """Whether enough cases are left for a verdict."""
        return self.loss != "too many" and self.chosen is None

    @property
    def left_out(self) -> bool:
        """Whether there is no verdict for the sake of failed calls and declined answers, which
        other primary metrics judge."""
        other = sum(self.lost) - self.counted
        enough = not too_many(self.both, other) or other <= FEW_LOST * self.cases
        return enough and self.loss == "too many" and self.chosen is None


NOTHING = Coverage(0)
"""Of a metric that no run has a score of."""


def unscored_of(
    name: str, answered: Floats | None, right: Floats | None, other_right: Floats | None
) -> Unscored | None:
    """Which cases without a score of a metric are failed calls or declined answers.

    None where the primary scores do not tell. ``name``: ``section.metric``.
    ``answered``, ``right``: ``pipeline.answered`` and ``abstention.decision_right`` of the run;
    ``other_right``: the latter of the other run. Where that one has a score of an answer, it did
    not decline; so this one did if one of the two alone decided rightly.
    """
    known = next((column for column in (answered, right) if column is not None), None)
    if known is None:
        return None
    counted, rightly = np.zeros(len(known), bool), np.zeros(len(known), bool)
    if answered is not None:
        counted |= answered == 0
    if right is not None and other_right is not None and name.partition(".")[0] in OF_ANSWERS:
        counted |= (right == 0) & (other_right > 0)
        rightly |= (right == 1) & (other_right < 1)
    return Unscored(counted, rightly)


def coverage_of(
    a: Floats,
    b: Floats,
    clusters: Ints | None,
    *,
    higher: bool = True,
    unscored: tuple[Unscored | None, Unscored | None] = (None, None),
    seed: int = 0,
) -> Coverage:
    """The cases of a metric that are left, and whether those that a run lost were chosen.

    Cases that a run was not asked are not a number in both. ``clusters``: see ``effects.compact``.
    ``higher``: more is better. ``unscored``: of both runs.
    """
    scored = ~np.isnan(a), ~np.isnan(b)
    both = scored[0] & scored[1]
    lost, counted = _lost(scored, unscored)
    coverage = Coverage(int(both.sum()), (int(lost[0].sum()), int(lost[1].sum())), counted)
    gone = sum(coverage.lost)
    if not gone:
        return coverage
    if too_many(coverage.both, gone):
        return _with(coverage, "too many")
    if gone <= FEW_LOST * coverage.cases:
        return _with(coverage, "few")
    differing = []
    for values, own in ((b, lost[0]), (a, lost[1])):
        looked = both | own
        if own.any():
            codes = None if clusters is None else compact(clusters[looked])
            p, more = permutation_p(values[looked], own[looked], codes, seed=seed)
            differing.append((p, more < 0 if higher else more > 0))
    p, harder = min(differing)
    return _with(coverage, "chosen", harder) if p <= CHOSEN else _with(coverage, "by chance")


def chosen_of(
    left_out: tuple[Floats, Mask] | None, clusters: Ints | None, seed: int = 0
) -> ChosenRest | None:
    """Whether base scores the cases that changed otherwise than those that are left.

    None where they are few of those that base scored, or differ by no more than chance may.
    ``left_out``: base's scores, and which of them are of cases that changed.
    """
    if left_out is None:
        return None
    values, changed = left_out
    scored = ~np.isnan(values)
    gone, left = scored & changed, scored & ~changed
    if not left.any() or gone.sum() <= FEW_LOST * scored.sum():
        return None
    codes = None if clusters is None else compact(clusters[scored])
    p, _ = permutation_p(values[scored], gone[scored], codes, seed=seed)
    means = float(values[gone].mean()), float(values[left].mean())
    return ChosenRest(int(gone.sum()), *means) if p <= CHOSEN else None


def _with(coverage: Coverage, loss: Loss, harder: bool = False) -> Coverage:
    return Coverage(coverage.both, coverage.lost, coverage.counted, loss, harder)


def _lost(
    scored: tuple[Mask, Mask], unscored: tuple[Unscored | None, Unscored | None]
) -> tuple[tuple[Mask, Mask], int]:
    """The cases that each run lost, and how many of them other metrics count."""
    lost, counted = [], 0
    for own, other, why in ((*scored, unscored[0]), (*scored[::-1], unscored[1])):
        cases = other & ~own
        if why is not None:
            cases &= ~why.rightly
            counted += int((cases & why.counted).sum())
        lost.append(cases)
    return (lost[0], lost[1]), counted


def at_worst(
    a: Floats,
    b: Floats,
    ends: tuple[float, float],
    *,
    against: Literal["better", "worse"],
    unscored: tuple[Unscored | None, Unscored | None] = (None, None),
) -> tuple[Floats, Floats]:
    """Both runs' scores with the lost cases put, in the run that lost them, at the end of the range
    that is against a verdict. ``ends``: the bad and the good one."""
    lost, _ = _lost((~np.isnan(a), ~np.isnan(b)), unscored)
    of_a, of_b = ends[::-1] if against == "better" else ends
    return np.where(lost[0], of_a, a), np.where(lost[1], of_b, b)


def permutation_p(
    values: Floats, marked: Mask, clusters: Ints | None, *, seed: int = 0
) -> tuple[float, float]:
    """Two-sided p that marked values differ from the others by chance, and by how much they do.

    Values are permuted; of clusters of any size their sums over sqrt(n(1 + (n - 1)rho)), with what
    is left within each cluster, where rho is the correlation within clusters. p is in (0, 1], 1
    where all values or all marks are the same.
    """
    rest, apart = values - values.mean(), marked - marked.mean()
    if not (np.abs(rest) > 1e-12).any() or not apart.any():
        return 1.0, 0.0
    difference = float(values[marked].mean() - values[~marked].mean())
    observed, mean_square = float(apart @ rest), float(rest @ rest) / len(rest)
    codes = np.arange(len(rest)) if clusters is None else clusters
    sizes = np.bincount(codes).astype(np.float64)
    rho = _correlation(rest, codes, sizes, mean_square)
    if len(rest) > _NORMAL_FROM:
        sums = cluster_sums(apart, codes)
        spread = (1 - rho) * float(apart @ apart) + rho * float(sums @ sums)
        return erfc(abs(observed) / sqrt(2 * spread * mean_square)), difference
    # The same draws whatever the order of cases and clusters.
    key = np.round(np.stack([cluster_sums(x, codes) for x in (rest, apart)]), 9)
    rank = np.empty(len(sizes), np.int64)
    rank[np.lexsort((*key, sizes))] = np.arange(len(sizes))
    order = np.lexsort((np.round(rest, 9), apart, rank[codes]))
    drawn = _drawn(rest[order], apart[order], np.sort(rank[codes]), rho, seed)
    hits = int((np.abs(drawn) >= abs(observed) - 1e-9).sum())
    return (1 + hits) / (1 + len(drawn)), difference


def _correlation(rest: Floats, codes: Ints, sizes: Floats, mean_square: float) -> float:
    """The correlation of two values of a cluster, in [0, 1]; 0 without clusters."""
    several = sizes > 1
    if not several.any():
        return 0.0
    n, sums, squares = sizes[several], *(cluster_sums(x, codes)[several] for x in (rest, rest**2))
    weights = np.sqrt(n)
    own = float((weights * (sums**2 - squares) / (n * (n - 1))).sum() / weights.sum())
    return min(max(own / mean_square, 0.0), 1.0)


def _drawn(rest: Floats, apart: Floats, codes: Ints, rho: float, seed: int) -> Floats:
    """The sum of marks times values over permutations. ``codes``: rising."""
    rng = generator(seed, "lost cases")
    sizes = np.bincount(codes).astype(np.float64)
    scale = np.sqrt(sizes * (1 + (sizes - 1) * rho))
    sums, marks = (cluster_sums(x, codes) for x in (rest, apart))
    shared = np.tile(sums / scale, (_DRAWS, 1))
    drawn: Floats = rng.permuted(shared, axis=1) @ (marks * scale / sizes)
    within = rest - (sums / sizes)[codes]
    first = np.cumsum(sizes).astype(np.int64) - sizes.astype(np.int64)
    for size in np.unique(sizes[sizes > 1]).astype(np.int64).tolist():
        places = first[sizes == size][:, None] + np.arange(size)
        own = np.broadcast_to(within[places], (_DRAWS, *places.shape))
        drawn += (rng.permuted(own, axis=2) * apart[places]).sum(axis=(1, 2))
    return drawn
