"""Where a session's labels go: journal at once, set and judgements on saving, merged with the disk.

    store = LabelStore(path, judgements_dir, annotator="gold", now=time.time)
    session = Session(store.records, store.judgements, **store.session_options())
    store.attach(session)          # brings back what a killed session had not saved
    …
    store.save(); store.close()

No method but the constructor raises: what is wrong stands in `problem`, and the session goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from label_store.cases import (
    Judgements,
    SecondView,
    identify_case,
    identify_judgement,
    judgement_line,
    validate,
)
from label_store.disk import (
    back_up,
    clear_leftovers,
    is_read_only,
    read_bytes,
    read_or_empty,
    replace,
)
from label_store.document import Document
from label_store.journal import Event, Journal
from label_store.lock import SetLock
from label_store.reconcile import Change, changes_of, is_twin, reconciled, taking_theirs
from labeller.entry import GOLD, Entry
from labeller.history import timestamp
from labeller.model import Conflict, Session
from records.errors import StorageError

Record = dict[str, Any]


class LabelStore:
    """The files of one annotator's work on one set. Raises StorageError when the set is unreadable.

    `second` keeps the set as it is and writes the annotator's judgements alone, for the cases of
    `only` if it is given.
    """

    def __init__(
        self,
        path: Path,
        judgements_dir: Path,
        *,
        now: Callable[[], float],
        annotator: str = GOLD,
        second: bool = False,
        only: Collection[str] | None = None,
        writing: bool = True,
    ) -> None:
        self.path, self.annotator, self.second = path, annotator, second
        self.judgements_path = judgements_dir / f"{annotator}.jsonl"
        self.problem = ""
        self.saved_at: float | None = None
        self.notices: list[str] = []
        self.conflicts: list[Conflict] = []
        self.read_only = "" if writing else "nothing is written"
        self._now = now
        self._session: Session | None = None
        self._unwritten: list[Event] = []
        self._backed_up = False
        self._rescued: Path | None = None
        self._lock = SetLock(self.judgements_path if second else path)
        journal = path.name + ("" if annotator == GOLD else f".{annotator}") + ".journal"
        self._journal = Journal(path.with_name(journal))
        self._set_bytes = read_bytes(path)
        self._judged_bytes = read_or_empty(self.judgements_path)
        if writing:
            self._take_lock()
        self.cases = Document(self._set_bytes, identify_case)
        self._judged = Document(self._judged_bytes, identify_judgement)
        self.notices += self.cases.complaints(path.name)
        self.notices += self._judged.complaints(self.judgements_path.name)
        self.records: Mapping[str, Record] = self.cases
        self.judgements: Mapping[str, Record] = Judgements(self._judged)
        if second:
            self.records = SecondView(self.cases, self._judged, only)
        self.history, self._unsaved = self._read_journal()
        self._marked = not self._unsaved

    # -- opening -------------------------------------------------------------------------------

    def _take_lock(self) -> None:
        try:
            self._lock.path.parent.mkdir(parents=True, exist_ok=True)
            if not self._lock.take(self.annotator, timestamp(self._now())):
                self.read_only = f"{self._lock.holder} is at work on it"
            else:
                for path in (self.judgements_path, *(() if self.second else (self.path,))):
                    clear_leftovers(path)
        except OSError as error:
            self.read_only = f"{self._lock.path.parent} cannot be written ({error.strerror})"
        target = self.judgements_path if self.second else self.path
        if not self.read_only and is_read_only(target):
            self.problem = f"NOT SAVED: {target} is read-only; labels go to the journal."
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
            self.notices.append("The journal's last line was cut short and is left out.")
        if bad:
            self.notices.append(f"{bad} lines of the journal cannot be read and are passed over.")
        return saved + unsaved, [] if self.read_only else unsaved

    def session_options(self) -> dict[str, Any]:
        """The arguments of `Session` that come from the files."""
        return {
            "record": self.record,
            "now": self._now,
            "annotator": self.annotator,
            "second": self.second,
            "read_only": self.read_only,
            "validate": validate,
            "history": self.history,
        }

    def attach(self, session: Session) -> None:
        """Give the session what the journal holds and the files do not, merged with the files."""
        self._session = session
        back = 0
        for case_id, change in changes_of(self._unsaved).items():
            back += session.restore(case_id, self._merged(case_id, change), change.place)
        if back:
            noun = "case" if back == 1 else "cases"
            self.notices.append(
                f"The last session ended unsaved: {back} {noun} brought back from the journal."
            )
        self._say_conflicts()
        session.reopen()

    # -- the journal ---------------------------------------------------------------------------

    def record(self, event: Event) -> None:
        """Append one event. When the disk refuses it stays in memory and is tried again."""
        self._unwritten.append(event)
        self._marked = event["action"] == "saved"
        self._flush()

    def _flush(self) -> None:
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

    # -- saving --------------------------------------------------------------------------------

    def save(self) -> str:
        """Write what was changed, with what others changed on disk merged in."""
        session = self._session
        if session is None or self.read_only:
            return f"Read-only: {self.read_only}." if self.read_only else "Nothing to save."
        try:
            reread = self._reload()
            count = self._write(session)
        except StorageError as error:
            self.cases.reload(self._set_bytes)
            self._judged.reload(self._judged_bytes)
            self.problem = f"NOT SAVED: {error.message}"
            return self.problem
        self.problem = ""
        if self.conflicts or self._marked:
            self._flush()
        else:
            self.record({"action": "saved", "at": timestamp(self._now()), "by": self.annotator})
        self.saved_at = self._now()
        session.refresh(reread=reread)
        if self.conflicts:
            return f"saved; {len(self.conflicts)} in conflict with the file wait for a choice"
        return "saved" if count else "saved already"

    def _write(self, session: Session) -> int:
        pending, order = session.pending()
        waiting = {conflict.case_id for conflict in self.conflicts}
        ready = {case_id: entry for case_id, entry in pending.items() if case_id not in waiting}
        if not self.second:
            self.cases.patch({k: e.case if e else None for k, e in ready.items()}, order)
        self._judged.patch({k: self._judgement_line(k, e) for k, e in ready.items()}, order)
        new_set, new_judged = self.cases.render(), self._judged.render()
        changed = new_set != self._set_bytes or new_judged != self._judged_bytes
        if new_set != self._set_bytes:
            self._back_up()
            replace(self.path, new_set)
            self._set_bytes = new_set
        if new_judged != self._judged_bytes:
            self.judgements_path.parent.mkdir(parents=True, exist_ok=True)
            replace(self.judgements_path, new_judged)
            self._judged_bytes = new_judged
        return len(ready) if changed else 0

    def _judgement_line(self, case_id: str, entry: Entry | None) -> Record | None:
        if entry is None:
            return None
        return judgement_line(case_id, entry.judgement, entry.case, second=self.second)

    def _back_up(self) -> None:
        if not self._backed_up:
            back_up(self.path, self._set_bytes, timestamp(self._now()))
            self._backed_up = True

    # -- others at work ------------------------------------------------------------------------

    def _reload(self) -> bool:
        """Take in what others wrote since; cases that were touched here are merged."""
        set_bytes, judged_bytes = self._read_set(), read_or_empty(self.judgements_path)
        if set_bytes == self._set_bytes and judged_bytes == self._judged_bytes:
            return False
        session = self._session
        assert session is not None
        pending, _ = session.pending()
        bases = {case_id: self._on_disk(case_id) for case_id in pending}
        if set_bytes != self._set_bytes:
            self.cases.reload(set_bytes)
            self._set_bytes, self._backed_up = set_bytes, False
        if judged_bytes != self._judged_bytes:
            self._judged.reload(judged_bytes)
            self._judged_bytes = judged_bytes
        for case_id, mine in pending.items():
            session.adopt(case_id, self._merged(case_id, Change(bases[case_id], mine)))
        session.refresh()
        self._say_conflicts()
        return True

    def _read_set(self) -> bytes:
        """The set as it is now. One that is gone or empty is a mishap, not cases deleted by others.

        Raises StorageError then, with what was loaded in a backup.
        """
        data = read_or_empty(self.path)
        if data.strip() or not self._set_bytes.strip():
            self._rescued = None
            return data
        if self._rescued is None:
            self._rescued = back_up(self.path, self._set_bytes, timestamp(self._now()))
        raise StorageError(
            f"{self.path}: the set was removed or emptied; what is here is kept in "
            f"{self._rescued.name} and the journal. Put that file back in its place and save again."
        )

    def _on_disk(self, case_id: str) -> Entry | None:
        if case_id not in self.records:
            return None
        return Entry(self.records[case_id], self.judgements.get(case_id, {}))

    def _merged(self, case_id: str, change: Change) -> Entry | None:
        """Both changes in one entry; what conflicts stays mine, and waits in `conflicts`."""
        theirs = self._on_disk(case_id)
        if is_twin(change, theirs):
            self._move_twin(case_id, change)
            return theirs
        entry, conflict = reconciled(case_id, change, theirs)
        self.conflicts = [known for known in self.conflicts if known.case_id != case_id]
        if conflict is not None:
            self.conflicts.append(conflict)
        return entry

    def _move_twin(self, case_id: str, change: Change) -> None:
        """Two people gave the same id to new cases: both stay, mine under another id."""
        session, mine = self._session, change.mine
        assert session is not None
        assert mine is not None
        new_id = session.new_id()
        session.adopt(new_id, Entry({**mine.case, "id": new_id}, mine.judgement, mine.letter))
        self.notices.append(f"{case_id} was added elsewhere too; yours is {new_id} now.")

    def _say_conflicts(self) -> None:
        for conflict in self.conflicts:
            self.notices.append(
                f"{conflict.case_id}: {', '.join(conflict.fields)} changed here and in the file."
            )

    def resolve(self, conflict: Conflict, choice: str) -> str:
        """Settle a conflict: ``mine`` overwrites the file's fields, ``theirs`` takes them."""
        session = self._session
        if session is None or conflict not in self.conflicts or choice not in ("mine", "theirs"):
            return "There is no such conflict."
        if choice == "theirs":
            case_id = conflict.case_id
            mine = session.entry(case_id) if session.knows(case_id) else None
            session.adopt(case_id, taking_theirs(mine, conflict, self._on_disk(case_id)))
        self.conflicts.remove(conflict)
        session.refresh()
        return f"{conflict.case_id}: {choice} is taken"

    def close(self) -> str:
        """Save, close the journal, let go of the lock."""
        said = self.save() if self._session is not None and self._session.dirty else self.problem
        with contextlib.suppress(OSError):
            self._journal.close()
        self._lock.release()
        return said
