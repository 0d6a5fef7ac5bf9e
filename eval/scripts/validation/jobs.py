"""What calibrate_judge.py does, in its order: label, join, report, gate."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import orjson

import options
from decisions import calibration_words, gate_calibration
from judging.connect import LOCAL, JudgeOptions, connect
from judging.run import say_notes
from options import Exit
from records import calibration as records_calibration
from records.calibration import SCHEMA
from records.errors import StorageError
from records.judgements import STALE
from records.labels import read_cases
from records.metrics import rounded
from records.runs import find_run
from validation import judge as validation_judge
from validation import labels, show
from validation.claims import ITEMS, Judged, Key, read_judged
from validation.judge import attacked
from validation.labels import Joined, labels_sha256

METRIC = records_calibration.METRICS[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of the script, by their names."""

    run: str
    results_dir: Path
    eval_set: Path
    labels_dir: Path
    metric: str
    labels_file: tuple[Path, ...]
    data: Path | None
    set_name: str | None
    limit: int | None
    label: bool
    annotator: str | None
    sample: int
    ascii_only: bool
    theme: str | None
    plain: bool
    gate: bool
    calibration: Path | None
    min_kappa: float
    min_balanced_accuracy: float
    output: Path | None
    worst: int
    attack: bool
    seed: int
    as_json: bool
    quiet: bool
    wanted: JudgeOptions

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Plan:
        """From the command line's values."""
        own = {name: given[name] for name in cls.__dataclass_fields__ if name in given}
        return cls(**own, wanted=JudgeOptions.of(given))

    def check(self) -> None:
        """Raises StorageError for options that contradict each other."""
        if self.set_name is not None and self.labels_file:
            raise StorageError("choose one of --set and --labels-file.")
        if self.calibration is not None and not self.gate:
            raise StorageError("--calibration goes with --gate: what should be checked against it?")
        if self.calibration is not None and (self.label or self.labels_file or self.set_name):
            raise StorageError(
                "--calibration is a finished calibration; leave --label, --labels-file and --set "
                "out."
            )
        if self.attack and (self.calibration is not None or self.set_name):
            raise StorageError(
                "--attack needs a run with labels; leave --calibration and --set out."
            )
        if self.metric != METRIC and (self.set_name or self.attack):
            raise StorageError(
                f"--metric {self.metric}: --set and --attack know {METRIC} alone; leave them out."
            )
        if self.plain and (not self.label or self.as_json):
            raise StorageError(
                "--plain goes with --label, and without --json: its lines are on stdout."
            )
        if self.label and (self.labels_file or self.set_name):
            raise StorageError(
                "--label writes eval/labels/verdicts; leave --labels-file and --set out."
            )

    @property
    def who(self) -> str:
        """The annotator's name: the one given, else the user's."""
        return self.annotator or re.sub(r"[^A-Za-z0-9._-]", "", _user()) or "me"

    @property
    def folder(self) -> Path:
        return find_run(self.results_dir, self.run)


def _user() -> str:
    try:
        return getpass.getuser().lstrip("._-")
    except (OSError, KeyError):  # a user id without a name
        return ""


def run(plan: Plan) -> int:
    """Everything; returns the exit code."""
    plan.check()
    if plan.calibration is not None:
        known = records_calibration.read(plan.calibration)
        return _gate(plan, known, _judged(plan, known["metric"]))
    if plan.set_name is not None or _are_rows(plan):
        found = _from_rows(plan)
        _say_report(plan, found)
        return _gate(plan, found, None) if plan.gate else Exit.DONE
    judged = _judged(plan, plan.metric)
    if plan.label and (code := _label(plan, judged)) != Exit.DONE:
        return code
    files = labels.label_files(plan.labels_dir, plan.labels_file)
    joined = labels.join(labels.read_labels(files), judged.claims, plan.metric)
    if not joined.human:
        if plan.label and not plan.gate:
            click.echo(_undecided(plan, joined), err=True)
            return Exit.DONE
        raise StorageError(_undecided(plan, joined))
    found = _report(plan, plan.folder, judged, joined, files)
    if plan.attack:
        found["attack"] = _attack(plan, judged, joined.human)
    records_calibration.write(plan.folder / records_calibration.name_of(plan.metric), found)
    _say_report(plan, found)
    return _gate(plan, found, judged) if plan.gate else Exit.DONE


def _judged(plan: Plan, metric: str) -> Judged:
    cases = read_cases(plan.eval_set, plan.labels_dir)
    judged = read_judged(plan.folder, metric, {case.id: case for case in cases})
    if judged.changed:
        told = f"Note: the verdicts on {judged.changed} answers do not count: {STALE}."
        click.echo(f"{told} Judge the run again with judge_answers.py.", err=True)
    return judged


def _label(plan: Plan, judged: Judged) -> int:
    return labels.label(
        judged.claims,
        plan.metric,
        plan.labels_dir,
        plan.who,
        sample=plan.sample,
        seed=plan.seed,
        ascii_only=plan.ascii_only,
        theme=plan.theme,
        plain=plan.plain,
    )


def _are_rows(plan: Plan) -> bool:
    """Are the files claims with contexts of their own? Both kinds at once are refused."""
    kinds = {labels.is_labelled_rows(path) for path in plan.labels_file}
    if len(kinds) > 1 or (kinds == {True} and len(plan.labels_file) > 1):
        raise StorageError(
            "--labels-file: name several files of verdict labels, or one file of claims with "
            "contexts."
        )
    return kinds == {True}


