"""Compare runs: read both, refuse what is not comparable, test every metric case by case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from decisions.invariants import IncomparableError, Run, controls, read_run, remarks, varied
from decisions.pairs import MEASURED, SHOWN_IDS, Pairs, read_pairs
from decisions.rows import Comparison, Difference, MetricRow, corrected
from ragmetrics import catalogue
from ragmetrics.stats import means
from ragmetrics.stats.significance import paired_test
from ragmetrics.stats.tally import Slices, facets_of, slices_of
from records.cases import canonical, iter_cases, iter_lines
from records.errors import Problem, StorageError
from records.files import read_json, sha256_file
from records.labels import read_labels
from records.runs import METRICS, scored_sections
from records.targets import TARGETS, read_targets

if TYPE_CHECKING:
    from decisions.pairs import Floats


Clusters = Mapping[str, int]
"""The number of the cluster of each case."""

Parts = Mapping[str, Slices]
"""The slices of each case."""

TOO_FEW = 10
"""Cases below which a slice gets no p."""


@dataclass(frozen=True)
class CompareOptions:
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


def _metric_rows(
    base: Run,
    new: Run,
    pairs: Pairs,
    family: frozenset[str],
    options: CompareOptions,
    clusters: Any,
) -> Iterator[MetricRow]:
    """A row for each metric of a section, numbers of the whole run last."""
    old, now = base.section(pairs.section), new.section(pairs.section)
    names = list(dict.fromkeys([*_in_order(old, pairs.base), *_in_order(now, pairs.new)]))
    for name in names:
        row = MetricRow(pairs.section, name, direction(name), f"{pairs.section}.{name}" in family)
        row = replace(
            row,
            base_mean=old.get("mean", {}).get(name),
            new_mean=now.get("mean", {}).get(name),
            base_n=old.get("n", {}).get(name, 0),
            new_n=now.get("n", {}).get(name, 0),
        )
        if name in pairs.base or name in pairs.new:
            row = replace(row, base_cases=pairs.base_cases, new_cases=pairs.new_cases)
            row = _tested(row, pairs.base.get(name), pairs.new.get(name), options, clusters)
        elif row.base_mean is None or row.new_mean is None:
            row = _one_sided(row)
        else:
            row = replace(
                row, base=row.base_mean, new=row.new_mean, delta=row.new_mean - row.base_mean
            )
        yield row


def _slice_rows(
    rows: Sequence[MetricRow], pairs: Pairs, parts: Parts, options: CompareOptions, clusters: Any
) -> Iterator[MetricRow]:
    """The metrics of the family within each slice. They are explored, so none is of the family."""
    import numpy as np

    members: dict[tuple[str, str], list[int]] = {}
    for case_id, position in pairs.places.items():
        for part in parts.get(case_id, ()):
            if part[0] in options.by:
                members.setdefault(part, []).append(position)
    for row in rows:
        base, new = pairs.base.get(row.metric), pairs.new.get(row.metric)
        if not row.family or base is None or new is None:
            continue
        base = _padded(base, len(new))
        for (dimension, value), positions in sorted(members.items()):
            at = np.array(positions)
            part_row = replace(
                MetricRow(
                    row.section, row.metric, row.higher_is_better, slice=f"{dimension}={value}"
                ),
                base_cases=len(at),
                new_cases=len(at),
            )
            slice_row = _tested(
                part_row, base[at], new[at], options, None if clusters is None else clusters[at]
            )
            yield (
                slice_row
                if slice_row.n >= TOO_FEW
                else replace(slice_row, p=None, interval=None, mde=None)
            )


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


def _one_sided(row: MetricRow) -> MetricRow:
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
        (clusters.get(case_id, own + position) for case_id, position in pairs.places.items()),
        np.int64,
    )


def _tested(
    row: MetricRow, base: Floats | None, new: Floats | None, options: CompareOptions, clusters: Any
) -> MetricRow:
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
        seed=options.seed,
        resamples=options.resamples,
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


OWN_TEXTS = "safety"
"""The section whose lines are labelled texts instead of the run's cases."""


def compare(
    base: Path,
    new: Path,
    options: CompareOptions | None = None,
    *,
    clusters: Clusters | None = None,
    parts: Parts | None = None,
) -> Comparison:
    """Compare two scored run folders, metric by metric.

    ``clusters``: cases that are resampled together. ``parts``: the slices of each case; the family
    is then tested in each slice of ``wanted.by`` too. Raises IncomparableError (exit code 2) when
    they differ in what must be the same, and StorageError when one of them is not scored or a file
    is damaged. Memory: one section of scores.
    """
    return compare_many(base, [new], options, clusters=clusters, parts=parts)[0]


