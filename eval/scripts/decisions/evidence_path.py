"""Where the needed evidence is lost, from the passages that are found to a right answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from decisions.case_rules import basis_of
from decisions.case_verdict import Ruling
from decisions.same_cases import align_folders
from ragmetrics.catalogue import right_metrics
from ragmetrics.gold import gold_of
from ragmetrics.matching import evidence_rank
from records.cases import ignore, iter_cases
from records.id_numbers import id_number
from records.labels import read_labels
from records.run import Run
from records.runs import scored_sections
from terminal.page import AnyColumn, BarColumn, Block, DataColumn, DataTable, Heading, Prose
from terminal.tables import plain

if TYPE_CHECKING:
    from records.section_table import Floats, SectionTable

TITLE = "Where the evidence is lost"

FIRST = 5
"""The passages from the top that are counted apart: what is further down is easily overlooked."""

MEASURED = 0.9
"""The share of the answers still there that a step must be measured for; others have no step."""

NEED, FOUND = "need evidence", "find all of it"

LATER = {"cited": "cite a passage of it", "supported": "support every claim", "right": "are right"}
"""The steps after the search, by the field that tells: who passes, in words."""

EXPLAINED = (
    "All rows count the same answers; each counts only those that passed the rows before. Right "
    "means right to people or a model, else that every expected claim is stated. Steps that were "
    "measured for too few of these answers are left out."
)


class PathAnswer(NamedTuple):
    """How far the needed evidence of an answer came. ``complete``: the rank at which it is
    complete, 0: never. The others: None where that was not measured."""

    complete: int
    cited: bool | None = None
    supported: bool | None = None
    right: bool | None = None
    reachable: float = 0.0
    """The share of it that the best order of the passages would have in the first 5, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class RunPath:
    """The way of the needed evidence in a run. ``steps``: by step, in order, the answers that come
    so far; ``first``: those that find all of it in the first 5 passages. ``reranked``: the mean
    evidence_recall@5 if the passages were in the best order, in [0, 1]."""

    run_id: str
    steps: Mapping[str, int]
    first: int
    reranked: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def evidence_path(answers: Iterable[PathAnswer]) -> dict[str, int]:
    """How many of the answers that need evidence pass each step and all steps before it.

    They find all of it at any rank, cite a passage of it, support every claim, are right. A later
    step is left out when fewer than 90 % of the answers still there were measured; the others do
    not pass. Empty without answers.
    """
    left = list(answers)
    steps = {NEED: len(left)} if left else {}
    if left:
        left = [answer for answer in left if answer.complete]
        steps[FOUND] = len(left)
    for name, words in LATER.items():
        measured = sum(getattr(answer, name) is not None for answer in left)
        if measured and measured >= MEASURED * len(left):
            left = [answer for answer in left if getattr(answer, name)]
            steps[words] = len(left)
    return steps


def read_paths(
    tables: Iterable[Run], eval_set: Path, labels_dir: Path | None, ruling: Ruling
) -> list[RunPath]:
    """The paths of the runs that have one: retrieval was scored, and the set is there. Of two runs
    only cases that did not change count.

    Answers without needed evidence do not count, nor do failed calls. Where a run has references
    at all, an answer without one cites nothing; an answer that declines passes no later step.
    Raises StorageError for damaged files.
    """
    groups = _groups(eval_set, labels_dir) if eval_set.exists() else None
    scored = [t for t in tables if t.folder.is_dir() and "retrieval" in scored_sections(t.folder)]
    changed = frozenset[int]()
    if len(scored) == 2:
        base, new = (table.folder for table in scored)
        alignment = align_folders(base, new, ["retrieval"])
        changed = frozenset(map(id_number, alignment.of_section("retrieval")))
    paths = []
    for table in scored if groups is not None else ():
        if answers := list(_answers(table, groups or {}, ruling, changed)):
            first = sum(0 < answer.complete <= FIRST for answer in answers)
            reranked = sum(answer.reachable for answer in answers) / len(answers)
            name = table.folder.resolve().name
            paths.append(RunPath(name, evidence_path(answers), first, reranked))
    return paths


