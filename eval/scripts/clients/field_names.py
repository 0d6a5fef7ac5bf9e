"""How bots name the fields of their answers, with how well each name fits: ``field_names.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from records.passage_fields import RANKED, ranked

_TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)


def _ranked(name: str) -> dict[str, float]:
    return ranked(*_TABLES["ranked"][name])


def _set(name: str) -> frozenset[str]:
    return frozenset(_TABLES["words"][name].split())


def _grouped(name: str) -> dict[str, str]:
    groups = _TABLES["groups"][name]
    return {word: group for group, words in groups.items() for word in words.split()}


ANSWER = _ranked("answer")
NO_ANSWER = _set("no_answer")
DELTA = ANSWER | _ranked("delta")
PASSAGES = _ranked("passages")
TEXT = RANKED["text"]
FILE = RANKED["file"]
HEADING = RANKED["heading"]
CHUNK_ID = RANKED["chunk_id"]
DOC_ID = RANKED["doc_id"]
SCORE = RANKED["score"]
SCORES = {
    "score_vector": _ranked("score_vector"),
    "score_lexical": _ranked("score_lexical"),
    "score_final": SCORE,
}
RANK = _ranked("rank")
PAGE = RANKED["page"]
INDEX = _ranked("index")
CITED = _ranked("cited")
ABSTAINED = _set("abstained")
ANSWERED = _set("answered")
FLAGS = _set("flags")
TIME_WORDS = _set("time_words")
OTHER_MONEY = _set("other_money")
UNITS = _grouped("units")
STAGES = _grouped("stages")
TOKENS = _grouped("tokens")
TOOLS = _set("tools")
OF_TOOL = {field: words.split() for field, words in _TABLES["groups"]["tool"].items()}
QUESTION = _ranked("question")
TOP_K = _set("top_k")
SESSION = _set("session")
OTHER_FIELDS = _set("other_fields")
HISTORY = _set("history")
REPLIES = _set("replies")
PARTS = _set("parts")
OBJECTS = _set("objects")
SHOWS_MORE = _set("shows_more")
PLAIN_WORDS = _set("plain_words")
ASKING = _set("asking")
NOT_ASKING = _set("not_asking")
