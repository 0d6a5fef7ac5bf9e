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

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import options
from records import opt
from records.home import CACHE_DIR

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


@dataclass(frozen=True, kw_only=True)
class ReportRunOptions:
    """The options of report_run.py."""

    run: str = opt.run()
    eval_set: Path | None = opt.run_set()
    labels_dir: Path | None = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    formats: tuple[str, ...] = opt.value(
        "The forms to write.", names="--format formats", default=FORMATS, shown=",".join(FORMATS)
    )
    output: Path | None = opt.value(
        "Write OUTPUT.md and OUTPUT.html.  [default: report in the run folder]"
    )
    baseline: str | None = opt.value("Run id or folder to compare with.", metavar="RUN")
    ignore_invariants: bool = opt.flag(
        "With --baseline: compare runs although they were measured in different ways."
    )
    history: bool = opt.flag(
        "Show the history of the primary metrics over commits and the runs beside this one."
    )
    worst: int | None = opt.value(
        "Answers to show in full: flipped, failed, worst. [default: as many as fit into 5 MB]",
        low=0,
        high=1000,
    )
    worst_by: str | None = opt.value(
        "List the worst by this metric. [default: by their reasons for failing]", metavar="METRIC"
    )
    confidence_by: str | None = opt.setting(
        "metric whose success the bot's confidence is compared with (judged correctness, "
        "attribution_hit or recall_any@5)"
    )
    targets_file: Path | None = opt.targets()
    as_json: bool = opt.as_json()
    quiet: bool = opt.quiet()


@options.script(ReportRunOptions, {"formats": Formats()}, help=__doc__)
def main(asked: ReportRunOptions) -> None:
    from clients.embedder import question_vectors
    from records.runs import REPORT, find_run
    from records.targets import TARGETS, read_advisory, read_targets
    from scorers.copies import scored_alike
    from terminal.page import conclusion, page_data
    from views.report.build import ReportOptions, build
    from views.report.page import write

    folder = find_run(asked.results_dir, asked.run)
    bounds = asked.targets_file or TARGETS
    places = options.set_of_run(folder, asked.eval_set, asked.labels_dir)
    base, rescored = find_run(asked.results_dir, asked.baseline) if asked.baseline else None, 0
    if base is not None:
        again = scored_alike(base, folder, *places)
        scored = click.get_current_context().with_resource(again)
        base, rescored = scored.folder, scored.cases
    report_options = ReportOptions(
        *places,
        read_targets(bounds),
        read_advisory(bounds),
        worst=asked.worst,
        worst_by=asked.worst_by,
        confidence_by=asked.confidence_by,
        baseline=base,
        rescored=rescored,
        ignore_invariants=asked.ignore_invariants,
        history=asked.history,
        targets_file=bounds,
        embed=question_vectors(CACHE_DIR),
    )
    report = build(folder, report_options)
    written = write(report, asked.formats, asked.output or folder / REPORT)
    if asked.as_json:
        options.print_json(page_data(report))
    for path in written:
        click.echo(path, err=asked.as_json)
    if not asked.quiet:
        options.say(conclusion(report))


if __name__ == "__main__":
    main()
