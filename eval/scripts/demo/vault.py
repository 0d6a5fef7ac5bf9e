"""The notes that the embedded bot answers from: the Python reference, or a folder of Markdown.

In: ``pydoc_data.topics`` (inside every interpreter) or a folder. Out: a list of Note, in a
fixed order. Example: ``python_reference()[0].rel_path`` is ``"data-model/attribute-access.md"``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from demo.topic_text import topic_to_markdown
from records.errors import Problem, StorageError

PYTHON_VAULT = "python"
DEFAULT_FOLDER = "other"
SUFFIXES = (".md", ".markdown")

AREAS = {
    "data-model": (
        "attribute-access callable-types context-managers customization numeric-types objects "
        "sequence-types specialnames types"
    ),
    "debugging": "debugger",
    "execution": "dynamic-features exceptions execmodel naming",
    "expressions": (
        "atom-identifiers atom-literals attribute-references await binary bitwise booleans calls "
        "comparisons conversions dict exprlists in lambda lists operator-summary power shifting "
        "slicings subscriptions unary"
    ),
    "lexical": "floating id-classes identifiers imaginary integers numbers strings",
    "statements": (
        "assert assignment async augassign break class compound continue del else for function "
        "global if import nonlocal pass raise return try while with yield"
    ),
    "stdtypes": (
        "bltin-code-objects bltin-ellipsis-object bltin-null-object bltin-type-objects "
        "specialattrs truth typesfunctions typesmapping typesmethods typesmodules typesseq "
        "typesseq-mutable"
    ),
    "text": "formatstrings string-methods",
}
FOLDER_OF_TOPIC = {topic: area for area, topics in AREAS.items() for topic in topics.split()}

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class Note:
    """One Markdown text with ATX headings; ``rel_path`` is POSIX style, relative to the vault."""

    vault: str
    rel_path: str
    text: str

    @property
    def folder(self) -> str:
        """The parent folder of ``rel_path``; "" at the root of the vault."""
        return self.rel_path.rpartition("/")[0]


def python_reference(topics: Mapping[str, str] | None = None) -> list[Note]:
    """The language reference of the running interpreter, one note a topic, by rel_path.

    The texts differ a little between Python versions. A topic that the table of areas does not
    know goes to the folder ``other``. ``topics`` replaces the interpreter's own (name → text).
    """
    if topics is None:
        from pydoc_data.topics import topics as own_topics

        topics = own_topics
    notes = [
        Note(
            PYTHON_VAULT,
            f"{FOLDER_OF_TOPIC.get(name, DEFAULT_FOLDER)}/{name}.md",
            topic_to_markdown(text),
        )
        for name, text in topics.items()
    ]
    return sorted(notes, key=lambda note: note.rel_path)


def read_folder(path: str | Path, vault: str | None = None) -> list[Note]:
    """Every ``*.md`` and ``*.markdown`` below a folder, by rel_path; ``vault`` is else its name.

    Files and folders whose name starts with a dot are skipped, links to folders are not
    followed, a byte order mark and YAML front matter are taken off, line ends become ``\\n``.
    Raises StorageError when the folder is missing, holds no Markdown, or when files or their names
    cannot be read as UTF-8: all of them are named at once, because a bot that silently knows less
    than the folder says would be scored for the wrong thing.
    """
    root = Path(path)
    if not root.is_dir():
        raise StorageError(f"{root}: not a folder; name a folder that holds Markdown files.")
    notes: list[Note] = []
    problems: list[Problem] = []
    for file in _markdown_files(root):
        if not _is_utf8(str(file)):
            shown = os.fsencode(file).decode("utf-8", "replace")
            problems.append(Problem(shown, None, "", "the name is not UTF-8; rename it."))
            continue
        try:
            text = file.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            advice = f"not UTF-8 (byte {error.start}); save it as UTF-8 or move it away."
            problems.append(Problem(str(file), None, "", advice))
        except OSError as error:
            problems.append(Problem(str(file), None, "", f"cannot be read: {error.strerror}."))
        else:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            rel_path = file.relative_to(root).as_posix()
            name = vault if vault is not None else root.resolve().name
            notes.append(Note(name, rel_path, _FRONT_MATTER.sub("", text)))
    if problems:
        raise StorageError.from_problems(problems)
    if not notes:
        raise StorageError(f"{root}: holds no Markdown (*.md); name a folder that does.")
    return sorted(notes, key=lambda note: note.rel_path)


def _markdown_files(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        found += [
            Path(folder, name)
            for name in files
            if name.lower().endswith(SUFFIXES) and not name.startswith(".")
        ]
    return found


def _is_utf8(name: str) -> bool:
    """False for a file name of other bytes: it fits into no JSON."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
