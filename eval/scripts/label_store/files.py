"""The files of a session: set, judgements, journal, lock and view, opened together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from label_store.cases import (
    Judgements,
    SecondView,
    identify_case,
    identify_judgement,
    validate,
)
from label_store.disk import STAMP, is_read_only, read_bytes, read_or_empty
from label_store.document import Document
from label_store.journal import Event, Journal
from label_store.lock import SetLock
from label_store.places import foreign_words
from label_store.view_file import ViewFile
from labeller.entry import GOLD
from labeller.history import timestamp
from labeller.model import Conflict, Session, View
from records.files import clear_leftovers

Record = dict[str, Any]


class LabelFiles:
    """The files of one annotator's work on one set. Raises StorageError when the set is unreadable.

    `second` keeps the set as it is and writes the annotator's judgements alone, for the cases of
    `only` if it is given. Not `resuming`, what is looked at is neither kept nor taken up again.
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
        resuming: bool = True,
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
        name = path.name + ("" if annotator == GOLD else f".{annotator}")
        self._journal = Journal(path.with_name(f"{name}.journal"))
        self._resuming = resuming
        self._view_file = ViewFile(path.with_name(f"{name}.view"))
        self._set_bytes = read_bytes(path)
        self._judged_bytes = read_or_empty(self.judgements_path)
        if writing:
            self._take_lock()
        self.cases = Document(self._set_bytes, identify_case, cases=True)
        self._judged = Document(self._judged_bytes, identify_judgement)
        self.notices += self.cases.complaints(path.name)
        self.notices += self._judged.complaints(self.judgements_path.name)
        foreign = foreign_words(self._judged, self.cases)
        if foreign:
            self.notices.append(f"{self.judgements_path}: {foreign}.")
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
                    clear_leftovers(path, rf"(\.{STAMP}\.bak)?")
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

    # -- what was looked at --------------------------------------------------------------------

    def last_view(self) -> View | None:
        """What the last session looked at. A file that cannot be used is told in `notices`."""
        view, problem = self._view_file.read() if self._resuming else (None, "")
        if problem:
            self.notices.append(problem)
        return view

    def remember(self, view: View) -> None:
        """Keep what is looked at, unless nothing may be written."""
        if self._resuming and not self.read_only:
            self._view_file.write(view)

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
