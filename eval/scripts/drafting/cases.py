"""From a drafted question to a case of the set, always marked as a draft and anchored in the vault.

A draft has the tag ``draft`` and the field ``drafted_by``; accepting it takes the tag away.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from drafting.sections import Section, flat, holders
from drafting.templates import Question

TAG = "draft"
MOST_SUPPORTS = 5
_UNSHOWN = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Commands to a terminal and marks of direction. A snippet keeps them: it is a quotation."""
_WORD = re.compile(r"[a-z0-9]+")
_EMPTY = frozenset(
    ["a", "an", "the", "is", "are", "do", "does", "i", "what", "how", "to", "of", "in"]
)
_EMPTY |= {
    "for",
    "if",
    "on",
    "and",
    "or",
    "it",
    "should",
    "know",
    "about",
    "happens",
    "used",
    "mean",
}
Case = dict[str, Any]


def make_case(
    question: Question,
    home: Section,
    every: Sequence[Section],
    taken: set[str],
    by: str,
) -> Case:
    """A line of the set. ``taken``: ids in use; the new one is added.

    Every section that holds the snippet word for word is a support of its own: any one will do.
    Raises ValueError when the snippet does not stand in its section.
    """
    snippet = flat(question.snippet)
    if snippet not in home.flat:
        raise ValueError(f"the snippet does not stand in {home.rel_path}: {snippet[:60]!r}")
    where = [home, *(one for one in holders(snippet, every) if one != home)][:MOST_SUPPORTS]
    supports = [
        {
            "rel_path": section.rel_path,
            "heading_path": section.heading_path,
            "snippets": [snippet],
            "grade": 3,
        }
        for section in where
    ]
    text = _UNSHOWN.sub("", question.text)
    return {
        "id": new_id(text, taken),
        "question": text,
        "answerable": True,
        "category": question.category,
        "difficulty": "easy",
        "expected_key_facts": [flat(question.fact)],
        "reference_answer": snippet,
        "gold_supports": supports,
        "required_support_groups": [[place] for place in range(len(supports))],
        "recency_conflict_rule": None,
        "tags": [TAG],
        "vaults": [home.vault],
        "folders": [],
        "drafted_by": by,
    }


def new_id(question: str, taken: set[str]) -> str:
    """``draft-`` and up to five telling words; a number behind it when that id is in use."""
    plain = unicodedata.normalize("NFKD", question).encode("ascii", "ignore").decode().lower()
    telling = [word for word in _WORD.findall(plain) if word not in _EMPTY][:5]
    base = "-".join(["draft", *(telling or ["question"])])[:60].rstrip("-")
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name
