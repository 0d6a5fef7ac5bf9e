"""The notes that the embedded bot answers from: the Python reference, or a folder of Markdown.

In: ``pydoc_data.topics`` (inside every interpreter) or a folder. Out: a list of Note, in a
fixed order. Example: ``python_reference()[0].rel_path`` is ``"data-model/attribute-access.md"``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from records.errors import Problem, StorageError
from records.file_access import read_whole

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
            _topic_to_markdown(text),
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
            text = read_whole(file).decode("utf-8-sig")
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
    paths: list[Path] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        paths += [
            Path(folder, name)
            for name in names
            if name.lower().endswith(SUFFIXES) and not name.startswith(".")
        ]
    return paths


def _is_utf8(name: str) -> bool:
    """False for a file name of other bytes: it fits into no JSON."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


FENCE = "```"

DOCTEST = ">>>"

CODE_INDENT = 3  # Sphinx indents a literal block by three columns from the text around it

_UNDERLINE = re.compile(r"""([*=\-~^"+`#'.:_<>])\1*""")

_LIST_ITEM = re.compile(r"(?:[*+-]|\d+[.)]|#\.) +")

_GRID_BORDER = re.compile(r"[+|](?:[-=]+[+|])+")

_ADMONITION = re.compile(r"[A-Z]\w*(?: \w+)?:")

_COMMENT = re.compile(r"(?:^|\s)# ")

_SENTENCE_START = re.compile(r"""[A-Z"*(“]""")

_SENTENCE_END = re.compile(r"""[.:!?][)"*]*(?: \[\d+\])?$""")

_PLAIN_WORDS = re.compile(r"[A-Z][a-z]* (?:[a-z]+|\*\w+\*) ")


def _topic_to_markdown(text: str) -> str:
    """The topic as Markdown. Nesting follows the order in which underline characters appear."""
    lines = [line.rstrip() for line in text.expandtabs().splitlines()]
    levels: list[str] = []
    out: list[str] = []
    at = 0
    while at < len(lines):
        after_blank = at == 0 or not lines[at - 1]
        if _is_title(lines, at):
            mark = lines[at + 1][0]
            if mark not in levels:
                levels.append(mark)
            out.append(f"{'#' * min(levels.index(mark) + 1, 6)} {lines[at]}")
            at += 2
        elif _GRID_BORDER.fullmatch(lines[at].strip()):
            end = _end_of(lines, at, lambda line: line.lstrip().startswith(("+", "|")))
            out += _pipe_table(lines[at:end])
            at = end
        elif after_blank and _is_code(lines, at):
            end = _end_of_code(lines, at)
            code = [line[_indent(lines[at]) :] for line in lines[at:end]]
            out += [FENCE, *code, FENCE]
            at = end
        else:
            # A rule of "=" or "-" between paragraphs: as Markdown, it must not underline anything.
            is_rule = _UNDERLINE.fullmatch(lines[at]) and len(lines[at]) > 3 and after_blank
            out.append("---" if is_rule else lines[at])
            at += 1
    return "\n".join(out).strip("\n") + "\n"


def _is_title(lines: list[str], at: int) -> bool:
    """A text line at column 0 after a blank line, underlined by one repeated character."""
    title = lines[at]
    return (
        at + 1 < len(lines)
        and bool(title)
        and title[0] != " "
        and (at == 0 or not lines[at - 1])
        and len(lines[at + 1]) == len(title)
        and _UNDERLINE.fullmatch(lines[at + 1]) is not None
        and _UNDERLINE.fullmatch(title) is None
    )


def _is_code(lines: list[str], at: int) -> bool:
    """Does a doctest or a literal block start here?

    Sphinx's text form indents a literal block below the text that introduces it, but it indents
    the body of a definition just so: only the words can tell the two apart.
    """
    depth = _indent(lines[at])
    if lines[at].lstrip().startswith(DOCTEST):
        return True
    if not lines[at] or _indent_before(lines, at) >= depth:
        return False
    parent = next((line for line in reversed(lines[:at]) if line and _indent(line) < depth), "")
    item = _LIST_ITEM.match(parent.lstrip())
    around = _indent(parent) + (item.end() if item else 0)
    return depth == around + CODE_INDENT and not _is_prose(lines, at)


def _end_of_code(lines: list[str], at: int) -> int:
    """A literal block ends where the indent does; a doctest on the level of the text at a gap."""
    depth = _indent(lines[at])
    end = _end_of(lines, at, bool)
    if _indent_before(lines, at) < depth:
        end = _end_of(lines, at, lambda line: not line or _indent(line) >= depth)
    else:
        while lines[end : end + 1] == [""] and "".join(lines[end + 1 : end + 2]).startswith(
            " " * depth + DOCTEST
        ):
            end = _end_of(lines, end + 1, bool)
    while not lines[end - 1]:
        end -= 1
    return end


def _indent_before(lines: list[str], at: int) -> int:
    return next((_indent(line) for line in reversed(lines[:at]) if line), 0)


def _is_prose(lines: list[str], at: int) -> bool:
    """Prose starts as a sentence does and ends as one; a term is prose if its definition is."""
    end = _end_of(lines, at, bool)
    first = lines[at].strip()
    if any(_COMMENT.search(line) for line in lines[at:end]):
        return False
    if _LIST_ITEM.match(first) or _GRID_BORDER.fullmatch(first) or _ADMONITION.fullmatch(first):
        return True
    sentence_end = _SENTENCE_END.search(lines[end - 1]) is not None
    if _SENTENCE_START.match(first) and (sentence_end or _PLAIN_WORDS.match(first)):
        return True
    body = _end_of(lines, end, lambda line: not line)
    defines = body < len(lines) and _indent(lines[body]) == _indent(lines[at]) + CODE_INDENT
    return defines and _is_prose(lines, body)


def _pipe_table(grid: list[str]) -> list[str]:
    """A grid table, each row on one line; cells keep their words, ``|`` in a cell is escaped."""
    edges = [index for index, sign in enumerate(grid[0]) if sign == "+"]
    rows: list[list[str]] = [[]]
    for line in grid:
        if _GRID_BORDER.fullmatch(line.strip()):
            rows.append([])
            continue
        cells = [line[a + 1 : b].strip() for a, b in pairwise(edges)]
        before = rows[-1] or [""] * len(cells)
        rows[-1] = [f"{a} {b}".strip() for a, b in zip(before, cells, strict=True)]
    body = ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows if row]
    return [*body[:1], "|" + " --- |" * (len(edges) - 1), *body[1:]]


def _end_of(lines: list[str], at: int, belongs: Callable[[str], object]) -> int:
    """The index after the run of lines from ``at`` on that belong together."""
    while at < len(lines) and belongs(lines[at]):
        at += 1
    return at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
