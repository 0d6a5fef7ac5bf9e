"""Which reason fails which cases: failing cases by reason, and by category and tag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from decisions.case_verdict import RunVerdicts
from ragmetrics.stats.means import UNRELIABLE_BELOW
from ragmetrics.stats.tally import Slice, facets_of, slices_of
from records.cases import ignore, iter_cases
from records.labels import read_labels
from terminal.page import AnyColumn, Block, DataColumn, DataTable, Heading, Prose, percent
from terminal.plot import SHADES
from terminal.tables import plain

MOST_ROWS = 12
"""Values of a dimension that have a row; of more, those with the most failing cases."""

DIMENSIONS = ("category", "tag")

_STEPS = (0.0, 0.1, 0.25, 0.5)


def loudness(share: float) -> int:
    """How loud a share is drawn, 0 to 4: none, up to 10 %, up to 25 %, up to 50 %, more."""
    return sum(share > step for step in _STEPS)


@dataclass(frozen=True, slots=True)
class MapRow:
    """The cases with one label: how many, and how many fail by each reason."""

    dimension: str
    value: str
    n: int
    counts: tuple[int, ...]

    @property
    def failing(self) -> int:
        return sum(self.counts)

    @property
    def few(self) -> bool:
        """Whether its shares rest on too few cases to be trusted."""
        return self.n < UNRELIABLE_BELOW

    def share(self, at: int) -> float:
        """Cases that fail by a reason / cases with the label, in [0, 1]."""
        return self.counts[at] / self.n

    def level(self, at: int) -> int:
        """How loud a cell is drawn, as `loudness` has it."""
        return loudness(self.share(at))


@dataclass(frozen=True, slots=True)
class FailureMap:
    """``reasons``: the words of the rules, that of most failing cases first; ``rows``: all cases,
    then the values of each dimension, the worst first. ``left_out``: values without a row."""

    reasons: tuple[str, ...] = ()
    rows: tuple[MapRow, ...] = ()
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def failure_map(cases: Iterable[tuple[Sequence[Slice], str]]) -> FailureMap:
    """Failing cases by their first reason, and by category and tag.

    ``cases``: of each case its labels as (dimension, value), and the word of the reason that fails
    it, "" where it does not fail. A case counts once in each row of its labels and by one reason,
    so that the shares of a row add up to the share of its cases that fail. Rows are sorted by that
    share. Empty where no case fails.
    """
    counts: Counter[tuple[Slice, str]] = Counter()
    for labels, reason in cases:
        for label in dict.fromkeys([("", "all cases"), *labels]):
            if label[0] in ("", *DIMENSIONS):
                counts[label, reason] += 1
    total = Counter({r: n for (label, r), n in counts.items() if not label[0] and r})
    reasons = tuple(reason for reason, _ in total.most_common())
    if not reasons:
        return FailureMap()
    rows, left_out = [], 0
    for dimension in ("", *DIMENSIONS):
        own = [
            MapRow(
                *label,
                sum(counts[label, reason] for reason in ("", *reasons)),
                tuple(counts[label, reason] for reason in reasons),
            )
            for label in dict.fromkeys(label for label, _ in counts)
            if label[0] == dimension
        ]
        own.sort(key=lambda row: (-row.failing, row.value))
        left_out += len(own[MOST_ROWS:])
        rows += sorted(own[:MOST_ROWS], key=lambda row: (-row.failing / row.n, row.value))
    return FailureMap(reasons, tuple(rows), left_out)


def read_failure_map(run: RunVerdicts, eval_set: Path, labels_dir: Path | None) -> FailureMap:
    """The map of a run; empty where no case fails or the set is missing."""
    if not eval_set.exists():
        return FailureMap()
    reasons = {
        digest: verdict.reasons[0].word if verdict.fails else ""
        for digest, verdict in run.measured()
    }
    labels, _ = read_labels(
        labels_dir, ignore, eval_set
    )  # faults of both files are reported by scoring
    return failure_map(
        (slices_of(facets_of(case)), reasons[hash(case.id)])
        for case in iter_cases(eval_set, ignore, labels)
        if hash(case.id) in reasons
    )


def failure_blocks(found: FailureMap, *, page: bool = False) -> Iterator[Block]:
    """The map as a table. A ``page`` colours its cells; elsewhere a shade stands before each."""
    if not found.rows:
        return

    def column(at: int, reason: str) -> AnyColumn[MapRow]:
        def cell(row: MapRow) -> str:
            text = percent(row.share(at)) if row.counts[at] else "·"
            return text if page else f"{SHADES[row.level(at)]} {text}"

        return DataColumn(
            reason,
            cell,
            drop=at and len(found.reasons) - at,
            small=lambda row: f"({row.counts[at]:,})" if page and row.counts[at] else "",
            shade=lambda row: f"m{row.level(at)}{' few' * (row.few and row.counts[at] > 0)}",
        )

    label = DataColumn[MapRow](
        "cases",
        lambda row: " ".join(filter(None, (row.dimension, plain(row.value, 40)))),
        words=True,
        foreign=True,
    )
    n = DataColumn[MapRow]("n", lambda row: f"{row.n:,}{'*' * row.few}")
    fail = DataColumn[MapRow]("fail", lambda row: percent(row.failing / row.n))
    reasons = [column(at, reason) for at, reason in enumerate(found.reasons)]
    yield Heading("Failing cases by reason", 3)
    caption = "Share of the cases with a label that fail by each reason (the first that applies)"
    yield DataTable([label, n, fail, *reasons], found.rows, caption=caption, look="matrix heat")
    note = f"*{' and hatched' * page}: fewer than {UNRELIABLE_BELOW} cases. "
    note += "The darker a cell, the larger its share."
    if found.left_out:
        note += f" {found.left_out:,} labels with fewer failing cases are left out."
    yield Prose(note, "quiet")
