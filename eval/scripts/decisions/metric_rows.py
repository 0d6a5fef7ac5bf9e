"""What a comparison says: one row a metric, the verdicts, and the correction for many tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisions.invariants import Run
from decisions.rows import Row
from ragmetrics import catalogue
from ragmetrics.stats import means
from ragmetrics.stats.significance import paired_test
from ragmetrics.stats.tally import Slices
from records.scores import MEASURED, Pairs
from records.targets import TARGETS

if TYPE_CHECKING:
    from records.scores import Floats


Clusters = Mapping[str, int]
"""The number of the cluster of each case."""

Parts = Mapping[str, Slices]
"""The slices of each case."""

TOO_FEW = 10
"""Cases below which a slice gets no p."""


@dataclass(frozen=True)
class Wanted:
    """What is compared and how. ``metrics``: the declared family; without any, the metrics that
    have a target. ``sections``: those alone; without any, all that both runs have.
    ``by``: dimensions whose slices are tested too."""

    metrics: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    ignore_invariants: bool = False
    seed: int = 0
    resamples: int = means.RESAMPLES
    targets: Path = TARGETS


def metric_rows(
    base: Run,
    new: Run,
    pairs: Pairs,
    family: frozenset[str],
    wanted: Wanted,
    clusters: Any,
) -> Iterator[Row]:
    """A row for each metric of a section, numbers of the whole run last."""
    old, now = base.section(pairs.section), new.section(pairs.section)
    names = list(dict.fromkeys([*_in_order(old, pairs.base), *_in_order(now, pairs.new)]))
    for name in names:
        row = Row(pairs.section, name, direction(name), f"{pairs.section}.{name}" in family)
        row = replace(
            row,
            base_mean=old.get("mean", {}).get(name),
            new_mean=now.get("mean", {}).get(name),
            base_n=old.get("n", {}).get(name, 0),
            new_n=now.get("n", {}).get(name, 0),
        )
        if name in pairs.base or name in pairs.new:
            row = replace(row, base_cases=pairs.base_cases, new_cases=pairs.new_cases)
            row = tested(row, pairs.base.get(name), pairs.new.get(name), wanted, clusters)
        elif row.base_mean is None or row.new_mean is None:
            row = _one_sided(row)
        else:
            row = replace(
                row, base=row.base_mean, new=row.new_mean, delta=row.new_mean - row.base_mean
            )
        yield row


def slice_rows(
    rows: Sequence[Row], pairs: Pairs, parts: Parts, wanted: Wanted, clusters: Any
) -> Iterator[Row]:
    """The metrics of the family within each slice. They are explored, so none is of the family."""
    import numpy as np

    members: dict[tuple[str, str], list[int]] = {}
    for case_id, place in pairs.places.items():
        for part in parts.get(case_id, ()):
            if part[0] in wanted.by:
                members.setdefault(part, []).append(place)
    for row in rows:
        base, new = pairs.base.get(row.metric), pairs.new.get(row.metric)
        if not row.family or base is None or new is None:
            continue
        base = _padded(base, len(new))
        for (dimension, value), places in sorted(members.items()):
            at = np.array(places)
            part_row = replace(
                Row(row.section, row.metric, row.higher_is_better, slice=f"{dimension}={value}"),
                base_cases=len(at),
                new_cases=len(at),
            )
            found = tested(
                part_row, base[at], new[at], wanted, None if clusters is None else clusters[at]
            )
            yield found if found.n >= TOO_FEW else replace(found, p=None, interval=None, mde=None)


def _padded(base: Floats, size: int) -> Floats:
    """Base's column with a blank for each case of new alone."""
    import numpy as np

    return np.concatenate([base, np.full(size - len(base), np.nan)])


def _in_order(section: Mapping[str, Any], columns: Mapping[str, Floats]) -> list[str]:
    """Metrics in the catalogue's order (that of the score lines), then those of the whole run."""
    return [*columns, *section.get("mean", {})]


def direction(name: str) -> bool | None:
    """Whether more of a metric is better; None for a metric that the catalogue lacks."""
    if name in MEASURED:
        return False
    try:
        return catalogue.find(name).higher_is_better
    except KeyError:
        return None


def is_binary(name: str) -> bool:
    """Whether a case scores 0 or 1."""
    try:
        return catalogue.find(name).binary
    except KeyError:
        return False


def _one_sided(row: Row) -> Row:
    if row.base_mean is not None:
        return replace(row, verdict="only in base")
    return replace(row, verdict="only in new") if row.new_mean is not None else row


def cluster_column(pairs: Pairs, clusters: Clusters | None) -> Any:
    """The cluster of each row; a case without one is a cluster by itself."""
    import numpy as np

    if clusters is None:
        return None
    own = len(clusters)
    return np.fromiter(
        (clusters.get(case_id, own + place) for case_id, place in pairs.places.items()), np.int64
    )


def tested(row: Row, base: Floats | None, new: Floats | None, wanted: Wanted, clusters: Any) -> Row:
    """The row with means and test over the cases that both runs scored."""
    import numpy as np

    if base is None or new is None:
        return _one_sided(row)
    if len(base) < len(new):
        base = _padded(base, len(new))
    old, now = ~np.isnan(base), ~np.isnan(new)
    both = old & now
    row = replace(
        row,
        n=int(both.sum()),
        lost=int((old & ~now).sum()),
        gained=int((now & ~old).sum()),
        base_n=int(old.sum()),
        new_n=int(now.sum()),
        base_mean=float(base[old].mean()) if old.any() else None,
        new_mean=float(new[now].mean()) if now.any() else None,
    )
    if not row.n:
        return _one_sided(row) if not (row.base_n and row.new_n) else row
    test = paired_test(
        base[both],
        new[both],
        binary=is_binary(row.metric),
        name=f"{row.name} {row.slice or ''}",
        seed=wanted.seed,
        resamples=wanted.resamples,
        clusters=None if clusters is None else clusters[both],
    )
    return replace(
        row,
        base=float(base[both].mean()),
        new=float(new[both].mean()),
        delta=test.delta,
        interval=test.interval,
        p=test.p,
        test=test.test,
        mde=test.mde,
        sd=test.sd,
        units=test.units,
        rose=test.rose,
        fell=test.fell,
    )
