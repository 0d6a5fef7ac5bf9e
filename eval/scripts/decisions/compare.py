"""Compare runs: read both, refuse what is not comparable, test every metric case by case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from decisions.invariants import IncomparableError, Run, controls, read_run, remarks, varied
from decisions.metric_rows import Clusters, Parts, Wanted, cluster_column, metric_rows, slice_rows
from decisions.rows import Comparison, Difference, Row, corrected
from ragmetrics.stats.tally import Slices, facets_of, slices_of
from records.cases import canonical, iter_cases, iter_lines
from records.errors import Problem, StorageError
from records.files import read_json, sha256_file
from records.labels import read_labels
from records.runs import METRICS, scored_sections
from records.scores import SHOWN_IDS, Pairs, read_pairs
from records.targets import read_targets

OWN_TEXTS = "safety"
"""The section whose lines are labelled texts instead of the run's cases."""


def compare(
    base: Path,
    new: Path,
    wanted: Wanted | None = None,
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
    return compare_many(base, [new], wanted, clusters=clusters, parts=parts)[0]


def compare_many(
    base: Path,
    others: Sequence[Path],
    wanted: Wanted | None = None,
    *,
    clusters: Clusters | None = None,
    parts: Parts | None = None,
) -> list[Comparison]:
    """Compare several runs with one base; p is corrected over the tests of all of them together."""
    wanted = wanted or Wanted()
    old = read_run(base)
    found = [_compared(old, read_run(new), wanted, clusters, parts) for new in others]
    rows = iter(corrected([row for one in found for row in one.rows]))
    slices = iter(corrected([row for one in found for row in one.slices]))
    return [
        replace(
            one,
            rows=tuple(next(rows) for _ in one.rows),
            slices=tuple(next(slices) for _ in one.slices),
        )
        for one in found
    ]


def _compared(
    base: Run, new: Run, wanted: Wanted, clusters: Clusters | None, parts: Parts | None
) -> Comparison:
    """Two runs with uncorrected rows."""
    sections, notes = shared_sections(base, new, wanted.sections)
    problems = controls(base, new, sections)
    if problems and not wanted.ignore_invariants:
        raise IncomparableError(base.id, new.id, problems)
    family = family_of(wanted, base, new)
    rows: list[Row] = []
    slices: list[Row] = []
    cases = only_base = only_new = 0
    for section in sections:
        pairs = read_pairs(base.folder, new.folder, section)
        problems += _gold_problem(base, new, pairs, wanted)
        places = cluster_column(pairs, clusters)
        own = list(metric_rows(base, new, pairs, family, wanted, places))
        rows += own
        if parts is not None:
            slices += slice_rows(own, pairs, parts, wanted, places)
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
    notes += remarks(base, new, changes, wanted.varied)
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


DOCUMENT = "doc"
"""The cluster of a case is the document of its first gold support."""


def slices_of_cases(eval_set: Path, labels_dir: Path | None) -> dict[str, Slices]:
    """The slices of each case: category, difficulty, query type, tags, vaults.

    Raises StorageError with every problem of the set and its labels.
    """
    problems: list[Problem] = []
    labels, _ = read_labels(labels_dir, problems.append)
    found = {
        case.id: slices_of(facets_of(case))
        for case in iter_cases(eval_set, problems.append, labels)
    }
    if problems:
        raise StorageError.from_problems(problems)
    return found


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
    found: dict[str, int] = {}
    problems: list[Problem] = []
    for number, line in iter_lines(eval_set, problems.append):
        try:
            raw = canonical(orjson.loads(line))
            value = _document(raw) if key == DOCUMENT else _first(raw.get(key))
            if value is not None:
                found[str(raw["id"])] = numbers.setdefault(str(value), len(numbers))
        except (orjson.JSONDecodeError, AttributeError, KeyError):
            problems.append(Problem(str(eval_set), number, "", "is no case; correct the line"))
    if problems:
        raise StorageError.from_problems(problems)
    if not found:
        raise StorageError(
            f"--cluster {key}: no case of {eval_set} has that key; name a key of its lines, or doc."
        )
    return found


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
    found: dict[str, None] = {}
    for one in comparisons:
        for rule in rules:
            rows = _rows(one, rule)
            if not rows and rule not in (WORSE, ANY_WORSE):
                raise StorageError(
                    f"--fail-on {rule}: neither run has that metric; write worse, any-worse or "
                    "the names of metrics."
                )
            found |= dict.fromkeys(_reasons(one, rows))
    return list(found)


def _rows(comparison: Comparison, rule: str) -> list[Row]:
    if rule == ANY_WORSE:
        return list(comparison.rows)
    if rule == WORSE:
        return [row for row in comparison.rows if row.family]
    return [row for row in comparison.rows if rule in (row.metric, row.name)]


def _reasons(comparison: Comparison, rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if row.verdict == "only in base":
            yield f"{row.name} is measured in {comparison.base_id} but not in {comparison.new_id}."
        elif row.verdict == "worse" and row.delta is not None:
            yield (
                f"{row.name} is worse in {comparison.new_id}: {row.delta:+.4f} over {row.n} cases, "
                f"corrected p {row.p_adjusted or 0:.4g}."
            )
