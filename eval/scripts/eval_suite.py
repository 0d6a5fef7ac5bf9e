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

Exit codes: 0 done, 1 a regression, a missed gate, or a baseline that was measured in another way, 2
bad input, 3 bot unreachable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
import storage

if TYPE_CHECKING:
    from scorers.suite_report import SuiteReport


@options.command(help=__doc__)
@options.run_beside_run_id_option
@click.option("--api-url", help="Ask this bot first, or 'demo' for the embedded one.")
@click.option("--profile", help="With --api-url: how to ask the bot.")
@click.option(
    "--header", multiple=True, metavar="NAME=VARIABLE", help="With --api-url: see run_eval.py."
)
@click.option("--folder-mode", help="With --api-url: how the bot chooses folders.")
@click.option("--run-id", help="With --api-url: name of the run folder; else like --run.")
@options.eval_set_option
@options.labels_option
@options.results_dir_option
@click.option(
    "--sections",
    "--perspective",
    type=options.Names(),
    metavar="NAME,…",
    help="Only these: retrieval, searches, tools, context, groundedness, embedding, abstention, "
    "safety, pipeline, judged, conversations.",
)
@click.option(
    "--suite",
    type=click.Choice(["smoke", "full"]),
    default="full",
    help="smoke: a small fixed part of the set, in seconds.",
)
@options.embedding_model_option()
@options.vectors_option
@options.plugin_option(help="Metrics of your own (docs/examples/custom_metric.py).")
@options.targets_option
@click.option(
    "--gates",
    "gates_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Exit 1 when a gate of this file is missed; it has the form of targets.toml.",
)
@options.allow_missing_option(help="With --gates: let up to N cases without a result pass.")
@click.option(
    "--baseline",
    type=options.PATH,
    help="Run or metrics.json to compare with; exit 1 on a regression. Exit 1 also if it was "
    "measured with another judge, other labels or another set.",
)
@click.option(
    "--max-drop",
    type=options.FiniteRange(0),
    help="With --baseline: a larger fall is a regression. The interval does not matter then.",
)
@click.option("--save-trace", is_flag=True, help="Write traces/ of the failed cases.")
@click.option(
    "--brief",
    is_flag=True,
    help="Print the primary metrics, the findings and one bad case.",
)
@click.option(
    "--output",
    type=options.PATH,
    help="Write OUTPUT.json.  [default: suite in the run folder]",
)
@options.seed_option
@options.json_option
@options.verbosity_options
def main(brief: bool, **values: Any) -> int:
    from clients.embedder import question_vectors
    from scorers.suite import SuiteOptions, run_suite

    if values["run_id"] and not values["api_url"]:
        values["run"] = values["run_id"]
    outcome = options.run_extras(values)
    if isinstance(outcome, int):
        return outcome
    plan = SuiteOptions(**outcome, embed=question_vectors(values["cache_dir"]))
    report, written = run_suite(plan, options.stderr_console(quiet=plan.quiet))
    show(report, plan.as_json, plan.verbose, brief)
    if brief and not plan.as_json:
        from views.worst import print_worst_of

        folder = storage.find_run(plan.results_dir, report.run_id if plan.api_url else plan.run)
        console = options.stdout_console()
        print_worst_of(console, folder, "retrieval", plan.eval_set, plan.labels_dir)
    if not plan.quiet and not brief:
        options.say(f"Written: {', '.join(map(str, written))}")
    return options.Exit.DONE if report.passed else options.Exit.GATE_FAILED


def show(report: SuiteReport, as_json: bool, every: bool, brief: bool) -> None:
    """The report on stdout: as JSON, in a few lines, or as tables."""
    if as_json:
        click.echo(storage.json_bytes(storage.rounded(report.to_dict())), nl=False)
        return
    from scorers.suite_report import brief_page, suite_page
    from terminal.print_page import print_page

    page = brief_page(report) if brief else suite_page(report, every)
    print_page(options.stdout_console(), page)


if __name__ == "__main__":
    main()
