"""Rows that other queries found: kept in the journal as queries, and found again by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from labeller.anchors import Chunk
from labeller.history import Event, Probe
from labeller.rows import Rows, distinct

ASKED, SHOWN = "asked", "shown"
GENERIC: Final = "probe"
"""What stands for the query where rows were added without one."""


class Probing(Rows):
    """Probes of a case: each can be repeated, so that its rows are there after a restart.

    The state of a probe is ``asked``, ``shown``, or why its rows are not there.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._states: dict[str, dict[Probe, str]] = {}
        super().__init__(*args, **options)

    def set_chunks(self, case_id: str, chunks: Sequence[Chunk]) -> None:
        """The chunks of the case's own question, in rank order; probed ones stay."""
        super().set_chunks(case_id, chunks)
        states = self._states.get(case_id, {})
        self._states[case_id] = {p: s for p, s in states.items() if s in (ASKED, SHOWN)}

    def add_chunks(
        self, case_id: str, chunks: Sequence[Chunk], query: str, k: int | None = None
    ) -> int:
        """Append what a probe found and is not there yet. Returns how many rows are new."""
        here = self._chunks.setdefault(case_id, [])
        new = [replace(c, origin=query or GENERIC) for c in distinct(chunks, here)]
        here.extend(new)
        self._problems.pop(case_id, None)
        self._version += 1
        if query:
            self._states.setdefault(case_id, {})[(query, k)] = SHOWN
            if new and (query, k) not in self.probes(case_id) and not self.read_only:
                event: Event = self._event("probed", case_id)
                self._emit(event | {"query": query, "k": k})
                self._probed.setdefault(case_id, []).append((query, k))
        return len(new)

    def probes(self, case_id: str) -> list[Probe]:
        """The probes that found rows of a case: by the journal, else by the rows as judged."""
        found = list(self._probed.get(case_id, ()))
        queries = {query for query, _ in found} | {GENERIC}
        for row in self.entry(case_id).judgement.get("rows") or ():
            origin = row.get("origin") if isinstance(row, dict) else None
            if isinstance(origin, str) and origin and origin not in queries:
                queries.add(origin)
                found.append((origin, None))
        return found

    def next_recall(self, case_id: str) -> Probe | None:
        """A probe of an earlier session to repeat now; they come one by one, in their order."""
        states = self._states.setdefault(case_id, {})
        if ASKED in states.values():
            return None
        for probe in self.probes(case_id):
            if probe not in states:
                states[probe] = ASKED
                return probe
        return None

    def recall_failed(self, case_id: str, probe: Probe, why: str) -> None:
        """The rows of a probe cannot be had again: said in place, until F5 fetches again."""
        self._states.setdefault(case_id, {})[probe] = why
        self._version += 1

    def recalling(self) -> bool:
        """Are rows of earlier probes of the current case still on their way?"""
        return ASKED in self._states.get(self.current, {}).values()

    def lost_probes(self) -> list[tuple[str, str]]:
        """Queries of the current case whose rows are not there, and why."""
        states = self._states.get(self.current, {})
        return [(query, why) for (query, _), why in states.items() if why not in (ASKED, SHOWN)]
