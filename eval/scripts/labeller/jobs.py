"""The jobs of label_eval.py, one function each; the script prints the result."""

from __future__ import annotations

import contextlib
import gc
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeller.case_state import GOLD, SET_LABELS, Judgements, Record, foreign_words, read_judgements
from labeller.fetching import Fetcher, api_source, run_chunks, without_api
from labeller.label_options import LabelOptions
from labeller.session import Session, View, resume
from labeller.store import LabelStore
from labeller.worklist import LABELLED, STATUSES, progress_of, queue_orders, summary_of
from records import extras
from records.editing import Document, read_bytes
from records.errors import Problem, StorageError, did_you_mean
from records.judged import identify_case
from records.labels import read_cases
from records.run import Run
from records.runs import CACHE_DIR, PROFILES, find_run
from terminal.safe_text import one_line
from terminal.tables import counted, print_columns

if TYPE_CHECKING:
    from rich.console import Console

OTHERS = "judgements/NAME.jsonl"
"""The file of labels that another person gave: what it is called by extras that read it."""

CHUNK_CACHE = CACHE_DIR / "label_chunks"


def cases_of(options: LabelOptions) -> Document:
    """The set; lines with faults make it refused, as every other script does."""
    document = Document(read_bytes(options.eval_set), identify_case, cases=True)
    if document.problems:
        raise StorageError.from_problems(
            Problem(str(options.eval_set), n, "", text) for n, text in document.problems
        )
    return document


def gold_judgements(options: LabelOptions) -> Mapping[str, Record]:
    """The passages that were judged for the set's own labels, by case."""
    document = read_judgements(options.judgements_dir).get(GOLD)
    return {} if document is None else Judgements(document)


def validate(options: LabelOptions) -> str:
    """Check the set, its label files and all judgements. Raises StorageError with all faults."""
    cases = read_cases(options.eval_set, options.labels_dir)
    problems = []
    for name, document in read_judgements(options.judgements_dir).items():
        path = str(options.judgements_dir / f"{name}.jsonl")
        problems += [Problem(path, n, "", text) for n, text in document.problems]
        if foreign := foreign_words(document, {case.id for case in cases}):
            problems.append(Problem(path, None, "case_id", foreign))
    if problems:
        raise StorageError.from_problems(problems)
    return f"{options.eval_set}: {counted(len(cases), 'case')}, nothing wrong."


def statistics_of(cases: Mapping[str, Record], judgements: Mapping[str, Record]) -> Record:
    """Counts of a set: cases by status and category, supports a labelled case, other labels."""
    records = {case_id: cases[case_id] for case_id in cases}
    briefs = {c: summary_of(record, judgements.get(c, {})) for c, record in records.items()}
    progress = progress_of(briefs.values(), ())
    labelled = [records[c] for c, brief in briefs.items() if brief.status == LABELLED]
    supports = [len(case.get("gold_supports") or ()) for case in labelled]
    by_category: dict[str, Counter[str]] = {}
    for brief in briefs.values():
        by_category.setdefault(brief.category or "(none)", Counter())[brief.status] += 1
    return {
        "cases": len(records),
        "status": {status: progress.counts[status] for status in STATUSES},
        "flagged": progress.flagged,
        "by_category": {
            name: {"cases": sum(counts.values()), **{s: counts[s] for s in STATUSES}}
            for name, counts in sorted(by_category.items())
        },
        "supports": {
            "total": sum(supports),
            "per_labelled_case": sum(supports) / len(supports) if supports else None,
            "most": max(supports, default=0),
            "labelled_without": supports.count(0),
        },
        "with_groups": sum(bool(case.get("required_support_groups")) for case in labelled),
        "with_snippets": sum(
            any(support.get("snippets") for support in case.get("gold_supports") or ())
            for case in labelled
        ),
        **{
            f"with_{name}": sum(bool(record.get(name)) for record in records.values())
            for name in ("expected_key_facts", "reference_answer", "forbidden_claims")
        },
    }


