"""Fields of ours by JMESPath expressions over another tool's rows (``--map FIELD=JMESPATH``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from formats.shared.texts import parsed
from records.cases import TestCase
from records.errors import StorageError
from records.results import RetrievedChunk

Getter = Callable[[Any], Any]
Keys = tuple[str, ...]
"""Names from the row inwards; lists are passed through."""

ROWS = "rows"

PASSAGES = "retrieved"

PASSAGE_IDS = "retrieved_ids"
"""The ids of the passages, if they are in a list of their own."""

OF_RESULT = ("answer", "error", "latency_ms", "usage", "cost_usd", "run", "abstained", "references")

_TEXTS = {"id", "question", "reference_answer", "answer", "error", "run"}

_FIELDS = {*TestCase.__struct_fields__, *OF_RESULT, ROWS, PASSAGES, PASSAGE_IDS} | {
    f"{PASSAGES}.{name}" for name in RetrievedChunk.__struct_fields__
}


@dataclass(frozen=True)
class FieldMap:
    """Expressions by field, and which values of a row they read: the others are kept, not lost."""

    getters: Mapping[str, Getter] = field(default_factory=dict)
    read: frozenset[Keys] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.getters)

    def rows(self, document: Any) -> Any:
        """The list of rows in a JSON document; the document itself when no ``rows`` is mapped."""
        return self.getters[ROWS](document) if ROWS in self.getters else document

    def fields(self, row: Mapping[str, Any], cells: bool) -> dict[str, Any]:
        """The mapped fields of a row. ``cells``: texts of a table, in which JSON may stand.

        Raises ValueError with the field whose expression fails on this row.
        """
        from jmespath.exceptions import JMESPathError

        opened = {name: _opened(value) for name, value in row.items()} if cells else row
        mapped: dict[str, Any] = {}
        for name, get in self.getters.items():
            if name == ROWS or name.startswith(f"{PASSAGES}."):
                continue
            try:
                value = get(row)
                if cells and not (isinstance(value, str) and name in _TEXTS):
                    value = get(opened)
                if name == PASSAGES and isinstance(value, list):
                    value = [self._passage(item) for item in value]
            except JMESPathError as error:
                raise ValueError(f"--map {name}: {' '.join(str(error).split())}") from None
            if value is not None:
                mapped[name] = value
        return mapped

    def _passage(self, item: Any) -> Any:
        inner = {
            name.removeprefix(f"{PASSAGES}."): get(item)
            for name, get in self.getters.items()
            if name.startswith(f"{PASSAGES}.")
        }
        if not inner:
            return item
        for ours, usual in (("chunk_id", "id"), ("score_final", "score")):
            if ours in inner:
                inner[usual] = inner.pop(ours)
        return {name: value for name, value in inner.items() if value is not None}

    def rest(self, row: Mapping[str, Any], cells: bool) -> dict[str, Any]:
        """The part that no expression reads, in its old shape."""
        opened = {name: _opened(value) for name, value in row.items()} if cells else row
        left = _pruned(dict(opened), (), self.read)
        return left if isinstance(left, dict) else {}


def field_map(words: Sequence[str], compiled: Callable[[str], Getter]) -> FieldMap:
    """The map of ``FIELD=EXPRESSION`` words. Raises StorageError for what is none.

    ``compiled`` makes a function of an expression; it raises ValueError.
    """
    getters: dict[str, Getter] = {}
    texts: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in _FIELDS:
            known = ", ".join(sorted(_FIELDS))
            fault = "no such field" if equals else "write FIELD=JMESPATH"
            raise StorageError(f"--map {word[:80]}: {fault}; fields: {known}.")
        try:
            getters[name], texts[name] = compiled(text), text
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise StorageError(f"--map {name}: {text!r} is no JMESPath ({reason}).") from None
    if getters and "question" not in getters:
        raise StorageError("--map: give the path of the question: --map question=JMESPATH.")
    return FieldMap(getters, _all_read(texts))


def _all_read(texts: Mapping[str, str]) -> frozenset[Keys]:
    import jmespath

    read: set[Keys] = set()
    inner = [name for name in texts if name.startswith(f"{PASSAGES}.")]
    row: set[Keys] = {()}
    passages = row
    if PASSAGES in texts:
        passages = _reads(jmespath.compile(texts[PASSAGES]).parsed, row, read)
    for name, text in texts.items():
        if name not in (ROWS, PASSAGES):
            base = passages if name in inner else row
            read |= _reads(jmespath.compile(text).parsed, base, read)
    return frozenset(read | (passages if PASSAGES in texts and not inner else set()))


def _reads(node: Mapping[str, Any], bases: set[Keys], read: set[Keys]) -> set[Keys]:
    """The places that an expression's value comes from; what it only looks at goes to ``read``."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        return {(*base, node["value"]) for base in bases}
    if kind in ("identity", "current", "index", "slice"):
        return bases
    if kind in ("subexpression", "pipe", "index_expression", "projection", "value_projection"):
        for child in children:
            bases = _reads(child, bases, read)
        return bases
    if kind == "filter_projection":
        left = _reads(children[0], bases, read)
        read |= _reads(children[2], left, read)
        return _reads(children[1], left, read)
    if kind in ("flatten", "key_val_pair", "expref"):
        return _reads(children[0], bases, read)
    return {keys for child in children for keys in _reads(child, bases, read)}


def _pruned(value: Any, keys: Keys, read: frozenset[Keys]) -> Any:
    """The value without what was read; None when nothing is left."""
    if keys in read or value in (None, "", [], {}):
        return None
    if isinstance(value, dict):
        left = {name: _pruned(item, (*keys, str(name)), read) for name, item in value.items()}
        return {name: item for name, item in left.items() if item is not None} or None
    if isinstance(value, list):
        items = [_pruned(item, keys, read) for item in value]
        return None if all(item is None for item in items) else items
    return value


def _opened(cell: Any) -> Any:
    value = parsed(cell) if isinstance(cell, str) else None
    return cell if value is None else value
