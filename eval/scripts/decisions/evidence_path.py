"""Where the needed evidence is lost: from the first passages of the list to a correct answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from decisions.case_rules import basis_of
from decisions.case_verdict import Ruling
from ragmetrics.catalogue import right_metrics
from ragmetrics.gold import gold_of
from ragmetrics.matching import evidence_rank
from records.cases import ignore, iter_cases
from records.id_numbers import id_number
from records.labels import read_labels
from records.run import Run
from records.runs import scored_sections
from terminal.page import Block, Chart, DataColumn, DataTable, Heading, Prose, percent
from terminal.plot import bar
from terminal.tables import plain

if TYPE_CHECKING:
    from records.section_table import Floats, SectionTable

RANKS = (1, 2, 3, 5, 10, 20)

SEEN = "in the prompt"

LATER = ("cited", "claimed", "correct")

EXPLAINED = (
    "An answer counts at a rank when all the evidence that it needs is in the passages down to it, "
    "in the prompt when it is in all that the answer saw. Then: the answer cites a passage of it, "
    "states every expected claim, is called right by people or a model. Each step counts only "
    "answers that passed the one before; a step that was not measured is a gap (–)."
)


class PathAnswer(NamedTuple):
    """How far the needed evidence of an answer came. ``complete``: the rank at which it is
    complete, 0: never. The others: None where that was not measured."""

    complete: int
    cited: bool | None = None
    claimed: bool | None = None
    correct: bool | None = None


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of the way: the share of answers that come so far, and the answers it rests on."""

    name: str
    share: float | None
    n: int


