"""What a case wants found, by the way of matching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ragmetrics import matching
from ragmetrics.matching import Mode
from storage import TestCase

Match = Literal["auto", "chunk", "anchor", "doc", "text"]


class Gold(NamedTuple):
    """What a case wants found: a grade for each support; ``keys`` depend on the mode."""

    mode: Mode
    grades: list[float]
    keys: Any
    groups: list[list[int]] | None = None


def gold_of(case: TestCase, match: Match) -> Gold | None:
    """The case's gold for a mode; ``auto`` takes the first of chunk, anchor, doc, text it has.

    A grade of 0 or less says "judged, not relevant": no gold. Support groups are indices into
    gold_supports, so they count in the modes that match those (anchor, text).
    """
    if match in ("auto", "chunk"):
        gold = _id_gold("chunk", case.relevant_chunks, case.chunk_relevance_grades)
        if gold is not None or match == "chunk":
            return gold
    supports = case.gold_supports
    if match in ("auto", "anchor") and supports:
        places = [matching.anchor(gold.rel_path, gold.heading_path) for gold in supports]
        return Gold("anchor", _grades(case), places, case.required_support_groups)
    if match in ("auto", "doc"):
        gold = _id_gold("doc", case.relevant_docs, case.relevance_grades)
        if gold is not None or match == "doc":
            return gold
    if match == "anchor":
        return None
    if supports and all(gold.snippets for gold in supports):
        snippets = [gold.snippets for gold in supports]
        return Gold("text", _grades(case), snippets, case.required_support_groups)
    if case.gold_contexts:
        wanted = [[text] for text in case.gold_contexts]
        return Gold("text", [matching.DEFAULT_GRADE] * len(wanted), wanted)
    return None


def _grades(case: TestCase) -> list[float]:
    return [gold.grade or matching.DEFAULT_GRADE for gold in case.gold_supports]


def _id_gold(mode: Mode, ids: Sequence[str], grades: dict[str, float]) -> Gold | None:
    if mode == "doc":
        ids = list(map(matching.same_form, ids))
        grades = {matching.same_form(name): grade for name, grade in grades.items()}
    wanted = grades
    if ids or (grades and min(grades.values()) <= 0):
        wanted = {name: grade for name, grade in grades.items() if grade > 0}
        wanted |= {name: matching.DEFAULT_GRADE for name in ids if name not in grades}
    if not wanted:
        return None
    return Gold(mode, list(wanted.values()), {name: place for place, name in enumerate(wanted)})


def gold_names(case: TestCase, mode: Mode) -> list[str]:
    """How each gold support of a mode is called for people, in the order of ``found``."""
    gold = gold_of(case, mode)
    if gold is None:
        return []
    if gold.mode in ("chunk", "doc"):
        return list(gold.keys)
    if gold.mode == "anchor":
        return [" > ".join((place.path, *place.heading)) for place in gold.keys]
    return [" / ".join(snippets) for snippets in gold.keys]
