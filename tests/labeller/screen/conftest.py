"""Shared by the TUI tests: the hostile corpus, and (below) a terminal to run real processes in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.geometry import Size

from labeller.app import LabelApp
from labeller.fetching import Arrival, Fetcher
from labeller.merging import Conflict
from labeller.passages import Chunk
from labeller.screen import MainScreen
from labeller.session import Session, View
from labeller.store import LabelStore
from terminal.frame import Look


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
    """A source that answers at once from `known`, and to a probe with `probed`."""

    def __init__(self, known: dict[str, list[Chunk]], probed: list[Chunk]) -> None:
        self.known = known
        self.probed = probed
        self.asked: list[tuple[str, ...]] = []
        self._ready: list[Arrival] = []
        self._callback: Callable[[], None] = lambda: None

    def request(self, case_id: str, question: str) -> None:
        if ("request", case_id) not in self.asked:
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

    def listen(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def close(self) -> None:
        self._ready = []

    def describe(self) -> str:
        return "a fake"


TEXTS = (
    "Keys are rotated every month. Stale replicas reject writes until they reload.",
    "Audit events are kept for 30 days on the free plan.\n\nThe owner can extend this by 90 days.",
    "Only a billing owner can extend the period. The change takes effect at night.",
)


def plain_chunks(case_id: str, count: int = 12) -> list[Chunk]:
    """`count` chunks, each with its own path; every third tells of audit logs."""
    return [
        Chunk(
            rel_path=f"guide/part{number:02d}.md",
            heading_path=f"Part {number} > Section {number}",
            text=f"Note {number} for {case_id}. {TEXTS[number % 3]}",
            chunk_id=f"{case_id}-{number}",
            rank=number,
            score_vector=0.9 - number / 100,
            score_final=0.8 - number / 100,
        )
        for number in range(1, count + 1)
    ]


def plain_cases(count: int) -> dict[str, dict[str, Any]]:
    """`count` unlabelled cases, q-01 and on."""
    return {
        f"q-{number:02d}": {
            "id": f"q-{number:02d}",
            "question": f"How long are audit logs kept in case {number}, and who can extend it?",
            "category": "factual",
        }
        for number in range(1, count + 1)
    }


class Bench:
    """One app with its session and fakes."""

    def __init__(
        self,
        cases: dict[str, dict[str, Any]] | None = None,
        chunks: dict[str, list[Chunk]] | None = None,
        probed: list[Chunk] | None = None,
        keymap: dict[str, str] | None = None,
        look: Look | None = None,
        theme: str | None = None,
        notices: list[str] | None = None,
        conflicts: list[Conflict] | None = None,
        **options: Any,
    ) -> None:
        cases = plain_cases(4) if cases is None else cases
        if chunks is None:
            chunks = {case_id: plain_chunks(case_id) for case_id in cases}
        if probed is None:
            probed = [Chunk("found/by-probe.md", "Probe", "The probe found this passage.")]
        self.events: list[dict[str, Any]] = []
        self.clock = 1_700_000_000.0
        options = {"seed": "8f2", **options}
        self.session = Session(
            cases, {}, record=self.events.append, now=lambda: self.clock, **options
        )
        self.store = FakeStore()
        self.store.notices = notices or []
        self.store.conflicts = conflicts or []
        self.source = FakeSource(chunks, probed)
        self.app = LabelApp(
            self.session, self.store, self.source, look=look, keymap=keymap, theme=theme
        )

    @staticmethod
    def long_chunk(text: str) -> Chunk:
        """One chunk with this text."""
        return Chunk("guide/long.md", "Long", text)

    @property
    def main(self) -> MainScreen:
        """The main screen."""
        return self.app.main

    @property
    def status(self) -> str:
        """The message on the status line."""
        return str(self.main._message[1])

    @property
    def marks(self) -> list[str]:
        """The labels of the marked rows."""
        return [row.label for row in self.session.rows() if row.marked]

    def shown(self) -> str:
        """The text of the top screen, as it would stand in the terminal."""
        screen = self.app.screen
        width, height = self.app.size
        rows = screen._compositor.render_strips(Size(width, height))
        return "\n".join(row.text for row in rows)


@pytest.fixture
def bench() -> type[Bench]:
    """Makes an app over fakes: `bench(cases=…, chunks=…)`."""
    return Bench
