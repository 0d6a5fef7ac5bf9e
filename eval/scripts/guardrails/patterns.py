"""Compiles the rules of `rules/*.toml`, the phrases and marks that show a prompt attack.

`rules/english.toml` says how a rule is written. A phrase rule has anchors, the first words of its
first slot: a text is cut into words once and a rule is tried only where one of its anchors stands.
All repetitions are bounded, so the cost is linear in the length of the text whatever it holds.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from guardrails.normalise import fold

CATEGORIES = (
    "instruction_override",
    "prompt_extraction",
    "jailbreak_persona",
    "delimiter_attack",
    "role_override",
    "bypass_intent",
)

_FILES = ("english.toml", "other_languages.toml", "marks.toml")
_GAP = r"[^\w.!?]{0,3}[\W_]"
_WORD = r"[^\W_]{1,25}"
_NO_ARTICLE = r"(?!an?[\W_])"
_WORD_END = r"(?![^\W_])"
_REACH = 60  # characters before a hit that can excuse it


@dataclass(frozen=True)
class InjectionRule:
    """One compiled rule; `anchors` are the words at which it is worth trying, empty for marks."""

    name: str
    category: str
    weight: float
    anchors: frozenset[str]
    regex: re.Pattern[str]
    not_after: re.Pattern[str] | None = None
    thing: re.Pattern[str] | None = None

    def is_about_a_thing(self, text: str, end: int) -> bool:
        """Whether the text after `end` shows that a hit is about a thing, as in "of the router"."""
        return self.thing is not None and self.thing.match(text, end) is not None

    def is_excused(self, text: str, start: int) -> bool:
        """Whether the text directly before `start` makes a hit there an everyday phrase."""
        if self.not_after is None:
            return False
        return self.not_after.search(text[max(0, start - _REACH) : start]) is not None


@dataclass(frozen=True)
class RuleBook:
    """Phrase rules by their anchor words, and rules over the whole text."""

    by_anchor: Mapping[str, tuple[InjectionRule, ...]]
    marks: tuple[InjectionRule, ...]


@lru_cache(maxsize=1)
def rule_book() -> RuleBook:
    """Return all rules, read and compiled once."""
    by_anchor: dict[str, tuple[InjectionRule, ...]] = {}
    marks: list[InjectionRule] = []
    for name in _FILES:
        source = resources.files("guardrails").joinpath("rules", name).read_text("utf-8")
        for rule in _parse_rules(source):
            if not rule.anchors:
                marks.append(rule)
            for anchor in sorted(rule.anchors):
                by_anchor[anchor] = (*by_anchor.get(anchor, ()), rule)
    return RuleBook(by_anchor, tuple(marks))


def _parse_rules(source: str) -> Iterator[InjectionRule]:
    """The rules of one TOML text. Raises ValueError for a rule that cannot be meant so."""
    data = tomllib.loads(source)
    words = data.get("words", {})
    for row in data.get("phrase", ()):
        yield _phrase(row, words)
    for row in data.get("mark", ()):
        pattern = "|".join(row["patterns"])
        if not pattern.isascii():  # folded like the text that it is to match
            pattern = fold(pattern).text
        yield _rule(row, frozenset(), re.compile(pattern, re.MULTILINE), words)


def _rule(
    row: Mapping[str, Any],
    anchors: frozenset[str],
    regex: re.Pattern[str],
    words: Mapping[str, str],
) -> InjectionRule:
    name, category, weight = row["name"], row["category"], float(row["weight"])
    if category not in CATEGORIES or not 0 < weight < 1:
        raise ValueError(f"rule {name!r}: category {category!r} or weight {weight} is unknown")
    not_after = None
    if "not_after" in row:
        before = fold(_with_lists(row["not_after"], words)).text.replace(" ", _GAP)
        # a mark's words may stand in a script without blanks
        edges = (rf"(?<![^\W_])(?:{before}){_GAP}", before)
        not_after = re.compile(rf"(?:{edges[not anchors]})\Z")
    thing = None
    if "thing" in words and category in CATEGORIES[:2]:
        behind = fold(_with_lists(words["thing"], words)).text.replace(" ", _GAP)
        thing = re.compile(rf"(?:{_GAP}(?!and[\W_]|then[\W_]){_WORD}){{0,2}}?{_GAP}(?:{behind})")
    return InjectionRule(name, category, weight, anchors, regex, not_after, thing)


def _phrase(row: Mapping[str, Any], words: Mapping[str, str]) -> InjectionRule:
    slots = [_with_lists(slot, words) if isinstance(slot, str) else slot for slot in row["slots"]]
    first = slots[0]
    if not isinstance(first, str) or first.startswith("!"):
        raise ValueError(f"rule {row['name']!r}: the first slot must list words")
    parts = [_slot(slot, is_first=not index) for index, slot in enumerate(slots)]
    anchors = frozenset(re.split(r"[ ']", choice)[0] for choice in fold(first).text.split("|"))
    return _rule(row, anchors, re.compile("".join(parts)), words)


def _with_lists(slot: str, words: Mapping[str, str]) -> str:
    """The slot with each $name put in; a list may name others in its turn."""
    while "$" in slot:
        slot = re.sub(r"\$(\w+)", lambda match: words[match.group(1)], slot)
    return slot


def _slot(slot: str | int, *, is_first: bool) -> str:
    if isinstance(slot, int):
        return rf"(?:{_GAP}{_NO_ARTICLE if slot < 0 else ''}{_WORD}){{0,{abs(slot)}}}?"
    if slot.startswith("!"):
        return rf"(?!{_GAP}(?:{fold(slot[1:]).text.replace(' ', _GAP)}))"
    choices = fold(slot).text.replace("'", "['’ ]?").replace(" ", _GAP)
    return ("" if is_first else _GAP) + rf"(?:{choices}){_WORD_END}"
