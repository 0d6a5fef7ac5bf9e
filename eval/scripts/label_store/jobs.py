"""What label_eval.py does: one function a job, each returns the exit code."""

from __future__ import annotations

import contextlib
import math
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
import storage
from label_store.cases import Judgements, identify_case, identify_judgement
from label_store.disk import read_bytes
from label_store.document import Document
from label_store.fetch import Fetcher, without_api
from label_store.plan import CHUNK_CACHE, PROFILES, RECHECK, Plan
from label_store.sources import RunChunks, failures, uncertainty
from label_store.store import LabelStore
from labeller.entry import GOLD
from labeller.model import Session
from labeller.worklist import shuffle_key

if TYPE_CHECKING:
    from label_store.compare import Verdicts

Record = dict[str, Any]
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def validate(plan: Plan) -> int:
    """Check the set, the label files joined to it, and the annotators' files."""
    cases = storage.read_cases(plan.eval_set, plan.labels_dir)
    problems = []
    for path in _annotator_files(plan).values():
        document = Document(read_bytes(path), identify_judgement)
        known = {case.id for case in cases}
        problems += [storage.Problem(str(path), n, "", text) for n, text in document.problems]
        problems += [
            storage.Problem(str(path), None, "case_id", f"{case_id!r} is no case of the set")
            for case_id in document
            if case_id not in known
        ]
    if problems:
        raise storage.StorageError.from_problems(problems)
    _talk(plan, f"{plan.eval_set}: {len(cases)} cases, nothing wrong.")
    return options.Exit.DONE


def statistics(plan: Plan) -> int:
    """Print what the set holds."""
    from label_store.summary import statistics_of

    cases = _cases(plan)
    found = statistics_of(cases, _judgements(plan).get(GOLD, {}))
    if plan.as_json:
        _print_json(found)
    else:
        from label_store.printing import print_statistics

        print_statistics(options.stdout_console(), found)
    return options.Exit.DONE


def agreement(plan: Plan) -> int:
    """Print how far the annotators agree, and where they do not."""
    from label_store.compare import agreement as compare_all

    annotators = _verdicts(plan, _cases(plan))
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

    for line in qrels(_cases(plan), _judgements(plan).get(GOLD, {}), str(plan.export_qrels)):
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
    return options.Exit.DONE


def label(plan: Plan) -> int:
    """Label, on the full screen or in lines."""
    store = LabelStore(
        plan.eval_set,
        plan.judgements_dir,
        now=time.time,
        annotator=plan.who,
        second=plan.who != GOLD,
        only=None if plan.recheck is None else _sample(plan, plan.recheck),
        writing=not plan.inspect,
    )
    try:
        with _source(plan, store) as source:
            session = _session(plan, store)
            if plan.verbose:
                _talk(plan, f"chunks: {source.describe()}\njudgements: {store.judgements_path}")
            code = _run(plan, session, store, source)
    finally:
        said = store.close()
    if said:
        _talk(plan, said)
    return options.Exit.BAD_INPUT if store.problem else code


def _run(plan: Plan, session: Session, store: LabelStore, source: Fetcher) -> int:
    if plan.lines:
        from labeller.plain import Plain

        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):  # leave as for Ctrl+C: saved, and with the lock let go of
                signal.signal(getattr(signal, name), signal.default_int_handler)
        for stream in (sys.stdin, sys.stdout):
            stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        prompt = sys.stdin.isatty()
        return Plain(session, store, source, sys.stdin, sys.stdout, prompt=prompt).run()
    from labeller.app import run

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


def _session(plan: Plan, store: LabelStore) -> Session:
    others: Mapping[str, Mapping[str, Record]] = {}
    if plan.who == GOLD:
        others = _others(plan, store.cases)
    session = Session(
        store.records,
        store.judgements,
        seed=str(plan.seed),
        order=plan.order,
        priority=_priority(plan, store),
        blind=not plan.no_blind,
        inspect=plan.inspect,
        others=others,
        **store.session_options(),
    )
    store.attach(session)
    return session


