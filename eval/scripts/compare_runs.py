"""Compare runs case by case: did it get better, worse, or is there no evidence?

In: scored run folders (ids or paths), the first one is the base; of a single pair it may have only
its committed metrics.json, then the primary metrics are compared. Out: what changed in the
configuration, the primary metrics (targets.toml, [decide]) with interval and corrected p, others
that got worse, the cases that broke or were fixed, and last the verdict; -v shows all of it. Runs
that were measured differently are refused (exit 2).

\b
Examples:
  python eval/scripts/compare_runs.py base latest
  python eval/scripts/compare_runs.py base k10 k20 --metrics recall@5,ndcg@5
  python eval/scripts/compare_runs.py base new --by category --flips 10 --cluster doc
  python eval/scripts/compare_runs.py base new --fail-on worse --markdown diff.md
  python eval/scripts/compare_runs.py base new --html diff.html -q
  python eval/scripts/compare_runs.py base base --labels-of v1.2

Exit codes: 0 done, 1 a --fail-on rule was triggered, 2 bad input or usage, or runs that cannot be
compared, 130 interrupted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
from decisions.headline import failures
from ragmetrics.catalogue import DIMENSIONS
from records import errors, extras, files, results, runs

if TYPE_CHECKING:
    from decisions.case_changes import CaseFlips
    from decisions.change import Change
    from decisions.comparison import Comparison
    from decisions.conversations import ConversationFlips
    from decisions.evidence_path import RunPath
    from decisions.flips import Flips
    from decisions.slices import Slices
    from records.run import Runs
    from terminal.page import Block, Page
    from views.case import Case


@dataclass(frozen=True)
class Report:
    """The printed parts: a comparison for each run, and of a single one the flips with the answers
    of both runs and, for a set with conversations, those that changed; and what extras say of the
    runs."""

    comparisons: list[Comparison]
    flips: Flips | None
    answers: tuple[Mapping[str, Case], Mapping[str, Case]]
    failures: list[str]
    conversations: ConversationFlips | None = None
    cases: CaseFlips | None = None
    in_common: Slices | None = None
    of_extras: Sequence[Block] = ()
    paths: Sequence[RunPath] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": results.SCHEMA,
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
            "flips": self.flips.to_dict(*self.answers) if self.flips else None,
            "failures": self.failures,
            "cases": self.cases.to_dict() if self.cases else None,
            "in_common": self.in_common.to_dict() if self.in_common else None,
        } | {
            name: value
            for name, value in (
                ("conversations", self.conversations and self.conversations.to_dict()),
                ("evidence_path", [path.to_dict() for path in self.paths]),
            )
            if value
        }


def _rank(row: Change) -> tuple[bool, int, float]:
    """Sorts primary metrics first, of them those that got worse."""
    from decisions.flips import interest

    return not row.primary, *interest(row)


def find_flips(
    folders: list[Path],
    comparison: Comparison,
    metric: str,
    count: int,
    eval_set: Path,
    tables: Runs,
) -> Flips | None:
    """The flips of a metric; without a name, of the primary one that moved most, worst first."""
    from decisions import flips

    if metric:
        row = comparison.row(metric)
        if row is None or not row.n:
            names = ", ".join(row.metric for row in comparison.rows if row.n)
            hint = errors.did_you_mean(metric, names.split(", "))
            raise errors.StorageError(
                f"--flips-by {metric}: not compared; choose from: {names}.{hint}"
            )
    else:
        changed = [row for row in comparison.rows if row.rose or row.fell]
        row = min(changed, key=_rank, default=None)
    if row is None or not count:
        return None
    return flips.find_flips(folders[0], folders[1], row, count, eval_set, tables)


def pages_of(report: Report, *, every: bool, slices: bool) -> list[Page]:
    """A page for each comparison; of a single one with its cases. ``every``: all of it; ``slices``:
    all slices of the cases that broke."""
    from decisions.compare_words import compare_page
    from decisions.evidence_path import path_blocks
    from decisions.slices import slice_blocks

    return [
        compare_page(
            comparison,
            cases=report.cases,
            flips=_flips(report, comparison) if every else (),
            talks=report.conversations,
            in_common=slice_blocks(report.in_common, every=slices),
            paths=[*path_blocks(report.paths)] if every else (),
            every=every,
        )
        for comparison in report.comparisons
    ]


def _flips(report: Report, comparison: Comparison) -> Sequence[Block]:
    """The cases that changed most, as both runs answered them."""
    from views.flips import flip_blocks

    runs = comparison.base_id, comparison.new_id
    return () if report.flips is None else [*flip_blocks(report.flips, *report.answers, runs)]


def show(report: Report, pages: Sequence[Page], everything: bool) -> None:
    """All of it on the terminal, the answer last."""
    from decisions.compare_words import matrix_page
    from terminal.page import Page
    from terminal.print_page import print_page

    console = options.stdout_console()
    if report.of_extras:
        print_page(console, Page("", report.of_extras))
    for index, page in enumerate(pages):
        if index:
            console.print()
        print_page(console, page, every=everything)
    if len(pages) > 1:
        print_page(console, matrix_page(report.comparisons))


def markdown_of(report: Report, pages: Sequence[Page]) -> bytes:
    """The same as a document: what failed and all runs side by side come first."""
    from decisions.compare_words import failures_page, matrix_page
    from terminal.page import Page
    from views.page import markdown

    head = [failures_page(report.failures)] if report.failures else []
    if len(pages) > 1:
        head.append(matrix_page(report.comparisons))
    return markdown(
        [*head, *pages, *([Page("", report.of_extras)] if report.of_extras else [])]
    ).encode()


def json_bytes(report: Report) -> bytes:
    """Canonical JSON with numbers of ten digits: the last ones depend on the machine."""

    def short(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.10g}")
        if isinstance(value, dict):
            return {key: short(item) for key, item in value.items()}
        return [short(item) for item in value] if isinstance(value, list | tuple) else value

    return files.json_bytes(short(report.to_dict()))


@options.command(help=__doc__)
@click.argument("base")
@click.argument("new", nargs=-1, required=True)
@click.option(
    "--metrics",
    type=options.Names(),
    default=(),
    help="Metrics that decide.  [default: the primary metrics of targets.toml]",
)
@click.option(
    "--sections", type=options.Names(), default=(), help="Only these, such as retrieval,pipeline."
)
@click.option(
    "--by", type=click.Choice(DIMENSIONS), multiple=True, help="Test the primary metrics in slices."
)
@click.option(
    "--cluster",
    default="auto",
    metavar="KEY",
    help="Count cases together by: auto (group, else gold document), none, or a key of the set.",
)
@click.option(
    "--varied",
    multiple=True,
    metavar="NAME",
    help="A setting that you changed on purpose, such as index or retriever.k (repeatable).",
)
@click.option(
    "--ignore-invariants", is_flag=True, help="Compare runs that were measured differently."
)
@click.option(
    "--no-rescore",
    is_flag=True,
    help="Do not score the base again with the labels of the new run: leave re-labelled cases out.",
)
@click.option(
    "--labels-of",
    default="",
    show_default=False,
    metavar="REF",
    help="Compare a run with itself, scored with the set as git has it at REF.",
)
@click.option(
    "--flips",
    "count",
    type=click.IntRange(min=0),
    default=3,
    help="Show N cases that broke, were fixed, or changed most (-v), each way (two runs).",
)
@click.option(
    "--flips-by",
    default="",
    show_default=False,
    metavar="METRIC",
    help="Metric of the flips.  [default: the primary metric that moved, worst first]",
)
@click.option(
    "--margin",
    type=options.FiniteRange(min=0, min_open=True),
    metavar="SIZE",
    help="The share of a metric's range that does not matter: an interval within it is SAME.",
)
@click.option(
    "--fail-on",
    type=options.Names(),
    default=(),
    metavar="RULE,…",
    help="Exit 1 on: worse (primary metrics), target, safety, cost, any-worse, or metrics by name.",
)
@click.option("--all", "every", is_flag=True, help="Compare every metric at every cut-off.")
@click.option("--markdown", type=options.FILE, help="Write the report to this file as Markdown.")
@click.option(
    "--html",
    "page",
    type=options.FILE,
    help="Write one HTML page to this file, with both answers of the cases that flipped.",
)
@options.run_set_option
@options.labels_option
@options.results_dir_option
@click.option(
    "--slices",
    is_flag=True,
    help="List everything that broken cases may have in common, with topics of the questions.",
)
@options.seed_option
@options.json_option
@options.verbosity_options
def main(
    base: str,
    new: tuple[str, ...],
    metrics: tuple[str, ...],
    sections: tuple[str, ...],
    by: tuple[str, ...],
    cluster: str,
    varied: tuple[str, ...],
    ignore_invariants: bool,
    no_rescore: bool,
    labels_of: str,
    count: int,
    flips_by: str,
    margin: float | None,
    fail_on: tuple[str, ...],
    every: bool,
    markdown: Path | None,
    page: Path | None,
    eval_set: Path | None,
    labels_dir: Path | None,
    results_dir: Path,
    slices: bool,
    seed: int,
    as_json: bool,
    verbose: bool,
    quiet: bool,
) -> int:
    from clients.embedder import question_vectors
    from decisions import compare
    from decisions.committed import compare_committed, is_committed_alone
    from decisions.compare import CompareOptions, compare_many
    from decisions.same_cases import ScoredBase
    from decisions.slices import slices_of_cases
    from records.run import Runs
    from scorers.copies import scored_alike, with_labels_of

    folders = [runs.find_run(results_dir, name) for name in (base, *new)]
    tables = Runs()
    eval_set, labels_dir = options.set_of_run(folders[1], eval_set, labels_dir)
    stack = click.get_current_context().with_resource(contextlib.ExitStack())
    if labels_of:
        if new != (base,):
            raise errors.StorageError(
                "--labels-of compares a run with itself, by two versions of its labels: write its "
                "name twice."
            )
        scored = ScoredBase(with_labels_of(folders[0], labels_of, eval_set, labels_dir, stack))
    else:
        again = scored_alike(folders[0], folders[1], eval_set, labels_dir, rescore=not no_rescore)
        scored = stack.enter_context(again)
    folders[0] = scored.folder
    compare_options = CompareOptions(
        metrics,
        sections,
        by,
        varied,
        ignore_invariants,
        seed,
        margin,
        eval_set=eval_set,
        labels_dir=labels_dir,
        rescored=scored.cases,
        labels_of=labels_of,
        override="--ignore-invariants",
        every=every,
    )
    talk = options.stderr_console(quiet=quiet)
    clusters, remarks = compare.clusters_of([*folders[1:], folders[0]], eval_set, cluster, tables)
    alone = len(new) == 1 and is_committed_alone(folders[0])
    if alone:
        comparisons = [compare_committed(folders[0], folders[1], compare_options, clusters, tables)]
    else:
        comparisons = compare_many(
            folders[0],
            folders[1:],
            compare_options,
            clusters=clusters,
            parts=slices_of_cases(eval_set, labels_dir) if by else None,
            tables=tables,
        )
    if by and (remark := compare.changed_set(eval_set, folders[1])):
        remarks.append(remark)
    for remark in remarks:
        talk.print(f"Note: {remark}")
    if verbose:
        talk.print(*(f"compared: {folder}" for folder in folders), sep="\n")
    flips = talks = cases = in_common = None
    answers: tuple[Mapping[str, Case], Mapping[str, Case]] = ({}, {})
    paths: Sequence[RunPath] = ()
    if len(comparisons) == 1:
        from decisions.case_changes import changes_of, read_pair
        from decisions.conversations import find_changes
        from decisions.evidence_path import read_paths
        from decisions.slices import common_slices

        if not alone:
            flips = find_flips(folders, comparisons[0], flips_by, count, eval_set, tables)
        if flips is not None and (verbose or as_json or markdown):
            from views.case_files import first_answers, read_asked

            asked = read_asked(eval_set, labels_dir, flips.case_ids) if eval_set.exists() else {}
            before, now = (first_answers(tables[run], flips.case_ids, asked) for run in folders)
            answers = before, now
        pair = read_pair(folders[0], folders[1], tables=tables)
        cases = changes_of(pair, count)
        talks = find_changes(pair, eval_set)
        if verbose or as_json or markdown:
            paths = read_paths(map(tables.__getitem__, folders), eval_set, labels_dir, pair.ruling)
        vectors = question_vectors(runs.CACHE_DIR, make=slices)
        in_common = common_slices(pair, eval_set, labels_dir, vectors)
    of_extras = [
        block
        for added in extras.code_of(extras.COMPARED)
        for block in added.of_runs(folders[0], folders[1:], clusters, seed)
    ]
    failed = failures(comparisons, fail_on)
    report = Report(comparisons, flips, answers, failed, talks, cases, in_common, of_extras, paths)
    if markdown is not None:
        text = markdown_of(report, pages_of(report, every=True, slices=slices))
        files.replace_bytes(markdown, text)
    if page is not None:
        from views.report.comparison import comparisons_page
        from views.report.page import html_page

        compared = comparisons_page(
            comparisons,
            folders,
            eval_set,
            labels_dir,
            report.failures,
            tables=tables,
            embed=question_vectors(runs.CACHE_DIR),
        )
        files.replace_bytes(page, html_page(compared, "Made by compare_runs.py"))
    if as_json:
        click.echo(json_bytes(report), nl=False)
    else:
        show(report, pages_of(report, every=verbose, slices=slices), verbose)
    for reason in report.failures:
        talk.print(f"Failed: {reason}")
    return options.Exit.GATE_FAILED if report.failures else options.Exit.DONE


if __name__ == "__main__":
    main()
