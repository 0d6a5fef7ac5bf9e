"""How bots name the fields of their answers and requests, by the tables of ``field_names.toml``.

name_rank("userQuery", "question")      # 9.0: how well the name fits
is_named("topK", "top_k")               # True: it is one of these names
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from records import passage_fields

_TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)

RANKED = passage_fields.RANKED | {
    name: passage_fields.ranked(*groups) for name, groups in _TABLES["ranked"].items()
}
"""The weight of each name by what it names: the higher, the better it fits."""

NAMES = {kind: frozenset(names.split()) for kind, names in _TABLES["words"].items()}

GROUPS: dict[str, dict[str, str]] = {
    kind: {word: group for group, words in groups.items() for word in words.split()}
    for kind, groups in _TABLES["groups"].items()
}
"""What each word means, by what it is about."""

_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def name_words(name: str) -> list[str]:
    return [word.lower() for word in _CAMEL.findall(name)]


def plain_name(name: str) -> str:
    """A name in lower case with underscores, as in the tables."""
    return "_".join(name_words(name))


def name_rank(name: str, table: str) -> float:
    """How well a name fits: the whole of it, else its last word for a part of that."""
    words, ranks = name_words(name), RANKED[table]
    if (whole := "_".join(words)) in ranks:
        return ranks[whole]
    return 0.6 * ranks.get(words[-1], 0.0) if words else 0.0


def is_named(name: str, kind: str) -> bool:
    return plain_name(name) in NAMES[kind]
