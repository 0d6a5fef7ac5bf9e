"""Parts of an answer that speak to its reader and not about the world: thanks, offers, agreement.

The words and openings stand in ``talk.toml``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import NamedTuple

from ragmetrics.text.words import STOP_WORDS, fold, stem, words

# A run of signs or spaces is tried from its start alone: from each of its places is quadratic.
_BREAK = re.compile(
    r"(?<![,;:!?.…])[,;:!?.…]+(?=[\s\"'”’*_)]|$)[\"'”’*_)]*\s*|(?<!\s)\s+[-–—]\s+|—|[☀-➿\U0001f300-\U0001faff]+\s*"
)

_STOP = re.compile(r"(?<![:.!?])[:.!?]+\s+")

_MOST_PARTS = 6

_BROKEN_LINE = re.compile(r"\n\s+")


class _Talk(NamedTuple):
    """``talk.toml``: stems of words, words as written, a pattern of openings and one of remarks."""

    core: frozenset[str]
    every: frozenset[str]
    myself: frozenset[str]
    other: frozenset[str]
    modal: frozenset[str]
    figure: re.Pattern[str]
    opening: re.Pattern[str]
    remark: re.Pattern[str]


@cache
def _talk() -> _Talk:
    import tomllib

    listed = tomllib.loads(
        resources.files("ragmetrics.text").joinpath("talk.toml").read_text("utf-8")
    )
    core, fill = (frozenset(map(stem, listed[name].split())) for name in ("core", "fill"))
    myself, other, modal = (frozenset(listed[name].split()) for name in ("self", "other", "modal"))
    opening, remark = (_pattern(listed[name]) for name in ("opening", "remark"))
    figure = re.compile(listed["figure"], re.IGNORECASE)
    return _Talk(core, core | fill, myself, other, modal, figure, opening, remark)


def _pattern(alternatives: list[str]) -> re.Pattern[str]:
    joined = "|".join(_BROKEN_LINE.sub("", text) for text in alternatives)
    return re.compile(rf"[\s*_#>~-]*+(?:{joined})".replace(" ", r"\s"), re.IGNORECASE)


def _is_part(part: str) -> bool:
    """Whether a part of a sentence says nothing but talk."""
    listed, found = _talk(), words(fold(part))
    if listed.remark.match(part) and not listed.figure.search(part):
        return True
    meant = {stem(word) for word in found if word not in STOP_WORDS and word not in listed.modal}
    if not meant <= listed.every | listed.myself | listed.other:
        return False
    if meant & listed.core or found in (["yes"], ["no"]):
        return True
    spoken = set(found)
    return bool(meant & listed.every) and bool(
        spoken & listed.myself or (spoken & listed.other and not spoken & listed.modal)
    )


def talk_ends(text: str) -> int:
    """Where the talk that opens a sentence ends: 0 for none, its length when it is only talk."""
    end = 0
    for _ in range(_MOST_PARTS):
        cut = _STOP.search(text, end)
        part = text[end : cut.start() if cut else len(text)]
        if not _talk().opening.match(part) or _talk().figure.search(part):
            cut = _BREAK.search(text, end)
            part = text[end : cut.start() if cut else len(text)]
            if part.strip() and not _is_part(part):
                return end
        end = cut.end() if cut else len(text)
        if end == len(text):
            break
    return end
