"""Made-up chunks, cases and sessions for the labelling model and its files."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from labeller.case_state import SET_LABELS, LabelTarget
from labeller.fetching import Arrival, Fetcher
from labeller.merging import Conflict
from labeller.passages import Chunk
from labeller.plain import PlainLabeller
from labeller.session import Session, View
from labeller.store import LabelStore

Record = dict[str, Any]

FREE = ("guide/retention.md", "Plans > Free")
TEXTS = (
    "Audit events are kept for 30 days on the free plan. Exports are not included. "
    "See the table below, e.g. for paid plans.",
    "An owner may ask for a longer period. The longest one is a year.",
    "Only a billing owner can extend the retention period.",
)
CHUNKS = (
    Chunk(*FREE, TEXTS[0], chunk_id="c1", rank=1, score_final=0.9),
    Chunk(*FREE, TEXTS[1], chunk_id="c2", rank=2, score_final=0.8),
    Chunk("guide/roles.md", "Roles > Owners", TEXTS[2], chunk_id="c3", rank=3, score_final=0.7),
    Chunk("faq.md", "Billing", "Upgrades take effect at once.", chunk_id="c4", rank=4),
    Chunk("legal/dpa.md", "", "The controller may ask for more.", chunk_id="c5", rank=5),
)


def snapshot(session: Session) -> bytes:
    """Everything that undo restores, as canonical bytes."""
    changed, ids = session.ledger.pending()
    open_needs = {c: session.ledger[c].needs for c in ids if session.ledger[c].needs is not None}
    return repr((ids, sorted(changed.items()), sorted(open_needs.items()))).encode()


def arrivals_for(source: Fetcher, case_id: str) -> list[Arrival]:
    """The arrivals until one for the case is among them; the test's time limit ends the wait."""
    arrivals: list[Arrival] = []
    while not any(arrival.case_id == case_id for arrival in arrivals):
        arrivals += source.arrivals()
        time.sleep(0.001)
    return arrivals


class Clock:
    """A clock that a test moves: each reading is `step` seconds after the one before."""

    def __init__(self, step: float = 1.0) -> None:
        self.time, self.step = 1_700_000_000.0, step

    def __call__(self) -> float:
        self.time += self.step
        return self.time


def make_cases(count: int) -> dict[str, Record]:
    """Open cases with an unknown field each, in file order."""
    return {
        f"q-{n:04d}": {
            "id": f"q-{n:04d}",
            "question": f"How long are audit events kept on the free plan, part {n}?",
            "x_owner": {"team": n},
            "expected_key_facts": ["kept for 30 days"],
            "tags": ["audit"],
        }
        for n in range(1, count + 1)
    }


@pytest.fixture
def chunks() -> tuple[Chunk, ...]:
    return CHUNKS


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cases() -> dict[str, Record]:
    return make_cases(3)


@pytest.fixture
def events() -> list[Record]:
    """What the session told the journal."""
    return []


@pytest.fixture
def session(
    cases: dict[str, Record], events: list[Record], clock: Clock, chunks: tuple[Chunk, ...]
) -> Session:
    """Three open cases, each with five chunks in path order."""
    made = Session(cases, {}, record=events.append, now=clock, seed="7")
    for case_id in cases:
        made.pool.put(case_id, chunks)
    made.set_row_order("path")
    return made


class Files:
    """A folder with a set, and the sessions on it."""

    LINES = (
        '{"id": "a", "question": "First?", "x_owner": {"z": 1, "a": [1.50, 2e3]}, '
        '"answerable": null}',
        '{"id":"b","question":"Zweite \\u00fc?","tags":["t"]}',
        '{ "id" : "c",  "question": "Third \\u2028 line?" }',
    )

    def __init__(self, folder: Path, clock: Callable[[], float], chunks: tuple[Chunk, ...]) -> None:
        self.path = folder / "eval_set.jsonl"
        self.judgements = folder / "labels" / "judgements"
        self.journal = folder / "eval_set.jsonl.journal"
        self._clock, self._chunks = clock, chunks
        self._open: list[LabelStore] = []

    def write(self, *lines: str, end: str = "\n") -> bytes:
        data = "".join(line + end for line in lines).encode()
        self.path.write_bytes(data)
        return data

    def open(self, labels: LabelTarget = SET_LABELS, **options: Any) -> tuple[LabelStore, Session]:
        store = LabelStore(self.path, self.judgements, now=self._clock, labels=labels, **options)
        self._open.append(store)
        session = Session(store.records, store.judgements, **store.session_options())
        for brief in session.queue.summaries.values():
            session.pool.put(brief.id, self._chunks)
        store.attach(session.ledger)
        session.set_row_order("path")
        return store, session

    def kill(self, store: LabelStore) -> None:
        """What a killed process leaves: no save, the lock let go of by the system."""
        store._lock.release()
        store._journal.close()
        self._open.remove(store)

    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").split("\n")

    def case(self, case_id: str) -> Record:
        found = {json.loads(x)["id"]: json.loads(x) for x in self.lines() if x.strip()}
        record: Record = found[case_id]
        return record

    def close(self) -> None:
        for store in self._open:
            self.kill(store) if store._ledger is None else store.close()