def compare_many(
    base: Path,
    others: Sequence[Path],
    options: CompareOptions | None = None,
    *,
    clusters: Clusters | None = None,
    parts: Parts | None = None,
) -> list[Comparison]:
    """Compare several runs with one base; p is corrected over the tests of all of them together."""
    options = options or CompareOptions()
    old = read_run(base)
    comparisons = [_compared(old, read_run(new), options, clusters, parts) for new in others]
    rows = iter(corrected([row for comparison in comparisons for row in comparison.rows]))
    slices = iter(corrected([row for comparison in comparisons for row in comparison.slices]))
    return [
        replace(
            comparison,
            rows=tuple(next(rows) for _ in comparison.rows),
            slices=tuple(next(slices) for _ in comparison.slices),
        )
        for comparison in comparisons
    ]


def _compared(
    base: Run, new: Run, options: CompareOptions, clusters: Clusters | None, parts: Parts | None
) -> Comparison:
    """Two runs with uncorrected rows."""
    sections, notes = _shared_sections(base, new, options.sections)
    problems = controls(base, new, sections)
    if problems and not options.ignore_invariants:
        raise IncomparableError(base.id, new.id, problems)
    family = _family_of(options, base, new)
    rows: list[MetricRow] = []
    slices: list[MetricRow] = []
    cases = only_base = only_new = 0
    for section in sections:
        pairs = read_pairs(base.folder, new.folder, section)
        problems += _gold_problem(base, new, pairs, options)
        cluster_ids = _cluster_column(pairs, clusters)
        own = list(_metric_rows(base, new, pairs, family, options, cluster_ids))
        rows += own
        if parts is not None:
            slices += _slice_rows(own, pairs, parts, options, cluster_ids)
        if section != OWN_TEXTS or sections == [OWN_TEXTS]:
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
    notes += remarks(base, new, changes, options.varied)
    if not any(row.family for row in rows):
        notes.append("No metric of the family is in both runs: every p is exploratory.")
    return Comparison(
        base.id,
        new.id,
        tuple(rows),
        tuple(slices),
        controls=tuple(problems),
        varied=tuple(changes),
        notes=tuple(notes),
        cases=cases,
        only_base=only_base,
        only_new=only_new,
    )


def _shared_sections(base: Run, new: Run, asked: Sequence[str]) -> tuple[list[str], list[str]]:
    """Sections to compare, and notes on those that one run lacks.

    Raises StorageError when nothing is left, or a section that was asked for is not there.
    """
    old, now = scored_sections(base.folder), scored_sections(new.folder)
    notes = []
    for section in sorted({*asked} or {*old, *now}):
        for run, scored in ((base, old), (new, now)):
            if section not in scored:
                message = f"{run.folder}: has no scores of {section}; {_remedy(section, run.id)}"
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


def _remedy(section: str, run: str) -> str:
    """How a run gets its scores of a section."""
    if section == "judged":
        return f"run judge_answers.py --run {run}."
    if section == "custom":
        return "run eval_suite.py with the same --plugin."
    return f"run score_{section}.py --run {run}."


def _family_of(options: CompareOptions, base: Run, new: Run) -> frozenset[str]:
    """``section.metric`` of the declared family. Raises StorageError for names of neither run."""
    if not options.metrics:
        targets = read_targets(options.targets)
        return frozenset(f"{name}.{metric}" for name, part in targets.items() for metric in part)
    names = {
        f"{section}.{metric}"
        for run in (base, new)
        for section, part in run.metrics.get("sections", {}).items()
        for metric in part.get("mean", {})
    }
    family = set()
    for name in options.metrics:
        hits = {full for full in names if name in (full, full.partition(".")[2])}
        if not hits:
            some = ", ".join(sorted(names)[:12])
            raise StorageError(f"metric {name!r}: neither run has it; they have: {some}, …")
        family |= hits
    return frozenset(family)


def _gold_problem(base: Run, new: Run, pairs: Pairs, options: CompareOptions) -> list[Difference]:
    """The gold of cases that changed between the two scorings, as one difference."""
    if not pairs.gold_changed:
        return []
    some = ", ".join(pairs.gold_changed[:SHOWN_IDS])
    more = ", …" if len(pairs.gold_changed) > SHOWN_IDS else ""
    text = f"{len(pairs.gold_changed)} cases ({some}{more})"
    problem = Difference("gold supports", f"as scored in {base.id}", f"other gold in {text}")
    if not options.ignore_invariants:
        raise IncomparableError(base.id, new.id, [problem])
    return [problem]


