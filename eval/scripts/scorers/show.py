"""The common part of all score_* scripts: score a section, print it, its slices and worst cases."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics import catalogue
from ragmetrics.catalogue.metric import BY_DOCUMENT, Metric, MetricSection
from records import opt
from records.asked import asked_of, missing_remark, unreadable_remark
from records.errors import StorageError, did_you_mean
from records.files import sha256_file
from records.metrics import load_metrics, section_names
from records.results import RunConfig
from records.runs import EVAL_SET, METRICS, find_run, known_config
from scorers import SECTIONS
from scorers.contract import NothingToScore, ScoringJob
from scorers.score_request import ScoreRequest
from terminal.tables import counted

if TYPE_CHECKING:
    from rich.console import Console

    from scorers.contract import ScoreOutput, Scorer


ShowWorst = Callable[["Console", Path, str, Metric, int, Path, Path, int], None]
"""Prints the worst cases of a run's section by a metric: how many of them, the set and its labels,
and how many cases have a score."""

_MOST_ROWS = 12
"""A table of so many metrics is shown whole."""


def request_of(values: Mapping[str, Any]) -> ScoreRequest:
    """The shared options among all that a script was given."""
    names = {field.name for field in fields(ScoreRequest)}
    return ScoreRequest(**{name: values[name] for name in names & values.keys()})


def score_and_show(
    name: str,
    asked: opt.Output,
    output: ScoreOutput,
    show_worst: ShowWorst,
    scorer: Scorer | None = None,
) -> dict[str, Any]:
    """Score a section of a run and print it: as JSON, or as tables with slices and worst cases.

    ``asked``: the script's options, shared ones and those of the section; ``dataset`` among them is
    scored instead of a run. ``show_worst`` prints the worst cases. ``scorer``: one
    that is ready already. A run without what the section is about is said to be one; {} then.
    """
    code = SECTIONS[name]
    values = {key: value for key, value in vars(asked).items() if value is not None}
    if code.score_and_show is not None:
        return code.score_and_show(values, output)
    dataset = values.get("dataset")
    if dataset is None or code.as_run is None:
        return _score_run(name, values, output, show_worst, scorer)
    with tempfile.TemporaryDirectory(prefix="rag-eval-") as temporary:
        folder = code.as_run(dataset, Path(temporary))
        run = {"run": str(folder), "eval_set": folder / EVAL_SET.name, "labels_dir": folder}
        return _score_run(name, {**values, **run}, output, show_worst, scorer)


def _score_run(
    name: str,
    values: Mapping[str, Any],
    output: ScoreOutput,
    show_worst: ShowWorst,
    scorer: Scorer | None,
) -> dict[str, Any]:
    """Score a section of a run and print it."""
    from scorers.loop import score_run

    request, code = request_of(values), SECTIONS[name]
    row = catalogue.SECTIONS[name]
    folder = find_run(request.results_dir, request.run)
    job = ScoringJob(
        folder,
        request.eval_set,
        request.labels_dir,
        request.seed,
        request.jobs,
        console=output.talk(),
    ).for_section(code)
    if scorer is None:
        assert code.scorer is not None, f"{row.name} is not scored case by case"
        try:
            scorer = code.scorer(job, code.options_from(values))
        except NothingToScore as nothing:
            output.nothing(nothing.message)
            return {}
    cutoffs = scorer.options.get("k", ())
    metric = find_metric(scorer.metrics, request.worst_by or _worst_by(row, scorer, cutoffs))
    before = section_names(folder)
    section = score_run(
        folder,
        request.eval_set,
        scorer,
        labels_dir=request.labels_dir,
        seed=request.seed,
        jobs=job.jobs,
        outcome_map=request.outcome_map,
        console=job.console,
    )
    if request.as_json:
        output.json(section)
    else:
        from decisions.measures import measures, targets_text
        from records.targets import read_targets
        from terminal.tables import print_text

        console = output.console()
        names = [metric.name for metric in scorer.metrics]
        first = row.headline(cutoffs)
        first = (*first, *(name + BY_DOCUMENT for name in first))
        headline = [shown for shown in first if shown in names]
        show(console, folder, row, section, request.by, headline or names[:3], request.verbose)
        if code.show_more is not None:
            code.show_more(console, section)
        show_worst(
            console,
            folder,
            name,
            metric,
            request.worst,
            request.eval_set,
            request.labels_dir,
            section["n"][metric.name],
        )
        rows = measures({row.name: section}, read_targets()).values()
        verdicts = [measure.verdict for measure in rows]
        if any(verdicts):
            print_text(console, f"\n{targets_text(verdicts)}.", "bold")
    head = load_metrics(folder / METRICS, slices=False)
    for text in _remarks(folder, head, request.eval_set, section, row):
        output.note(text)
    output.note(removed_sections(head, before))
    return section


def _worst_by(row: MetricSection, scorer: Scorer, cutoffs: Sequence[int]) -> str:
    """The metric that bad cases are sorted by: the section's, at a cut-off that was computed."""
    if not row.worst_by:
        return scorer.metrics[0].name
    stem, _, cutoff = row.worst_by.partition("@")
    metric = catalogue.find(stem, row.metrics)
    return metric.shown_as(cutoffs) if metric.at_k and cutoff else row.worst_by


