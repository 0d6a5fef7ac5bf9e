"""The suite from the command line's wishes to the report."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import storage
from comparing.metrics_file import read_sections
from gating.against import comparable
from gating.engine import check_names, judge
from gating.evidence import HEAD, Evidence, Side, baseline_of
from gating.rules import Rules, read_rules
from gating.verdict import Check
from ragmetrics.metric import Metric
from suite.asking import ask
from suite.baseline import Baseline, Measured, caveats, compare, read_baseline
from suite.diagnosis import diagnose
from suite.judged import has_verdicts
from suite.measures import measures
from suite.perspectives import (
    PERSPECTIVES,
    Outcome,
    Perspective,
    Settings,
    chosen,
    run_perspective,
)
from suite.plugins import read_plugins
from suite.report import Report, write_report
from suite.safety import has_labels
from suite.smoke import copy_of, smoke_ids
from suite.traces import write_traces
from targets import TARGETS, read_targets

if TYPE_CHECKING:
    from rich.console import Console

SMOKE = (
    "{cases} cases, some of every kind. Embeddings only where their vectors are kept already: no "
    "model is loaded."
)
KEPT = "delete the file, or take it from git"
GONE = "the run has no such section; score it as the baseline's was"
EARLIER = "scored earlier, by its own script"


@dataclass(frozen=True)
class Plan:
    """The options of eval_suite.py, as they are on the command line."""

    run: str
    api_url: str | None
    profile: str | None
    header: tuple[str, ...]
    folder_mode: str | None
    run_id: str | None
    eval_set: Path
    labels_dir: Path
    results_dir: Path
    sections: tuple[str, ...] | None
    suite: str
    embedding_model: str | None
    cache_dir: Path
    plugins: tuple[Path, ...]
    targets_file: Path | None
    gates_file: Path | None
    allow_missing: int
    baseline: Path | None
    max_drop: float | None
    save_trace: bool
    output: Path | None
    seed: int
    as_json: bool
    verbose: bool
    quiet: bool

    @property
    def smoke(self) -> bool:
        return self.suite == "smoke"

    def asking(self, perspectives: Sequence[Perspective]) -> list[str]:
        """The options for run_eval.py; labelled prompts are asked where safety is to be scored."""
        words = ["--store-full-text", "--seed", str(self.seed)]
        if any(one.name == "safety" for one in perspectives) and has_labels(self.labels_dir):
            words.append("--labels")
        for name in ("api_url", "profile", "folder_mode", "run_id"):
            if (value := getattr(self, name)) is not None:
                words += [f"--{name.replace('_', '-')}", value]
        for name in ("eval_set", "labels_dir", "results_dir"):
            words += [f"--{name.replace('_', '-')}", str(getattr(self, name))]
        for text in self.header:
            words += ["--header", text]
        return words + (["--quiet"] if self.quiet else [])


def run_suite(plan: Plan, console: Console) -> tuple[Report, list[Path]]:
    """Make or find the run, score it, compare it, write the report. Returns also what was written.

    All that the user may have got wrong is looked at before anything is asked or scored.
    """
    custom = read_plugins(plan.plugins)
    perspectives = chosen(plan.sections, custom=bool(custom))
    targets = read_targets(plan.targets_file or TARGETS)
    rules = _rules(plan)
    baseline = read_baseline(plan.baseline) if plan.baseline else None
    base = baseline_of(plan.results_dir, str(plan.baseline)) if plan.baseline else None
    ids = smoke_ids(storage.read_cases(plan.eval_set, plan.labels_dir)) if plan.smoke else []
    if plan.api_url:
        _check_gates(rules, ())
        real = ask(plan.asking(perspectives), ids)
    else:
        real = storage.find_run(plan.results_dir, plan.run)
        _check_gates(rules, _kept(real).get("sections", {}))
    with contextlib.ExitStack() as stack:
        folder = real
        if plan.smoke and not plan.api_url:
            temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="rag-eval-"))
            folder = copy_of(real, ids, Path(temporary))
        if plan.sections is None and not has_verdicts(folder):
            perspectives = [one for one in perspectives if one.name != "judged"]
        settings = _settings(plan, folder, custom, console)
        outcomes = _score(perspectives, settings, console)
        if plan.sections is None:
            outcomes += _earlier(folder, outcomes)
        found = measures({o.name: o.section for o in outcomes if o.section}, targets, custom)
        report = Report(
            run_id=real.resolve().name,
            suite=plan.suite,
            outcomes=outcomes,
            found=found,
            findings=diagnose(found),
            header=_header(folder),
            left_out=SMOKE.format(cases=len(ids)) if plan.smoke else "",
        )
        new = Side(report.run_id, report.sections(), report.header, folder)
        evidence = Evidence(new, base, plan.eval_set, plan.labels_dir, custom, plan.seed)
        if rules is not None:
            asked = {one.name for one in perspectives} if plan.sections else None
            report.gates = _gates(rules, evidence, asked)
        if baseline is not None:
            _compare(plan, report, baseline, evidence)
        name = "suite" if plan.suite == "full" else f"suite-{plan.suite}"
        written = write_report(report, plan.output or real / name)
        traces = _traces(plan, perspectives, report, settings, targets, real)
    return report, [*written, *traces]


def _rules(plan: Plan) -> Rules | None:
    if plan.gates_file is None:
        return None
    return replace(read_rules(plan.gates_file), allow_missing=plan.allow_missing)


def _settings(plan: Plan, folder: Path, custom: tuple[Metric, ...], console: Console) -> Settings:
    return Settings(
        folder=folder,
        eval_set=plan.eval_set,
        labels_dir=plan.labels_dir,
        seed=plan.seed,
        smoke=plan.smoke,
        model=plan.embedding_model,
        cache_dir=plan.cache_dir,
        custom=custom,
        console=console,
    )


def _score(
    perspectives: Sequence[Perspective], settings: Settings, console: Console
) -> list[Outcome]:
    outcomes = []
    for one in perspectives:
        if console.is_terminal:
            console.print(f"Scoring {one.name}…")
        outcomes.append(run_perspective(one, settings))
    return outcomes


def _compare(plan: Plan, report: Report, baseline: Baseline, evidence: Evidence) -> None:
    """Into the report: what became of the baseline's numbers, and why not to compare them."""
    compared = _compared(plan, report.outcomes, baseline)
    gone = dict.fromkeys(compared, GONE)
    gone |= {o.name: "" if o.status == "scored" else o.reason for o in report.outcomes}
    report.baseline = str(plan.baseline)
    report.changes = compare(baseline, report.found, compared, plan.max_drop, gone)
    report.caveats = caveats(baseline, plan.suite, report.header.get("cases", 0))
    both = set(compared) & set(baseline.sections) & set(report.sections())
    report.unlike = comparable(evidence, both).reason