def _answers(
    table: Run,
    groups: Mapping[int, Sequence[Sequence[int]]],
    ruling: Ruling,
    changed: frozenset[int],
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
    stated = "groundedness.expected_claim_recall", "groundedness.nugget_recall_vital"
    steps = (
        first_measured("retrieval.attribution_hit"),
        first_measured("groundedness.claim_support_rate"),
        first_measured(
            *(name for name in right if trusted or name.endswith("_by_people")), *stated
        ),
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

    ids = own.ids[own.line_cases].tolist()
    for row, (ranks, enough) in enumerate(_found(own, groups)):
        if ranks and ids[row] not in changed:
            rank = evidence_rank(ranks, enough) or 0
            cited, supported, correct = (passes(at, row) for at in range(3))
            yield PathAnswer(rank, cited, supported, correct, reachable(ranks, enough))


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


def reachable(ranks: Sequence[int | None], groups: Sequence[Sequence[int]] = ()) -> float:
    """The evidence_recall@5 that the best order of the passages would have, in [0, 1].

    ``ranks``: of each support the passage that has it, None for none. ``groups``: see
    ``evidence_rank``. A passage may have several supports, so those with most of them come first.
    """
    shares = []
    for group in groups or [range(len(ranks))]:
        own = set(group)
        passages = Counter(rank for support in own if (rank := ranks[support]) is not None)
        shares.append(sum(count for _, count in passages.most_common(FIRST)) / len(own))
    return max(shares)


def _found(
    table: SectionTable, groups: Mapping[int, Sequence[Sequence[int]]]
) -> Iterator[tuple[Sequence[int | None], Sequence[Sequence[int]]]]:
    """By answer the rank of each of its supports, and the groups of them that are enough; nothing
    without any, and where the set names supports by now that the run was not scored for."""
    ids = table.ids[table.line_cases].tolist()
    lines = table.lines(range(len(ids)), ("evidence.found",))
    for digest, line in zip(ids, lines, strict=True):
        ranks: Any = line.evidence.found if line.evidence is not None else None
        enough: Any = groups.get(digest, ())
        if not ranks or (enough and max(map(max, enough)) >= len(ranks)):
            yield (), ()
        else:
            yield ranks, enough


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
    """The paths of one or two runs as a funnel, a row a step."""

    def columns(at: int, path: RunPath) -> Iterator[AnyColumn[str]]:
        steps, blanks = path.steps, " " * at
        yield DataColumn(plain(path.run_id, 40), lambda row: _count(steps, row))
        yield BarColumn(lambda row: steps.get(row, 0) / steps[NEED], drop=2 + at)
        if len(paths) == 1:
            yield DataColumn(f"lost{blanks}", lambda row: _lost(steps, row), 1)

    if paths:
        step = DataColumn[str]("answers that", lambda row: row, words=True)
        rows = [row for row in (NEED, FOUND, *LATER.values()) if any(row in p.steps for p in paths)]
        shown = [column for at, path in enumerate(paths) for column in columns(at, path)]
        yield Heading(TITLE, 3)
        caption = "Of the answers that need evidence: how many come so far"
        yield DataTable([step, *shown], rows, caption=caption, look="funnel")
        first = [
            f"{path.first:,} of {path.steps[FOUND]:,} ({plain(path.run_id, 40)})" for path in paths
        ]
        yield Prose(
            f"Found in the first {FIRST} passages already: {', '.join(first)}. {EXPLAINED}", "quiet"
        )


def _count(steps: Mapping[str, int], step: str) -> str:
    return f"{steps[step]:,}" if step in steps else "–"


def _lost(steps: Mapping[str, int], step: str) -> str:
    """The answers that came to the step before and not to this one."""
    counts, at = list(steps.values()), list(steps).index(step)
    lost = counts[at - 1] - counts[at] if at else 0
    return f"−{lost:,}" if lost else ""
