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
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options
from judging.choice import JudgeChoice, judge_option
from records import opt

if TYPE_CHECKING:
    from judging.connect import JudgeOptions
    from judging.cost import CostEstimate


@dataclass(frozen=True, kw_only=True)
class AuditScriptOptions(JudgeChoice, opt.Output):
    """The options of audit_documents.py."""

    vault: str = opt.argument(required=True)
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    runs: tuple[str, ...] = opt.value(
        "Runs to look at, such as latest.",
        names="--run --run-id",
        default=(),
        shown="none",
        metavar="RUN,…",
    )
    today: datetime | None = opt.value("Day from which a date is past.", shown="the date")
    candidates: int = opt.value(
        "Pairs that a judge is asked about, two calls each.", default=100, low=1, high=10_000
    )
    accepted: Path | None = opt.value(
        "File of accepted findings.  [default: eval/audit_accepted.toml]", path="file"
    )
    accept: str | None = opt.value("Accept this finding, with --reason, and stop.", metavar="KEY")
    reason: str | None = opt.value("Why the finding of --accept is fine.", metavar="TEXT")
    fail_on: tuple[str, ...] = opt.value(
        "Exit 1 when there is a finding of these kinds, such as gold,stale.",
        default=(),
        metavar="KIND,…",
    )
    markdown: Path | None = opt.value("Write all findings as a Markdown page.", path="file")
    dry_run: bool = opt.flag("Print the judge's calls and cost; ask nothing.")
    yes: bool = opt.flag("Ask the judge without a question first.", names="-y --yes")
    judge: str = judge_option(own_rules=False)


@options.script(AuditScriptOptions, {"today": click.DateTime(["%Y-%m-%d"])}, help=__doc__)
def main(asked: AuditScriptOptions) -> int:
    """Audit the vault and print: the work is in audit.py."""
    from extras.audit.audit import LAST_AUDIT, AuditOptions, audit, save, usable_set
    from extras.audit.findings import KINDS, accept, audit_page
    from records.errors import StorageError
    from records.runs import HOME, find_run
    from terminal.print_page import print_page

    accepted = asked.accepted or HOME / "eval" / "audit_accepted.toml"
    fail_on = asked.fail_on
    if unknown := [kind for kind in fail_on if kind not in KINDS]:
        raise StorageError(f"--fail-on: {unknown[0]} is no kind; there are {', '.join(KINDS)}.")
    if bool(asked.accept) != bool(asked.reason):
        raise StorageError("--accept and --reason belong together: write why the finding is fine.")
    if asked.accept and asked.reason:
        accept(accepted, asked.accept, asked.reason)
        options.say(f"{asked.accept} is accepted in {accepted}.")
        return options.Exit.DONE
    if not asked.judge and (names := [n for n in ("dry_run", "yes") if getattr(asked, n)]):
        option = f"--{names[0].replace('_', '-')}"
        raise StorageError(f"{option} is about a judge; name one with --judge.")
    report = audit(
        AuditOptions(
            asked.vault,
            usable_set(asked.eval_set),
            asked.labels_dir,
            tuple(find_run(asked.results_dir, name) for name in asked.runs),
            asked.today.date() if asked.today else date.today(),
            accepted,
            _judge(asked),
            asked.candidates,
        ),
        lambda expected: _agreed(expected, asked),
        options.stderr_console(quiet=asked.quiet),
    )
    if report is None:
        return options.Exit.DONE
    data = save(report, asked.cache_dir / LAST_AUDIT)
    if asked.markdown:
        from records.files import replace_bytes
        from views.page import markdown

        replace_bytes(asked.markdown, markdown([audit_page(report, None)]).encode())
    if asked.as_json:
        from records.files import json_bytes

        click.echo(json_bytes(data), nl=False)
    else:
        page = audit_page(report, None) if asked.verbose else audit_page(report)
        print_page(options.stdout_console(), page, every=asked.verbose)
    failed = any(report.counts.get(kind) for kind in fail_on)
    return options.Exit.GATE_FAILED if failed else options.Exit.DONE


def _judge(asked: AuditScriptOptions) -> JudgeOptions | None:
    """The judge that was named; None without one."""
    if not asked.judge:
        return None
    from judging.connect import JudgeOptions
    from judging.judge_files import judge_settings

    settings = judge_settings(**asked.words())
    return JudgeOptions.of(settings, vars(asked) | {"seed": 0})


def _agreed(expected: CostEstimate, asked: AuditScriptOptions) -> bool:
    """Whether the judge may be asked, after its calls and cost were printed."""
    from judging.show import estimate_line
    from records.errors import StorageError

    options.say(f"About contradictions the judge is asked {estimate_line(expected, None)}")
    if asked.dry_run:
        return False
    if asked.yes or not expected.calls:
        return True
    if not sys.stdin.isatty():
        raise StorageError(
            "Agree to these calls with --yes; without a terminal no one can be asked."
        )
    return click.confirm("Ask?", err=True)


if __name__ == "__main__":
    main()
