"""The interfaces that the script gives the session and the screens: where labels go, where chunks
come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from labeller.passages import Chunk
from records.tool_calls import ToolCall

if TYPE_CHECKING:
    from labeller.session import Session, View


@dataclass(frozen=True)
class Conflict:
    """Fields of a case that were changed here and, differently, in the file meanwhile.

    `base`, `mine` and `theirs` hold just those fields; None where the case was deleted (or, for
    `base`, did not exist).
    """

    case_id: str
    fields: tuple[str, ...]
    base: dict[str, Any] | None
    mine: dict[str, Any] | None
    theirs: dict[str, Any] | None


@dataclass(frozen=True)
class Arrival:
    """Chunks that came for a case; `query` is the probe's, None for the case's own question.

    `recalled` says that the probe was one of an earlier session. `calls`: of tools, where reported.
    """

    case_id: str
    chunks: tuple[Chunk, ...] = ()
    query: str | None = None
    problem: str = ""
    k: int | None = None
    recalled: bool = False
    calls: tuple[ToolCall, ...] = ()


class Store(Protocol):
    """Keeps the events that the session emits. No method raises: `problem` says what is wrong, and
    stays."""

    problem: str
    saved_at: float | None
    notices: list[str]
    conflicts: list[Conflict]

    @property
    def others(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """The judgements beside those of this session, by whose they are and by case id.

        Raises StorageError for a file that cannot be read: no other member does.
        """

    def save(self) -> str:
        """Write the set now, merged with the changes of others. Returns the status line."""

    def resolve(self, conflict: Conflict, choice: str) -> str:
        """Settle a conflict with ``mine`` or ``theirs``."""

    def remember(self, view: View) -> None:
        """Keep the present view for the next session."""

    def close(self) -> str:
        """Save, and let go of the lock."""


class Source(Protocol):
    """Fetches chunks in the background. No method waits or raises."""

    def request(self, case_id: str, question: str) -> None:
        """Ask for the chunks of a question, once."""

    def probe(self, case_id: str, query: str, k: int | None = None) -> None:
        """Ask for the chunks of another query, or of another number `k` of them."""

    def recall(self, case_id: str, query: str, k: int | None = None) -> None:
        """Restore a probe of an earlier session, from the stored copy if there is one."""

    def refetch(self, case_id: str, question: str) -> None:
        """Ask again, whatever has come before."""

    def arrivals(self) -> list[Arrival]:
        """The passages that arrived since the last call."""

    def listen(self, callback: Callable[[], None]) -> None:
        """Have `callback` called, in the fetching thread, after each arrival."""

    def close(self) -> None:
        """Ask for nothing more. Does not wait for a call under way."""

    def describe(self) -> str:
        """Where the chunks come from, for the status line."""


def deliver(session: Session, source: Source) -> list[Arrival]:
    """Pass the arrived passages to the session. Returns it, for messages."""
    arrived = source.arrivals()
    for arrival in arrived:
        if not session.knows(arrival.case_id):
            continue
        case_id, query = arrival.case_id, arrival.query
        if arrival.recalled and query is not None and arrival.problem:
            session.recall_failed(case_id, (query, arrival.k), arrival.problem)
        elif arrival.problem:
            session.set_problem(case_id, arrival.problem)
        elif query is None:
            session.pool.calls[case_id] = arrival.calls
            session.set_chunks(case_id, arrival.chunks)
        else:
            session.add_chunks(case_id, arrival.chunks, query, arrival.k)
        if arrival.recalled or (query is None and not arrival.problem):
            probe = session.next_recall(case_id)
            if probe is not None:
                source.recall(case_id, *probe)
    return arrived


def prefetch(session: Session, source: Source, ahead: int = 3) -> None:
    """Ask for the chunks of the current case and the next ones, so that moving on never waits."""
    for case_id in session.upcoming(ahead):
        source.request(case_id, str(session.case_of(case_id).get("question") or ""))
