"""What label_eval.py does: one function a job, each returns the exit code."""

from __future__ import annotations

import contextlib
import gc
import math
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from aiohttp import web
from textual_serve.server import Server

import options
from clients.own_pages import bracketed, is_own, own_hosts
from labeller.case_state import GOLD
from labeller.cases import (
    annotator_files,
    cases_of,
    decided_of,
    foreign_words,
    identify_judgement,
    judgements_of,
    verdicts_of,
)
from labeller.plan import (
    CHUNK_CACHE,
    PROFILES,
    RECHECK,
    Plan,
)
from labeller.session import Session, View
from labeller.sources import Fetcher, RunChunks, failures, uncertainty, without_api
from labeller.store import LabelStore
from labeller.worklist import ORDERS, shuffle_key
from records.editing import Document, read_bytes
from records.errors import Problem, StorageError
from records.files import json_bytes
from records.labels import read_cases
from records.runs import RESULTS, find_run

Record = dict[str, Any]

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def validate(plan: Plan) -> int:
    """Check the set, the label files joined to it, and the annotators' files."""
    cases = read_cases(plan.eval_set, plan.labels_dir)
    problems = []
    for path in annotator_files(plan).values():
        document = Document(read_bytes(path), identify_judgement)
        problems += [Problem(str(path), n, "", text) for n, text in document.problems]
        foreign = foreign_words(document, {case.id for case in cases})
        if foreign:
            problems.append(Problem(str(path), None, "case_id", foreign))
    if problems:
        raise StorageError.from_problems(problems)
    _talk(plan, f"{plan.eval_set}: {len(cases)} cases, nothing wrong.")
    return options.Exit.DONE


def statistics(plan: Plan) -> int:
    """Print what the set holds."""
    from labeller.annotators import statistics_of

    cases = cases_of(plan)
    found = statistics_of(cases, judgements_of(plan).get(GOLD, {}))
    if plan.as_json:
        _print_json(found)
    else:
        from labeller.annotators import print_statistics

        print_statistics(options.stdout_console(), found)
    return options.Exit.DONE


def agreement(plan: Plan) -> int:
    """Print how far the annotators agree, and where they do not."""
    from labeller.annotators import agreement as compare_all

    annotators = verdicts_of(plan, cases_of(plan))
    if len(annotators) < 2:
        raise StorageError(
            f"{plan.judgements_dir}: agreement needs two annotators; label a second time with "
            "--annotator NAME."
        )
    found = compare_all(annotators, plan.seed)
    if plan.as_json:
        _print_json(found)
    else:
        from labeller.annotators import print_agreement

        print_agreement(options.stdout_console(), found)
    return options.Exit.DONE


def export_qrels(plan: Plan) -> int:
    """Print the labels as TREC qrels."""
    from labeller.annotators import qrels

    for line in qrels(cases_of(plan), judgements_of(plan).get(GOLD, {}), str(plan.export_qrels)):
        click.echo(line)
    return options.Exit.DONE


def serve(plan: Plan) -> int:
    """Serve the same app to a browser. Each tab is a session of its own; one of them may write."""

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
        raise StorageError(str(error)) from None


def _print_json(value: Record) -> None:
    sys.stdout.buffer.write(json_bytes(value))
    sys.stdout.flush()


def _talk(plan: Plan, text: str) -> None:
    if not plan.quiet:
        click.echo(text, err=True)


def open_session(plan: Plan, store: LabelStore) -> Session:
    """The session on what the store holds, looking at what the last one looked at.

    Raises StorageError for a case that is not there, and for an order that has nothing to go by.
    """
    others: Mapping[str, Mapping[str, Record]] = {}
    if plan.who == GOLD:
        others = _others(plan, store.cases)
    view = store.last_view()
    order, priority = _order(plan, store, view)
    session = Session(
        store.records,
        store.judgements,
        seed=str(plan.seed),
        order=order,
        priority=priority,
        blind=not plan.no_blind,
        inspect=plan.inspect,
        others=others,
        **store.session_options(),
    )
    store.attach(session)
    if view is not None:
        store.notices += session.resume(view)
    if plan.case is not None:
        if not session.knows(plan.case):
            raise StorageError(_no_such_case(plan, plan.case))
        session.resume(View(case=plan.case, row_order=session.row_order, blind=session.blind))
    return session


