"""The heart of the session: cases as values, one way to change them, undo, and moving about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from labeller.entry import GOLD, Entry, Record, encoded, same, same_on_disk
from labeller.history import Event, History, probes_in
from labeller.worklist import (
    FLAGGED,
    Brief,
    Progress,
    brief_of,
    next_open,
    ordered,
    parse_filter,
    progress_of,
    tally,
)
from terminal.actions import ActionRefused

CACHED: Final = 64
"""Entries of unchanged cases that are kept parsed."""


class Core:
    """Cases, changes, history and the queue. See `labeller.model.Session` for the arguments."""

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
        second: bool = False,
        validate: Callable[[Record], list[str]] | None = None,
        others: Mapping[str, Mapping[str, Record]] | None = None,
        read_only: str = "",
        history: Iterable[Event] = (),
    ) -> None:
        self._records, self._judgements = records, judgements
        self._record, self._now = record, now
        self._validate = validate or (lambda case: [])
        self.annotator, self.seed, self.second = annotator, seed, second
        self.inspect, self.blind = inspect, blind and not inspect
        self.read_only = read_only or ("inspecting: nothing is written" if inspect else "")
        self.turned_away = 0
        self.others = dict(others or {})
        self.priority = dict(priority or {})
        self.order, self.filter = order, ""
        self._changed: dict[str, Entry | None] = {}
        self._unsaved: set[str] = set()
        self._cache: dict[str, Entry] = {}
        events = list(history)
        self._history = History.from_events(events)
        self._used_ids = {str(event["case"]) for event in events if event.get("case")}
        self._probed = probes_in(events)
        self._unblinded = {str(e["case"]) for e in events if e.get("action") == "blind"}
        self._opened: dict[str, float] = {}
        self._seconds: list[float] = []
        self._progress: Progress | None = None
        self._trail: list[str] = []
        self._warned: tuple[str, str] | None = None
        self._order: list[str] = []
        self._briefs: dict[str, Brief] = {}
        self.current = ""
        self.refresh()
        self._last_touched = str(events[-1].get("case", "")) if events else ""
        self.reopen()

    # -- reading -------------------------------------------------------------------------------

    @property
    def case(self) -> Record:
        """The current case's record; do not change it. ``{}`` when there is no case."""
        return self.entry(self.current).case if self.current else {}

    @property
    def judgement(self) -> Record:
        """What is known of the current case beside the set: decision, flag, note and so on."""
        return self.entry(self.current).judgement if self.current else {}

    def case_of(self, case_id: str) -> Record:
        """The record of any case."""
        return self.entry(case_id).case

    def entry(self, case_id: str) -> Entry:
        """The present entry of a case. Raises KeyError for a deleted or unknown one."""
        entry = self._changed.get(case_id) or self._cache.get(case_id)
        if entry is None:
            if case_id in self._changed:
                raise KeyError(case_id)
            if len(self._cache) >= CACHED:
                self._cache.clear()
            entry = self._base(case_id)
            if entry is None:
                raise KeyError(case_id)
            self._cache[case_id] = entry
        return entry

    def _base(self, case_id: str) -> Entry | None:
        """What the files hold of a case; None when they do not know it."""
        if case_id not in self._records:
            return None
        return Entry(self._records[case_id], self._judgements.get(case_id, {}))

    def knows(self, case_id: str) -> bool:
        """Is there a case of that id now?"""
        return case_id in self._briefs

    def brief(self, case_id: str) -> Brief:
        """The list entry of a case."""
        return self._briefs[case_id]

    @property
    def letter(self) -> str:
        """The group that new marks of the current case join."""
        return self.entry(self.current).letter if self.current else "A"

    def progress(self) -> Progress:
        """Counts over all cases, pace and time left."""
        if self._progress is None:
            self._progress = progress_of(self._counts, self._seconds)
        return self._progress

    # -- changing ------------------------------------------------------------------------------

    def _need_case(self) -> Entry:
        if not self.current:
            raise ActionRefused("There is no case; o adds one.")
        return self.entry(self.current)

    def _writable(self) -> None:
        """Refuse where nothing is written; count it unless the user asked for that."""
        if self.read_only:
            self.turned_away += not self.inspect
            raise ActionRefused(f"Read-only: {self.read_only}.")

    def _commit(self, action: str, entry: Entry) -> None:
        """Make `entry` the current case's, and tell the journal. Refused for a bad record."""
        self._writable()
        before = self._need_case()
        if same(before, entry):
            raise ActionRefused("Nothing to change.")
        if encoded(before.case) != encoded(entry.case):
            self._check(entry.case, before.case)
        self._step(action, self.current, before, entry, None)

    def _check(self, case: Record, before: Record | None) -> None:
        problems = self._validate(case)
        old = self._validate(before) if problems and before is not None else []
        new = [problem for problem in problems if problem not in old]
        if new:
            raise ActionRefused(new[0])

    def _change(self, action: str, **fields: Any) -> None:
        """`_commit` with fields of the entry replaced."""
        self._commit(action, replace(self._need_case(), **fields))

    def _judge(self, **fields: Any) -> Record:
        """The current judgement with `fields` set; a value of None takes a field away."""
        known = {**self._need_case().judgement, **fields}
        return {k: v for k, v in known.items() if v is not None or k not in fields}

    def _step(
        self,
        action: str,
        case_id: str,
        before: Entry | None,
        after: Entry | None,
        place: int | None,
    ) -> None:
        event = self._event(action, case_id)
        event["before"] = None if before is None else asdict(before)
        event["after"] = None if after is None else asdict(after)
        if place is not None:
            event["place"] = place
        self._emit(event)
        self._put(case_id, after, place)

    def _event(self, action: str, case_id: str) -> Event:
        return self._history.event(self._now(), self.annotator, action, case_id)

    def _emit(self, event: Event) -> None:
        """To the journal first: what is shown as done is on disk."""
        self._record(event)
        self._history.take(event)

    def _put(self, case_id: str, entry: Entry | None, place: int | None) -> None:
        """Set the present entry of a case; `place` counts when the case appears."""
        known = case_id in self._briefs
        self._keep(case_id, entry)
        self._warned = None
        self._progress = None
        self._used_ids.add(case_id)
        if known:
            self._count_in(self._briefs[case_id], -1)
        if entry is None:
            if known:
                del self._briefs[case_id]
                self._order.remove(case_id)
                self._requeue()
                if self.current == case_id:
                    self._open_first(None)
            return
        self._briefs[case_id] = brief = brief_of(entry.case, entry.judgement)
        self._count_in(brief, 1)
        if not known:
            self._order.insert(len(self._order) if place is None else place, case_id)
            self._requeue()

    def _count_in(self, brief: Brief, by: int) -> None:
        self._counts[brief.status] += by
        self._counts[FLAGGED] += by * brief.flagged

    def reopen(self) -> None:
        """Open the case that was last worked on, after `restore`."""
        self._open_first(self._last_touched if self.knows(self._last_touched) else None)

    def _keep(self, case_id: str, entry: Entry | None) -> None:
        """Keep `entry` as far as it differs from the files."""
        base = self._base(case_id)
        (self._unsaved.discard if same_on_disk(base, entry) else self._unsaved.add)(case_id)
        if same(base, entry):
            self._changed.pop(case_id, None)
        else:
            self._changed[case_id] = entry

    # -- moving about --------------------------------------------------------------------------

    def refresh(self, *, reread: bool = True) -> None:
        """Take the files' present content as the base: after a save, or a merge of others' work.

        Without `reread` the files hold what is here, and nothing else has changed in them.
        """
        self._cache.clear()
        for case_id, entry in list(self._changed.items()):
            self._keep(case_id, entry)
        if not reread:
            return
        known = [case_id for case_id in self._records if self._changed.get(case_id, "") is not None]
        added = {k for k, entry in self._changed.items() if entry and k not in self._records}
        for place, case_id in enumerate(self._order):
            if case_id in added:
                known.insert(place, case_id)
                added.discard(case_id)
        self._order = known + sorted(added)
        self._briefs = {case_id: self._brief_of(case_id) for case_id in self._order}
        self._counts = tally(self._briefs.values())
        self._progress = None
        self._requeue()
        if self.current and not self.knows(self.current):
            self._open_first(None)

    def _brief_of(self, case_id: str) -> Brief:
        entry = self._changed.get(case_id)
        if entry is not None:
            return brief_of(entry.case, entry.judgement)
        known = case_id in self._judgements  # most are not, and Mapping.get would raise and catch
        judgement = self._judgements[case_id] if known else {}
        return brief_of(self._records[case_id], judgement)

    def _requeue(self) -> None:
        self._queue = ordered(self._order, self.order, seed=self.seed, priority=self.priority)
        self._places = {case_id: place for place, case_id in enumerate(self._queue)}
        self._refilter()

    def _refilter(self) -> None:
        test = parse_filter(self.filter, self._lost) if self.filter else None
        self.visible = self._queue
        if test is not None:
            self.visible = [case_id for case_id in self._queue if test(self._briefs[case_id])]

    def _lost(self, case_id: str) -> bool:
        return False

    def _open_first(self, last: str | None) -> None:
        """Open the last touched case while it is open, else the first open one."""
        if last is not None and self._briefs[last].status == "open":
            self._go(last)
            return
        self.current = ""
        found = next_open(self._queue, self._briefs, "") or next(iter(self._queue), "")
        if found:
            self._go(found)

    def _go(self, case_id: str) -> None:
        if case_id != self.current:
            if self.current:
                self._trail.append(self.current)
            self.current = case_id
            self._opened[case_id] = self._now()
            self._warned = None
