"""The present cases of a set, and how they change: each change is journalled before it is seen.

What the store saves and merges is asked for and given back here (`pending`, `adopt`, `restore`,
`refresh`). Which case is open is the queue's to know.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from labeller import case_state, conversation
from labeller.case_state import CaseState, EditResult, Event, Record, UndoHistory
from labeller.edits import slug_id
from labeller.worklist import CaseSummary, WorkQueue, summary_of
from records.editing import written
from terminal.actions import ActionRefused

CACHED: Final = 64
"""States of unchanged cases that are kept parsed."""


class CaseLedger:
    """The present states of all cases and their history; it keeps the queue up to date.

    `by` is who changes the cases. The other arguments are those of `Session`.
    """

    def __init__(
        self,
        records: Mapping[str, Record],
        judgements: Mapping[str, Record],
        queue: WorkQueue,
        *,
        record: Callable[[Event], None],
        now: Callable[[], float],
        by: str,
        validate: Callable[[Record], list[str]],
        read_only: str,
        history: Iterable[Event],
    ) -> None:
        self._records, self._judgements, self._queue = records, judgements, queue
        self._record, self._now, self._by = record, now, by
        self._journal = record  # `one_step` holds events back instead
        self._held: list[Event] | None = None
        self._validate = validate
        self.read_only = read_only
        self.turned_away = 0
        """The changes that were refused because nothing may be written."""
        self._changed: dict[str, CaseState | None] = {}
        self._unsaved: set[str] = set()
        self._cache: dict[str, CaseState] = {}
        self.history = UndoHistory()
        self._used_ids: set[str] = set()
        self._last_touched = ""
        for event in history:
            self.history.take(event)
            self._last_touched = str(event.get("case", ""))
            self._used_ids.add(self._last_touched)
        self.refresh()
        self.reopen()

    def __getitem__(self, case_id: str) -> CaseState:
        """The present state of a case. Raises KeyError for a deleted or unknown one."""
        state = self._changed.get(case_id) or self._cache.get(case_id)
        if state is None:
            state = None if case_id in self._changed else self.on_disk(case_id)
            if state is None:
                raise KeyError(case_id)
            if len(self._cache) >= CACHED:
                self._cache.clear()
            self._cache[case_id] = state
        return state

    def on_disk(self, case_id: str) -> CaseState | None:
        """The state of a case in the files; None when it is not there."""
        if case_id not in self._records:
            return None
        return CaseState(self._records[case_id], self._judgements.get(case_id, {}))

    def case_of(self, case_id: str) -> Record:
        """The record of any case."""
        return self[case_id].case

    @property
    def open(self) -> CaseState:
        """The state of the open case. Refuses when there is none."""
        if not self._queue.current:
            raise ActionRefused("There is no case; o adds one.")
        return self[self._queue.current]

    def commit(self, change: EditResult) -> str:
        """Apply a change to the open case. Refuses a bad record; returns the message."""
        self.need_writable()
        before, after = self.open, change.state
        if case_state.same(before, after):
            raise ActionRefused("Nothing to change.")
        if written(before.case) != written(after.case):
            self._check(after.case, before.case)
        self._do(change.name, self._queue.current, before, after, row=change.row)
        return change.message

    def add(self, action: str, fields: Record) -> str:
        """Add a case after the open one, and open it. Ids are never given twice."""
        self.need_writable()
        queue = self._queue
        asked = str(fields.get("id") or "").strip()
        case_id = asked or self.new_id(str(fields.get("question") or ""))
        if case_id in self._all_ids():
            raise ActionRefused(f"{case_id} is the id of another case, or was: choose another one.")
        case = {"id": case_id, **{k: v for k, v in fields.items() if k != "id"}}
        self._check(case, None)
        place = conversation.place_behind(queue.current, queue.ids, self.case_of)
        self._do(action, case_id, None, CaseState(case, {}), place=place)
        return queue.goto(case_id)

    def delete(self) -> str:
        """Take the open case out of the set. Undo brings it back."""
        self.need_writable()
        state, gone = self.open, self._queue.current
        place = conversation.place_of_last(gone, self._queue.ids, self.case_of)
        self._do("delete_case", gone, state, None, place=place)
        return f"{gone} is deleted; u brings it back"

    def new_id(self, question: str) -> str:
        """An id for a question, a slug of it, that no case has or had."""
        return slug_id(question, self._all_ids())

    def _all_ids(self) -> set[str]:
        return {*self._records, *self._queue.ids, *self._used_ids}

    def need_writable(self) -> None:
        """Refuse where nothing is written, and count that."""
        if self.read_only:
            self.turned_away += 1
            raise ActionRefused(f"Read-only: {self.read_only}.")

    def _check(self, case: Record, before: Record | None) -> None:
        problems = self._validate(case)
        old = self._validate(before) if problems and before is not None else []
        new = [problem for problem in problems if problem not in old]
        if new:
            raise ActionRefused(new[0])

    def note(self, action: str, case_id: str, **fields: Any) -> None:
        """Journal an event that changes no case."""
        self._record(self.history.event(self._now(), self._by, action, case_id) | fields)

    def _do(
        self,
        action: str,
        case_id: str,
        before: CaseState | None,
        after: CaseState | None,
        *,
        of: int | None = None,
        place: int | None = None,
        row: str = "",
    ) -> None:
        """Journal a change, then show it: what is shown as done is on disk."""
        event = self.history.event(self._now(), self._by, action, case_id)
        event |= {} if of is None else {"of": of}
        for name, state in (("before", before), ("after", after)):
            event[name] = None if state is None else asdict(state)
        event |= ({} if place is None else {"place": place}) | ({"row": row} if row else {})
        self._journal(event)
        if self._held is None:
            self.history.take(event)
        self._put(case_id, after, place)

    def _put(self, case_id: str, state: CaseState | None, position: int | None) -> None:
        """Set the present state of a case; `position` counts when the case appears."""
        self._remember(case_id, state)
        self._used_ids.add(case_id)
        if state is None:
            self._queue.remove(case_id)
        else:
            self._queue.put(case_id, summary_of(state.case, state.judgement), position)

    def _remember(self, case_id: str, state: CaseState | None) -> None:
        """Keep `state` as far as it differs from the files."""
        base = self.on_disk(case_id)
        saved = case_state.same_on_disk(base, state)
        (self._unsaved.discard if saved else self._unsaved.add)(case_id)
        if case_state.same(base, state):
            self._changed.pop(case_id, None)
        else:
            self._changed[case_id] = state

    @contextlib.contextmanager
    def one_step(self) -> Iterator[None]:
        """Let all that is done to the open case inside be one step, or nothing if refused."""
        case_id, before = self._queue.current, self.open
        held: list[Event] = []
        self._held, self._journal = held, held.append
        try:
            yield
        except Exception:
            self._put(case_id, before, None)
            raise
        finally:
            self._held, self._journal = None, self._record
        if held and not (len(held) > 1 and case_state.same(before, self[case_id])):
            event = held[-1] | {"before": held[0]["before"]}
            self._record(event)
            self.history.take(event)

    def undo(self) -> Event:
        """Take back the last step and open the case that it touched. Returns the step."""
        return self._turn("undo", self.history.done, "before", "after")

    def redo(self) -> Event:
        """Do the step last taken back again, and open its case."""
        return self._turn("redo", self.history.undone, "after", "before")

    def _turn(self, action: str, steps: list[Event], to: str, since: str) -> Event:
        self.need_writable()
        if not steps:
            raise ActionRefused(f"Nothing to {action}.")
        step = steps[-1]
        case_id = str(step["case"])
        before, after = case_state.state_from(step[since]), case_state.state_from(step[to])
        if not case_state.same_on_disk(self.now_of(case_id), before):
            steps.pop()
            why = "was changed elsewhere since: its step is left unchanged"
            raise ActionRefused(f"{case_id} {why}.")
        self._do(action, case_id, before, after, of=step["n"], place=step.get("place"))
        if case_id in self._queue:
            self._queue.goto(case_id)
        return step

    def now_of(self, case_id: str) -> CaseState | None:
        """The present state of a case; None where there is none."""
        return self[case_id] if case_id in self._queue else None

    @property
    def dirty(self) -> bool:
        """Whether any change is not in the files yet."""
        return bool(self._unsaved)

    def pending(self) -> tuple[dict[str, CaseState | None], list[str]]:
        """The differences from the files (None: deleted), and the order of all cases in the set."""
        pending = {k: state for k, state in self._changed.items() if k in self._unsaved}
        return pending, list(self._queue.ids)

    def restore(self, case_id: str, state: CaseState | None, position: int | None) -> bool:
        """Take over a state from the journal. False when the files hold the same already."""
        self._put(case_id, state, position)
        return case_id in self._unsaved

    def adopt(self, case_id: str, state: CaseState | None) -> None:
        """Take a state that was merged with another's work; journalled, but no step to undo."""
        before = self.now_of(case_id)
        if not case_state.same(before, state):
            self._do("merged", case_id, before, state)

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
        for position, case_id in enumerate(self._queue.ids):
            if case_id in added:
                ids.insert(position, case_id)
                added.discard(case_id)
        ids += sorted(added)
        self._queue.load({case_id: self._summary_of(case_id) for case_id in ids})

    def _summary_of(self, case_id: str) -> CaseSummary:
        state = self._changed.get(case_id)
        if state is not None:
            return summary_of(state.case, state.judgement)
        judged = case_id in self._judgements  # most are not, and Mapping.get would raise and catch
        judgement = self._judgements[case_id] if judged else {}
        return summary_of(self._records[case_id], judgement)

    def reopen(self) -> None:
        """Open the case that was last worked on, after `restore`."""
        self._queue.open_first(self._last_touched)