def _no_such_case(plan: Plan, case_id: str) -> str:
    import difflib

    near = difflib.get_close_matches(case_id, [*cases_of(plan)], n=3)
    like = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    return f"--case {case_id}: {plan.eval_set} holds no such case that can be labelled here{like}"


def _order(plan: Plan, store: LabelStore, view: View | None) -> tuple[str, Mapping[str, float]]:
    """The order of the queue and what it goes by: the one asked for, else that of last time."""
    if view is None or plan.order_typed or view.order not in ORDERS:
        return plan.order, _priority(plan, store, plan.order)
    try:
        return view.order, _priority(plan, store, view.order)
    except StorageError as error:
        store.notices.append(f"The order {view.order} of last time is dropped: {error.message}")
        return plan.order, _priority(plan, store, plan.order)


def _others(plan: Plan, cases: Mapping[str, Record]) -> Mapping[str, Mapping[str, Record]]:
    """The labels of other annotators, as far as they have decided."""
    known = {name: found for name, found in decided_of(plan).items() if name != GOLD}
    if not known:
        return {}
    from labeller.annotators import verdicts

    return {
        name: {case_id: found[case_id] for case_id in verdicts(cases, found, name)}
        for name, found in known.items()
    }


def sample(plan: Plan, percent: int) -> set[str]:
    """A share of the decided cases, the same for the same seed."""
    from labeller.annotators import verdicts

    cases = cases_of(plan)
    decided = verdicts(cases, judgements_of(plan).get(GOLD, {}), GOLD)
    if not decided:
        raise StorageError(f"{plan.eval_set}: no case is labelled, so none can come again.")
    order = sorted(decided, key=lambda case_id: shuffle_key(str(plan.seed), RECHECK, case_id))
    return set(order[: math.ceil(len(order) * percent / 100)])


def _priority(plan: Plan, store: LabelStore, order: str) -> Mapping[str, float]:
    """How much each case teaches, for the orders that put it first."""
    if order == "disagreement":
        from labeller.annotators import disagreement as by_disagreement

        return by_disagreement(verdicts_of(plan, store.cases))
    if order in ("failing", "uncertain"):
        results = _results(plan, plan.run)
        return uncertainty(results) if order == "uncertain" else failures(results, store.cases)
    return {}


@contextlib.contextmanager
def source_of(plan: Plan, store: LabelStore) -> Iterator[Fetcher]:
    """Where the passages come from: the run, the API, or nowhere, which says so in its place."""
    if plan.from_run is not None:
        results = _results(plan, plan.from_run)
        source = Fetcher(RunChunks(results), f"run {results.parent.name}")
    elif plan.api_url is not None:
        from labeller.sources import Api, api_source

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
    path = find_run(plan.results_dir, run) / RESULTS
    if not path.exists():
        raise StorageError(f"{path}: no such file; the run is not complete.")
    return path


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OwnPagesServer(Server):  # type: ignore[misc]  # textual_serve is not typed
    """Answers 403 to requests that another web page, or a name made to point here, caused."""

    def __init__(self, command: str, host: str, port: int, title: str) -> None:
        self.own = own_hosts(host, port)
        address = f"http://{bracketed(host)}:{port}"
        super().__init__(command, host=host, port=port, title=title, public_url=address)

    async def _make_app(self) -> web.Application:
        app: web.Application = await super()._make_app()
        app.middlewares.append(self._refuse_strangers)
        return app

    @web.middleware
    async def _refuse_strangers(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_own(self.own, request.host, request.headers.get("Origin")):
            raise web.HTTPForbidden(text="Open the address that label_eval.py printed.")
        return await handler(request)