def print_statistics(console: Console, statistics: Mapping[str, Any]) -> None:
    """Cases by status and category, then supports and other labels."""
    by_category = statistics["by_category"].items()
    total = {"cases": statistics["cases"], **statistics["status"]}
    rows = [
        (name, *(str(counts[key]) for key in ("cases", *STATUSES)))
        for name, counts in (*((one_line(k), v) for k, v in by_category), ("all", total))
    ]
    heads = (status.replace("_", " ") for status in STATUSES)
    styles = [*[None] * (len(rows) - 1), "bold"]
    print_columns(console, ("category", "cases", *heads), rows, styles=styles)
    supports = statistics["supports"]
    mean = supports["per_labelled_case"]
    for name, value in (
        ("flagged", statistics["flagged"]),
        ("supports", supports["total"]),
        ("supports per labelled case", "–" if mean is None else f"{mean:.2f}"),
        ("most supports in a case", supports["most"]),
        ("labelled without support", supports["labelled_without"]),
        ("with groups", statistics["with_groups"]),
        ("with snippets", statistics["with_snippets"]),
        ("with key facts", statistics["with_expected_key_facts"]),
        ("with reference answer", statistics["with_reference_answer"]),
        ("with forbidden claims", statistics["with_forbidden_claims"]),
    ):
        console.print(f"{name:<28}{value:>8}")


@dataclass(frozen=True)
class LabelOutcome:
    """How a session ended: the screen's exit code, and whether every label is in the files.

    `refused` tells of changes that a session with nothing to write turned away.
    """

    code: int
    saved: bool
    refused: str = ""


def label(options: LabelOptions, talk: Callable[[str], None]) -> LabelOutcome:
    """Label, on the full screen or in lines. `talk` gets what is beside the labelling itself."""
    gc.disable()  # what the start makes stays: collecting amid it is work for nothing
    store = LabelStore(
        options.eval_set,
        options.judgements_dir,
        now=time.time,
        labels=options.labels or SET_LABELS,
        writing=not options.inspect,
        resuming=options.resuming,
    )
    try:
        with _source_of(options, store) as source:
            session = _open_session(options, store)
            if options.verbose:
                talk(f"chunks: {source.describe()}\njudgements: {store.judgements_path}")
            code = _run(options, session, store, source)
    finally:
        message = store.close()
    if message:
        talk(message)
    if options.inspect:
        return LabelOutcome(code, saved=not store.problem)
    talk(f"{session.queue.progress().says()}.\nNext: {_next_command(options)}")
    lost = session.ledger.turned_away
    changes = "1 change was" if lost == 1 else f"{lost} changes were"
    refused = f"NOT SAVED: {changes} refused: {store.read_only}." if lost else ""
    return LabelOutcome(code, saved=not store.problem and not lost, refused=refused)


def _next_command(options: LabelOptions) -> str:
    """What makes use of the labels."""
    from clients.secrets import public_url

    if options.labels and options.labels.next_command:
        return options.labels.next_command
    if options.from_run is not None:
        return shlex.join(["eval_suite.py", "--run", options.from_run])
    profile = ["--profile", options.profile] if "profile" in options.typed else []
    url = public_url(options.api_url or "URL")
    return shlex.join(["run_eval.py", "--api-url", url, *profile])


def _run(options: LabelOptions, session: Session, store: LabelStore, source: Fetcher) -> int:
    if options.lines:
        from labeller.plain import PlainLabeller

        gc.enable()
        for stream in (sys.stdin, sys.stdout):
            stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        prompt = sys.stdin.isatty()
        return PlainLabeller(session, store, source, sys.stdin, sys.stdout, prompt=prompt).run()
    from labeller.app import run

    gc.freeze()
    gc.enable()
    try:
        return run(session, store, source, **{**options.screen, "keymap": options.keys()})
    except ValueError as error:
        raise StorageError(str(error)) from None


def _open_session(options: LabelOptions, store: LabelStore) -> Session:
    """The session on what the store holds, looking at what the last one looked at.

    Raises StorageError for a case that is not there, and for an order that has nothing to go by.
    """
    if options.labels is None:
        store.notices += _labels_of_others(store)
    view = store.last_view()
    order, priority = _order(options, store, view)
    session = Session(
        store.records,
        store.judgements,
        seed=str(options.seed),
        order=order,
        priority=priority,
        blind=options.blind,
        inspect=options.inspect,
        **store.session_options(),
    )
    store.attach(session.ledger)
    if view is not None:
        store.notices += resume(session, view)
    if options.case is not None:
        if options.case not in session.queue:
            hint = did_you_mean(options.case, cases_of(options))
            why = f"{options.eval_set} has no such case that can be labelled here.{hint}"
            raise StorageError(f"--case {options.case}: {why}")
        resume(session, View(case=options.case, row_order=session.row_order, blind=session.blind))
    return session


