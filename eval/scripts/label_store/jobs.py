"""What label_eval.py does: one function a job, each returns the exit code."""

from __future__ import annotations

import gc
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import click

import options
import storage
from label_store.cases import identify_judgement
from label_store.disk import read_bytes
from label_store.document import Document
from label_store.fetch import Fetcher
from label_store.opening import open_session, sample, source_of
from label_store.places import foreign_words
from label_store.plan import Plan
from label_store.reading import annotator_files, cases_of, judgements_of, verdicts_of
from label_store.store import LabelStore
from labeller.entry import GOLD
from labeller.model import Session

Record = dict[str, Any]
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def validate(plan: Plan) -> int:
    """Check the set, the label files joined to it, and the annotators' files."""
    cases = storage.read_cases(plan.eval_set, plan.labels_dir)
    problems = []
    for path in annotator_files(plan).values():
        document = Document(read_bytes(path), identify_judgement)
        problems += [storage.Problem(str(path), n, "", text) for n, text in document.problems]
        foreign = foreign_words(document, {case.id for case in cases})
        if foreign:
            problems.append(storage.Problem(str(path), None, "case_id", foreign))
    if problems:
        raise storage.StorageError.from_problems(problems)
    _talk(plan, f"{plan.eval_set}: {len(cases)} cases, nothing wrong.")
    return options.Exit.DONE


def statistics(plan: Plan) -> int:
    """Print what the set holds."""
    from label_store.summary import statistics_of

    cases = cases_of(plan)
    found = statistics_of(cases, judgements_of(plan).get(GOLD, {}))
    if plan.as_json:
        _print_json(found)
    else:
        from label_store.printing import print_statistics

        print_statistics(options.stdout_console(), found)
    return options.Exit.DONE


def agreement(plan: Plan) -> int:
    """Print how far the annotators agree, and where they do not."""
    from label_store.compare import agreement as compare_all

    annotators = verdicts_of(plan, cases_of(plan))
    if len(annotators) < 2:
        raise storage.StorageError(
            f"{plan.judgements_dir}: agreement needs two annotators; label a second time with "
            "--annotator NAME."
        )
    found = compare_all(annotators, plan.seed)
    if plan.as_json:
        _print_json(found)
    else:
        from label_store.printing import print_agreement

        print_agreement(options.stdout_console(), found)
    return options.Exit.DONE


def export_qrels(plan: Plan) -> int:
    """Print the labels as TREC qrels."""
    from label_store.summary import qrels

    for line in qrels(cases_of(plan), judgements_of(plan).get(GOLD, {}), str(plan.export_qrels)):
        click.echo(line)
    return options.Exit.DONE


def serve(plan: Plan) -> int:
    """Serve the same app to a browser. Each tab is a session of its own; one of them may write."""
    from label_store.serving import OwnPagesServer

    script = Path(__file__).resolve().parents[1] / "label_eval.py"
    words = [word for word in sys.argv[1:] if word != "--serve"]
    if plan.host not in LOOPBACK:
        _talk(plan, f"Warning: {plan.host} is open to others, and there is no password.")
    _talk(plan, f"http://{plan.host}:{plan.port} (Ctrl+C stops it)")
    command = shlex.join([sys.executable, str(script), *words])
    OwnPagesServer(command, plan.host, plan.port, "label_eval").serve()
    return options.Exit.INTERRUPTED  # it ends by a signal alone, and keeps that to itself


def label(plan: Plan) -> int:
    """Label, on the full screen or in lines."""
    gc.disable()  # what the start makes stays: collecting amid it is work for nothing
    store = LabelStore(
        plan.eval_set,
        plan.judgements_dir,
        now=time.time,
        annotator=plan.who,
        second=plan.who != GOLD,
        only=None if plan.recheck is None else sample(plan, plan.recheck),
        writing=not plan.inspect,
        resuming=plan.resuming,
    )
    try:
        with source_of(plan, store) as source:
            session = open_session(plan, store)
            if plan.verbose:
                _talk(plan, f"chunks: {source.describe()}\njudgements: {store.judgements_path}")
            code = _run(plan, session, store, source)
    finally:
        said = store.close()
    if said:
        _talk(plan, said)
    if session.turned_away:
        changes = (
            "1 change was" if session.turned_away == 1 else f"{session.turned_away} changes were"
        )
        click.echo(f"NOT SAVED: {changes} refused: {store.read_only}.", err=True)
    return options.Exit.BAD_INPUT if store.problem or session.turned_away else code


def _run(plan: Plan, session: Session, store: LabelStore, source: Fetcher) -> int:
    if plan.lines:
        from labeller.plain import Plain

        gc.enable()

        for stream in (sys.stdin, sys.stdout):
            stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        prompt = sys.stdin.isatty()
        return Plain(session, store, source, sys.stdin, sys.stdout, prompt=prompt).run()
    from labeller.app import run

    gc.freeze()
    gc.enable()

    try:
        return run(
            session,
            store,
            source,
            ascii=plan.ascii_only,
            mouse=not plan.no_mouse,
            theme=plan.theme,
            keymap=plan.keys(),
        )
    except ValueError as error:
        raise storage.StorageError(str(error)) from None


def _print_json(value: Record) -> None:
    sys.stdout.buffer.write(storage.json_bytes(value))
    sys.stdout.flush()


def _talk(plan: Plan, text: str) -> None:
    if not plan.quiet:
        click.echo(text, err=True)