def _others(plan: Plan, cases: Mapping[str, Record]) -> Mapping[str, Mapping[str, Record]]:
    """The labels of other annotators, as far as they have decided."""
    known = {name: found for name, found in _decided(plan).items() if name != GOLD}
    if not known:
        return {}
    from label_store.compare import verdicts

    return {
        name: {case_id: found[case_id] for case_id in verdicts(cases, found, name)}
        for name, found in known.items()
    }


def _sample(plan: Plan, percent: int) -> set[str]:
    """A share of the decided cases, the same for the same seed."""
    from label_store.compare import verdicts

    cases = _cases(plan)
    decided = verdicts(cases, _judgements(plan).get(GOLD, {}), GOLD)
    if not decided:
        raise storage.StorageError(f"{plan.eval_set}: no case is labelled, so none can come again.")
    order = sorted(decided, key=lambda case_id: shuffle_key(str(plan.seed), RECHECK, case_id))
    return set(order[: math.ceil(len(order) * percent / 100)])


def _priority(plan: Plan, store: LabelStore) -> Mapping[str, float]:
    """How much each case teaches, for the orders that put it first."""
    if plan.order == "disagreement":
        from label_store.compare import disagreement as by_disagreement

        return by_disagreement(_verdicts(plan, store.cases))
    if plan.order in ("failing", "uncertain"):
        results = _results(plan, plan.run)
        return uncertainty(results) if plan.order == "uncertain" else failures(results, store.cases)
    return {}


@contextlib.contextmanager
def _source(plan: Plan, store: LabelStore) -> Iterator[Fetcher]:
    """Where the passages come from: the run, the API, or nowhere, which says so in its place."""
    if plan.from_run is not None:
        results = _results(plan, plan.from_run)
        source = Fetcher(RunChunks(results), f"run {results.parent.name}")
    elif plan.api_url is not None:
        from label_store.api import Api, api_source

        api = Api(plan.api_url, plan.profile, plan.k, PROFILES, CHUNK_CACHE)
        with api_source(api, store.records) as source:
            yield source
        return
    else:
        source = Fetcher(without_api, "no API and no run")
    try:
        yield source
    finally:
        source.close()


def _results(plan: Plan, run: str) -> Path:
    path = storage.find_run(plan.results_dir, run) / storage.RESULTS
    if not path.exists():
        raise storage.StorageError(f"{path}: no such file; the run is not complete.")
    return path


def _cases(plan: Plan) -> Document:
    """The set; lines with faults make it refused, as every other script does."""
    document = Document(read_bytes(plan.eval_set), identify_case)
    if document.problems:
        raise storage.StorageError.from_problems(
            storage.Problem(str(plan.eval_set), n, "", text) for n, text in document.problems
        )
    return document


def _annotator_files(plan: Plan) -> dict[str, Path]:
    return {path.stem: path for path in sorted(plan.judgements_dir.glob("*.jsonl"))}


def _decided(plan: Plan) -> dict[str, Document]:
    """The annotators' files as they are, labels included."""
    return {
        name: Document(read_bytes(path), identify_judgement)
        for name, path in _annotator_files(plan).items()
    }


def _judgements(plan: Plan) -> dict[str, Mapping[str, Record]]:
    return {name: Judgements(document) for name, document in _decided(plan).items()}


def _verdicts(plan: Plan, cases: Mapping[str, Record]) -> dict[str, Verdicts]:
    """Each annotator's verdicts, the set's own first."""
    from label_store.compare import verdicts

    known = _decided(plan)
    found = {GOLD: verdicts(cases, known.pop(GOLD, {}), GOLD)}
    found |= {name: verdicts(cases, document, name) for name, document in known.items()}
    return {name: decided for name, decided in found.items() if decided}


def _print_json(value: Record) -> None:
    sys.stdout.buffer.write(storage.json_bytes(value))
    sys.stdout.flush()


def _talk(plan: Plan, text: str) -> None:
    if not plan.quiet:
        click.echo(text, err=True)