def _order(
    options: LabelOptions, store: LabelStore, view: View | None
) -> tuple[str, Mapping[str, float]]:
    """The order of the queue and what it goes by: the one asked for, else that of last time."""
    if view is not None and "order" not in options.typed:
        try:
            return view.order, _priority(options, store, view.order)
        except StorageError as error:
            why = f"cannot be used: {error.message}"
            store.notices.append(f"The order {view.order} of last time {why}")
    return options.order, _priority(options, store, options.order)


def _labels_of_others(store: LabelStore) -> Iterator[str]:
    """What to say about labels of others where the extra that compares them is missing."""
    if needs := extras.missing(extras.FILES, OTHERS):
        folder, judgements = store.judgements_path.parent, store.others.items()
        names = [k for k, judged in judgements if any("decision" in j for j in judged.values())]
        if names:
            yield f"{folder} also has labels of {', '.join(names)}; to compare them, {needs}."


def _priority(options: LabelOptions, store: LabelStore, order: str) -> Mapping[str, float]:
    """How much each case teaches. Raises StorageError for an order with nothing to go by."""
    if order not in queue_orders():
        raise StorageError(f"{extras.missing(extras.LABEL_ORDERS, order) or 'it is unknown'}.")
    if order in ("failing", "uncertain"):
        run = _run_of(options, options.run)
        return uncertainty(run) if order == "uncertain" else failures(run.folder, store.cases)
    by_extra = extras.find(extras.LABEL_ORDERS, order)
    return by_extra(store.cases, options.judgements_dir) if by_extra else {}


def uncertainty(run: Run) -> Mapping[str, float]:
    """How unsure the retriever was of each case of a run: near 1 a tie at the top, 0 no doubt.

    One minus the gap between the two best final scores, as a share of the best score.
    """
    doubts: dict[str, float] = {}
    fields = ("test_case_id", "retrieved.score_final")
    for result in Run(run.folder, tolerant=True).iter_results(*fields):
        chunks = (chunk for chunk in result.retrieved or () if not isinstance(chunk, str))
        scores = sorted(c.score_final for c in chunks if c.score_final is not None)
        if len(scores) > 1 and scores[-1] > 0:
            doubts.setdefault(result.test_case_id, 1 - (scores[-1] - scores[-2]) / scores[-1])
    return doubts


def failures(folder: Path, case_ids: Iterable[str]) -> Mapping[str, float]:
    """How badly each case of a scored run fails: near 2 the most harmful reason, above 1 any other
    one, 0.5 a warning. Cases that are fine, or that the run lacks, are not named.

    Raises StorageError for a run without scores.
    """
    from decisions.case_verdict import read_verdicts

    run = read_verdicts(folder)
    if not run.cases:
        remedy = f"run eval_suite.py --run {folder.name} first"
        why = f"is not scored, so it is not known which cases fail; {remedy}"
        raise StorageError(f"{folder}: {why}.")
    rules = run.ruling.rules
    scores: dict[str, float] = {}
    for case_id in case_ids:
        verdict = run.verdict(case_id)
        if verdict is not None and verdict.fails:
            scores[case_id] = 2 - rules.index(verdict.reasons[0]) / len(rules)
        elif verdict is not None and verdict.warnings:
            scores[case_id] = 0.5
    return scores


@contextlib.contextmanager
def _source_of(options: LabelOptions, store: LabelStore) -> Iterator[Fetcher]:
    """Where the passages come from: the run, the API, or nowhere, which says so in its place."""
    if options.from_run is None and options.api_url is not None:
        bot = (options.api_url, options.profile, options.k, PROFILES, CHUNK_CACHE)
        with api_source(*bot, store.records) as source:
            yield source
        return
    if options.from_run is None:
        source = Fetcher(without_api, "no API and no run")
    else:
        run = _run_of(options, options.from_run)
        source = Fetcher(run_chunks(run), f"run {run.folder.name}")
    with contextlib.closing(source):
        yield source


def _run_of(options: LabelOptions, name: str) -> Run:
    run = Run(find_run(options.results_dir, name))
    if not run.results_path.exists():
        raise StorageError(f"{run.results_path}: no such file; the run is not complete.")
    return run
