"""What a session is opened with: order and view, other annotators' labels, chunks to judge."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import storage
from label_store.fetch import Fetcher, without_api
from label_store.plan import CHUNK_CACHE, PROFILES, RECHECK, Plan
from label_store.reading import cases_of, decided_of, judgements_of, verdicts_of
from label_store.sources import RunChunks, failures, uncertainty
from label_store.store import LabelStore
from labeller.entry import GOLD
from labeller.model import ORDERS, Session, View
from labeller.worklist import shuffle_key

Record = dict[str, Any]


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
            raise storage.StorageError(_no_such_case(plan, plan.case))
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
    except storage.StorageError as error:
        store.notices.append(f"The order {view.order} of last time is dropped: {error.message}")
        return plan.order, _priority(plan, store, plan.order)


def _others(plan: Plan, cases: Mapping[str, Record]) -> Mapping[str, Mapping[str, Record]]:
    """The labels of other annotators, as far as they have decided."""
    known = {name: found for name, found in decided_of(plan).items() if name != GOLD}
    if not known:
        return {}
    from label_store.compare import verdicts

    return {
        name: {case_id: found[case_id] for case_id in verdicts(cases, found, name)}
        for name, found in known.items()
    }


def sample(plan: Plan, percent: int) -> set[str]:
    """A share of the decided cases, the same for the same seed."""
    from label_store.compare import verdicts

    cases = cases_of(plan)
    decided = verdicts(cases, judgements_of(plan).get(GOLD, {}), GOLD)
    if not decided:
        raise storage.StorageError(f"{plan.eval_set}: no case is labelled, so none can come again.")
    order = sorted(decided, key=lambda case_id: shuffle_key(str(plan.seed), RECHECK, case_id))
    return set(order[: math.ceil(len(order) * percent / 100)])


def _priority(plan: Plan, store: LabelStore, order: str) -> Mapping[str, float]:
    """How much each case teaches, for the orders that put it first."""
    if order == "disagreement":
        from label_store.compare import disagreement as by_disagreement

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
