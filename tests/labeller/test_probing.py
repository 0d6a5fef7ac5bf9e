"""Rows of other queries after a restart: found again, or missed in words; no label is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from labeller import marks
from labeller.case_state import probes_in
from labeller.fetching import Fetcher, FetchError, deliver
from labeller.passages import Chunk
from labeller.session import Session
from labeller.sources import ApiChunks
from records.results import ErrorInfo, RetrievedChunk, TestResult

Record = dict[str, Any]
FOUND = (Chunk("deep/found.md", "Found", "It is kept for a year."),)
MORE = (*FOUND, Chunk("deep/more.md", "", "More of it."))


class Bot:
    """An `Ask` by a table of queries; without an entry it is away."""

    def __init__(self, **known: Sequence[Chunk]) -> None:
        self.known: dict[str, Sequence[Chunk]] = dict(known)
        self.asked: list[tuple[str, int | None]] = []

    def __call__(self, case_id: str, query: str, k: int | None) -> list[Chunk]:
        self.asked.append((query, k))
        if query not in self.known:
            raise FetchError("the bot is away")
        return list(self.known[query])


def settle(session: Session, source: Fetcher, case_id: str) -> None:
    """Take what comes until nothing is on its way for the case any more."""
    source.request(case_id, "own")
    came = False
    while not came or session.pool.recalling(case_id):
        came |= any(arrival.query is None for arrival in deliver(session, source))
        time.sleep(0.001)


@pytest.fixture
def restart(
    cases: dict[str, Record], clock: Callable[[], float], events: list[Record]
) -> Callable[..., Session]:
    def make(judgements: dict[str, Record] | None = None, **options: Any) -> Session:
        return Session(
            cases, judgements or {}, record=events.append, now=clock, seed="7", **options
        )

    return make


def test_a_probe_that_found_rows_is_journalled_once(session: Session, events: list[Record]) -> None:
    assert session.add_chunks("q-0001", FOUND, "other words") == 1
    assert session.add_chunks("q-0001", FOUND, "other words") == 0
    assert session.add_chunks("q-0001", FOUND, "nothing new", 50) == 0
    (event,) = events
    assert (event["action"], event["case"]) == ("probed", "q-0001")
    assert (event["query"], event["k"]) == ("other words", None)
    assert not session.ledger.history.done
    assert not session.ledger.dirty


def test_rows_come_back_in_their_order(
    session: Session, events: list[Record], restart: Callable[..., Session]
) -> None:
    session.add_chunks("q-0001", MORE[1:], "second", 50)
    session.add_chunks("q-0001", FOUND, "first")
    before = [(row.label, row.chunk) for row in session.rows() if row.chunk.origin]
    bot = Bot(own=[], second=MORE[1:], first=MORE)
    again = restart(history=list(events))
    settle(again, Fetcher(bot, "table"), "q-0001")
    assert [(row.label, row.chunk) for row in again.rows() if row.chunk.origin] == before
    assert bot.asked == [("own", None), ("second", 50), ("first", None)]
    assert len(events) == 2  # nothing new is journalled


def test_a_mark_on_a_probed_row_outlives_a_restart_without_the_bot(
    session: Session,
    cases: dict[str, Record],
    events: list[Record],
    restart: Callable[..., Session],
) -> None:
    session.add_chunks("q-0001", FOUND, "other words")
    session.on_row(session.view.row_by_label("+1").number, marks.toggle)
    cases["q-0001"] = session.case
    again = restart(history=list(events))
    again.queue.goto("q-0001")
    settle(again, Fetcher(Bot(own=[]), "table"), "q-0001")
    assert again.rows() == []
    assert again.pool.lost_probes(again.current) == [("other words", "the bot is away")]
    (support,) = again.supports()
    assert (support.rel_path, support.rows) == ("deep/found.md", ())


def test_fetching_again_tries_lost_probes_again(
    events: list[Record], session: Session, restart: Callable[..., Session]
) -> None:
    session.add_chunks("q-0001", FOUND, "other words")
    again, bot = restart(history=list(events)), Bot(own=[])
    source = Fetcher(bot, "table")
    settle(again, source, "q-0001")
    bot.known["other words"] = FOUND
    source.refetch("q-0001", "own")
    settle(again, source, "q-0001")
    assert again.pool.lost_probes(again.current) == []
    assert [row.label for row in again.rows()] == ["+1"]


def test_without_a_journal_the_judged_rows_name_the_queries(
    restart: Callable[..., Session],
) -> None:
    rows = [{"key": "x", "origin": "other words"}, {"key": "y"}, "odd", {"origin": 3}]
    again = restart({"q-0001": {"rows": rows}})
    assert again.probes("q-0001") == [("other words", None)]
    assert again.probes("q-0002") == []


def test_odd_events_are_no_probes() -> None:
    probe = {"action": "probed", "case": "a", "query": "q", "k": 5}
    odd = [{**probe, "query": 3}, {**probe, "query": ""}, {**probe, "action": "toggle"}]
    assert probes_in([*odd, probe, probe, {**probe, "k": "x"}]) == {"a": [("q", 5), ("q", None)]}


def test_what_was_kept_is_read_without_asking(tmp_path: Path) -> None:
    asked: list[str] = []
    error: ErrorInfo | None = None

    def ask(case_id: str, query: str, k: int | None) -> TestResult:
        asked.append(query)
        found: list[RetrievedChunk | str] = [RetrievedChunk("c", rel_path="f.md", text="Text.")]
        return TestResult(case_id, query, retrieved=found, error=error)

    chunks = ApiChunks(ask, tmp_path, "bot")
    first = chunks("a", "other words", None)
    assert chunks.cached("a", "other words", None) == first
    assert asked == ["other words"]
    assert chunks.cached("a", "more words", 50) == first  # not kept: asked for
    assert asked == ["other words", "more words"]
    error = ErrorInfo("connection", "refused")
    with pytest.raises(FetchError, match="refused"):
        chunks.cached("a", "never asked", None)
