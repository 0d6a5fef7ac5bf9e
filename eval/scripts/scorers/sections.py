"""Sections scored by name: one of a run, or those that the suite was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ragmetrics import catalogue
from ragmetrics.catalogue.metric import MetricSection
from records.errors import StorageError
from records.labels import has_turns
from records.results import tells_searches, tells_tools
from records.rubrics import has_rubrics
from records.run import Run
from records.runs import VERDICTS
from records.verdicts import judge_of
from scorers import SECTIONS
from scorers.contract import CannotRun, ScoringJob
from scorers.loop import results_of, score_run
from terminal.tables import counted

Status = Literal["scored", "nothing to score", "cannot run"]


@dataclass(frozen=True)
class SectionOutcome:
    """A section's outcome; ``reason``: why it has no numbers, or a note on them."""

    name: str
    status: Status
    reason: str = ""
    section: dict[str, Any] | None = None


def _score_section(name: str, job: ScoringJob, options: Any) -> dict[str, Any]:
    """Score one section of a run and return it. Raises CannotRun for what it lacks."""
    code = SECTIONS[name]
    if code.score is not None:
        return code.score(job, options)
    assert code.scorer is not None
    job = job.for_section(code)
    scorer = code.scorer(job, options)
    return score_run(
        job.folder,
        job.eval_set,
        scorer,
        labels_dir=job.labels_dir,
        seed=job.seed,
        jobs=job.jobs,
        case_lines=job.case_lines,
        console=job.console,
    )


def try_section(name: str, job: ScoringJob, values: Mapping[str, Any]) -> SectionOutcome:
    """Score one section, whose options are among ``values``. What it lacks becomes its reason;
    faulty input is raised."""
    try:
        section = _score_section(name, job, SECTIONS[name].options_from(values))
    except CannotRun as error:
        return SectionOutcome(name, "cannot run", error.message)
    if not any(section["n"].values()):
        reason = _most_common_reason(job.folder, name)
        return SectionOutcome(name, "nothing to score", reason, section)
    return SectionOutcome(name, "scored", _note(section), section)


def _note(section: dict[str, Any]) -> str:
    """What a reader should know of guardrail numbers: whose they are, and how sure; how to have a
    pass that no case's labels allow."""
    if section["n"].get("pass") == 0:
        return "pass is not measured: label expected_outcome of the cases (pipeline_labels.jsonl)"
    points = section.get("operating_points", {}).values()
    notes = {point["note"] for point in points if point and point["note"]}
    guardrails = [f"{name}: {text}" for name, text in section.get("guardrails", {}).items()]
    return "; ".join(guardrails + [f"tpr_at_fpr_*: {note}" for note in sorted(notes)])


def _most_common_reason(folder: Path, section: str) -> str:
    table = Run(folder, explained=True).section(section)
    reasons: Counter[str] = Counter()
    for kind, lines in Counter(table.line_kinds.tolist()).items():
        for reason in dict.fromkeys(reason for _, reason in table.kinds[kind].reasons):
            reasons[reason] += lines
    if not reasons:
        return "no case"
    reason, count = reasons.most_common(1)[0]
    return f"{reason} ({counted(count, 'case')})"


def chosen(names: Sequence[str] | None, *, custom: bool) -> list[str]:
    """The sections of these names or aliases, in the suite's order.

    None: all; ``custom`` only where there is a plugin. Raises StorageError for unknown names.
    """
    sections = catalogue.SECTIONS
    if names is None:
        return [name for name, row in sections.items() if custom or "plugin" not in row.needs]
    aliases = {row.alias: name for name, row in sections.items() if row.alias}
    asked = {aliases.get(name, name) for name in names}
    if unknown := sorted(asked - sections.keys()):
        raise StorageError(
            f"--sections {','.join(unknown)}: unknown; the perspectives are: {', '.join(sections)}."
        )
    if not asked:
        raise StorageError(f"--sections: name some of: {', '.join(sections)}.")
    return [
        name
        for name, row in sections.items()
        if name in asked or (custom and "plugin" in row.needs)
    ]


def has_part(folder: Path, eval_set: Path, section: MetricSection) -> bool:
    """Return False when the section needs data that this run lacks. Such data are: a judge's
    verdicts, some of them by rubrics, results that report their searches or tool calls, or a set
    with conversations."""
    if "verdicts" in section.needs and not (folder / VERDICTS).exists():
        return False
    if "rubrics" in section.needs and not has_rubrics(judge_of(folder)):
        return False
    if "conversations" in section.needs and not has_turns(eval_set):
        return False
    if "tools" in section.needs and not tells_tools(results_of(folder)):
        return False
    return "searches" not in section.needs or tells_searches(results_of(folder))