@pytest.fixture
def files(tmp_path: Path, clock: Callable[[], float], chunks: tuple[Chunk, ...]) -> Iterator[Files]:
    made = Files(tmp_path, clock, chunks)
    made.write(*made.LINES)
    yield made
    made.close()


class FakeStore(LabelStore):
    """A store that keeps nothing: what the screen asked of it is in `asked`."""

    def __init__(self) -> None:
        self.problem = ""
        self.saved_at: float | None = None
        self.notices: list[str] = []
        self.conflicts: list[Conflict] = []
        self.asked: list[str] = []
        self.views: list[View] = []
        self.others: dict[str, dict[str, dict[str, Any]]] = {}

    def save(self) -> str:
        self.asked.append("save")
        return self.problem or "saved"

    def resolve(self, conflict: Conflict, choice: str) -> str:
        self.conflicts.remove(conflict)
        self.asked.append(f"{conflict.case_id} {choice}")
        return f"{conflict.case_id}: {choice}"

    def remember(self, view: View) -> None:
        self.views.append(view)

    def close(self) -> str:
        return self.save()


class FakeSource(Fetcher):
    """A source that answers at once from `known`, and to a probe with `probed`.

    With a `problem` it says that, and can be asked again.
    """

    def __init__(self, known: Mapping[str, Sequence[Chunk]], probed: Sequence[Chunk] = ()) -> None:
        self.known, self.probed, self.problem = known, probed, ""
        self.asked: list[tuple[str, ...]] = []
        self._ready: list[Arrival] = []
        self._callback: Callable[[], object] = lambda: None

    def request(self, case_id: str, question: str) -> None:
        if self.problem:
            self._answer(Arrival(case_id, problem=self.problem))
        elif ("request", case_id) not in self.asked:
            self.asked.append(("request", case_id))
            self._answer(Arrival(case_id, tuple(self.known.get(case_id, ()))))

    def probe(self, case_id: str, query: str, k: int | None = None) -> None:
        self.asked.append(("probe", case_id, query, str(k)))
        self._answer(Arrival(case_id, tuple(self.probed), query=query))

    def refetch(self, case_id: str, question: str) -> None:
        self.asked.append(("refetch", case_id))
        self._answer(Arrival(case_id, tuple(self.known.get(case_id, ()))))

    def _answer(self, arrival: Arrival) -> None:
        self._ready.append(arrival)
        self._callback()

    def arrivals(self) -> list[Arrival]:
        ready, self._ready = self._ready, []
        return ready

    def listen(self, callback: Callable[[], object]) -> None:
        self._callback = callback

    def close(self) -> None:
        self._ready = []

    def describe(self) -> str:
        return "a fake"


class Lines:
    """A session in line mode; `do` types lines and returns what was printed."""

    def __init__(self, session: Session, source: FakeSource) -> None:
        self.session, self.source, self.store = session, source, FakeStore()
        session.row_order = "path"

    def do(self, *lines: str) -> str:
        out = io.StringIO()
        typed = io.StringIO("".join(line + "\n" for line in lines))
        plain = PlainLabeller(
            self.session, self.store, self.source, typed, out, prompt=False, wait=0.05
        )
        assert plain.run() == 0
        return out.getvalue()


@pytest.fixture
def lines(cases: dict[str, Any], clock: Callable[[], float], chunks: tuple[Chunk, ...]) -> Lines:
    return Lines(
        Session(cases, {}, record=lambda e: None, now=clock),
        FakeSource(dict.fromkeys(cases, chunks)),
    )
