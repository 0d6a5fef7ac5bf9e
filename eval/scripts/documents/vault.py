"""Reads a folder of documents: Markdown, text, HTML and PDF.

Example: ``read_vault("docs").notes[0].rel_path`` is ``"guide/setup.md"``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from documents.readers import READERS, UnreadableFile, read_apart
from documents.sections import Note
from records.errors import Problem, StorageError
from records.file_access import read_whole

MARKDOWN, PLAIN = (".md", ".markdown"), (".txt",)
KINDS = (*MARKDOWN, *PLAIN, *READERS)

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class Vault:
    """The documents of a folder by path, and the HTML and PDF files that could not be read."""

    notes: Sequence[Note]
    unreadable: Sequence[Problem] = ()


def read_vault(path: str | Path) -> Vault:
    """Every document below a folder, by rel_path; the vault has its name.

    Names that start with a dot are skipped, links to folders are not followed, front matter is
    taken off. HTML and PDF that cannot be read are listed. Raises StorageError when there is no
    document, and with every folder that cannot be opened and Markdown or text file that is not
    UTF-8: a bot that silently knows less would be scored for the wrong thing.
    """
    root, vault = Path(path), Path(path).resolve().name
    notes: list[Note] = []
    problems: list[Problem] = []
    unreadable: list[Problem] = []
    apart: list[Path] = []
    for file in _files(root, problems) if root.is_dir() else ():
        relative, kind = file.relative_to(root), file.suffix.lower()
        if kind not in KINDS:
            continue
        try:
            relative.as_posix().encode()
            if kind in READERS:
                apart.append(file)
                continue
            text = read_whole(file).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "name or text is not UTF-8"
            problems.append(_to_mend(file, reason))
        else:
            is_plain = kind in PLAIN
            text = text if is_plain else _FRONT_MATTER.sub("", text)
            notes.append(Note(vault, relative.as_posix(), text, plain=is_plain))
    if problems:
        raise StorageError.from_problems(problems)
    for file, content in zip(apart, read_apart(apart), strict=True):
        name = file.relative_to(root).as_posix()
        if isinstance(content, UnreadableFile):
            unreadable.append(Problem(str(file), None, "", f"{content}; it is left out."))
        elif isinstance(content, str):
            notes.append(Note(vault, name, content))
        else:
            notes.append(Note(vault, name, "", content))
    if not notes:
        raise StorageError(
            f"{root}: not a folder with documents that can be read (Markdown, text, HTML, PDF); "
            "name one."
        )
    return Vault(sorted(notes, key=lambda note: note.rel_path), unreadable)


def _files(root: Path, problems: list[Problem]) -> Iterator[Path]:
    """The files below a folder whose names do not start with a dot, nor those of their folders.

    ``problems`` takes the folders that cannot be opened.
    """

    def note(error: OSError) -> None:
        problems.append(_to_mend(error.filename, error.strerror))

    for folder, folders, names in os.walk(root, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def _to_mend(file: str | Path, reason: str | None) -> Problem:
    shown = os.fsencode(file).decode("utf-8", "replace")
    return Problem(shown, None, "", f"{reason}: mend it or move it away.")
