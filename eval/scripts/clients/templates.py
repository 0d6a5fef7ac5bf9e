"""Requests as templates: their placeholders, the values in their place, tables put over others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

PLACEHOLDERS = {
    "question": "the question's text",
    "k": "how many passages to retrieve",
    "vaults": "list of vaults the case is limited to",
    "folders": "list of folders the case is limited to",
    "folder_mode": "the value of --set folder_mode",
    "user_roles": "list of roles the question is asked with",
    "case_id": "the case's id",
    "repeat": "0 when a case is asked first, then 1, 2, …",
    "seed": "the value of --seed",
    "run_id": "the id of the run; outside a run nothing",
    "uuid": "a random id for each question: its own session",
    "history": "list of the messages before a turn; inside a list of messages they replace it",
    "session": "an id for each conversation; nothing for a question by itself",
    "session_or_uuid": "the same, and a random id for each question by itself",
}

ABSENT = object()
"""The result of ``render`` for a template whose value is missing."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# ${NAME} is a variable of the environment, which fill() takes before anything is sent
_MARK = re.compile(rf"\{{\{{|\}}\}}|(?<!\$)\{{({NAME.pattern})\}}")


def used_placeholders(template: Any) -> Iterator[tuple[str, str]]:
    """(where, name) of each placeholder in the strings of ``template``, unknown ones too."""
    if isinstance(template, str):
        for mark in _MARK.finditer(template):
            if mark.group(1):
                yield "", mark.group(1)
    elif isinstance(template, dict):
        for key, value in template.items():
            for where, name in used_placeholders(value):
                yield f".{key}{where}", name
    elif isinstance(template, list):
        for index, value in enumerate(template):
            for where, name in used_placeholders(value):
                yield f"[{index}]{where}", name


def render(template: Any, values: Mapping[str, Any]) -> Any:
    """``template`` with its placeholders replaced.

    A string that is one placeholder takes the value's own type; when there is no value (None or an
    empty list) its key or list item is left out; in a list the messages of ``{history}`` take its
    place. Inside a longer string values are written as text.
    ``{{`` and ``}}`` stand for braces. Returns ABSENT when the whole template is a missing value.
    """
    if isinstance(template, str):
        return _render_text(template, values)
    if isinstance(template, dict):
        pairs = ((key, render(value, values)) for key, value in template.items())
        return {key: value for key, value in pairs if value is not ABSENT}
    if isinstance(template, list):
        if "{history}" not in template:
            items = (render(value, values) for value in template)
            return [value for value in items if value is not ABSENT]
        at = template.index("{history}")
        before, after = (render(part, values) for part in (template[:at], template[at + 1 :]))
        return [*before, *(values["history"] or ()), *after]
    return template


def _render_text(template: str, values: Mapping[str, Any]) -> Any:
    if "{" not in template and "}" not in template:
        return template
    whole = _MARK.fullmatch(template)
    if whole and whole.group(1):
        value = values[whole.group(1)]
        return ABSENT if value is None or value == [] else value
    return _MARK.sub(lambda mark: _as_text(mark, values), template)


def _as_text(mark: re.Match[str], values: Mapping[str, Any]) -> str:
    name = mark.group(1)
    if not name:
        return mark.group(0)[0]
    value = values[name]
    if isinstance(value, list):
        if name == "history":
            return "\n".join(": ".join(message.values()) for message in value)
        return ", ".join(str(item) for item in value)
    return "" if value is None else str(value)


def merge(base: Any, patch: Any) -> Any:
    """``base`` with the keys of ``patch`` put in, tables merged at every depth."""
    if isinstance(base, dict) and isinstance(patch, dict):
        merged = dict(base)
        for key, value in patch.items():
            merged[key] = merge(base[key], value) if key in base else value
        return merged
    return patch
