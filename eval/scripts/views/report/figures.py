"""Ranks, confidence and correlations: a report's figures over all answers, and their blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from ragmetrics.stats.agreement import spearman
from ragmetrics.stats.arrays import Floats
from ragmetrics.stats.means import wilson
from terminal.page import (
    AnyColumn,
    Block,
    CaseLinks,
    CasesColumn,
    Chart,
    DataColumn,
    DataTable,
    Prose,
    Term,
    number,
    percent,
    term_column,
)
from views.text import one_line

# Ranks


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Answers whose first relevant passage had one of some ranks, and how many succeeded.

    ``known``: answers of which success is known; ``success``: their share of successes in [0, 1],
    with its 95 % Wilson interval, both None without any.
    """

    label: str
    count: int
    known: int
    success: float | None
    ci95: Sequence[float] | None
    cases: CaseLinks | None = None


@dataclass(frozen=True, slots=True)
class FirstRanks:
    """Answers by the rank of their first relevant passage. ``says``: which are a success."""

    n: int
    groups: Sequence[RankGroup]
    nowhere: RankGroup
    says: str = ""


def ranks(
    first: Iterable[int],
    successes: Iterable[bool | None] = (),
    says: str = "",
    links: Callable[[int, int, int], CaseLinks | None] = lambda start, end, count: None,
) -> FirstRanks:
    """How many answers have their first relevant passage at each rank, and how many succeeded.

    ``first``: by answer, the rank, 0 for nowhere, below 0 for an answer without gold, which
    counts nowhere. ``successes``: by answer, in the same order; None, or absent: unknown;
    ``says``: what a success is. ``links``: finds the answers of a group by its ends and their
    number. Ranks from 1 to 10 are alone, higher ones in growing groups; ``nowhere`` is the group
    of rank 0. (Where gold is in the context against success: Liu et al. 2024, "Lost in the
    Middle".)"""
    counts: Counter[int] = Counter()
    known: Counter[int] = Counter()
    good: Counter[int] = Counter()
    for rank, success in zip_longest(first, successes):
        if rank is not None and rank >= 0:
            counts[rank] += 1
            known[rank] += success is not None
            good[rank] += success is True

    def group(start: int, end: int, label: str) -> RankGroup:
        inside = [rank for rank in counts if start <= rank <= end]
        n, right = sum(known[rank] for rank in inside), sum(good[rank] for rank in inside)
        count = sum(counts[rank] for rank in inside)
        share, ends = (right / n, list(wilson(right, n))) if n else (None, None)
        return RankGroup(label, count, n, share, ends, links(start, end, count))

    ends = [(rank, rank) for rank in range(1, 11)]
    ends += [(11, 20), (21, 50), (51, 100), (101, 10**9)]
    last = max(max(counts, default=0), 5)
    groups = [
        group(
            start, end, f"{start}" if start == end else f"{start}–{end}" if end < 10**9 else "101+"
        )
        for start, end in ends
        if start <= last
    ]
    return FirstRanks(counts.total(), groups, group(0, 0, "none found"), says)


def rank_blocks(found: FirstRanks) -> Iterator[Block]:
    """Answers by the rank of their first relevant passage, with their successes."""
    if not found.n:
        yield Prose("No answer with both passages and gold was read.")
        return
    text = f"{found.n:,} answers with gold; of {found.nowhere.count:,} no relevant passage was "
    text += "retrieved."
    if found.says:
        text += (
            f" Success: {found.says}. If success falls with the rank although gold was "
            "retrieved, the bot overlooks what is further down in its context."
        )
    yield Prose(text)

    def successes(group: RankGroup) -> str:
        fewer = f" ({group.known:,})" if 0 < group.known < group.count else ""
        return percent(group.success) + fewer

    columns: list[AnyColumn[RankGroup]] = [
        DataColumn("rank", lambda group: group.label),
        DataColumn("answers", lambda group: f"{group.count:,}"),
        DataColumn("share", lambda group: percent(group.count / found.n)),
    ]
    if found.says:  # else nothing says which answers are right
        columns += [
            DataColumn("successes", successes),
            DataColumn("95 % interval", lambda group: _shares(group.ci95)),
        ]
    columns.append(CasesColumn("cases", lambda group: group.cases))
    caption = "Answers by the rank of their first relevant passage"
    yield DataTable(columns, [*found.groups, found.nowhere], caption=caption)


