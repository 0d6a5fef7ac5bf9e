"""Find what is wrong with the documents of a vault, sorted by harm.

In: a folder of Markdown, text, HTML and PDF, or demo; with --eval-set also its labels and
questions, with --run what bots retrieved and refused. Out: labels whose place is gone or moved,
stale passages and past deadlines, sentences that may contradict each other, near doubles, gaps,
documents that crowd out others, and dead weight. Each has its places, quotes and reason. No model
is needed.

Pairs that may contradict each other are candidates: the same subject, another number, date or
negation. With --judge a judge is asked about the first --candidates of them, in both orders, and
only those that it confirms with quotes are findings.

A finding that is fine as it is: --accept KEY --reason TEXT adds it to eval/audit_accepted.toml,
which you commit. The latest audit is kept in eval/cache/audit.json; report_run.py names its
findings beside the failing cases that they touch.

\b
Examples:
  python eval/extras/audit/audit_documents.py ~/notes
  python eval/extras/audit/audit_documents.py ~/notes --eval-set eval_set.jsonl --run latest
  python eval/extras/audit/audit_documents.py ~/notes --judge gpt4o --candidates 50
  python eval/extras/audit/audit_documents.py ~/notes --accept stale-1a2b3c4d --reason "on purpose"

Exit codes: 0 done, 1 a finding of --fail-on, 2 bad input or usage, 3 judge unreachable, 130
interrupted.
"""

from __future__ import annotations

import sys
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options

if TYPE_CHECKING:
    from judging.connect import JudgeOptions
    from judging.cost import CostEstimate


@options.command(help=__doc__)
@click.argument("vault")
@options.eval_set_option
@options.labels_option
@options.results_dir_option
@options.runs_option(default=(), show_default="none", help="Runs to look at, such as latest.")
@click.option(
    "--today",
    type=click.DateTime(["%Y-%m-%d"]),
    show_default="the date",
    help="Day from which a date is past.",
)
@click.option(
    "--candidates",
    type=click.IntRange(1, 10_000),
    default=100,
    help="Pairs that a judge is asked about, two calls each.",
)
@click.option("--accepted", type=options.FILE, help="File of accepted findings.  [default: "
              "eval/audit_accepted.toml]")  # fmt: skip
@click.option("--accept", metavar="KEY", help="Accept this finding, with --reason, and stop.")
@click.option("--reason", metavar="TEXT", help="Why the finding of --accept is fine.")
@click.option(
    "--fail-on",
    type=options.Names(),
    metavar="KIND,…",
    help="Exit 1 when there is a finding of these kinds, such as gold,stale.",
)
@click.option("--markdown", type=options.FILE, help="Write all findings as a Markdown page.")
@click.option("--dry-run", is_flag=True, help="Print the judge's calls and cost; ask nothing.")
@click.option("-y", "--yes", is_flag=True, help="Ask the judge without a question first.")
@partial(options.judge_options, usual="none")
@options.json_option
@options.verbosity_options
def main(vault: str, eval_set: Path, results_dir: Path, run: tuple[str, ...], **values: Any) -> int:
    """Audit the vault and print: the work is in audit.py."""
    from extras.audit.audit import LAST_AUDIT, AuditOptions, audit, run_folders, save, usable_set
    from extras.audit.findings import KINDS, accept, audit_page
    from records.errors import StorageError
    from records.runs import HOME
    from terminal.print_page import print_page

    accepted = values["accepted"] or HOME / "eval" / "audit_accepted.toml"
    fail_on = values["fail_on"] or ()
    if unknown := [kind for kind in fail_on if kind not in KINDS]:
        raise StorageError(f"--fail-on: {unknown[0]} is no kind; there are {', '.join(KINDS)}.")
    if bool(values["accept"]) != bool(values["reason"]):
        raise StorageError("--accept and --reason belong together: write why the finding is fine.")
    if values["accept"]:
        accept(accepted, values["accept"], values["reason"])
        options.say(f"{values['accept']} is accepted in {accepted}.")
        return options.Exit.DONE
    if not values["judge"] and (asks := [n for n in ("dry_run", "yes") if values[n]]):
        option = f"--{asks[0].replace('_', '-')}"
        raise StorageError(f"{option} is about a judge; name one with --judge.")
    today: datetime | None = values["today"]
    report = audit(
        AuditOptions(
            vault,
            usable_set(eval_set),
            values["labels_dir"],
            run_folders(run, results_dir),
            today.date() if today else date.today(),
            accepted,
            _judge(values),
            values["candidates"],
        ),
        lambda expected: _agreed(expected, values),
    )
    if report is None:
        return options.Exit.DONE
    data = save(report, Path(values["cache_dir"]) / LAST_AUDIT)
    if values["markdown"]:
        from records.files import replace_bytes
        from views.page import markdown

        replace_bytes(values["markdown"], markdown([audit_page(report, None)]).encode())
    if values["as_json"]:
        from storage import json_bytes

        click.echo(json_bytes(data), nl=False)
    else:
        page = audit_page(report, None) if values["verbose"] else audit_page(report)
        print_page(options.stdout_console(), page, every=values["verbose"])
    failed = any(report.counts.get(kind) for kind in fail_on)
    return options.Exit.GATE_FAILED if failed else options.Exit.DONE


def _judge(values: dict[str, Any]) -> JudgeOptions | None:
    """The judge that was named; None without one."""
    if not values["judge"]:
        return None
    from judging.connect import JudgeOptions
    from judging.judge_files import judge_settings

    settings = judge_settings(**options.judge_words(values))
    return JudgeOptions.of(settings, values | {"seed": 0})


def _agreed(expected: CostEstimate, values: dict[str, Any]) -> bool:
    """Whether the judge may be asked, after its calls and cost were printed."""
    from judging.show import estimate_line
    from records.errors import StorageError

    options.say(f"About contradictions the judge is asked {estimate_line(expected, None)}")
    if values["dry_run"]:
        return False
    if values["yes"] or not expected.calls:
        return True
    if not sys.stdin.isatty():
        raise StorageError(
            "Agree to these calls with --yes; without a terminal no one can be asked."
        )
    return click.confirm("Ask?", err=True)


if __name__ == "__main__":
    main()