DOCUMENT = "doc"
"""The cluster of a case is the document of its first gold support."""


def slices_of_cases(eval_set: Path, labels_dir: Path | None) -> dict[str, Slices]:
    """The slices of each case: category, difficulty, query type, tags, vaults.

    Raises StorageError with every problem of the set and its labels.
    """
    problems: list[Problem] = []
    labels, _ = read_labels(labels_dir, problems.append)
    slices = {
        case.id: slices_of(facets_of(case))
        for case in iter_cases(eval_set, problems.append, labels)
    }
    if problems:
        raise StorageError.from_problems(problems)
    return slices


def changed_set(eval_set: Path, run: Path) -> str | None:
    """A remark when the set is not the one that a run was scored with, else None."""
    scored = read_json(run / METRICS).get("eval_set_sha256")
    if scored in (None, sha256_file(eval_set)):
        return None
    return (
        f"{eval_set} is not the set that {run.resolve().name} was scored with: slices and clusters "
        "are those of the set as it is now."
    )


def clusters_of_cases(eval_set: Path, key: str) -> dict[str, int]:
    """The number of each case's cluster: cases with the same value of ``key`` go together.

    ``key`` is any key of the set's lines (of a list, the first item counts), or ``doc``: the
    document of the first gold support. Cases without a value are left out. Raises StorageError when
    no case has one.
    """
    numbers: dict[str, int] = {}
    clusters: dict[str, int] = {}
    problems: list[Problem] = []
    for number, line in iter_lines(eval_set, problems.append):
        try:
            raw = canonical(orjson.loads(line))
            value = _document(raw) if key == DOCUMENT else _first(raw.get(key))
            if value is not None:
                clusters[str(raw["id"])] = numbers.setdefault(str(value), len(numbers))
        except (orjson.JSONDecodeError, AttributeError, KeyError):
            problems.append(Problem(str(eval_set), number, "", "is no case; correct the line"))
    if problems:
        raise StorageError.from_problems(problems)
    if not clusters:
        raise StorageError(
            f"--cluster {key}: no case of {eval_set} has that key; name a key of its lines, or doc."
        )
    return clusters


def _document(raw: dict[str, Any]) -> Any:
    supports = raw.get("gold_supports")
    if isinstance(supports, list) and supports and isinstance(supports[0], dict):
        return supports[0].get("rel_path")
    return _first(raw.get("relevant_docs"))


def _first(value: Any) -> Any:
    return (value[0] if value else None) if isinstance(value, list) else value


WORSE, ANY_WORSE = "worse", "any-worse"


def failures(comparisons: Sequence[Comparison], rules: Sequence[str]) -> list[str]:
    """Why the comparison fails, a sentence each; empty when it passes.

    ``worse``: a metric of the declared family got worse or is no longer measured; ``any-worse``:
    any metric; a metric's name: that one. Raises StorageError for a name that no row has.
    """
    reasons: dict[str, None] = {}
    for comparison in comparisons:
        for rule in rules:
            rows = _rows(comparison, rule)
            if not rows and rule not in (WORSE, ANY_WORSE):
                raise StorageError(
                    f"--fail-on {rule}: neither run has that metric; write worse, any-worse or "
                    "the names of metrics."
                )
            reasons |= dict.fromkeys(_reasons(comparison, rows))
    return list(reasons)


def _rows(comparison: Comparison, rule: str) -> list[MetricRow]:
    if rule == ANY_WORSE:
        return list(comparison.rows)
    if rule == WORSE:
        return [row for row in comparison.rows if row.family]
    return [row for row in comparison.rows if rule in (row.metric, row.name)]


def _reasons(comparison: Comparison, rows: Iterable[MetricRow]) -> Iterator[str]:
    for row in rows:
        if row.verdict == "only in base":
            yield f"{row.name} is measured in {comparison.base_id} but not in {comparison.new_id}."
        elif row.verdict == "worse" and row.delta is not None:
            yield (
                f"{row.name} is worse in {comparison.new_id}: {row.delta:+.4f} over {row.n} cases, "
                f"corrected p {row.p_adjusted or 0:.4g}."
            )
