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
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core
sys.path.append(str(Path(__file__).resolve().parents[2]))  # the extras

import options
from extras.audit.audit_options import AuditOptions

if TYPE_CHECKING:
    from judging.connect import JudgeOptions
    from judging.cost import CostEstimate


@options.script(AuditOptions, {"today": click.DateTime(["%Y-%m-%d"])}, help=__doc__)
def main(asked: AuditOptions) -> int:
    """Audit the vault and print: the work is in audit.py."""
    from extras.audit.audit import LAST_AUDIT, audit, save
    from extras.audit.findings import ACCEPTED, KINDS, accept, audit_page
    from records.errors import StorageError
    from terminal.print_page import print_page

    fail_on = asked.fail_on
    if unknown := [kind for kind in fail_on if kind not in KINDS]:
        raise StorageError(f"--fail-on: {unknown[0]} is no kind; there are {', '.join(KINDS)}.")
    if bool(asked.accept) != bool(asked.reason):
        raise StorageError("--accept and --reason belong together: write why the finding is fine.")
    if asked.accept and asked.reason:
        accept(asked.accepted or ACCEPTED, asked.accept, asked.reason)
        options.say(f"{asked.accept} is accepted in {asked.accepted or ACCEPTED}.")
        return options.Exit.DONE
    if not asked.judge and (names := [n for n in ("dry_run", "yes") if getattr(asked, n)]):
        option = f"--{names[0].replace('_', '-')}"
        raise StorageError(f"{option} is about a judge; name one with --judge.")
    report = audit(
        asked,
        _judge(asked),
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


def _judge(asked: AuditOptions) -> JudgeOptions | None:
    """The judge that was named; None without one."""
    if not asked.judge:
        return None
    from judging.connect import JudgeOptions
    from judging.judge_files import judge_settings

    settings = judge_settings(**asked.words())
    return JudgeOptions.of(settings, vars(asked) | {"seed": 0})


def _agreed(expected: CostEstimate, asked: AuditOptions) -> bool:
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
