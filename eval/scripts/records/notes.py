"""Notes and flags on cases: those of the browser, a file a set, and those that annotators left.

The browser's stand in ``notes/<set>.jsonl`` of the folder of labels, a line a case: ``{"case_id",
"note", "flag", "run", "at"}``. Annotators' stand in their judgements, and are only read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from records.editing import Document, read_bytes, read_or_empty
from records.errors import StorageError
from records.files import locked, replace_bytes
from records.judged import identify_judgement, judgements_dir

AUTHOR = ""
"""The author of the browser's own notes, who has no name."""


class CaseNote(msgspec.Struct, frozen=True):
    """A person's note on a case. ``author``: an annotator's name, or AUTHOR.

    ``run``: the run that was looked at, where one was.
    """

    text: str
    flag: bool = False
    author: str = AUTHOR
    run: str = ""

    def line(self) -> str:
        """The note with its author, for a page or report."""
        parts = [self.author, "flagged" if self.flag else ""]
        head = ", ".join(part for part in parts if part)
        return ": ".join(part for part in (head, self.text) if part)


NotesByCase = dict[str, tuple[CaseNote, ...]]


class _NoteLine(msgspec.Struct):
    case_id: str
    note: str | None = None
    reason: str | None = None
    flag: bool = False
    run: str | None = None


_decode = msgspec.json.Decoder(_NoteLine).decode


def notes_file(eval_set: Path, labels_dir: Path) -> Path:
    """The browser's notes on the cases of a set."""
    return labels_dir / "notes" / f"{eval_set.stem}.jsonl"


def note_files(eval_set: Path, labels_dir: Path | None) -> list[Path]:
    """All files with notes on a set: the browser's first, then annotators' by name."""
    if labels_dir is None:
        return []
    folder = judgements_dir(eval_set, labels_dir)
    return [notes_file(eval_set, labels_dir), *sorted(folder.glob("*.jsonl"))]


def read_notes(
    eval_set: Path, labels_dir: Path | None, report: Callable[[str], None] | None = None
) -> NotesByCase:
    """All notes and flags on the cases of a set, by case id.

    A line that cannot be read is passed over; ``report`` gets a sentence with its file and number.
    """
    notes: NotesByCase = {}
    own = None if labels_dir is None else notes_file(eval_set, labels_dir)
    for path in note_files(eval_set, labels_dir):
        author = AUTHOR if path == own else path.stem
        for number, raw in enumerate(read_or_empty(path).split(b"\n"), 1):
            if not raw.strip():
                continue
            try:
                line = _decode(raw)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                if report is not None:
                    report(f"{path}:{number}: the note cannot be read ({error})")
                continue
            text = (line.note or line.reason or "").strip()
            if text or line.flag:
                note = CaseNote(text, line.flag, author, line.run or "")
                notes[line.case_id] = (*notes.get(line.case_id, ()), note)
    return notes


def own_note(notes: Sequence[CaseNote]) -> CaseNote:
    """The browser's note among those on a case; an empty one when there is none."""
    return next((note for note in notes if note.author == AUTHOR), CaseNote(""))


def write_note(
    eval_set: Path, labels_dir: Path | None, case_id: str, note: CaseNote, at: str
) -> None:
    """Put the browser's note on a case into its file; one without text and flag is taken out.

    Other lines keep their bytes. ``at``: the time, in ISO 8601. Raises StorageError when there is
    no folder of labels, or the file cannot be written.
    """
    if labels_dir is None:
        raise StorageError("notes are kept in the folder of labels; name one with --labels-dir.")
    path = notes_file(eval_set, labels_dir)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path.parent}: cannot be made ({error.strerror}).") from error
    with locked(path):
        document = Document(read_bytes(path) if path.exists() else b"", identify_judgement)
        record: dict[str, str | bool] = {"case_id": case_id, "note": note.text.strip()}
        record |= {"flag": True} if note.flag else {}
        record |= {"run": note.run} if note.run else {}
        empty = not (record["note"] or note.flag)
        document.patch({case_id: None if empty else record | {"at": at}}, [*document, case_id])
        replace_bytes(path, document.render())
