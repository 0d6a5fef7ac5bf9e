"""The labelling session: what a person sees of the open case, and every action on it.

    session = Session(records, {}, record=journal.append, now=time.time)
    session.pool.put(session.current, chunks)
    session.on_row(2, marks.toggle)
    session.confirm()

The records of a set and the judgements of one annotator are mappings by case id, which may parse
lazily. An action is a pure function of the case's state (`marks`, `edits`, `tools`); the ledger
commits what comes out: one event for each change, before it is seen. No file, no screen, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec

from labeller import conversation, edits, marks, rows
from labeller.case_state import GOLD, CaseState, EditResult, Event, Record, timestamp
from labeller.ledger import CaseLedger
from labeller.passages import content_words, locate
from labeller.rows import ROW_ORDERS, CaseView, ChunkPool, ChunkRow, SupportView
from labeller.supports import Needs, read_supports
from labeller.worklist import IDLE_SECONDS, SKIPPED, CaseSummary, WorkQueue
from terminal.actions import ActionRefused

STEP_NAMES = {
    "toggle": "mark",
    "toggle_range": "marks",
    "edit": "change",
    "confirm": "saving",
    "group": "need",
    "share": "need",
    "open_need": "opening a need",
    "turn_needs": "form of the needs",
}
"""The shown names of the journal's steps; other steps keep their own names."""

_NO_CASE = CaseState({}, {})

P = ParamSpec("P")
OfCase = Callable[Concatenate[CaseState, P], EditResult]
OfRow = Callable[Concatenate[CaseState, ChunkRow, P], EditResult]


