"""How other languages than English decline: ``refusal_phrases.toml`` with its parts put in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import NamedTuple

_PART = re.compile(r"\{([A-Z]\w*)\}")

_BROKEN_LINE = re.compile(r"(?:\A|\n)\s+")


class Phrases(NamedTuple):
    """Alternatives of one language; ``when`` opens a clause that only supposes."""

    refusal: tuple[str, ...]
    lack: tuple[str, ...]
    when: str


@cache
def phrases() -> dict[str, Phrases]:
    """By language code, read once."""
    import tomllib

    source = resources.files("ragmetrics.text").joinpath("refusal_phrases.toml")
    languages = tomllib.loads(source.read_text("utf-8"))
    return {code: _phrases(table) for code, table in languages.items()}


def _phrases(table: Mapping[str, str | Sequence[str] | Mapping[str, str]]) -> Phrases:
    parts = {name: _joined(text) for name, text in table.items() if isinstance(text, str)}
    replaced = table.get("replace", {})
    assert isinstance(replaced, Mapping)

    def whole(pattern: str) -> str:
        text = _PART.sub(partial(_part, parts), _joined(pattern))
        for ending, with_context in replaced.items():
            text = text.replace(ending, _joined(with_context))
        return text

    refusal, lack = (tuple(map(whole, table[kind])) for kind in ("refusal", "lack"))
    return Phrases(refusal, lack, parts["when"])


def _joined(text: str) -> str:
    return _BROKEN_LINE.sub("", text)


def _part(parts: Mapping[str, str], match: re.Match[str]) -> str:
    name = match[1]
    return _gap(int(name[1:])) if name[1:].isdigit() else parts[name]


def _gap(most: int) -> str:
    """Up to so many words of one clause, each with the blank after it."""
    return rf"(?:[^\s.!?;:]+ ){{0,{most}}}?"
