"""Proposes a profile for a bot's answers: a proposal, changed by its user, written as TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clients.expressions import compile_path
from clients.mapping import CHUNK_FIELDS, FACT_FIELDS, REFERENCE_FIELDS
from clients.reply_form import sample
from clients.shapes import Shape
from records.checked_results import RESULT_FIELDS
from records.errors import StorageError
from records.toml_files import toml_table, toml_value

TABLES = ("response", "chunk", "reference", "tool", "facts")

TABLE_OF_LIST = {"retrieved": "chunk", "searches": "chunk", "references": "reference"}
TABLE_OF_LIST |= {"tools": "tool"}
"""The table with the paths inside an item of each list; of a search, of its passages."""

NAMING = {"chunk": "chunk.text or chunk.rel_path", "tool": "tool.name"}
NAMING["reference"] = "reference.chunk_id or reference.index"
"""Fields of which an item of a list needs one, by table."""

FIELDS = {
    "response": RESULT_FIELDS,
    "chunk": CHUNK_FIELDS,
    "reference": REFERENCE_FIELDS,
    "facts": FACT_FIELDS,
}

SETTINGS = (
    "latency_unit", "stream", "stream_delta", "stream_last",
    "heading_separator", "heading_root", "path_root", "path_cut", "kind",
    "order",
)  # fmt: skip
"""Settings of a profile beside its tables that can be set here."""


@dataclass
class Proposal:
    """Paths by table and field, settings of the profile beside them, and notes for the user."""

    tables: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in TABLES})
    settings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    about: list[str] = field(default_factory=list)
    """The peculiarities of a known product; a profile keeps them as comments."""

    @property
    def usable(self) -> bool:
        """True when there is an answer or a list of passages: else the reply is none."""
        return bool(self.tables["response"].keys() & {"answer", "retrieved", "searches"})


@dataclass(frozen=True)
class FieldRow:
    """A field of the profile, its path, and its value in the first answer that has it."""

    field: str
    path: str
    sample: str


def field_rows(proposal: Proposal, payloads: Sequence[Any]) -> list[FieldRow]:
    """The fields of the profile, each with its values in the answers."""
    response = proposal.tables["response"]
    parts = [("", response, payloads)]
    for name, table in TABLE_OF_LIST.items():
        if name in response and not (name == "searches" and "retrieved" in response):
            items = [item for each in payloads for item in list_at(response[name], each)]
            if name == "searches":
                items = [passage for search in items for passage in list_at("retrieved", search)]
            parts.append((f"{table}.", proposal.tables[table], items))
    parts.append(("facts.", proposal.tables["facts"], payloads))
    rows = [
        FieldRow(prefix + key, path, _sample(path, values))
        for prefix, paths, values in parts
        for key, path in paths.items()
    ]
    for key, value in proposal.settings.items():
        rows.append(FieldRow(key, ", ".join(value) if isinstance(value, list) else str(value), ""))
    return rows


def list_at(path: str, payload: Any) -> list[Any]:
    """The list that a path finds; [] for anything else."""
    value = compile_path(path)(payload)
    return value if isinstance(value, list) else []


def _sample(path: str, values: Sequence[Any]) -> str:
    """What a path finds first; "nothing" when it finds nothing."""
    from jmespath.exceptions import JMESPathError

    get = compile_path(path)
    for value in values:
        try:
            if (found := get(value)) not in (None, "", []):
                return sample(found)
        except JMESPathError as error:
            return f"fails: {' '.join(str(error).split())}"
    return "nothing in these answers"


def assignment(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals:
        raise StorageError(f"--set {text!r}: write FIELD=JMESPATH, such as answer=data.text.")
    name = name.strip()
    return name, path if name == "heading_separator" else path.strip()


def set_paths(proposal: Proposal, changes: Mapping[str, str]) -> None:
    """Put paths of the user's in place; an empty one takes the field out. Raises StorageError."""
    for name, path in changes.items():
        if name in SETTINGS:
            proposal.settings.pop(name, None)
            if path:
                proposal.settings[name] = path
            continue
        table, dot, key = name.partition(".")
        table, key = (table, key) if dot else ("response", name)
        if key not in FIELDS.get(table, ()):
            known = [*RESULT_FIELDS, *(f"chunk.{each}" for each in CHUNK_FIELDS)]
            raise StorageError(f"there is no field {name!r}; fields are: {', '.join(known)}, ….")
        if not path:
            proposal.tables[table].pop(key, None)
            continue
        try:
            compile_path(path)
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise StorageError(
                f"{name}: {path!r} is not a JMESPath expression ({reason})."
            ) from None
        proposal.tables[table][key] = path


def profile_text(shape: Shape, proposal: Proposal, limits: Mapping[str, Any]) -> str:
    """The profile as TOML."""
    settings = dict(proposal.settings)
    lines = [
        "# Made by connect_bot.py. eval/profiles/default.toml explains every key.",
        "schema = 1",
        f"description = {toml_value(f'{shape.method} {shape.path}')}",
        *(f"# {note}" for note in proposal.about),
    ]
    if required := settings.pop("required", None):
        lines.append(f"required = [{toml_value(required)}]")
    lines += [f"{name} = {toml_value(value)}" for name, value in settings.items() if value]
    tables = {
        "request": {"method": shape.method, "path": shape.path},
        "request.headers": shape.headers,
        "request.query": shape.query,
        "request.body": shape.body if isinstance(shape.body, Mapping) else {},
        "begin": shape.begin or {},
        "limits": limits,
        **{name: proposal.tables[name] for name in TABLES},
    }
    for name, values in tables.items():
        lines += toml_table(name, values)
    return "\n".join(lines) + "\n"
