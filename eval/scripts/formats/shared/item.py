"""The shape between the formats: a case with its answers, and what the user asked for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from formats.shared.field_map import FieldMap
from ragmetrics.paths import HEADER_LEVEL, looks_like_path
from records.errors import Problem, StorageError
from records.passage_fields import HEADINGS, PLACES, TEXTS
from records.results import RetrievedChunk, TestResult
from records.tool_passages import ToolForm

NAMES = ("id", "chunk_id", "doc_id", "document_id", "source")

DOCUMENTS = ("rel_path", "source", "doc_uri")

PATHS = ("rel_path", "file_path", "file_name")
"""They name a file whatever its form; others of ``PLACES`` only where they have the form of one."""

CONTEXTS = (
    "retrieved",
    "contexts",
    "context",
    "documents",
    "sources",
    "retrieved_contexts",
    "retrieved_documents",
)
"""The usual names of the passages in a bot's output."""


@dataclass(frozen=True)
class ImportOptions:
    """The user's choices for an import, as far as a format uses them."""

    run_id: str | None = None
    question_field: str | None = None
    delimiter: str | None = None
    fields: FieldMap = field(default_factory=FieldMap)
    """The user's places of our fields; empty without any."""
    scratch: Path = Path()
    """A folder for temporary files, such as unpacked sources."""
    key_of_ids: Callable[[], bytes] | None = None
    """Gives the key of the hashes in the place of ids of users and sessions; None keeps the ids."""
    tools: Mapping[str, ToolForm] = field(default_factory=dict)
    """How the results of tools are read, by the names of the tools."""
    documents: frozenset[str] = frozenset()
    """The files of the documents, to know the places in results of tools; empty for unknown."""
    added: Mapping[str, Any] = field(default_factory=dict)
    """Values of the options that an extra adds for its formats."""


@dataclass
class SystemAnswer:
    """One system's answer. ``run`` names the run; ``has_retrieved`` is False when the source does
    not say what was retrieved, which is not the same as nothing retrieved."""

    run: str
    result: TestResult
    has_retrieved: bool = True
    beside: Callable[[str], Iterable[tuple[str, Any]]] | None = None
    """Gives further lines for files of the output, by the folder of the run: path and record."""


@dataclass
class ImportedCase:
    """A case as a line of the eval set, labels included, and the answers to it.

    ``path`` and ``line`` tell where it was read, for messages. ``asked``: every run should answer
    the case; else only those were asked it that did.
    """

    case: dict[str, Any]
    path: Path
    line: int | None = None
    answers: list[SystemAnswer] = field(default_factory=list)
    asked: bool = True


