"""Reads and changes the notes and flags on the cases of a set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from records.errors import StorageError
from records.notes import CaseNote, NotesByCase, note_files, own_note, read_notes, write_note


class CaseNotes:
    """Notes by case id: the browser's own, which can be changed, and annotators'."""

    def __init__(self, eval_set: Path, labels_dir: Path | None) -> None:
        self._eval_set, self._labels_dir = eval_set, labels_dir
        self._signature: tuple[tuple[str, int, int], ...] = ()
        self.by_case: NotesByCase = {}
        """All notes; the same object for as long as this one lives."""
        self.problems: list[str] = []
        """Lines that cannot be read, and files, a sentence each."""

    def refresh(self) -> bool:
        """Read the files if they changed; whether they did."""
        try:
            signature = tuple(
                (str(path), stat.st_mtime_ns, stat.st_size)
                for path in note_files(self._eval_set, self._labels_dir)
                if path.exists() and (stat := path.stat())
            )
            if signature == self._signature:
                return False
            problems: list[str] = []
            notes = read_notes(self._eval_set, self._labels_dir, problems.append)
        except (StorageError, OSError) as error:
            self.problems = [str(error)]
            return False
        self._signature, self.problems = signature, problems
        for case_id in self.by_case.keys() - notes.keys():
            del self.by_case[case_id]
        self.by_case.update(notes)
        return True

    def of(self, case_id: str) -> Sequence[CaseNote]:
        """The notes on a case, the browser's first."""
        return self.by_case.get(case_id, ())

    def own(self, case_id: str) -> CaseNote:
        """The browser's note on a case; an empty one when there is none."""
        return own_note(self.of(case_id))

    def put(self, case_id: str, note: CaseNote) -> None:
        """Replace the browser's note on a case; an empty one is taken away.

        Raises StorageError when it cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        write_note(self._eval_set, self._labels_dir, case_id, note, now)
        self.refresh()
