"""Where a session's labels go: journal at once, set and judgements on saving, merged with the disk.

    store = LabelStore(path, judgements_dir, now=time.time)
    session = Session(store.records, store.judgements, **store.session_options())
    store.attach(session.ledger)   # brings back what a killed session had not saved
    …
    store.save(); store.close()

No method but the constructor raises: what is wrong is in `problem`, and the session goes on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from labeller import case_state
from labeller.case_state import GOLD, CaseState, Event, Judgements, LabelTarget, Record, timestamp
from labeller.ledger import CaseLedger
from labeller.merging import Conflict, changes_of, reconciled, taking_theirs
from labeller.session import View
from records import editing
from records.editing import STAMP, Document
from records.errors import StorageError
from records.files import SetLock, clear_leftovers
from records.journal import Journal
from records.judged import identify_case, identify_judgement
from terminal.tables import counted


class LabelStore:
    """The files of one person's work on one set. Raises StorageError when the set is unreadable.

    It saves the changes of the session, and merges the changes of others. `labels`: whose labels
    these are, and where they go. Not `resuming`, views are neither stored nor restored.
    """

    def __init__(
        self,
        path: Path,
        judgements_dir: Path,
        *,
        now: Callable[[], float],
        labels: LabelTarget = case_state.SET_LABELS,
        writing: bool = True,
        resuming: bool = True,
    ) -> None:
        self.path, self.labels = path, labels
        self.judgements_path = judgements_dir / f"{labels.annotator}.jsonl"
        self.problem = ""
        self.saved_at: float | None = None
        self.notices: list[str] = []
        self.conflicts: list[Conflict] = []
        self.read_only = "" if writing else "nothing is written"
        self._now = now
        self._ledger: CaseLedger | None = None
        self._unwritten: list[Event] = []
        self._backed_up = False
        self._rescued: Path | None = None
        self._main_path = self.judgements_path if labels.fixed else path
        self._lock = SetLock(self._main_path)
        name = path.name + ("" if labels.annotator == GOLD else f".{labels.annotator}")
        self._journal = Journal(path.with_name(f"{name}.journal"))
        self._resuming = resuming
        self._view_path = path.with_name(f"{name}.view")
        self._set_bytes = editing.read_bytes(path)
        self._judged_bytes = editing.read_or_empty(self.judgements_path)
        if writing:
            self._take_lock()
        self.cases = Document(self._set_bytes, identify_case, cases=True)
        self._judged = Document(self._judged_bytes, identify_judgement)
        self.notices += self.cases.complaints(path.name)
        self.notices += self._judged.complaints(self.judgements_path.name)
        foreign = case_state.foreign_words(self._judged, self.cases)
        if foreign:
            self.notices.append(f"{self.judgements_path}: {foreign}.")
        self.records = labels.records(self.cases, self._judged)
        self.judgements: Mapping[str, Record] = Judgements(self._judged)
        self.history, self._unsaved = self._read_journal()
        self._marked = not self._unsaved

    @cached_property
    def others(self) -> Mapping[str, Mapping[str, Record]]:
        """The judgements of others, by whose they are. Raises StorageError for a damaged file."""
        judgements = case_state.read_judgements(self.judgements_path.parent)
        return {k: v for k, v in judgements.items() if k != self.labels.annotator}

    def _take_lock(self) -> None:
        try:
            self._lock.path.parent.mkdir(parents=True, exist_ok=True)
            if not self._lock.take(self.labels.annotator, timestamp(self._now())):
                self.read_only = f"{self._lock.holder} is working on it"
            else:
                for path in {self.judgements_path, self._main_path}:
                    clear_leftovers(path, rf"(\.{STAMP}\.bak)?")
        except OSError as error:
            self.read_only = f"{self._lock.path.parent} cannot be written ({error.strerror})"
        if not self.read_only and editing.is_read_only(self._main_path):
            self.problem = f"NOT SAVED: {self._main_path} is read-only; labels go to the journal."
        if self.read_only:
            self.notices.append(f"Read-only: {self.read_only}.")

    def _read_journal(self) -> tuple[list[Event], list[Event]]:
        cut = 0
        if not self.read_only:
            try:
                cut = self._journal.open()
            except OSError as error:
                self.problem = f"NOT SAVED: {self._journal.path}: {error.strerror}."
        try:
            saved, unsaved, bad = self._journal.read()
        except OSError as error:
            self.notices.append(f"{self._journal.path}: cannot be read ({error.strerror}).")
            return [], []
        if cut:
            self.notices.append("The journal's last line is incomplete and is left out.")
        if bad:
            lines, verb = counted(bad, "line"), "is" if bad == 1 else "are"
            self.notices.append(f"{lines} of the journal cannot be read and {verb} skipped.")
        return saved + unsaved, [] if self.read_only else unsaved

    def session_options(self) -> dict[str, Any]:
        """The arguments of `Session` that come from the files."""
        return {
            "record": self.record,
            "now": self._now,
            "annotator": self.labels.annotator,
            "fixed": self.labels.fixed,
            "read_only": self.read_only,
            "validate": case_state.validate,
            "history": self.history,
        }

    def last_view(self) -> View | None:
        """The view of the last session. `notices` names a file that cannot be used."""
        view, problem = read_view(self._view_path) if self._resuming else (None, "")
        if problem:
            self.notices.append(problem)
        return view

    def remember(self, view: View) -> None:
        """Store the present view, unless nothing may be written."""
        if self._resuming and not self.read_only:
            write_view(self._view_path, view)

    def record(self, *events: Event) -> None:
        """Append events. What the disk refuses stays in memory and is tried again at each call."""
        if events:
            self._unwritten += events
            self._marked = events[-1]["action"] == "saved"
        name = f"NOT SAVED: {self._journal.path.name}"
        try:
            while self._unwritten:
                self._journal.append(self._unwritten[0])
                del self._unwritten[0]
        except OSError as error:
            self.problem = f"{name}: {error.strerror}."
            return
        if self.problem.startswith(name):
            self.problem = ""

    def attach(self, ledger: CaseLedger) -> None:
        """Give the session the changes that only the journal has, merged with the files."""
        self._ledger = ledger
        back = 0
        for case_id, change in changes_of(self._unsaved).items():
            state = self._merged(ledger, case_id, change.path)
            back += ledger.restore(case_id, state, change.position)
        if back:
            cases = f"{counted(back, 'case')} brought back from the journal"
            self.notices.append(f"The last session ended unsaved: {cases}.")
        self._say_conflicts()
        ledger.reopen()

    def save(self) -> str:
        """Write the changes, merged with the changes of others on disk."""
        ledger = self._ledger
        if ledger is None or self.read_only:
            return f"Read-only: {self.read_only}." if self.read_only else "Nothing to save."
        try:
            reread = self._reload(ledger)
            count = self._write(ledger)
        except StorageError as error:
            self.cases.reload(self._set_bytes)
            self._judged.reload(self._judged_bytes)
            self.problem = f"NOT SAVED: {error.message}"
            return self.problem
        self.problem = ""
        saved: list[Event] = []
        if not (self.conflicts or self._marked):
            saved = [{"action": "saved", "at": timestamp(self._now()), "by": self.labels.annotator}]
        self.record(*saved)
        self.saved_at = self._now()
        ledger.refresh(reread=reread)
        if self.conflicts:
            return f"saved; {len(self.conflicts)} in conflict with the file wait for a choice"
        return "saved" if count else "saved already"

    def _write(self, ledger: CaseLedger) -> int:
        pending, order = ledger.pending()
        waiting = {conflict.case_id for conflict in self.conflicts}
        ready = {case_id: entry for case_id, entry in pending.items() if case_id not in waiting}
        if not self.labels.fixed:
            self.cases.patch({k: e.case if e else None for k, e in ready.items()}, order)
        line = self.labels.line
        self._judged.patch({k: line(k, e) if e else None for k, e in ready.items()}, order)
        new_set, new_judged = self.cases.render(), self._judged.render()
        changed = new_set != self._set_bytes or new_judged != self._judged_bytes
        if new_set != self._set_bytes:
            if not self._backed_up:
                editing.back_up(self.path, self._set_bytes, timestamp(self._now()))
                self._backed_up = True
            editing.replace(self.path, new_set)
            self._set_bytes = new_set
        if new_judged != self._judged_bytes:
            self.judgements_path.parent.mkdir(parents=True, exist_ok=True)
            editing.replace(self.judgements_path, new_judged)
            self._judged_bytes = new_judged
        return len(ready) if changed else 0

    def _reload(self, ledger: CaseLedger) -> bool:
        """Take in what others wrote since; cases that were touched here are merged."""
        set_bytes, judged_bytes = self._read_set(), editing.read_or_empty(self.judgements_path)
        if set_bytes == self._set_bytes and judged_bytes == self._judged_bytes:
            return False
        pending, _ = ledger.pending()
        bases = {case_id: ledger.on_disk(case_id) for case_id in pending}
        if set_bytes != self._set_bytes:
            self.cases.reload(set_bytes)
            self._set_bytes, self._backed_up = set_bytes, False
        if judged_bytes != self._judged_bytes:
            self._judged.reload(judged_bytes)
            self._judged_bytes = judged_bytes
        for case_id, mine in pending.items():
            ledger.adopt(case_id, self._merged(ledger, case_id, (bases[case_id], mine)))
        ledger.refresh()
        self._say_conflicts()
        return True

    def _read_set(self) -> bytes:
        """The present set. One that is gone or empty is a mishap, not cases deleted by others.

        Raises StorageError then, with what was loaded in a backup.
        """
        data = editing.read_or_empty(self.path)
        if data.strip() or not self._set_bytes.strip():
            self._rescued = None
            return data
        if self._rescued is None:
            self._rescued = editing.back_up(self.path, self._set_bytes, timestamp(self._now()))
        raise StorageError(
            f"{self.path}: the set was removed or emptied; its last state is in "
            f"{self._rescued.name} and the journal. Restore that file and save again."
        )

    def _merged(
        self, ledger: CaseLedger, case_id: str, path: Sequence[CaseState | None]
    ) -> CaseState | None:
        """Both changes in one entry; what conflicts stays mine, and waits in `conflicts`."""
        entry, conflict = reconciled(case_id, path, ledger.on_disk(case_id))
        self.conflicts = [other for other in self.conflicts if other.case_id != case_id]
        if conflict is not None:
            self.conflicts.append(conflict)
        return entry

    def _say_conflicts(self) -> None:
        for conflict in self.conflicts:
            fields = ", ".join(conflict.fields)
            self.notices.append(f"{conflict.case_id}: {fields} changed here and in the file.")

    def resolve(self, conflict: Conflict, choice: str) -> str:
        """Settle a conflict: ``mine`` overwrites the file's fields, ``theirs`` takes them."""
        ledger = self._ledger
        if ledger is None or conflict not in self.conflicts or choice not in ("mine", "theirs"):
            return "There is no such conflict."
        if choice == "theirs":
            mine, theirs = ledger.now_of(conflict.case_id), ledger.on_disk(conflict.case_id)
            ledger.adopt(conflict.case_id, taking_theirs(mine, conflict, theirs))
        self.conflicts.remove(conflict)
        ledger.refresh()
        return f"{conflict.case_id}: {choice} is taken"

    def close(self) -> str:
        """Save, close the journal, let go of the lock."""
        message = self.save() if self._ledger is not None and self._ledger.dirty else self.problem
        with contextlib.suppress(OSError):
            self._journal.close()
        self._lock.release()
        return message


def read_view(path: Path) -> tuple[View | None, str]:
    """The last view of one annotator; None and, for a file that cannot be used, the reason."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=View), ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        why = error.strerror or type(error).__name__
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        why = "damaged"
    return None, f"{path.name}: cannot be read ({why}); starting with the default view."


def write_view(path: Path, view: View) -> None:
    """Store a view. A disk that refuses is passed over: no label is in it."""
    # In one step, for a kill must not halve it; not forced onto the disk, at each move of a cursor.
    passing = path.with_name(f".{path.name}.new")
    with contextlib.suppress(OSError, UnicodeEncodeError):
        passing.write_bytes(msgspec.json.encode(view))
        os.replace(passing, path)
