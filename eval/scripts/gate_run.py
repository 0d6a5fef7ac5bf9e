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
input, 130 interrupted.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
import storage
from storage import StorageError

if TYPE_CHECKING:
    from records.gate_verdict import Verdict

GATES_FILE = storage.own_file("gates.toml")


@options.command(help=__doc__)
@options.run_option
@options.results_dir_option
@click.option("--baseline", metavar="RUN|FILE", help="Run id, run folder, metrics.json or report.")
@click.option(
    "--gates",
    "gates_file",
    type=options.FILE,
    default=GATES_FILE,
    show_default="eval/gates.toml",
    help="Rules beside the built-in ones.",
)
@click.option(
    "--init",
    metavar="RUN",
    help="Write a gates file for the set of this run, to --gates, and stop.",
)
@click.option("--force", is_flag=True, help="With --init: replace the file that is there.")
@click.option(
    "--accept",
    "accepts",
    multiple=True,
    metavar="METRIC=REASON",
    help="Accept this failure, and record why.",
)
@options.allow_missing_option(help="Allow up to N cases without a result.")
@click.option("--allow-stopped", is_flag=True, help="Allow a run that was stopped.")
@click.option(
    "--no-rescore",
    is_flag=True,
    help="Do not score the baseline again with the labels of the run.",
)
@click.option("--junit", "junit_file", type=options.FILE, help="Write JUnit XML to this file.")
@click.option(
    "--markdown", "markdown_file", type=options.FILE, help="Write a comment to this file."
)
@click.option("--github", is_flag=True, help="Print GitHub Actions annotations too.")
@options.plugin_option(help="The file with metrics of your own that the run was scored with.")
@options.run_set_option
@options.labels_option
@options.seed_option
@options.json_option
@options.verbosity_options
def main(run: str, results_dir: Path, gates_file: Path, **values: Any) -> int:
    from decisions.conditions import baseline_of, measured_run
    from decisions.gate import check_names, evaluate
    from decisions.gate_checks import GateEvidence
    from decisions.gate_rules import GateRules, read_rules
    from ragmetrics import catalogue
    from records.gate_verdict import parse_accepts
    from scorers.copies import scored_alike
    from scorers.custom import read_plugins

    if values["github"] and values["as_json"]:
        raise StorageError("--json and --github both write to stdout; gate.json has the JSON.")
    if values["init"] is not None:
        return _init(storage.find_run(results_dir, values["init"]), gates_file, values["force"])
    if values["force"]:
        raise StorageError("--force belongs to --init; leave it out.")
    default = gates_file == GATES_FILE and not gates_file.exists()
    rules = replace(
        GateRules(None) if default else read_rules(gates_file),
        allow_missing=values["allow_missing"],
        allow_stopped=values["allow_stopped"],
    )
    accepts = parse_accepts(values["accepts"])
    new = measured_run(storage.find_run(results_dir, run))
    base = baseline_of(results_dir, values["baseline"]) if values["baseline"] else None
    check_names(rules, [*catalogue.SECTIONS, *new.sections, *(base.sections if base else ())])
    assert new.folder is not None
    places = options.set_of_run(new.folder, values["eval_set"], values["labels_dir"])
    rescored = 0
    if base is not None and base.folder is not None:
        again = scored_alike(base.folder, new.folder, *places, rescore=not values["no_rescore"])
        scored = click.get_current_context().with_resource(again)
        base, rescored = measured_run(scored.folder), scored.cases
    plugins = read_plugins(values["plugins"])
    evidence = GateEvidence(new, base, *places, plugins, values["seed"], rescored=rescored)
    verdict = evaluate(rules, evidence, accepts)
    written = _write(verdict, new.folder, values["junit_file"], values["markdown_file"])
    _show(verdict, gates_file, values)
    if not values["quiet"]:
        options.say(f"Written: {', '.join(map(str, written))}")
    return options.Exit.DONE if verdict.passed else options.Exit.GATE_FAILED


def _init(folder: Path, gates_file: Path, force: bool) -> int:
    """Write a gates file from a run; what is there stays unless ``force`` is given."""
    from decisions.conditions import measured_run
    from decisions.gate_init import gates_text

    text = gates_text(measured_run(folder))
    if gates_file.exists() and not force:
        raise StorageError(
            f"{gates_file}: is there already; name another file with --gates, or replace it with "
            "--force."
        )
    storage.replace_bytes(gates_file, text.encode("utf-8"))
    options.say(f"Written: {gates_file}")
    return options.Exit.DONE


def _write(verdict: Verdict, folder: Path, xml: Path | None, comment: Path | None) -> list[Path]:
    """gate.json in the run folder, and what was asked for, each in one step."""
    from decisions.gate_print import MARKER, MOST, gate_page, junit
    from views.page import markdown

    target = folder / storage.GATE
    storage.replace_json(target, storage.rounded(verdict.to_dict()))
    if xml is not None:
        storage.replace_bytes(xml, junit(verdict))
    if comment is not None:
        pages = [gate_page(verdict)]
        text = markdown(pages, head=MARKER, most=MOST, rest=f"{storage.GATE} holds all checks")
        storage.replace_bytes(comment, text.encode("utf-8", "replace"))
    return [target, *(path for path in (xml, comment) if path is not None)]


def _show(verdict: Verdict, gates_file: Path, values: dict[str, Any]) -> None:
    """JSON, or the table; with --github the table is fenced, so that it can hold no command."""
    import secrets

    from decisions.gate_print import gate_page, workflow_commands
    from terminal.print_page import print_page

    if values["as_json"]:
        click.echo(storage.json_bytes(storage.rounded(verdict.to_dict())), nl=False)
        return
    token = secrets.token_hex(16)
    if values["github"]:
        click.echo(f"::stop-commands::{token}")
    print_page(options.stdout_console(), gate_page(verdict), every=values["verbose"])
    if values["github"]:
        click.echo(f"::{token}::")
        for line in workflow_commands(verdict, _shown(gates_file)):
            click.echo(line)


def _shown(path: Path) -> str:
    """The gates file as the repository names it, where it lies in the current folder."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


if __name__ == "__main__":
    main()