def find_metric(metrics: Sequence[Metric], name: str) -> Metric:
    """The metric of that name. Raises StorageError listing the names there are."""
    for metric in metrics:
        if metric.name == name:
            return metric
    names = ", ".join(metric.name for metric in metrics)
    hint = did_you_mean(name, [metric.name for metric in metrics])
    raise StorageError(f"--worst-by: {name!r} is not computed here; choose from: {names}.{hint}")


def show(
    console: Console,
    folder: Path,
    row: MetricSection,
    section: dict[str, Any],
    by: Sequence[str],
    headline: Sequence[str],
    every: bool = True,
) -> None:
    """The table of the metrics, then the headline for each dimension asked for.

    Without ``every`` a long table shrinks to one metric of each family that applies to a case, and
    to what has a target.
    """
    from decisions.diagnosis import path_mismatch, place_mismatch
    from decisions.measures import measures
    from records.targets import read_advisory, read_targets
    from scorers.section_page import section_blocks, slice_block
    from terminal.page import Prose
    from terminal.print_page import print_blocks

    modes = section["by"].get("match", {})
    matched = ", ".join(f"{mode} ({part['n']})" for mode, part in modes.items())
    console.print(
        f"{row.title} of run {folder.name}" + (f", matched by {matched}" if matched else "")
    )
    for mismatch in filter(None, (path_mismatch(section), place_mismatch(section))):
        print_blocks(console, [Prose(f"{mismatch.says} Look at {mismatch.look_at}", "doubt")])
    found = measures({row.name: section}, read_targets(), advisory=read_advisory())
    aimed = [m.metric for m in found.values() if m.target or m.advisory]
    names = list(section["mean"])
    if not every and len(names) > _MOST_ROWS:
        main = {*(catalogue.main_names(row.name, names) or headline), *aimed}
        names = [name for name in names if name in main and (section["n"][name] or name in aimed)]
    print_blocks(console, section_blocks(section, [found[row.name, name] for name in names]))
    if left_out := len(section["mean"]) - len(names):
        text = f"{counted(left_out, 'more metric')}: -v shows them, and metrics.json has them."
        console.print(text)
    if "stability" in section:
        console.print(repeats_line(section["stability"]))
    for line in _turn_loss_lines(section.get("turn_loss", {}), headline, every):
        console.print(line)
    suffix = _shared_cutoff(headline)
    for dimension in by:
        console.print(f"By {dimension}" + (f", at {suffix[1:]}:" if suffix else ":"))
        print_blocks(console, [slice_block(section, dimension, headline, suffix)])