class Session:
    """One annotator at work on one set.

    `record` gets each event first and must not raise. `now` gives epoch seconds. `seed` decides the
    order of shuffled rows and of the random queue. `priority` orders the queues that teach most
    first. `blind` hides rank and scores; `inspect` shows them and refuses every change, as does a
    non-empty `read_only`, which says why. A non-empty `fixed` says why the set is not changed here:
    cases can be labelled, not edited. `validate` names what is wrong with a record. `history` is
    what the journal told, oldest first.
    """

    def __init__(
        self,
        records: Mapping[str, Record],
        judgements: Mapping[str, Record],
        *,
        record: Callable[[Event], None],
        now: Callable[[], float],
        annotator: str = GOLD,
        seed: str = "",
        order: str = "file",
        priority: Mapping[str, float] | None = None,
        blind: bool = True,
        inspect: bool = False,
        fixed: str = "",
        validate: Callable[[Record], list[str]] = lambda case: [],
        read_only: str = "",
        history: Iterable[Event] = (),
    ) -> None:
        events = list(history)
        self.now, self.annotator, self.seed, self.fixed = now, annotator, seed, fixed
        self.inspect, self.blind = inspect, blind and not inspect
        self.row_order = "shuffled" if self.blind else "rank"
        self.resumed_row = ""
        """Key of the chunk that was under the cursor when the last session was left."""
        self._unblinded = {str(e["case"]) for e in events if e.get("action") == "blind"}
        self._view: tuple[tuple[Any, ...], CaseState, CaseView] | None = None
        self._since: dict[str, float] = {}
        self._warned: CaseState | None = None
        self.pool = ChunkPool()
        self.queue = WorkQueue(
            order, seed=seed, priority=priority or {}, lost=self._is_lost, opened=self._opened
        )
        self.ledger = CaseLedger(
            records,
            judgements,
            self.queue,
            record=record,
            now=now,
            by=annotator,
            validate=validate,
            read_only=read_only or ("inspecting: nothing is written" if inspect else ""),
            history=events,
        )

    def _is_lost(self, case_id: str) -> bool:
        """Has a case whose chunks have come a support that none of them shows?"""
        supports = read_supports(self.ledger.case_of(case_id)) if case_id in self.pool else ()
        chunks = self.pool.chunks(case_id)
        return any(locate(support.data, chunks)[1] == "absent" for support in supports)

    def _opened(self, case_id: str) -> None:
        self.pool.problems.pop(case_id, None)  # coming back is a reason to try again
        self._since[case_id] = self.now()
        self._warned = None

    @property
    def current(self) -> str:
        """The id of the open case; ``""`` when there is no case."""
        return self.queue.current

    @property
    def state(self) -> CaseState:
        """The state of the current case; an empty one when there is none."""
        return self.ledger[self.current] if self.current else _NO_CASE

    @property
    def case(self) -> Record:
        """The current case's record; do not change it. ``{}`` when there is no case."""
        return self.state.case

    @property
    def judgement(self) -> Record:
        """The known facts about the current case beside the set: decision, flag, note and so on."""
        return self.state.judgement

    @property
    def layout(self) -> Needs:
        """The needs of the current case, and the one that marks join."""
        return self.state.layout

    @property
    def summary(self) -> CaseSummary:
        """The list entry of the current case."""
        return self.queue.summaries[self.current]

    @property
    def fetching(self) -> bool:
        """Are the chunks of the current case on their way, with nothing said against it yet?"""
        return bool(self.current) and self.pool.waits(self.current)

    @property
    def problem(self) -> str:
        """Why the current case has no chunks, or ``""``."""
        return self.pool.problems.get(self.current, "")

    def messages_before(self) -> list[conversation.PriorMessage]:
        """The messages before the current question."""
        return conversation.messages_before(self.case, self.queue.ids, self.ledger.case_of)

    def terms(self) -> frozenset[str]:
        """Casefolded content words of the question made whole, to be marked in the text."""
        case = self.case
        return content_words(str(case.get("question_alone") or case.get("question") or ""))

    @property
    def view(self) -> CaseView:
        """The current case as the screen shows it."""
        state = self.state
        key = (self.current, self.pool.version, self.blind, self.row_order)
        if self._view is None or self._view[0] != key or self._view[1] is not state:
            shuffled_by = (self.seed, self.annotator, self.current)
            labelled = rows.arranged(self.pool.chunks(self.current), self.row_order, shuffled_by)
            seen = self.pool.seen(self.current)
            self._view = (key, state, rows.view_of(state, labelled, seen=seen, blind=self.blind))
        return self._view[2]

    def rows(self) -> list[ChunkRow]:
        """The rows of the current case, numbered from 1 in screen order."""
        return self.view.rows

    def supports(self) -> list[SupportView]:
        """The gold supports of the current case, in the order of the set."""
        return self.view.supports

    def see(self, number: int) -> None:
        """The last line of a row's text was shown: it counts as read, and as judged."""
        self.pool.see(self.current, self.view.row(number).chunk.key)

    def set_row_order(self, order: str) -> str:
        """Order the rows: ``shuffled`` (by the seed), ``rank`` (not when blind), or ``path``."""
        if order not in ROW_ORDERS:
            remedy = f"use one of: {', '.join(ROW_ORDERS)}"
            raise ActionRefused(f"Row order {order!r} is unknown; {remedy}.")
        if order == "rank" and self.blind:
            raise ActionRefused("Blind mode hides the rank; B leaves it.")
        self.row_order = order
        return f"rows: {order}"

    def set_blind(self, blind: bool) -> str:
        """Hide or show rank and scores. Leaving blind mode is journalled, and noted at the case."""
        if self.inspect and blind:
            raise ActionRefused("Inspecting shows rank and scores.")
        if blind == self.blind:
            raise ActionRefused("Nothing to change.")
        self.blind = blind
        if blind and self.row_order == "rank":
            self.row_order = "shuffled"
        if self.current and not self.ledger.read_only:
            self.ledger.note("blind", self.current, blind=blind)
            self._unblinded.add(self.current)
        return "blind: rank and scores are hidden" if blind else "rank and scores are shown"

    def do(self, change: OfCase[P], *args: P.args, **more: P.kwargs) -> str:
        """Change the current case by a function of its state; the message."""
        return self.ledger.commit(change(self.ledger.open, *args, **more))

    def on_row(self, number: int, change: OfRow[P], *args: P.args, **more: P.kwargs) -> str:
        """Change the current case by a function of its state and a row; the message."""
        state, row = self.ledger.open, self.view.row(number)
        return self.ledger.commit(change(state, row, *args, **more))

    def revise(self, change: OfCase[P], *args: P.args, **more: P.kwargs) -> str:
        """Change the case itself, as `do` does; refused where the set may not be changed."""
        self._own_set()
        return self.do(change, *args, **more)

    def toggle_range(self, first: int, last: int) -> str:
        """Mark all rows from `first` to `last`; when all are marked, take the marks away."""
        numbers = range(min(first, last), max(first, last) + 1)
        return self.do(marks.toggle_range, [self.view.row(number) for number in numbers])

    def open_need(self, number: int | None) -> str:
        """Let marks join a need; 0: they are not required; None: they join a new need."""
        change = marks.open_need(self.ledger.open, number)
        same = change.state.layout == self.layout
        return change.message if same else self.ledger.commit(change)

    def next_need(self, by: int) -> str:
        """Let marks join the next need (1) or the one before (-1), round the end."""
        return self.open_need((self.layout.open - 1 + by) % len(self.layout.parts) + 1)

    def turn_needs(self) -> str:
        """Show the needs as ways, or the ways as needs."""
        self.do(marks.turn_needs)
        return self.view.needs_words()

    def skip(self) -> str:
        """Judge the case later: it comes back when no other is open. Moves on."""
        message = self.do(edits.skip)
        if self.judgement["decision"] == SKIPPED:
            self.queue.onward()
        return message

    def confirm(self) -> str:
        """Confirm the case in its present state, and open the next open one; accepts a draft.

        Refuses where something is missing; asked again, a case that is answerable without a mark is
        stored unchanged.
        """
        self.ledger.need_writable()
        state, here = self.ledger.open, self.current
        missing = edits.missing_of(state)
        if missing and (self._warned != state or edits.decision_of(state) is None):
            self._warned = state
            raise ActionRefused(missing)
        now = self.now()
        seconds = round(min(IDLE_SECONDS, max(0.0, now - self._since[here])), 1)
        message = self.do(
            edits.confirm,
            rows.judged_rows(self.rows()),
            accepts=not self.fixed,
            by=self.annotator,
            at=timestamp(now),
            seconds=seconds,
            blind=self.blind and here not in self._unblinded,
            seed=self.seed,
            row_order=self.row_order,
        )
        self.queue.add_time(seconds)
        self.queue.onward()
        return message

    def undo(self) -> str:
        """Take back the last step, and open the case that it touched."""
        return f"Undone: {self._step_words(self.ledger.undo())}"

    def redo(self) -> str:
        """Do the step last taken back again, and open its case."""
        return f"Redone: {self._step_words(self.ledger.redo())}"

    def _step_words(self, step: Event) -> str:
        name = STEP_NAMES.get(step["action"], step["action"].replace("_", " "))
        labels = [row.label for row in self.rows() if row.chunk.key == step.get("row")]
        return f"{name} {f'on row {labels[0]} of' if labels else 'in'} {step['case']}"

    def add_case(self, question: str, **fields: Any) -> str:
        """Add a case after the current one, and open it. Ids are never given twice."""
        self._own_set()
        near = edits.near_duplicate(question, self.queue.summaries.values(), self.current)
        fields = edits.with_fields({"question": question.strip()}, fields)
        case_id = self.ledger.add("add_case", fields)
        return f"{case_id} added" + (f"; {near} asks nearly the same" if near else "")

    def duplicate_case(self) -> str:
        """Add a copy of the current case without its labels, and open it."""
        self._own_set()
        return f"{self.ledger.add('duplicate_case', edits.copied(self.ledger.open.case))} added"

    def delete_case(self) -> str:
        """Take the current case out of the set. Undo brings it back."""
        self._own_set()
        return self.ledger.delete()

    def _own_set(self) -> None:
        if self.fixed:
            raise ActionRefused(self.fixed)