def _shares(ends: Sequence[float] | None) -> str:
    return "–" if ends is None else " – ".join(map(percent, ends))


# Confidence

BINS = 10


@dataclass(frozen=True, slots=True)
class ConfidenceBin:
    """Answers of similar confidence; ``place``: of the bin, from 0."""

    place: int
    n: int
    confidence: float
    success: float
    ci95: Sequence[float]
    cases: CaseLinks | None = None


@dataclass(frozen=True, slots=True)
class Reliability:
    """Confidence against success, see ``reliability``. ``success``: when an answer is one, in
    words; ``left_out``: answers that do not count, by why."""

    n: int
    ece: float | None
    brier: float | None
    bias: float | None
    bins: Sequence[ConfidenceBin]
    success: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)


def bin_of(confidence: float) -> int:
    """The bin of a confidence, counted from 0; the last one includes 1.0."""
    return min(int(confidence * BINS), BINS - 1)


def reliability(pairs: Iterable[tuple[float, bool]]) -> Reliability:
    """Confidence against success, in ten bins of equal width; the last one includes 1.0.

    ``ece``: expected calibration error in [0, 1], the mean over bins of |share of successes - mean
    confidence|, weighted by the answers of the bin (Naeini et al. 2015; Guo et al. 2017); 0 is
    perfect. It depends on the number of bins and is biased upwards for few answers. ``brier``: mean
    of (confidence - success)² in [0, 1] (Brier 1950). ``bias``: mean confidence - share of
    successes in [-1, 1]; above 0 the bot is too sure. All three are None without pairs. Each bin
    that has answers has their number, mean confidence, share of successes and its 95 % Wilson
    interval. Raises ValueError for a confidence outside [0, 1].
    """
    counts, successes, sums = [0] * BINS, [0] * BINS, [0.0] * BINS
    squares = excess = 0.0
    for confidence, success in pairs:
        if not 0 <= confidence <= 1:
            raise ValueError(f"a confidence of {confidence} is outside 0 to 1")
        index = bin_of(confidence)
        counts[index] += 1
        successes[index] += success
        sums[index] += confidence
        squares += (confidence - success) ** 2
        excess += confidence - success
    n = sum(counts)
    rows, error = [], 0.0
    for index, held in enumerate(counts):
        if held:
            mean, share = sums[index] / held, successes[index] / held
            error += held * abs(share - mean)
            ends = list(wilson(successes[index], held))
            rows.append(ConfidenceBin(index, held, mean, share, ends))
    if not n:
        return Reliability(0, None, None, None, [])
    return Reliability(n, error / n, squares / n, excess / n, rows)


def with_cases(found: Reliability, links: Callable[[int], CaseLinks]) -> Reliability:
    """The same with the answers behind each bin. ``links``: finds them by the bin's place."""
    bins = [replace(group, cases=links(group.place)) for group in found.bins]
    return replace(found, bins=bins)


def reliability_blocks(found: Reliability) -> Iterator[Block]:
    """Confidence against success: error, picture and table."""
    bias = found.bias or 0.0
    yield Prose(
        f"Expected calibration error {number(found.ece)} over {found.n:,} answers (0 is perfect); "
        f"the bot is {'too sure' if bias > 0 else 'too modest'} by {number(abs(bias))} on average. "
        f"Brier score {number(found.brier)}. Success: {found.success}."
    )
    if found.left_out:
        counts = ", ".join(f"{n:,} {name}" for name, n in found.left_out.items())
        yield Prose(f"Left out: {counts}.", "quiet")
    caption = "Share of successes by confidence; larger points are more answers."
    yield Chart("reliability", found.bins, caption)
    columns: list[AnyColumn[ConfidenceBin]] = [
        DataColumn(
            "confidence", lambda row: f"{row.place / BINS:.1f} – {(row.place + 1) / BINS:.1f}"
        ),
        DataColumn("n", lambda row: f"{row.n:,}"),
        DataColumn("mean", lambda row: number(row.confidence)),
        DataColumn("successes", lambda row: percent(row.success)),
        DataColumn("95 % interval", lambda row: _shares(row.ci95)),
        CasesColumn("no success", lambda row: row.cases),
    ]
    yield DataTable(columns, found.bins, caption="Answers by the bot's confidence")