@dataclass(frozen=True, slots=True)
class RunPath:
    """The way of the needed evidence in a run, step by step."""

    run_id: str
    steps: tuple[PathStep, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def evidence_path(answers: Iterable[PathAnswer]) -> tuple[PathStep, ...]:
    """The share of answers whose needed evidence is still there at each step, in [0, 1].

    Ranks 1, 2, 3, 5, 10 and 20: complete within so many passages / answers with needed evidence;
    in the prompt: complete at any rank / the same. Each later step multiplies the share before it
    by: answers that pass it / answers that passed all measured steps before and were measured here
    (the product-limit estimate of Kaplan and Meier 1958; where every answer is measured it is the
    share that passes all steps so far). So it never rises. ``n``: what a step divides by. None
    where n is 0: a gap, from which the next step goes on as if it were not there. () without
    answers.
    """
    counts = Counter(answers)
    if not (n := counts.total()):
        return ()

    def within(rank: float) -> float:
        return sum(times for one, times in counts.items() if 0 < one.complete <= rank) / n

    steps = [PathStep(f"rank {rank}", within(rank), n) for rank in RANKS]
    share = within(float("inf"))
    steps.append(PathStep(SEEN, share, n))
    left = {one: times for one, times in counts.items() if one.complete}
    for name in LATER:
        measured = sum(times for one, times in left.items() if getattr(one, name) is not None)
        passed = sum(times for one, times in left.items() if getattr(one, name))
        share = share * passed / measured if measured else share
        steps.append(PathStep(name, share if measured else None, measured))
        left = {one: times for one, times in left.items() if getattr(one, name) is not False}
    return tuple(steps)


def read_paths(
    tables: Iterable[Run], eval_set: Path, labels_dir: Path | None, ruling: Ruling
) -> list[RunPath]:
    """The paths of the runs that have one: retrieval was scored, and the set is there.

    Answers without needed evidence do not count, nor do failed calls. Where a run has references
    at all, an answer without one cites nothing; an answer that declines cites, claims and gets
    right nothing. Raises StorageError for damaged files.
    """
    groups = _groups(eval_set, labels_dir) if eval_set.exists() else None
    paths = []
    for table in tables if groups is not None else ():
        if table.folder.is_dir() and "retrieval" in scored_sections(table.folder):
            steps = evidence_path(_answers(table, groups or {}, ruling))
            paths.append(RunPath(table.folder.resolve().name, steps))
    return [path for path in paths if path.steps]


def _answers(
    table: Run, groups: Mapping[int, Sequence[Sequence[int]]], ruling: Ruling
) -> Iterator[PathAnswer]:
    """How far the needed evidence of each answer came."""
    scored, own = set(scored_sections(table.folder)), table.section("retrieval")

    def first_measured(*names: str) -> tuple[str, Floats] | None:
        """The first of some metrics that any answer has, and its scores."""
        for section, metric in (name.split(".", 1) for name in names):
            if section in scored and metric in table.section(section).names:
                column = _aligned(table.section(section), metric, own)
                if (column == column).any():
                    return f"{section}.{metric}", column
        return None

    trusted = basis_of(table.folder).trusted
    right = [".".join(name) for name in right_metrics() if name[0] == "judged"]
    steps = (
        first_measured("retrieval.attribution_hit"),
        first_measured("groundedness.expected_claim_recall", "groundedness.nugget_recall_vital"),
        first_measured(*(name for name in right if trusted or name.endswith("_by_people"))),
    )
    declined = first_measured("abstention.over_refusal")

    def passes(at: int, row: int) -> bool | None:
        if (step := steps[at]) is None:
            return None
        value, keeps = float(step[1][row]), ruling.keeps(step[0])
        if declined is not None and declined[1][row] == 1:
            return False
        if value != value:
            return None if at else False
        return value >= 1 if keeps is None else bool(keeps.passed(value))

    for row, rank in enumerate(_complete(own, groups)):
        if rank is not None:
            yield PathAnswer(rank, *(passes(at, row) for at in range(3)))


def _groups(eval_set: Path, labels_dir: Path | None) -> dict[int, Sequence[Sequence[int]]]:
    """The supports that are enough together, by the hash of the case's id; of other cases all
    supports are needed."""
    labels, _ = read_labels(
        labels_dir, ignore, eval_set
    )  # faults of both files are reported by scoring
    found: dict[int, Sequence[Sequence[int]]] = {}
    for case in iter_cases(eval_set, ignore, labels):
        gold = gold_of(case, "auto") if case.required_support_groups else None
        if gold is not None and gold.groups:
            found[id_number(case.id)] = gold.groups
    return found


def _complete(
    table: SectionTable, groups: Mapping[int, Sequence[Sequence[int]]]
) -> Iterator[int | None]:
    """By answer the rank at which its evidence is complete, 0 for never; None without any, and
    where the set names supports by now that the run was not scored for."""
    ids = table.ids[table.line_cases].tolist()
    lines = table.lines(range(len(ids)), ("evidence.found",))
    for digest, line in zip(ids, lines, strict=True):
        ranks = line.evidence.found if line.evidence is not None else None
        enough: Any = groups.get(digest)
        if not ranks or (enough and max(map(max, enough)) >= len(ranks)):
            yield None
        else:
            yield evidence_rank(ranks, enough) or 0


def _aligned(table: SectionTable, metric: str, like: SectionTable) -> Floats:
    """The scores of a metric in the order of another section's answers."""
    import numpy as np

    values = table.values(metric)
    keys = [(own.ids[own.line_cases], own.repeats) for own in (table, like)]
    if all(map(np.array_equal, *keys)):
        return values
    names = [zip(ids.tolist(), repeats.tolist(), strict=True) for ids, repeats in keys]
    known = dict(zip(names[0], values.tolist(), strict=True))
    return np.array([known.get(name, np.nan) for name in names[1]])


def path_blocks(paths: Sequence[RunPath]) -> Iterator[Block]:
    """The paths of one or two runs, a row a step; a page has a picture, else bars are drawn."""

    def columns(at: int, path: RunPath) -> Iterator[DataColumn[int]]:
        steps = path.steps
        name = plain(path.run_id, 40)
        yield DataColumn(name, lambda row: percent(steps[row].share), foreign=True)
        bars = DataColumn[int](" " * (at + 1), lambda row: bar(steps[row].share, 16), words=True)
        yield replace(bars, drop=2, off_page=True)
        yield DataColumn("of" + " " * at, lambda row: f"{steps[row].n:,}", 1)

    if paths:
        first = paths[0].steps
        step = DataColumn[int]("step", lambda row: first[row].name, words=True)
        shown = [column for at, path in enumerate(paths) for column in columns(at, path)]
        yield Heading("Where the evidence is lost", 3)
        yield Chart("path", paths)
        caption = "Answers that still have all their evidence"
        yield DataTable([step, *shown], range(len(first)), caption=caption)
        yield Prose(EXPLAINED, "quiet")
