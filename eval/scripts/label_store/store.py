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
from typing import Any

from label_store.cases import judgement_line
from label_store.disk import back_up, read_or_empty, replace
from label_store.files import LabelFiles
from label_store.reconcile import Change, changes_of, is_twin, reconciled, taking_theirs
from labeller.entry import Entry
from labeller.history import timestamp
from labeller.model import Conflict, Session
from records.errors import StorageError

Record = dict[str, Any]


class LabelStore(LabelFiles):
    """Saves what the session changes, and merges what others changed meanwhile."""

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
