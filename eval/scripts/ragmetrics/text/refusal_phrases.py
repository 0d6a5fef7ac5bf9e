"""How each language declines: ``refusal_phrases.toml`` with its parts put in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import NamedTuple

_PART = re.compile(r"\{([A-Z]\w*)\}")

_BRACKET = re.compile(r"[()|]|(?:\\.|\[(?:\\.|[^\]\\])*\]|[^()|\\\[])+", re.DOTALL)
"""A bracket or a bar, or a run without them; what stands in a class of characters is none."""

_BROKEN_LINE = re.compile(r"(?:\A|\n)\s+")


class Phrases(NamedTuple):
    """Alternatives of one language; ``when`` opens a clause that only supposes.

    ``source``: the nouns for what the bot read; ``me``: its word for *I*; ``negation``: its words
    for *not*; ``part``: words that say that only a part is missing ("the exact date"); ``also``:
    words that join two questions.
    """

    refusal: tuple[str, ...]
    lack: tuple[str, ...]
    when: str
    source: str
    me: str
    negation: str
    part: str
    marks: str
    also: str


@cache
def phrases() -> dict[str, Phrases]:
    """By language code, read once."""
    import tomllib

    source = resources.files("ragmetrics.text").joinpath("refusal_phrases.toml")
    languages = tomllib.loads(source.read_text("utf-8"))
    return {code: _phrases(table) for code, table in languages.items()}


def _phrases(table: Mapping[str, str | Sequence[str] | Mapping[str, str]]) -> Phrases:
    parts: dict[str, str] = {}
    for name, text in table.items():
        if isinstance(text, str):
            parts[name] = _PART.sub(partial(_part, parts), _joined(text))
    replaced = table.get("replace", {})
    assert isinstance(replaced, Mapping)

    def whole(pattern: str) -> str:
        text = _PART.sub(partial(_part, parts), _joined(pattern))
        for ending, with_context in replaced.items():
            text = text.replace(ending, _joined(with_context))
        return text

    refusal, lack = (
        tuple(part for text in table[kind] for part in _alternatives(whole(text)))
        for kind in ("refusal", "lack")
    )
    names = ("when", "SOURCE", "me", "negation", "part", "marks", "also")
    return Phrases(refusal, lack, *(parts.get(name, "") for name in names))


def _alternatives(pattern: str) -> list[str]:
    """The alternatives of a pattern outside brackets: each is looked for by its own letters."""
    depth, parts = 0, [""]
    for piece in _BRACKET.findall(pattern):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _joined(text: str) -> str:
    return _BROKEN_LINE.sub("", text)


def _part(parts: Mapping[str, str], match: re.Match[str]) -> str:
    name = match[1]
    return _gap(int(name[1:])) if name[1:].isdigit() else parts[name]


def _gap(most: int) -> str:
    """Up to so many words of one clause, each with the blank after it."""
    return rf"(?:[^\s.!?;:]+ ){{0,{most}}}?"
