"""Write the report of one run as Markdown and one self-contained HTML page.

In: a scored run (metrics.json and, for single answers, scores/, results.jsonl, config.json,
calibration.json and calibration_correctness.json), the eval set, and the targets. Out: report.md
and report.html in the run folder, with the same content; their paths on stdout (with --json the
blocks of the report instead). The page loads nothing: open it from disk, or mail it. A small script
in it filters and sorts the list of cases; everything is readable without it.

With --baseline the page begins with what got better or worse, with the verdicts of compare_runs.py.
It shows the cases that broke or were fixed with both answers side by side.

\b
Examples:
  python eval/scripts/report_run.py
  python eval/scripts/report_run.py --run night-12 --baseline night-11 --history
  python eval/scripts/report_run.py --run night-12 --format html --worst 50
  python eval/scripts/report_run.py --worst-by recall@5 --output /tmp/recall
  python eval/scripts/report_run.py --json | jq '.blocks[] | select(.kind == "section") | .title'
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import options
import storage
from records import runs
from records.files import json_bytes
from records.metrics import rounded
from records.targets import TARGETS, read_advisory, read_targets
from terminal.page import conclusion, page_data

FORMATS = ("md", "html")


class Formats(click.ParamType[tuple[str, ...]]):
    """Forms such as ``md,html``, in that order, each once."""

    name = "form,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        forms = [part.strip() for part in value.split(",") if part.strip()]
        if not forms or set(forms) - set(FORMATS):
            self.fail(f"{value!r}: name some of {', '.join(FORMATS)}, with commas.", param, ctx)
        return tuple(dict.fromkeys(forms))


@options.command(help=__doc__)
@options.run_option
@options.run_set_option
@options.labels_option
@options.results_dir_option
@click.option(
    "--format", "formats", type=Formats(), default=",".join(FORMATS), help="The forms to write."
)
@click.option(
    "--output",
    type=options.PATH,
    help="Write OUTPUT.md and OUTPUT.html.  [default: report in the run folder]",
)
@click.option("--baseline", metavar="RUN", help="Run id or folder to compare with.")
@click.option(
    "--ignore-invariants",
    is_flag=True,
    help="With --baseline: compare runs although they were measured in different ways.",
)
@click.option(
    "--history",
    is_flag=True,
    help="Show the history of the primary metrics over commits and the runs beside this one.",
)
@click.option(
    "--worst",
    type=click.IntRange(0, 1000),
    help="Answers to show in full: flipped, failed, worst. [default: as many as fit into 5 MB]",
)
@click.option(
    "--worst-by",
    metavar="METRIC",
    help="List the worst by this metric. [default: by their reasons for failing]",
)
@click.option(
    "--confidence-by",
    metavar="METRIC",
    help="Compare the bot's confidence with success by this metric. [default: judged correctness, "
    "attribution_hit or recall_any@5]",
)
@options.targets_option
@options.json_option
@click.option("-q", "--quiet", is_flag=True, help="No messages on stderr.")
def main(
    run: str,
    eval_set: Path | None,
    labels_dir: Path | None,
    results_dir: Path,
    formats: tuple[str, ...],
    output: Path | None,
    baseline: str | None,
    targets_file: Path | None,
    as_json: bool,
    quiet: bool,
    **choices: Any,
) -> None:
    from clients.embedder import question_vectors
    from scorers.copies import scored_alike
    from views.report.build import ReportOptions, build
    from views.report.page import write

    folder = storage.find_run(results_dir, run)
    bounds = targets_file or TARGETS
    places = options.set_of_run(folder, eval_set, labels_dir)
    base, rescored = storage.find_run(results_dir, baseline) if baseline else None, 0
    if base is not None:
        again = scored_alike(base, folder, *places)
        scored = click.get_current_context().with_resource(again)
        base, rescored = scored.folder, scored.cases
    asked = ReportOptions(
        *places,
        read_targets(bounds),
        read_advisory(bounds),
        baseline=base,
        rescored=rescored,
        targets_file=bounds,
        embed=question_vectors(runs.CACHE_DIR),
        **choices,
    )
    report = build(folder, asked)
    written = write(report, formats, output or folder / storage.REPORT)
    if as_json:
        click.echo(json_bytes(rounded(page_data(report))), nl=False)
    for path in written:
        click.echo(path, err=as_json)
    if not quiet:
        options.say(conclusion(report))


if __name__ == "__main__":
    main()