def _compared(plan: Plan, outcomes: Sequence[Outcome], baseline: Baseline) -> list[str]:
    """What to compare: all that was asked for and, when that is all, what the baseline has more.

    Not what the smoke suite leaves out: embeddings without vectors, and sections of other scripts.
    """
    names = dict.fromkeys(one.name for one in outcomes)
    if plan.sections is None:
        names |= dict.fromkeys(baseline.sections)
    if plan.smoke:
        left_out = {o.name for o in outcomes if o.status == "cannot run"} & {"embedding"}
        names = {one.name: None for one in PERSPECTIVES if one.name in names.keys() - left_out}
    return list(names)


def _kept(folder: Path) -> dict[str, Any]:
    """The run's metrics.json; {} before anything was scored."""
    path = folder / "metrics.json"
    return read_sections(path, Measured, KEPT) if path.exists() else {}


def _earlier(folder: Path, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Sections that other scripts have put into metrics.json, such as a judge's."""
    sections = _kept(folder).get("sections", {})
    names = {one.name for one in outcomes} | {"custom"}
    return [
        Outcome(name, "scored", EARLIER, section)
        for name, section in sections.items()
        if name not in names and {"mean", "n", "ci95", "definitions"} <= section.keys()
    ]


def _check_gates(rules: Rules | None, scored: Iterable[str]) -> None:
    """Raises StorageError for gates that could never be looked at: of no section there is."""
    if rules is not None:
        known = dict.fromkeys([*(one.name for one in PERSPECTIVES), *scored])
        check_names(rules, list(known), rules.path)


def _gates(rules: Rules, evidence: Evidence, asked: set[str] | None) -> list[Check]:
    """The gates that fail. A gated section that has no numbers misses all of its gates."""
    if not (rules.baseline or rules.require_baseline):
        evidence = replace(evidence, base=None)
    return judge(rules, evidence, sections=asked).of("failed")


def _header(folder: Path) -> dict[str, Any]:
    """What metrics.json says of the run itself."""
    known = _kept(folder)
    return {name: known[name] for name in HEAD if name in known}


def _traces(
    plan: Plan,
    perspectives: Sequence[Perspective],
    report: Report,
    settings: Settings,
    targets: Any,
    folder: Path,
) -> list[Path]:
    if not plan.save_trace:
        return []
    label = report.run_id + ("" if plan.suite == "full" else f"-{plan.suite}")
    sections = report.sections()
    return [
        write_traces(one, sections[one.name], targets.get(one.name, {}), settings, folder, label)[0]
        for one in perspectives
        if one.name in sections
    ]