class Ids:
    """Gives cases without a valid id a stable one: a hash of the question.

    The same question again gets ``-2``, ``-3``, … in the order of the source, so that another
    file of the same questions (another system's answers) gets the same ids.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def make(self, question: str) -> str:
        digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        times = self._seen[digest] = self._seen.get(digest, 0) + 1
        return f"q-{digest}" if times == 1 else f"q-{digest}-{times}"


def passages(texts: Iterable[str], ids: Iterable[str] | None = None) -> list[RetrievedChunk]:
    """Texts in rank order as retrieved chunks; without ids they are named by their rank."""
    texts = list(texts)
    names = list(ids) if ids is not None else [str(rank) for rank in range(1, len(texts) + 1)]
    return [
        RetrievedChunk(chunk_id=name, text=text, text_length=len(text), rank=rank)
        for rank, (name, text) in enumerate(zip(names, texts, strict=True), 1)
    ]


def chunk_of(row: Mapping[str, Any], rank: int, notes: Notes) -> RetrievedChunk:
    """A retrieved chunk from an object with a text, an id, a score, a place and the like.

    The place may be in its ``metadata``, too. Its document is its rel_path or source, else its
    doc_id, file or id; without any of them it is named by its rank and has no document. What a
    chunk has no field for is counted as left out."""
    metadata = row.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    fields = {f"metadata.{name}": value for name, value in inner.items()}
    fields |= {str(name): value for name, value in row.items() if value is not inner}
    fields = {name: v for name, v in fields.items() if v not in (None, "", [], {}) or name in TEXTS}
    used: set[str] = set()

    def first(kinds: Any, names: Iterable[str]) -> Any:
        """The first of the fields that has a value of these types."""
        name = next((name for name in names if isinstance(fields.get(name), kinds)), None)
        if name is None:
            return None
        used.add(name)
        return fields[name]

    text = first(str, TEXTS)
    identity = first(str | int, NAMES)
    score = first(int | float, ["score"])
    parts = [first(int | float, [name]) for name in ("score_vector", "score_lexical")]
    # An absolute path is one machine's: no label names it.
    paths = sorted(_anywhere(PATHS), key=lambda name: _is_absolute(fields.get(name)))
    paths += [n for n in _anywhere(PLACES) if looks_like_path(fields.get(n))]
    path = first(str, paths)
    document = first(str, _anywhere(DOCUMENTS)) or first(str | int, ["doc_id"]) or path or identity
    heading = first(str, _anywhere(HEADINGS))
    if heading is None:
        heading = _from_levels(fields, used)
    if heading and heading[0] == heading[-1] == "/":
        heading = " > ".join(part for part in heading.split("/") if part) or None
        notes.changed["headings of passages, from /A/B/ to A > B"] += 1
    if path:
        used |= {name for name in _anywhere(["file_name"]) if fields.get(name) == Path(path).name}
    notes.left_out.update(f"{name} of passages" for name in fields if name not in used)
    return RetrievedChunk(
        chunk_id=str(rank) if identity is None else str(identity),
        doc_id=None if document is None else str(document),
        rel_path=path,
        heading_path=heading,
        score_vector=parts[0],
        score_lexical=parts[1],
        score_final=None if score is None else float(score),
        text=text,
        text_length=None if text is None else len(text),
        rank=rank,
    )


def _from_levels(fields: Mapping[str, Any], used: set[str]) -> str | None:
    """The heading path of fields such as ``Header 1`` and ``Header 2``; None without any."""
    names = {}
    for name, value in fields.items():
        if isinstance(value, str) and (
            level := HEADER_LEVEL.fullmatch(name.removeprefix("metadata."))
        ):
            names[int(level[1])] = name
    used.update(names.values())
    return " > ".join(fields[names[level]] for level in sorted(names)) or None


def passages_in(value: Any, notes: Notes) -> list[RetrievedChunk]:
    """The passages of an object under one of the usual names, or of a list."""
    listed = value
    if isinstance(value, dict):
        listed = next((value[name] for name in CONTEXTS if value.get(name)), None)
    items = [listed] if isinstance(listed, str) and listed is not value else listed
    if not isinstance(items, list):
        return []
    if all(isinstance(item, str) for item in items):
        return passages(items)
    rows = [item for item in items if isinstance(item, dict)]
    notes.left_out["passages that are neither texts nor objects"] += len(items) - len(rows)
    return [chunk_of(row, rank, notes) for rank, row in enumerate(rows, 1)]


def _anywhere(names: Iterable[str]) -> list[str]:
    """Each name in the metadata first, then in the object itself."""
    return [prefix + name for name in names for prefix in ("metadata.", "")]


def _is_absolute(path: Any) -> bool:
    return isinstance(path, str) and (
        PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
    )


MOST_PROBLEMS = 1000
"""Number of problems after which reading on adds nothing new."""


class Notes:
    """Import statistics: read, changed, carried, left out. All are printed and reported.

    ``rows``: what was read. ``carried``: fields that no script reads, kept under ``metadata`` of
    the case. ``changed``: values that had to be written differently. ``left_out``: what the other
    side has no place for. ``written``: lines by file. ``counts_rest``: whether what has no place is
    of interest at all.
    """

    def __init__(self, *, counts_rest: bool = True) -> None:
        self.counts_rest = counts_rest
        self.rows: Counter[str] = Counter()
        self.carried: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        self.remarks: list[str] = []
        self._problems: list[Problem] = []

    def problem(self, path: Path, line: int | None, field: str, message: str) -> None:
        """Record a fault of the input. Raises StorageError when there are too many to go on."""
        self.report(Problem(str(path), line, field, message))

    def report(self, problem: Problem) -> None:
        """The same for a finished Problem."""
        self._problems.append(problem)
        if len(self._problems) >= MOST_PROBLEMS:
            self.check()

    def check(self) -> None:
        """Raise StorageError with every problem found so far, if there is one."""
        if self._problems:
            raise StorageError.from_problems(self._problems)

    @property
    def lossless(self) -> bool:
        """True when everything went over as it was."""
        return not (self.changed or self.left_out)

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data, each group sorted by name."""
        return {
            name: {key: n for key, n in sorted(counts.items()) if n}
            for name, counts in self._groups().items()
        }

    def lines(self) -> list[str]:
        """The counts for a person, a line each."""
        titles = {
            "rows": "read",
            "kept": "kept under metadata, which no script reads",
            "changed": "changed",
            "left_out": "left out",
            "written": "written",
        }
        counts = [
            f"{titles[group]}: {name}: {count}"
            for group, counts in self._groups().items()
            for name, count in sorted(counts.items())
            if count
        ]
        return [*counts, *self.remarks]

    def _groups(self) -> dict[str, Counter[str]]:
        """The counts under their names in a report."""
        return {
            "rows": self.rows,
            "kept": self.carried,
            "changed": self.changed,
            "left_out": self.left_out,
            "written": self.written,
        }


def joined(items: Iterable[ImportedCase], notes: Notes) -> Iterator[ImportedCase]:
    """The cases with all of their answers: rows with one id are repeats, or other systems' answers.

    Held in memory until the last row was read. A row of the same id with another question is a
    problem.
    """
    cases: dict[Any, ImportedCase] = {}
    for item in items:
        earlier = cases.setdefault(item.case.get("id"), item)
        if earlier is not item:
            notes.rows["further rows of a case"] += 1
            _join(earlier, item, notes)
    yield from cases.values()


def _join(earlier: ImportedCase, item: ImportedCase, notes: Notes) -> None:
    if earlier.case["question"] != item.case["question"]:
        message = f"{item.case['id']!r} has another question on an earlier row; give it another id"
        notes.problem(item.path, item.line, "id", message)
    for name, value in item.case.items():
        if name == "metadata":
            earlier.case[name] = _merged(earlier.case.get(name, {}), value, notes)
        elif earlier.case.setdefault(name, value) != value:
            notes.left_out[f"{name} of further rows of a case, where it differs"] += 1
    for answer in item.answers:
        answer.result.repeat = sum(one.run == answer.run for one in earlier.answers)
        earlier.answers.append(answer)


def _merged(first: dict[str, Any], second: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """Metadata of two rows: objects within each other, lists one behind the other."""
    merged = dict(first)
    for name, value in second.items():
        held = merged.setdefault(name, value)
        if held == value:
            continue
        if isinstance(held, dict) and isinstance(value, dict):
            merged[name] = _merged(held, value, notes)
        elif isinstance(held, list) and isinstance(value, list):
            merged[name] = [*held, *value]
        else:
            notes.left_out[f"metadata {name} of further rows of a case, where it differs"] += 1
    return merged
