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
  python eval/scripts/compare_runs.py base new --by category --set flips=10 --set cluster=doc
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
from ragmetrics.defaults import DIMENSIONS
from records import opt
from records.home import CACHE_DIR

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
        from records.results import SCHEMA

        return {
            "schema": SCHEMA,
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
    from records.errors import StorageError, did_you_mean

    if metric:
        row = comparison.row(metric)
        if row is None or not row.n:
            names = ", ".join(row.metric for row in comparison.rows if row.n)
            hint = did_you_mean(metric, names.split(", "))
            raise StorageError(f"flips_by={metric}: not compared; choose from: {names}.{hint}")
    else:
        changed = [row for row in comparison.rows if row.rose or row.fell]
        row = min(changed, key=_rank, default=None)
    if row is None or not count:
        return None
    return flips.find_flips(folders[0], folders[1], row, count, eval_set, tables)


def check_one_set(folders: Sequence[Path]) -> None:
    """One base cannot be scored again for several sets: raises StorageError where these runs were
    scored with different questions or labels."""
    from records.errors import StorageError
    from records.metrics import read_metrics

    scored = [read_metrics(folder) for folder in folders]
    sets = {(head.get("eval_set_sha256"), head.get("labels_sha256")) for head in scored}
    if len(sets) > 1:
        raise StorageError(
            "the new runs were scored with different sets or labels: compare each with the base by "
            "itself, or add --no-rescore."
        )


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
    from records import files

    def short(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.10g}")
        if isinstance(value, dict):
            return {key: short(item) for key, item in value.items()}
        return [short(item) for item in value] if isinstance(value, list | tuple) else value

    return files.json_bytes(short(report.to_dict()))


@dataclass(frozen=True, kw_only=True)
class CompareRunsOptions(opt.Output):
    """The options of compare_runs.py."""

    base: str = opt.argument(required=True)
    new: tuple[str, ...] = opt.argument(required=True)
    metrics: tuple[str, ...] = opt.value(
        "Metrics that decide.  [default: the primary metrics of targets.toml]", default=()
    )
    sections: tuple[str, ...] = opt.value("Only these, such as retrieval,pipeline.", default=())
    by: tuple[str, ...] = opt.repeated("Test the primary metrics in slices.", choices=DIMENSIONS)
    cluster: str = opt.setting(
        "how cases count together: auto (group, else gold document), none, doc, or a set's key",
        default="auto",
    )
    varied: tuple[str, ...] = opt.setting(
        "settings that you changed on purpose, such as index,retriever.k", default=(), repeat=True
    )
    ignore_invariants: bool = opt.flag("Compare runs that were measured differently.")
    no_rescore: bool = opt.flag(
        "Do not score the base again with the labels of the new run: leave re-labelled cases out."
    )
    labels_of: str = opt.value(
        "Compare a run with itself, scored with the set as git has it at REF.",
        default="",
        shown=False,
        metavar="REF",
    )
    flips: int = opt.setting(
        "how many cases to show that broke, were fixed, or changed most (-v), each way",
        default=3,
        low=0,
    )
    flips_by: str = opt.setting(
        "metric of these cases (the primary metric that moved, worst first)", default=""
    )
    margin: float | None = opt.setting(
        "the share of a metric's range that does not matter: an interval within it is SAME",
        low=0,
        high=1,
        above=True,
    )
    fail_on: tuple[str, ...] = opt.value(
        "Exit 1 on: worse (primary metrics), target, safety, cost, any-worse, or metrics by name.",
        default=(),
        metavar="RULE,…",
    )
    every: bool = opt.flag("Compare every metric at every cut-off.", names="--all")
    markdown: Path | None = opt.value("Write the report to this file as Markdown.", path="file")
    page: Path | None = opt.value(
        "Write one HTML page to this file, with both answers of the cases that flipped.",
        names="--html",
        path="file",
    )
    eval_set: Path | None = opt.run_set()
    labels_dir: Path | None = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    slices: bool = opt.setting(
        "true lists everything that broken cases may have in common, with topics of the questions",
        default=False,
    )
    seed: int = opt.seed()


@options.script(CompareRunsOptions, help=__doc__)
def main(asked: CompareRunsOptions) -> int:
    from clients.embedder import question_vectors
    from decisions import compare
    from decisions.alerts import since_pinned
    from decisions.committed import compare_committed, is_committed_alone
    from decisions.compare import CompareOptions, compare_many
    from decisions.headline import failures
    from decisions.same_cases import ScoredBase
    from decisions.slices import slices_of_cases
    from records import extras
    from records.errors import StorageError
    from records.files import replace_bytes
    from records.run import Runs
    from records.runs import find_run
    from scorers.copies import scored_alike, with_labels_of

    folders = [find_run(asked.results_dir, name) for name in (asked.base, *asked.new)]
    tables = Runs()
    eval_set, labels_dir = options.set_of_run(folders[1], asked.eval_set, asked.labels_dir)
    stack = click.get_current_context().with_resource(contextlib.ExitStack())
    if asked.labels_of:
        if asked.new != (asked.base,):
            raise StorageError(
                "--labels-of compares a run with itself, by two versions of its labels: write its "
                "name twice."
            )
        older = with_labels_of(folders[0], asked.labels_of, eval_set, labels_dir, stack)
        scored = ScoredBase(older)
    else:
        rescore = not asked.no_rescore
        if rescore and len(asked.new) > 1:
            check_one_set(folders[1:])
        again = scored_alike(folders[0], folders[1], eval_set, labels_dir, rescore=rescore)
        scored = stack.enter_context(again)
    folders[0] = scored.folder
    compare_options = CompareOptions(
        asked.metrics,
        asked.sections,
        asked.by,
        asked.varied,
        asked.ignore_invariants,
        asked.seed,
        asked.margin,
        eval_set=eval_set,
        labels_dir=labels_dir,
        rescored=scored.cases,
        since=since_pinned(asked.results_dir, folders[-1]) if len(folders) == 2 else "",
        labels_of=asked.labels_of,
        override="--ignore-invariants",
        every=asked.every,
    )
    talk = options.stderr_console(quiet=asked.quiet)
    clusters, remarks = compare.clusters_of(
        [*folders[1:], folders[0]], eval_set, asked.cluster, tables
    )
    parts = slices_of_cases(eval_set, labels_dir) if asked.by else {}
    alone = len(asked.new) == 1 and is_committed_alone(folders[0])
    if alone:
        comparisons = [compare_committed(folders[0], folders[1], compare_options, clusters, tables)]
    else:
        comparisons = compare_many(
            folders[0],
            folders[1:],
            compare_options,
            clusters=clusters,
            parts=parts,
            tables=tables,
        )
    if asked.by and (remark := compare.changed_set(eval_set, folders[1])):
        remarks.append(remark)
    if asked.by and alone:
        remarks.append(f"Only metrics.json of {asked.base} is there, so slices are not compared.")
    elif bare := {*asked.by} - {name for own in parts.values() for name, _ in own}:
        remarks.append(f"--by: no case of {eval_set} has a value for {', '.join(sorted(bare))}.")
    for remark in remarks:
        talk.print(f"Note: {remark}")
    if asked.verbose:
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
            flips = find_flips(
                folders, comparisons[0], asked.flips_by, asked.flips, eval_set, tables
            )
        if flips is not None and (asked.verbose or asked.as_json or asked.markdown):
            from views.case_files import first_answers, read_asked

            labelled = read_asked(eval_set, labels_dir, flips.case_ids)
            before, now = (first_answers(tables[run], flips.case_ids, labelled) for run in folders)
            answers = before, now
        pair = read_pair(folders[0], folders[1], tables=tables)
        cases = changes_of(pair, asked.flips)
        talks = find_changes(pair, eval_set)
        if asked.verbose or asked.as_json or asked.markdown:
            paths = read_paths(map(tables.__getitem__, folders), eval_set, labels_dir, pair.ruling)
        vectors = question_vectors(CACHE_DIR, make=asked.slices)
        in_common = common_slices(pair, eval_set, labels_dir, vectors)
    of_extras = [
        block
        for added in extras.code_of(extras.COMPARED)
        for block in added.of_runs(folders[0], folders[1:], clusters, asked.seed)
    ]
    failed = failures(comparisons, asked.fail_on)
    report = Report(comparisons, flips, answers, failed, talks, cases, in_common, of_extras, paths)
    if asked.markdown is not None:
        text = markdown_of(report, pages_of(report, every=True, slices=asked.slices))
        replace_bytes(asked.markdown, text)
    if asked.page is not None:
        from views.report.compared import comparisons_page
        from views.report.page import html_page

        compared = comparisons_page(
            comparisons,
            folders,
            eval_set,
            labels_dir,
            report.failures,
            tables=tables,
            embed=question_vectors(CACHE_DIR),
        )
        replace_bytes(asked.page, html_page(compared, "Made by compare_runs.py"))
    if asked.as_json:
        click.echo(json_bytes(report), nl=False)
    else:
        show(report, pages_of(report, every=asked.verbose, slices=asked.slices), asked.verbose)
    for reason in report.failures:
        talk.print(f"Failed: {reason}")
    return options.Exit.GATE_FAILED if report.failures else options.Exit.DONE


if __name__ == "__main__":
    main()
