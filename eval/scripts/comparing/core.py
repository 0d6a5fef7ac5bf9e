"""Compare runs: read both, refuse what is not comparable, test every metric case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comparing.invariants import IncomparableError, Run, controls, read_run, remarks, varied
from comparing.rows import Comparison, Difference, Row, corrected
from comparing.scores import SHOWN_IDS, Pairs, read_pairs, scored_sections
from ragmetrics import catalogue, stats
from ragmetrics.significance import paired_test
from storage import StorageError
from targets import TARGETS, read_targets

if TYPE_CHECKING:
    from comparing.scores import Floats

Clusters = Mapping[str, int]
"""The number of the cluster of each case."""


@dataclass(frozen=True)
class Wanted:
    """What is compared and how. ``metrics``: the declared family; without any, the metrics that
    have a target. ``sections``: those alone; without any, all that both runs have."""

    metrics: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    ignore_invariants: bool = False
    seed: int = 0
    resamples: int = stats.RESAMPLES
    targets: Path = TARGETS


def compare(
    base: Path,
    new: Path,
    wanted: Wanted | None = None,
    *,
    clusters: Clusters | None = None,
) -> Comparison:
    """Compare two scored run folders, metric by metric.

    Raises IncomparableError (exit code 2) when they differ in what must be the same, and
    StorageError when one of them is not scored or a file is damaged. Memory: one section of scores.
    """
    return compare_many(base, [new], wanted, clusters=clusters)[0]


def compare_many(
    base: Path,
    others: Sequence[Path],
    wanted: Wanted | None = None,
    *,
    clusters: Clusters | None = None,
) -> list[Comparison]:
    """Compare several runs with one base; p is corrected over the tests of all of them together."""
    wanted = wanted or Wanted()
    found = [_compared(read_run(base), read_run(new), wanted, clusters) for new in others]
    rows = iter(corrected([row for one in found for row in one.rows]))
    return [replace(one, rows=tuple(next(rows) for _ in one.rows)) for one in found]


def _compared(base: Run, new: Run, wanted: Wanted, clusters: Clusters | None) -> Comparison:
    """Two runs with uncorrected rows."""
    sections, notes = shared_sections(base, new, wanted.sections)
    problems = controls(base, new, sections)
    if problems and not wanted.ignore_invariants:
        raise IncomparableError(base.id, new.id, problems)
    family = family_of(wanted, base, new)
    rows: list[Row] = []
    cases = only_base = only_new = 0
    for section in sections:
        pairs = read_pairs(base.folder, new.folder, section)
        problems += _gold_problem(base, new, pairs, wanted)
        rows += _rows(base, new, pairs, family, wanted, clusters)
        cases = max(cases, pairs.both)
        only_base = max(only_base, pairs.base_cases - pairs.both)
        only_new = max(only_new, pairs.new_cases - pairs.both)
    if problems:
        notes.append("Compared although what measures them differs: see the differences above.")
    if only_base or only_new:
        notes.append(
            f"{only_base} cases are in {base.id} only and {only_new} in {new.id} only; they are "
            "left out of every difference."
        )
    changes = varied(base.config, new.config)
    notes += remarks(base, new, changes, wanted.varied)
    if not any(row.family for row in rows):
        notes.append("No metric of the family is in both runs: every p is exploratory.")
    return Comparison(
        base.id,
        new.id,
        tuple(rows),
        controls=tuple(problems),
        varied=tuple(changes),
        notes=tuple(notes),
        cases=cases,
        only_base=only_base,
        only_new=only_new,
    )


def shared_sections(base: Run, new: Run, asked: Sequence[str]) -> tuple[list[str], list[str]]:
    """Sections to compare, and notes on those that one run lacks.

    Raises StorageError when nothing is left, or a section that was asked for is not there.
    """
    old, now = scored_sections(base.folder), scored_sections(new.folder)
    notes = []
    for section in sorted({*asked} or {*old, *now}):
        for run, known in ((base, old), (new, now)):
            if section not in known:
                message = f"{run.folder}: has no scores of {section}; {remedy(section, run.id)}"
                if asked:
                    raise StorageError(message)
                notes.append(message)
    shared = [section for section in old if section in now and (not asked or section in asked)]
    if not shared:
        lines = "\n".join(notes) or f"{base.folder} and {new.folder}: hold no score lines."
        raise StorageError(
            f"{lines}\nThere is nothing to compare case by case: metrics.json alone holds no cases."
        )
    return shared, notes


def remedy(section: str, run: str) -> str:
    """How a run gets its scores of a section."""
    if section == "judged":
        return f"run judge_answers.py --run {run}."
    if section == "custom":
        return "run eval_suite.py with the same --plugin."
    return f"run score_{section}.py --run {run}."


def family_of(wanted: Wanted, base: Run, new: Run) -> frozenset[str]:
    """``section.metric`` of the declared family. Raises StorageError for names of neither run."""
    if not wanted.metrics:
        targets = read_targets(wanted.targets)
        return frozenset(f"{name}.{metric}" for name, part in targets.items() for metric in part)
    known = {
        f"{section}.{metric}"
        for run in (base, new)
        for section, part in run.metrics.get("sections", {}).items()
        for metric in part.get("mean", {})
    }
    family = set()
    for name in wanted.metrics:
        hits = {full for full in known if name in (full, full.partition(".")[2])}
        if not hits:
            some = ", ".join(sorted(known)[:12])
            raise StorageError(f"metric {name!r}: neither run has it; they have: {some}, …")
        family |= hits
    return frozenset(family)


def _gold_problem(base: Run, new: Run, pairs: Pairs, wanted: Wanted) -> list[Difference]:
    """The gold of cases that changed between the two scorings, as one difference."""
    if not pairs.gold_changed:
        return []
    some = ", ".join(pairs.gold_changed[:SHOWN_IDS])
    more = ", …" if len(pairs.gold_changed) > SHOWN_IDS else ""
    text = f"{len(pairs.gold_changed)} cases ({some}{more})"
    problem = Difference("gold supports", f"as scored in {base.id}", f"other gold in {text}")
    if not wanted.ignore_invariants:
        raise IncomparableError(base.id, new.id, [problem])
    return [problem]


def _rows(
    base: Run,
    new: Run,
    pairs: Pairs,
    family: frozenset[str],
    wanted: Wanted,
    clusters: Clusters | None,
) -> Iterator[Row]:
    """A row for each metric of a section, numbers of the whole run last."""
    old, now = base.section(pairs.section), new.section(pairs.section)
    names = list(dict.fromkeys([*_in_order(old, pairs.base), *_in_order(now, pairs.new)]))
    places = _cluster_column(pairs, clusters)
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
            row = tested(row, pairs.base.get(name), pairs.new.get(name), wanted, places)
        elif row.base_mean is None or row.new_mean is None:
            row = _one_sided(row)
        else:
            row = replace(
                row, base=row.base_mean, new=row.new_mean, delta=row.new_mean - row.base_mean
            )
        yield row


def _in_order(section: Mapping[str, Any], columns: Mapping[str, Floats]) -> list[str]:
    """Metrics in the catalogue's order (that of the score lines), then those of the whole run."""
    return [*columns, *section.get("mean", {})]


def direction(name: str) -> bool | None:
    """Whether more of a metric is better; None for a metric that the catalogue lacks."""
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


def _cluster_column(pairs: Pairs, clusters: Clusters | None) -> Any:
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
    size = len(new)
    base = np.concatenate([base, np.full(size - len(base), np.nan)]) if len(base) < size else base
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
        units=test.units,
        rose=test.rose,
        fell=test.fell,
    )
