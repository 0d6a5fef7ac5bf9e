"""Between the session and its files: what is to be saved, and what the files tell."""

from __future__ import annotations

from dataclasses import asdict

from labeller.core import Core
from labeller.entry import Entry, encoded, same


class Syncing(Core):
    """What a store asks of a session, and gives to it."""

    @property
    def dirty(self) -> bool:
        """Is anything changed that the files do not hold yet?"""
        return bool(self._unsaved)

    def pending(self) -> tuple[dict[str, Entry | None], list[str]]:
        """What differs from the files (None: deleted), and the order of all cases in the set."""
        return {k: self._changed[k] for k in self._changed if k in self._unsaved}, list(self._order)

    def state(self) -> bytes:
        """Everything that undo restores, as canonical bytes."""
        changed = {k: None if e is None else asdict(e) for k, e in sorted(self._changed.items())}
        return encoded({"order": self._order, "changed": changed}).encode()

    def restore(self, case_id: str, entry: Entry | None, place: int | None) -> bool:
        """Take an entry that the journal holds. False when the files hold the same already."""
        self._put(case_id, entry, place)
        return case_id in self._unsaved

    def adopt(self, case_id: str, entry: Entry | None) -> None:
        """Take an entry that was merged with another's work; journalled, but no step to undo."""
        before = self.entry(case_id) if self.knows(case_id) else None
        if not same(before, entry):
            self._step("merged", case_id, before, entry, None)