# Correlations

LEAST = 3
"""Fewer pairs always correlate perfectly or not at all."""

Correlations = tuple[list[list[float | None]], list[list[int]]]
"""Coefficients and numbers of pairs, as symmetric lists of lists."""


def matrix(columns: Iterable[Sequence[float] | Floats]) -> Correlations:
    """Spearman's rank correlations of columns, which have NaN where there is no score.

    r is in [-1, 1] and is None with fewer than 3 pairs or when one side is constant among them;
    n counts the pairs; on the diagonal a metric meets itself. Spearman's is Pearson's of the ranks,
    ties sharing their mean rank.
    """
    coded = [_coded(column) for column in columns]
    size = len(coded)
    r: list[list[float | None]] = [[None] * size for _ in range(size)]
    n = [[0] * size for _ in range(size)]
    for first, (x, x_codes) in enumerate(coded):
        for second, (y, y_codes) in enumerate(coded[: first + 1]):
            both = (x_codes < len(x)) & (y_codes < len(y))
            n[first][second] = n[second][first] = count = int(both.sum())
            if count >= LEAST:
                distinct, times = _counted(x_codes[both], y_codes[both], len(y))
                r[first][second] = r[second][first] = spearman(
                    x[distinct // len(y)], y[distinct % len(y)], times.astype(float)
                )
    return r, n


def _coded(column: Sequence[float] | Floats) -> tuple[Any, Any]:
    """The distinct values of a column, and for each row which one it is; the number of them where
    the row has none."""
    import numpy as np

    scores = np.asarray(column, float)
    values = np.unique(scores)
    values = values[~np.isnan(values)]
    return values, np.searchsorted(values, scores)


def _counted(x: Any, y: Any, columns: int) -> tuple[Any, Any]:
    """The pairs of two codes that occur, as one number each that rises, and how often."""
    import numpy as np

    return np.unique(x * columns + y, return_counts=True)


def correlation_blocks(
    names: Sequence[str], found: Correlations, left_out: Sequence[str]
) -> Iterator[Block]:
    """The correlation of each metric with each other."""
    if len(names) < 2:
        yield Prose("Two metrics with scores of single answers are needed.")
        return
    yield Prose(
        "Spearman's rank correlation over the answers that have both scores, which are counted in "
        "brackets. An en dash: undefined (fewer than 3 pairs, or one side constant). On the page "
        "blue: they rise together; orange: one rises as the other falls."
    )
    r, n = found

    def column(at: int, name: str) -> DataColumn[int]:
        return DataColumn(
            one_line(name, 40),
            lambda row: coefficient(r[row][at]),
            small=lambda row: f"({n[row][at]:,})",
            shade=lambda row: "self" if row == at else _shade(r[row][at]),
            short=str(at + 1),
        )

    numbered: DataColumn[int] = term_column("metric", lambda row: Term(names[row]))
    first = replace(numbered, cell=lambda row: f"{row + 1}. {names[row]}")
    columns = [first, *(column(at, name) for at, name in enumerate(names))]
    caption = "Correlation of each metric with each other"
    yield DataTable(columns, range(len(names)), caption=caption, look="matrix")
    if left_out:
        yield Prose(f"Not shown: {one_line(', '.join(left_out), 600)}.", "quiet")


def coefficient(r: float | None) -> str:
    """A correlation with two decimals; an en dash for an undefined one, and no minus zero."""
    return "–" if r is None else f"{r:.2f}".replace("-0.00", "0.00")


def _shade(r: float | None) -> str:
    """The class of a correlation's cell on a page: m4 … p4, or none for an undefined one."""
    return "none" if r is None else f"c{round(r * 4)}".replace("c-", "m").replace("c", "p")