def repeats_line(stability: Mapping[str, Any]) -> str:
    """How often a case was asked, and in the pipeline whether its repeats pass."""
    from terminal.page import number

    repeats = stability["repeats"]
    at, every = (stability.get(name, {}).get(str(repeats)) for name in ("pass_at", "pass_all"))
    if at is None or every is None:
        return f"{repeats} answers to each case."
    return (
        f"{repeats} answers to each case: at least one passes (pass@{repeats}) {number(at)}, "
        f"all pass (pass^{repeats}) {number(every)}."
    )


def _turn_loss_lines(losses: Mapping[str, Any], headline: Sequence[str], every: bool) -> list[str]:
    """What later turns of conversations lose against the first, a line for each main metric.

    Without ``every`` only those whose interval is without 0, three at most.
    """
    from terminal.page import signed, signed_between

    lines: list[str] = []
    for name in (name for name in headline if name in losses):
        loss = losses[name]
        ends = loss["ci95"]
        if every or (ends and ends[0] * ends[1] > 0 and len(lines) < 3):
            sure = signed_between(ends) if ends else loss["mark"]
            about = counted(loss["conversations"], "conversation")
            lines.append(f"  {name} {signed(loss['mean'])} ({sure}; {about})")
    if lines:
        lines.insert(0, "Later turns against first turns (different questions, so only a hint):")
    return lines


def _shared_cutoff(names: Sequence[str]) -> str:
    """The ``@k`` of the first name when several have it: it is left out of the heads of columns."""
    _, at, cutoff = names[0].partition("@") if names else ("", "", "")
    suffix = at + cutoff
    return suffix if at and sum(name.endswith(suffix) for name in names) > 1 else ""


def _remarks(
    folder: Path,
    head: Mapping[str, Any],
    eval_set: Path,
    section: dict[str, Any],
    row: MetricSection,
) -> list[str]:
    """What a reader of the numbers should know, in sentences."""
    config = known_config(folder)
    texts = [missing_results(folder, head, config, row)]
    if unreadable := unreadable_remark(head):
        texts.append(f"{unreadable}.")
    asked_with = config.dataset.get("sha256")
    if "texts" in row.needs and config.run.get("store_full_text") is False:
        texts.append(
            "this run keeps only the beginning of each chunk, so metrics that need its text do not "
            "apply; ask again with run_eval.py --store-full-text."
        )
    if config.api.get("one_passage_per_document") and row.name in ("context", "groundedness"):
        texts.append(
            "the bot reports only one passage of each document, so claims that other passages "
            "support count as unsupported."
        )
    if asked_with and asked_with != sha256_file(eval_set):
        texts.append("the eval set has changed since this run was made.")
    if failed := max(section["failed"].values(), default=0):
        texts.append(f"{counted(failed, 'case')} failed in this run and {_counting(failed, row)}.")
    return texts


def removed_sections(head: Mapping[str, Any], before: frozenset[str]) -> str:
    """Name the sections that had been scored from other results and are in metrics.json no longer,
    or ""."""
    gone = sorted(before - head["sections"].keys())
    if not gone:
        return ""
    return (
        f"results.jsonl has changed since {', '.join(gone)} were scored; they were "
        "removed from metrics.json: score them again."
    )


def _counting(cases: int, row: MetricSection | None) -> str:
    """How calls without an answer enter the numbers of a section."""
    verb = "counts" if cases == 1 else "count"
    zero = row is not None and any(metric.name == "answered" for metric in row.metrics)
    return f"{verb} as 0 in answered and pass, else nowhere" if zero else f"{verb} nowhere"


def missing_results(
    folder: Path, head: Mapping[str, Any], config: RunConfig, row: MetricSection | None = None
) -> str:
    """Report how many asked cases of a run just scored have no result; "" when none lacks one."""
    asked = asked_of(config)
    remark = missing_remark(head, asked.repeats if asked else 1)
    if not remark:
        return ""
    name = folder.resolve().name
    asks = config.api.get("source") == "http"
    remedy = f"run_eval.py --resume --run-id {name} asks them" if asks else "make the run again"
    return f"{remark} and {_counting(head['missing'], row)}; {remedy}."
