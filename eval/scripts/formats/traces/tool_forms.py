"""Which tools of traced agents are searches, and a form for one whose results need it; pure.

    proofs = prove_tools(results, forms, documents, compiled, guess)
    proofs[0].mark      # "✓": at least two traces brought passages with places, and different ones

``results``: by tool the id of a trace, the arguments and what the tool returned, for each call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from records.passage_fields import FILE
from records.toml_files import TomlReader, toml_value
from records.tool_passages import (
    Row,
    ToolForm,
    own_result,
    passages_in,
    tool_forms,
)
from records.tool_searches import ToolResult, judge_tool

Results = Mapping[str, Sequence[tuple[str, ToolResult]]]
Guess = Callable[[Sequence[Any], Iterable[str]], Mapping[str, str]]
"""The paths inside the items of lists: ``clients.guess.chunk_paths``."""

_PLACE_LINES = (
    rf"^\W*(?:\w+:?\s+)?(?P<path>{FILE})\s*[#>|:,—–-]+\s*(?P<heading>[^\n]*\S)[^\w\n]*$",
    rf"^\W*(?:\w+:?\s+)?(?P<path>{FILE})\W*$",
    rf"\(?\b(?:source|from|see|file)\b:?\s*(?P<path>{FILE})\)?",
)
_SPLIT = r"\n\s*\n"
_SHOWN = 60
_FIELDS = ("text", "rel_path", "heading_path")


@dataclass(frozen=True)
class ToolProof:
    """One tool: the mark as in a proof, two of its results, a sentence, and the form it needs.

    ``form``: keys of ``[traces.tools.NAME]``; {} where the shape is enough, or none was found.
    """

    name: str
    mark: str
    says: str
    values: tuple[str, ...] = ()
    form: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """For a person."""
        shown = [f"    {'  |  '.join(self.values)}"] if self.values else []
        return [f"{self.mark} {self.name}", *shown, f"    {self.says}"]


def prove_tools(
    results: Results,
    forms: Mapping[str, ToolForm],
    documents: Iterable[str],
    compiled: Callable[[str], Callable[[Any], Any]],
    guess: Guess,
) -> list[ToolProof]:
    """Decide for each tool whether it is a search; propose a form where its shape is not enough."""
    documents = list(documents)
    proofs = []
    for name, calls in results.items():
        verdict = judge_tool(name, [call for _, call in calls], forms.get(name), documents)
        if verdict.is_search:
            passages = [(t, verdict.passages(value, forms.get(name))) for t, (_, value) in calls]
            proofs.append(_proof(name, passages, verdict.about, {}))
            continue
        proofs.append(_formed(name, calls, documents, compiled, guess, verdict.about))
    return proofs


def _formed(
    name: str,
    calls: Sequence[tuple[str, ToolResult]],
    documents: Sequence[str],
    compiled: Callable[[str], Callable[[Any], Any]],
    guess: Guess,
    about: str,
) -> ToolProof:
    values = [own_result(value) for _, (_, value) in calls]
    for table in (*_of_lists(values, documents, guess), *_of_texts(values)):
        form = tool_forms({name: table}, compiled, TomlReader(name), ())[name]
        passages = [(trace, passages_in(value, form)) for trace, (_, value) in calls]
        whole = [(trace, rows) for trace, rows in passages if rows is not None]
        rows = [row for _, listed in whole for row in listed]
        if len(whole) < len(calls) or not rows or not all("rel_path" in row for row in rows):
            continue
        if form.place and any(form.place.search(row["text"]) for row in rows):
            continue  # several passages are read as one
        proof = _proof(name, whole, "These keys read its results.", table)
        verdict = judge_tool(name, [call for _, call in calls], form, documents, is_named=False)
        return proof if verdict.is_search else replace(proof, mark="?", says=verdict.about)
    return ToolProof(name, "–", about or f"Tool {name}: its results are no passages.")


def _proof(
    name: str, passages: Sequence[tuple[str, list[Row]]], about: str, form: Mapping[str, str]
) -> ToolProof:
    """✓ only where two traces brought different passages with places."""
    first: dict[str, list[Row]] = {}
    for trace, rows in passages:
        if rows and all(row.get("rel_path") for row in rows):
            first.setdefault(trace, rows)
    told = [[_place(row) for row in rows] for rows in first.values()]
    values = tuple(f"{len(places)}: {places[0]}"[:_SHOWN] for places in told[:2])
    if len(told) < 2:
        return ToolProof(name, "?", f"{about} Only one trace has passages.", values, form)
    if all(places == told[0] for places in told):
        return ToolProof(name, "?", f"{about} All traces have the same passages.", values, form)
    return ToolProof(name, "✓", about, values, form)


def _place(row: Row) -> str:
    return " > ".join(filter(None, (row.get("rel_path"), row.get("heading_path"))))


def _of_lists(
    values: Sequence[Any], documents: Sequence[str], guess: Guess
) -> Iterable[dict[str, str]]:
    """The form of a list of objects whose fields have names of their own."""
    opened = [_opened(value) for value in values]
    keys = {key for value in opened if isinstance(value, dict) for key in value}
    for path in ("@", *sorted(keys)):
        lists = [
            value if path == "@" else value.get(path) if isinstance(value, dict) else None
            for value in opened
        ]
        whole = [each for each in lists if isinstance(each, list) and each]
        if whole and all(isinstance(item, dict) for each in whole for item in each):
            inner = guess(whole, documents)
            if {"text", "rel_path"} <= inner.keys():
                named = {name: inner[name] for name in _FIELDS if name in inner}
                yield {"passages": path} | named


def _of_texts(values: Sequence[Any]) -> Iterable[dict[str, str]]:
    """The forms that texts may have: a line with a place, or a place in each paragraph."""
    if all(isinstance(value, str) for value in values):
        for pattern in _PLACE_LINES:
            if pattern.startswith("^"):
                yield {"place": pattern}
            yield {"split": _SPLIT, "place": pattern}


def _opened(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def toml_pattern(value: str) -> str:
    """A regular expression as TOML, with single backslashes where that can be."""
    return f"'{value}'" if value.isprintable() and "'" not in value else toml_value(value)