@dataclass(frozen=True)
class View:
    """The present view: case, key of the chunk under the cursor, filter and order of the queue.

    `row_order` counts for sessions that are as `blind` as the one that it was chosen in.
    """

    case: str = ""
    row: str = ""
    filter: str = ""
    order: str = "file"
    row_order: str = "shuffled"
    blind: bool = True


def present_view(session: Session, row: str = "") -> View:
    """The present view, with the cursor on the chunk of key `row`."""
    queue = session.queue
    return View(queue.current, row, queue.filter, queue.order, session.row_order, session.blind)


def resume(session: Session, view: View) -> list[str]:
    """Restore the stored view. Returns what the user should know, a sentence each.

    The order of the queue is an argument of the session: it may need results to go by.
    """
    notices, queue = [], session.queue
    if view.filter:
        try:
            notices.append(f"Still filtered by {view.filter}: {queue.set_filter(view.filter)}.")
        except ActionRefused as refusal:
            notices.append(f"The filter of last time is dropped: {refusal}")
    if view.blind == session.blind and view.row_order != session.row_order:
        try:
            session.set_row_order(view.row_order)
        except ActionRefused as refusal:
            notices.append(f"The row order of last time is dropped: {refusal}")
    if view.case in queue:
        queue.current = ""
        queue.goto(view.case)
        queue.trail.clear()
        session.resumed_row = view.row
    return notices
