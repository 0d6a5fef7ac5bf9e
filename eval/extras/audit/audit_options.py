"""The options of an audit of documents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from judging.choice import JudgeChoice, judge_option
from records import opt


@dataclass(frozen=True, kw_only=True)
class AuditOptions(JudgeChoice, opt.Output):
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
