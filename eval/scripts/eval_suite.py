"""Score all perspectives of a run together, diagnose its faults, and fail when it got worse.

In: a run (--run), or a bot to ask first (--api-url); the eval set and its labels. Out: a table, a
diagnosis in words, and a report in JSON (suite.json in the run folder; report_run.py writes one as
Markdown and as a page). It needs no language model. A metric that cannot be measured is shown with
its reason, never as passed.

\b
Examples:
  python eval/scripts/eval_suite.py --run latest
  python eval/scripts/eval_suite.py --api-url demo --suite smoke
  python eval/scripts/eval_suite.py --sections retrieval,safety -v --save-trace
  python eval/scripts/eval_suite.py --baseline eval/results/night-12/metrics.json
  python eval/scripts/eval_suite.py --plugin docs/examples/custom_metric.py

Exit codes: 0 done, 1 a regression, a missed gate, an INCOMPLETE comparison, one of too few cases of
a set that changed, or a baseline that was measured in another way, 2 bad input, 3 bot
unreachable."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import options
from scorers.suite_options import SuiteOptions

if TYPE_CHECKING:
    from scorers.suite_report import SuiteReport


@options.script(SuiteOptions, help=__doc__)
def main(asked: SuiteOptions) -> int:
    from clients.embedder import question_vectors
    from scorers.suite import run_suite

    if asked.run_id and not asked.api_url:
        asked = replace(asked, run=asked.run_id)
    outcome = options.run_extras(asked)
    if isinstance(outcome, int):
        return outcome
    plan = replace(outcome, embed=question_vectors(asked.cache_dir))
    report, written = run_suite(plan, options.stderr_console(quiet=plan.quiet))
    show(report, plan.as_json, plan.verbose)
    if not plan.quiet:
        options.say(f"Written: {', '.join(map(str, written))}")
    return options.Exit.DONE if report.passed else options.Exit.GATE_FAILED


def show(report: SuiteReport, as_json: bool, every: bool) -> None:
    """The report on stdout: as JSON, or as tables."""
    if as_json:
        options.print_json(report.to_dict())
        return
    from scorers.suite_report import suite_page
    from terminal.print_page import print_page

    print_page(options.stdout_console(), suite_page(report, every))


if __name__ == "__main__":
    main()
