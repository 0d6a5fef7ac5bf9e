"""Pass or fail a run by built-in rules and those of a gates file, and say why.

In: a scored run, and the baseline: another run, its committed metrics.json, or a report of
eval_suite.py. A gates file adds floors, limits of cost and time, cases that must pass, and judges
that people must have checked. Out: gate.json in the run folder and a table on the terminal. The
same verdict can be written as JUnit XML, GitHub annotations and Markdown for a pull request.

\b
Examples:
  python eval/scripts/gate_run.py --run latest
  python eval/scripts/gate_run.py --init my-run --gates my-gates.toml
  python eval/scripts/gate_run.py --run new --baseline old --junit gate.xml
  python eval/scripts/gate_run.py --baseline eval/results/main/metrics.json --github
  python eval/scripts/gate_run.py --baseline old --accept 'ndcg@5=rank matters less than recall'

Built in: the gate fails if a primary metric is worse than the baseline's by more than chance
explains, if too many calls failed, if an asked case has no result or the run was stopped, and if a
case, section or metric of the baseline is lost or the runs were measured differently. A rule of the
file fails if its metric could not be measured. If the gate passes although many cases broke, its
title says so, and a line names a rule that would fail. docs/decisions.md explains the rules.

Exit codes: 0 passed, 1 failed or no primary metric could be tested against the baseline, 2 bad
input, or neither a baseline nor a rule to check, 130 interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

import options
from records import opt
from records.errors import StorageError
from records.home import own_file

if TYPE_CHECKING:
    from records.gate_verdict import Verdict

GATES_FILE = own_file("gates.toml")


@dataclass(frozen=True, kw_only=True)
class GateOptions(opt.Output):
    """The options of gate_run.py."""

    run: str = opt.run()
    results_dir: Path = opt.results_dir()
    baseline: str | None = opt.value(
        "Run id, run folder, metrics.json or report.", metavar="RUN|FILE"
    )
    gates_file: Path = opt.value(
        "Rules beside the built-in ones.",
        names="--gates",
        default=GATES_FILE,
        path="file",
        shown="eval/gates.toml",
    )
    init: str | None = opt.value(
        "Write a gates file for the set of this run, to --gates, and stop.", metavar="RUN"
    )
    force: bool = opt.flag("With --init: replace the file that is there.")
    accepts: tuple[str, ...] = opt.repeated(
        "Accept this failure, and record why.", names="--accept", metavar="METRIC=REASON"
    )
    allow_missing: int = opt.value(
        "Allow up to N cases without a result.", default=0, low=0, metavar="N"
    )
    allow_stopped: bool = opt.setting("true allows a run that was stopped", default=False)
    no_rescore: bool = opt.flag("Do not score the baseline again with the labels of the run.")
    junit_file: Path | None = opt.value(
        "Write JUnit XML to this file.", names="--junit", path="file"
    )
    markdown_file: Path | None = opt.value(
        "Write a comment to this file.", names="--markdown", path="file"
    )
    github: bool = opt.flag("Print GitHub Actions annotations too.")
    plugins: tuple[Path, ...] = opt.plugin(
        "The file with metrics of your own that the run was scored with."
    )
    eval_set: Path | None = opt.run_set()
    labels_dir: Path | None = opt.labels_dir()
    seed: int = opt.seed()


@options.script(GateOptions, help=__doc__)
def main(asked: GateOptions) -> int:
    from decisions.alerts import since_pinned
    from decisions.conditions import baseline_of, measured_run
    from decisions.gate import check_names, evaluate
    from decisions.gate_checks import GateEvidence
    from decisions.gate_rules import GateRules, read_rules
    from ragmetrics import catalogue
    from records.gate_verdict import parse_accepts
    from records.runs import find_run
    from scorers.copies import scored_alike
    from scorers.custom import read_plugins

    if asked.github and asked.as_json:
        raise StorageError("--json and --github both write to stdout; gate.json has the JSON.")
    gates_file = asked.gates_file
    if asked.init is not None:
        return _init(find_run(asked.results_dir, asked.init), gates_file, asked.force)
    if asked.force:
        raise StorageError("--force belongs to --init; leave it out.")
    default = gates_file == GATES_FILE and not gates_file.exists()
    rules = replace(
        GateRules(None) if default else read_rules(gates_file),
        allow_missing=asked.allow_missing,
        allow_stopped=asked.allow_stopped,
    )
    accepts = parse_accepts(asked.accepts)
    new = measured_run(find_run(asked.results_dir, asked.run))
    base = baseline_of(asked.results_dir, asked.baseline) if asked.baseline else None
    check_names(rules, [*catalogue.SECTIONS, *new.sections, *(base.sections if base else ())])
    assert new.folder is not None
    places = options.set_of_run(new.folder, asked.eval_set, asked.labels_dir)
    rescored = 0
    if base is not None and base.folder is not None:
        again = scored_alike(base.folder, new.folder, *places, rescore=not asked.no_rescore)
        scored = click.get_current_context().with_resource(again)
        base, rescored = measured_run(scored.folder), scored.cases
    plugins = read_plugins(asked.plugins)
    since = since_pinned(asked.results_dir, new.folder) if base is not None else ""
    evidence = GateEvidence(new, base, *places, plugins, asked.seed)
    evidence = replace(evidence, rescored=rescored, since=since)
    verdict = evaluate(rules, evidence, accepts)
    written = _write(verdict, new.folder, asked.junit_file, asked.markdown_file)
    _show(verdict, asked)
    if not asked.quiet:
        options.say(f"Written: {', '.join(map(str, written))}")
    if verdict.unchecked:
        raise StorageError(
            "nothing that the bot answered was checked. Give --baseline RUN, or write rules for "
            "this set with gate_run.py --init RUN --gates FILE."
        )
    return options.Exit.DONE if verdict.passed else options.Exit.GATE_FAILED


def _init(folder: Path, gates_file: Path, force: bool) -> int:
    """Write a gates file from a run; what is there stays unless ``force`` is given."""
    from decisions.conditions import measured_run
    from decisions.gate_init import gates_text
    from records.files import replace_bytes

    text = gates_text(measured_run(folder))
    if gates_file.exists() and not force:
        raise StorageError(
            f"{gates_file}: is there already; name another file with --gates, or replace it with "
            "--force."
        )
    replace_bytes(gates_file, text.encode("utf-8"))
    options.say(f"Written: {gates_file}")
    return options.Exit.DONE


def _write(verdict: Verdict, folder: Path, xml: Path | None, comment: Path | None) -> list[Path]:
    """gate.json in the run folder, and what was asked for, each in one step."""
    from decisions.gate_print import MARKER, MOST, gate_page, junit
    from records.files import replace_bytes, replace_json
    from records.metrics import rounded
    from records.runs import GATE
    from views.page import markdown

    target = folder / GATE
    replace_json(target, rounded(verdict.to_dict()))
    if xml is not None:
        replace_bytes(xml, junit(verdict))
    if comment is not None:
        pages = [gate_page(verdict)]
        text = markdown(pages, head=MARKER, most=MOST, rest=f"{GATE} holds all checks")
        replace_bytes(comment, text.encode("utf-8", "replace"))
    return [target, *(path for path in (xml, comment) if path is not None)]


def _show(verdict: Verdict, asked: GateOptions) -> None:
    """JSON, or the table; with --github the table is fenced, so that it can hold no command."""
    import secrets

    from decisions.gate_print import gate_page, workflow_commands
    from terminal.print_page import print_page

    if asked.as_json:
        options.print_json(verdict.to_dict())
        return
    token = secrets.token_hex(16)
    if asked.github:
        click.echo(f"::stop-commands::{token}")
    print_page(options.stdout_console(), gate_page(verdict), every=asked.verbose)
    if asked.github:
        click.echo(f"::{token}::")
        for line in workflow_commands(verdict, _shown(asked.gates_file)):
            click.echo(line)


def _shown(path: Path) -> str:
    """The gates file as the repository names it, where it lies in the current folder."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


if __name__ == "__main__":
    main()
