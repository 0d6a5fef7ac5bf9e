"""Pass or fail a run by the rules of a gates file, and say why.

In: a scored run, a gates file (floors, limits of cost and time, coverage, cases that must pass,
judges that people must have checked, and how much worse than a baseline it may be), and the
baseline: another run, its metrics.json, or a report of eval_suite.py. Out: gate.json in the run
folder, a table on the terminal, and from the same verdict JUnit XML, GitHub annotations and
Markdown for a pull request.

\b
Examples:
  python eval/scripts/gate_run.py --run latest
  python eval/scripts/gate_run.py --run new --baseline old --junit gate.xml
  python eval/scripts/gate_run.py --baseline eval/results/main/metrics.json --github
  python eval/scripts/gate_run.py --baseline old --accept 'ndcg@5=rank matters less than recall'

The gate fails if a case that was asked has no result. With a baseline the gate also fails if a
case is missing, if a section or metric is no longer measured, if its coverage is lower, or if the
two runs were not measured alike. A rule fails if what it names could not be measured. EVAL.md
explains the rules.

Exit codes: 0 passed, 1 failed, 2 bad input, 130 interrupted.
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
FILE = click.Path(path_type=Path, dir_okay=False)


@options.command(help=__doc__)
@options.run_option
@options.results_dir_option
@click.option("--baseline", metavar="RUN|FILE", help="Run id, run folder, metrics.json or report.")
@click.option(
    "--gates",
    "gates_file",
    type=FILE,
    default=GATES_FILE,
    show_default="eval/gates.toml",
    help="The rules.",
)
@click.option(
    "--accept",
    "accepts",
    multiple=True,
    metavar="METRIC=REASON",
    help="Let this failure pass, and record why.",
)
@click.option(
    "--allow-missing",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Let up to N cases without a result pass.",
)
@click.option("--junit", "junit_file", type=FILE, help="Write JUnit XML to this file.")
@click.option("--markdown", "markdown_file", type=FILE, help="Write a comment to this file.")
@click.option("--github", is_flag=True, help="Print GitHub Actions annotations too.")
@click.option(
    "--plugin",
    "plugins",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="The file with metrics of your own that the run was scored with.",
)
@options.eval_set_option
@options.labels_option
@options.seed_option
@options.json_option
@options.verbosity_options
def main(run: str, results_dir: Path, gates_file: Path, **values: Any) -> int:
    from decisions.gate import check_names, evaluate
    from decisions.gate_checks import GateEvidence, baseline_of, side_of
    from decisions.gate_rules import read_rules
    from ragmetrics import catalogue
    from records.gate_verdict import parse_accepts
    from scorers.custom import read_plugins

    if values["github"] and values["as_json"]:
        raise StorageError("--json and --github both want stdout; gate.json holds the JSON.")
    rules = replace(read_rules(gates_file), allow_missing=values["allow_missing"])
    accepts = parse_accepts(values["accepts"])
    new = side_of(storage.find_run(results_dir, run))
    base = baseline_of(results_dir, values["baseline"]) if values["baseline"] else None
    check_names(
        rules, [*catalogue.SECTIONS, *new.sections, *(base.sections if base else ())], gates_file
    )
    evidence = GateEvidence(
        new,
        base,
        values["eval_set"],
        values["labels_dir"],
        read_plugins(values["plugins"]),
        values["seed"],
    )
    verdict = evaluate(rules, evidence, accepts)
    assert new.folder is not None
    written = _write(verdict, new.folder, values["junit_file"], values["markdown_file"])
    _show(verdict, gates_file, values)
    for path in written if not values["quiet"] else ():
        click.echo(f"Written: {path}", err=True)
    return options.Exit.DONE if verdict.passed else options.Exit.GATE_FAILED


def _write(verdict: Verdict, folder: Path, xml: Path | None, comment: Path | None) -> list[Path]:
    """gate.json in the run folder, and what was asked for, each in one step."""
    from decisions.gate_print import junit, markdown

    target = folder / storage.GATE
    storage.replace_json(target, storage.rounded(verdict.to_dict()))
    if xml is not None:
        storage.replace_bytes(xml, junit(verdict))
    if comment is not None:
        storage.replace_bytes(comment, markdown(verdict).encode("utf-8", "replace"))
    return [target, *(path for path in (xml, comment) if path is not None)]


def _show(verdict: Verdict, gates_file: Path, values: dict[str, Any]) -> None:
    """JSON, or the table; with --github the table is fenced, so that it can hold no command."""
    import secrets

    from decisions.gate_print import print_verdict, workflow_commands

    if values["as_json"]:
        click.echo(storage.json_bytes(storage.rounded(verdict.to_dict())), nl=False)
        return
    token = secrets.token_hex(16)
    if values["github"]:
        click.echo(f"::stop-commands::{token}")
    print_verdict(options.stdout_console(), verdict, values["verbose"])
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