def _from_rows(plan: Plan) -> dict[str, Any]:
    """A judge against claims that people labelled outside of any run."""
    if plan.attack:
        raise StorageError("--attack needs a run with labels; leave --labels-file out.")
    if plan.metric != METRIC:
        raise StorageError(f"--labels-file: claims with contexts are labelled for {METRIC} alone.")
    path = plan.labels_file[0] if plan.labels_file else None
    loaded = validation_judge.drawn(
        validation_judge.load(path, plan.data, plan.set_name), plan.limit, plan.seed
    )
    with connect(plan.wanted) as link:
        judged, human = validation_judge.judged_rows(loaded, link.judge, link.salt, _workers(plan))
        judged = replace(judged, parameters=link.describe().get("parameters"))
        say_notes(link.notes(), plan.quiet)
    if not human:
        raise StorageError(f"the judge failed on all {judged.failed} claims; nothing to compare.")
    name = path.name if path is not None else str(plan.set_name)
    every = Joined(human, dict.fromkeys(labels.COUNTS, 0), {name: len(human)}, None, False)
    files = [validation_judge.file_of(path, plan.data, plan.set_name)]
    return _report(plan, Path(name), judged, every, files)


def _workers(plan: Plan) -> int:
    """Threads wait for a server; the local judge only gets slower by them."""
    return 1 if plan.wanted.judge == LOCAL else plan.wanted.concurrency


def _attack(plan: Plan, judged: Judged, human: Mapping[Key, int]) -> dict[str, Any]:
    """Attacks on the judge of the run, and on no other."""
    with connect(plan.wanted) as link:
        identity = link.judge.identity
        if [identity.to_dict()] != judged.judges:
            name = ", ".join(calibration_words.judge_name(one) for one in judged.judges)
            raise StorageError(
                f"--attack: the run was judged by {name}, and --judge is {identity}; name the "
                "run's judge."
            )
        workers = _workers(plan)
        found = attacked(judged.claims, human, link.judge, link.salt, plan.seed, workers)
        say_notes(link.notes(), plan.quiet)
        return found


def _undecided(plan: Plan, joined: Joined) -> str:
    """That nothing can be compared yet, in words."""
    item = ITEMS[plan.metric].removesuffix("s")
    left = ", ".join(f"{n} {show.LEFT_OUT[name]}" for name, n in joined.counts.items() if n)
    return (
        f"{plan.folder.name}: people have decided no {item} of this run yet"
        f"{f' ({left})' if left else ''}; label some with --label, or name --labels-file."
    )


def _report(
    plan: Plan,
    folder: Path,
    judged: Judged,
    joined: Joined,
    files: list[Path],
) -> dict[str, Any]:
    draws = validation_judge.Draws(seed=plan.seed)
    head = calibration_document(folder, plan.metric, judged, joined, files, plan.seed)
    return head | validation_judge.report(
        judged.claims, joined.human, draws, plan.worst, plan.metric
    )


def _say_report(plan: Plan, found: dict[str, Any]) -> None:
    if plan.output is not None:
        records_calibration.write(plan.output, found, texts=False)
    if plan.as_json:
        shown = rounded(found)
        click.echo(orjson.dumps(shown, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode())
    else:
        show.print_report(options.stdout_console(), found)


def _gate(plan: Plan, found: dict[str, Any], judged: Judged | None) -> int:
    """Say on stderr what stands against the run's judged figures; 1 when anything does."""
    said = gate_calibration.objections(
        found,
        [found["judge"]] if judged is None else judged.judges,
        [found["prompt"]] if judged is None else judged.prompts,
        parameters=found["parameters"] if judged is None else judged.parameters,
        min_kappa=plan.min_kappa,
        min_balanced_accuracy=plan.min_balanced_accuracy,
    )
    for sentence in said:
        click.echo(f"Gate: {sentence}.", err=True)
    if not said and not plan.quiet:
        click.echo("Gate: the judge is calibrated and unchanged.", err=True)
    return Exit.GATE_FAILED if said else Exit.DONE


def calibration_document(
    run: Path, metric: str, judged: Judged, joined: Joined, files: Sequence[Path], seed: int
) -> dict[str, Any]:
    """All but the figures. No clock time: the same labels and verdicts give the same bytes."""
    return {
        "schema": SCHEMA,
        "run_id": run.name,
        "metric": metric,
        "judge": single(judged.judges, "judges"),
        "prompt": single(judged.prompts, "prompts"),
        "parameters": judged.parameters,
        "failed_answers": judged.failed,
        "claims_by_code": judged.by_code,
        "attack": None,
        "seed": seed,
        "labels": {
            "files": sorted(path.name for path in files),
            "sha256": labels_sha256(files),
            "annotators": joined.annotators,
            "alpha": joined.alpha,
            "random_sample": joined.random_sample,
            "by_verdict": joined.by_verdict,
        }
        | joined.counts,
    }


def single(found: Sequence[dict[str, Any]], what: str) -> dict[str, Any]:
    """The single judge or prompt of a run. Raises StorageError when there are several."""
    if len(found) > 1:
        raise StorageError(
            f"the run's verdicts come from {len(found)} different {what}; judge the whole run "
            "again with one of them."
        )
    return found[0] if found else {}
