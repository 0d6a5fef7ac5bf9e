"""The cases of a set as they are now: how they change, undo, and which one is open.

Every change is in the journal before it is seen. What the store saves and merges is asked for and
given back here (`pending`, `adopt`, `restore`, `refresh`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from labeller.case_state import (
    GOLD,
    CaseState,
    Event,
    Record,
    UndoHistory,
    encoded,
    same,
    same_on_disk,
    state_from,
)
from labeller.needs import NOTHING, Needs
from labeller.rows import ChunkPool
from labeller.worklist import OPEN, CaseSummary, Progress, WorkQueue, next_open, summary_of
from terminal.actions import ActionRefused
from terminal.tables import counted

CACHED: Final = 64
"""States of unchanged cases that are kept parsed."""


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


class CaseLedger:
    """The present states of all cases, their history, the queue, and the chunks that came.

    The arguments are those of `labeller.session.Session`.
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
        inspect: bool = False,
        fixed: str = "",
        validate: Callable[[Record], list[str]] | None = None,
        read_only: str = "",
        history: Iterable[Event] = (),
    ) -> None:
        self._records, self._judgements = records, judgements
        self._record, self.now = record, now
        self._journal = record  # `one_step` holds events back instead
        self._validate = validate or (lambda case: [])
        self.annotator, self.seed, self.fixed = annotator, seed, fixed
        self.inspect = inspect
        self.read_only = read_only or ("inspecting: nothing is written" if inspect else "")
        self.turned_away = 0
        self.current = ""
        self.pool = ChunkPool()
        self.queue = WorkQueue(order, seed=seed, priority=priority or {}, lost=self._is_lost)
        self._changed: dict[str, CaseState | None] = {}
        self._unsaved: set[str] = set()
        self._cache: dict[str, CaseState] = {}
        events = list(history)
        self._history = UndoHistory.from_events(events)
        self._held: list[Event] | None = None
        self._used_ids = {str(event["case"]) for event in events if event.get("case")}
        self._last_touched = str(events[-1].get("case", "")) if events else ""
        self._opened: dict[str, float] = {}
        self._trail: list[str] = []
        self._warned: tuple[str, str] | None = None
        self.refresh()
        self.reopen()

    # -- reading -------------------------------------------------------------------------------

    @property
    def case(self) -> Record:
        """The current case's record; do not change it. ``{}`` when there is no case."""
        return self.entry(self.current).case if self.current else {}

    @property
    def judgement(self) -> Record:
        """The known facts about the current case beside the set: decision, flag, note and so on."""
        return self.entry(self.current).judgement if self.current else {}

    @property
    def layout(self) -> Needs:
        """The needs of the current case, and the one that marks join."""
        return self.entry(self.current).layout if self.current else NOTHING

    @property
    def fetching(self) -> bool:
        """Are the chunks of the current case on their way, with nothing said against it yet?"""
        case_id = self.current
        return bool(case_id) and case_id not in self.pool and case_id not in self.pool.problems

    def case_of(self, case_id: str) -> Record:
        """The record of any case."""
        return self.entry(case_id).case

    def entry(self, case_id: str) -> CaseState:
        """The present state of a case. Raises KeyError for a deleted or unknown one."""
        state = self._changed.get(case_id) or self._cache.get(case_id)
        if state is None:
            if case_id in self._changed:
                raise KeyError(case_id)
            if len(self._cache) >= CACHED:
                self._cache.clear()
            state = self._base(case_id)
            if state is None:
                raise KeyError(case_id)
            self._cache[case_id] = state
        return state

    def _base(self, case_id: str) -> CaseState | None:
        """What the files hold of a case; None when they do not know it."""
        if case_id not in self._records:
            return None
        return CaseState(self._records[case_id], self._judgements.get(case_id, {}))

    def _need_case(self) -> CaseState:
        if not self.current:
            raise ActionRefused("There is no case; o adds one.")
        return self.entry(self.current)

    # -- changing ------------------------------------------------------------------------------

    def _commit(self, action: str, after: CaseState, message: str = "", row: str = "") -> str:
        """Make `after` the current case's state. Refuses a bad record; returns `message`.

        `row`: the key of the passage that it was done to, to name it when it is undone.
        """
        self._writable()
        before = self._need_case()
        if same(before, after):
            raise ActionRefused("Nothing to change.")
        if encoded(before.case) != encoded(after.case):
            self._check(after.case, before.case)
        event = self._event(action, self.current, before, after)
        if row:
            event["row"] = row
        self._journal(event)
        self._show(event, after)
        return message

    def _writable(self) -> None:
        """Refuse where nothing is written; count it unless the user asked for that."""
        if self.read_only:
            self.turned_away += not self.inspect
            raise ActionRefused(f"Read-only: {self.read_only}.")

    def _check(self, case: Record, before: Record | None) -> None:
        problems = self._validate(case)
        old = self._validate(before) if problems and before is not None else []
        new = [problem for problem in problems if problem not in old]
        if new:
            raise ActionRefused(new[0])

    def _event(
        self,
        action: str,
        case_id: str,
        before: CaseState | None,
        after: CaseState | None,
        position: int | None = None,
        **more: Any,
    ) -> Event:
        event = self._history.event(self.now(), self.annotator, action, case_id) | more
        event["before"] = None if before is None else asdict(before)
        event["after"] = None if after is None else asdict(after)
        if position is not None:
            event["place"] = position
        return event

    def _show(self, event: Event, after: CaseState | None) -> None:
        """Show what an event did, after it was journalled: what is shown as done is on disk."""
        if self._held is None:
            self._history.take(event)
        self._put(event["case"], after, event.get("place"))

    def _note(self, action: str, **fields: Any) -> None:
        """Journal what changes no case."""
        event = self._history.event(self.now(), self.annotator, action, fields.pop("case"))
        self._record(event | fields)

    def _put(self, case_id: str, state: CaseState | None, position: int | None) -> None:
        """Set the present state of a case; `position` counts when the case appears."""
        self._remember(case_id, state)
        self._warned = None
        self._used_ids.add(case_id)
        if state is not None:
            self.queue.put(case_id, summary_of(state.case, state.judgement), position)
        elif self.knows(case_id):
            self.queue.remove(case_id)
            if self.current == case_id:
                self._open_first(None)

    def _remember(self, case_id: str, state: CaseState | None) -> None:
        """Keep `state` as far as it differs from the files."""
        base = self._base(case_id)
        (self._unsaved.discard if same_on_disk(base, state) else self._unsaved.add)(case_id)
        if same(base, state):
            self._changed.pop(case_id, None)
        else:
            self._changed[case_id] = state

    # -- undo ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def one_step(self) -> Iterator[None]:
        """Let all that is done to the current case inside be one step, or nothing if refused."""
        case_id, before = self.current, self._need_case()
        held: list[Event] = []
        self._held, self._journal = held, held.append
        try:
            yield
        except Exception:
            self._put(case_id, before, None)
            raise
        finally:
            self._held, self._journal = None, self._record
        if held and not (len(held) > 1 and same(before, self.entry(case_id))):
            event = held[-1] | {"before": held[0]["before"]}
            self._record(event)
            self._history.take(event)

    @property
    def can_undo(self) -> bool:
        """Is there a step to take back?"""
        return bool(self._history.done)

    @property
    def can_redo(self) -> bool:
        """Is there a step to do again?"""
        return bool(self._history.undone)

    def undo(self) -> str:
        """Take back the last step, and go to the case that it touched."""
        return self._turn("undo", self._history.done, "before", "after")

    def redo(self) -> str:
        """Do the step last taken back again, and go to its case."""
        return self._turn("redo", self._history.undone, "after", "before")

    def _turn(self, action: str, steps: list[Event], to: str, since: str) -> str:
        self._writable()
        if not steps:
            raise ActionRefused(f"Nothing to {action}.")
        step = steps[-1]
        case_id = str(step["case"])
        now = self.entry(case_id) if self.knows(case_id) else None
        before, after = state_from(step[since]), state_from(step[to])
        if not same_on_disk(now, before):
            steps.pop()
            raise ActionRefused(
                f"{case_id} was changed elsewhere since: its step is left unchanged."
            )
        event = self._event(action, case_id, before, after, step.get("place"), of=step["n"])
        self._journal(event)
        self._show(event, after)
        if self.knows(case_id):
            self._go(case_id)
        done = "Undone" if action == "undo" else "Redone"
        name = STEP_NAMES.get(step["action"], step["action"].replace("_", " "))
        row = self._row_named(str(step.get("row") or ""))
        place = f"on row {row} of" if row else "in"
        return f"{done}: {name} {place} {case_id}"

    def _row_named(self, key: str) -> str:
        """The number of the row that shows the passage of that key now; empty without one."""
        return ""

    # -- the queue -----------------------------------------------------------------------------

    @property
    def visible(self) -> list[str]:
        """The ids of the cases in queue order, filtered."""
        return self.queue.visible

    @property
    def order(self) -> str:
        """The order of the queue: one of `worklist.queue_orders`."""
        return self.queue.order

    @property
    def filter(self) -> str:
        """The filter of the queue, or ``""``."""
        return self.queue.filter

    def knows(self, case_id: str) -> bool:
        """Is there a case of that id now?"""
        return case_id in self.queue.summaries

    def brief(self, case_id: str) -> CaseSummary:
        """The list entry of a case."""
        return self.queue.summaries[case_id]

    def briefs(self) -> list[CaseSummary]:
        """The list entries in queue order, filtered."""
        return [self.queue.summaries[case_id] for case_id in self.queue.visible]

    def progress(self) -> Progress:
        """Counts over all cases, pace and time left."""
        return self.queue.progress()

    @property
    def position(self) -> tuple[int, int]:
        """The current case's place in the queue from 1, and the number of cases."""
        return self.queue.position(self.current) + 1, len(self.queue.sequence)

    def goto(self, case_id: str) -> str:
        """Open a case by its id."""
        if not self.knows(case_id):
            raise ActionRefused(f"There is no case {case_id}.")
        self._go(case_id)
        return case_id

    def goto_number(self, number: int) -> str:
        """Open the n-th case of the queue, from 1."""
        count = len(self.queue.sequence)
        if not 1 <= number <= count:
            raise ActionRefused(f"There is no question {number}; there are {count}.")
        return self.goto(self.queue.sequence[number - 1])

    def next(self) -> str:
        """Open the next visible case; nothing is confirmed."""
        case_id = self.queue.neighbour(self.current, 1)
        if case_id is None:
            raise ActionRefused("This is the last one.")
        return self.goto(case_id)

    def previous(self) -> str:
        """Open the visible case before; nothing is confirmed."""
        case_id = self.queue.neighbour(self.current, -1)
        if case_id is None:
            raise ActionRefused("This is the first one.")
        return self.goto(case_id)

    def next_open(self) -> str:
        """Open the next open case; the skipped ones come when no other is open."""
        case_id = self.queue.next_open(self.current)
        if case_id is None:
            raise ActionRefused("No other case is open.")
        return self.goto(case_id)

    def back(self) -> str:
        """Open the case that was looked at before this one."""
        while self._trail:
            case_id = self._trail.pop()
            if self.knows(case_id) and case_id != self.current:
                self.current = case_id
                self._opened[case_id] = self.now()
                return case_id
        raise ActionRefused("There is no earlier case.")

    def find(self, text: str) -> str | None:
        """The next case after the current one with `text` in its id or question, round the end."""
        return self.queue.find(text, self.current)

    def set_filter(self, text: str) -> str:
        """Show only the cases that `text` asks for (see `worklist.parse_filter`)."""
        try:
            self.queue.set_filter(text.strip())
        except ValueError as error:
            raise ActionRefused(f"{error}.") from None
        return f"{len(self.visible)} of {counted(len(self.queue.sequence), 'case')}"

    def set_order(self, order: str) -> str:
        """Put the queue in another order: one of `worklist.queue_orders`."""
        try:
            self.queue.set_order(order)
        except ValueError as error:
            raise ActionRefused(f"{error}.") from None
        return f"order: {order}"

    def _is_lost(self, case_id: str) -> bool:
        return case_id in self.pool and self.pool.lacks_support(case_id, self.case_of(case_id))

    def _open_first(self, last: str | None) -> None:
        """Open the last touched case while it is open, else the first open one."""
        summaries, sequence = self.queue.summaries, self.queue.sequence
        if last is not None and summaries[last].status == OPEN:
            self._go(last)
            return
        self.current = ""
        first = next_open(sequence, summaries, "") or next(iter(sequence), "")
        if first:
            self._go(first)

    def _go(self, case_id: str) -> None:
        if case_id != self.current:
            self.pool.problems.pop(case_id, None)  # coming back is a reason to try again
            if self.current:
                self._trail.append(self.current)
            self.current = case_id
            self._opened[case_id] = self.now()
            self._warned = None

    def _onward(self) -> str | None:
        following = self.queue.next_open(self.current)
        if following is not None:
            self._go(following)
        return following

    # -- between the session and its files -----------------------------------------------------

    @property
    def dirty(self) -> bool:
        """Whether any change is not in the files yet."""
        return bool(self._unsaved)

    def pending(self) -> tuple[dict[str, CaseState | None], list[str]]:
        """The differences from the files (None: deleted), and the order of all cases in the set."""
        pending = {k: state for k, state in self._changed.items() if k in self._unsaved}
        return pending, list(self.queue.ids)

    def state(self) -> bytes:
        """Everything that undo restores, as canonical bytes."""
        changed = {k: None if s is None else asdict(s) for k, s in sorted(self._changed.items())}
        return encoded({"order": self.queue.ids, "changed": changed}).encode()

    def restore(self, case_id: str, state: CaseState | None, position: int | None) -> bool:
        """Take over a state from the journal. False when the files hold the same already."""
        self._put(case_id, state, position)
        return case_id in self._unsaved

    def adopt(self, case_id: str, state: CaseState | None) -> None:
        """Take a state that was merged with another's work; journalled, but no step to undo."""
        before = self.entry(case_id) if self.knows(case_id) else None
        if not same(before, state):
            event = self._event("merged", case_id, before, state)
            self._journal(event)
            self._show(event, state)

    def refresh(self, *, reread: bool = True) -> None:
        """Take the files' present content as the base: after a save, or a merge of others' work.

        Without `reread` the files hold what is here, and nothing else has changed in them.
        """
        self._cache.clear()
        for case_id, state in list(self._changed.items()):
            self._remember(case_id, state)
        if not reread:
            return
        ids = [case_id for case_id in self._records if self._changed.get(case_id, "") is not None]
        added = {k for k, state in self._changed.items() if state and k not in self._records}
        for position, case_id in enumerate(self.queue.ids):
            if case_id in added:
                ids.insert(position, case_id)
                added.discard(case_id)
        ids += sorted(added)
        self.queue.load({case_id: self._summary_of(case_id) for case_id in ids})
        if self.current and not self.knows(self.current):
            self._open_first(None)

    def _summary_of(self, case_id: str) -> CaseSummary:
        state = self._changed.get(case_id)
        if state is not None:
            return summary_of(state.case, state.judgement)
        judged = case_id in self._judgements  # most are not, and Mapping.get would raise and catch
        judgement = self._judgements[case_id] if judged else {}
        return summary_of(self._records[case_id], judgement)

    def reopen(self) -> None:
        """Open the case that was last worked on, after `restore`."""
        self._open_first(self._last_touched if self.knows(self._last_touched) else None)
