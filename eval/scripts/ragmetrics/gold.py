"""Finds the gold of a case, in the first mode that it has, and the chunks that match it.

The one answer for everybody who asks whether gold was retrieved: scores, orders, screens.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from ragmetrics import matching
from ragmetrics.case_scores import RetrievedText
from ragmetrics.matching import Anchor, Matches, Mode, Passage

CUT = "text was truncated"

NO_QUOTED_TEXT = "your labels are quotes; map the passages' text, or use --match doc"


class GoldPlace(Protocol):
    """A gold support of a set."""

    @property
    def rel_path(self) -> str: ...
    @property
    def heading_path(self) -> str: ...
    @property
    def snippets(self) -> Sequence[str]: ...
    @property
    def grade(self) -> float | None: ...
    @property
    def quote(self) -> Mapping[str, Any] | None: ...
    @property
    def page(self) -> int | str | None: ...


class GoldCase(Protocol):
    """A case's gold labels, in any of the modes."""

    @property
    def relevant_chunks(self) -> Sequence[str]: ...
    @property
    def chunk_relevance_grades(self) -> dict[str, float]: ...
    @property
    def gold_supports(self) -> Sequence[GoldPlace]: ...
    @property
    def required_support_groups(self) -> list[list[int]] | None: ...
    @property
    def relevant_docs(self) -> Sequence[str]: ...
    @property
    def relevance_grades(self) -> dict[str, float]: ...
    @property
    def gold_contexts(self) -> Sequence[str]: ...


class GoldChunk(RetrievedText, Protocol):
    """A retrieved chunk that also has a heading path."""

    @property
    def heading_path(self) -> str | None: ...
    @property
    def page(self) -> Any: ...


def doc_of(chunk: GoldChunk) -> str | None:
    """The id of the chunk's document in NFC: doc_id, else rel_path."""
    name = chunk.rel_path if chunk.doc_id is None else chunk.doc_id
    return None if name is None else matching.same_form(name)


def place_of(chunk: GoldChunk) -> Anchor | None:
    """Return the place of a chunk; None when the bot does not report it."""
    path = chunk.rel_path
    return None if path is None else matching.anchor(path, chunk.heading_path)


def place_of_gold(support: GoldPlace) -> Anchor:
    """Return the place of a gold support."""
    return matching.anchor(support.rel_path, support.heading_path, support.page)


def page_of(place: GoldPlace | GoldChunk) -> tuple[str, str] | None:
    """Return the file and page of a chunk or a support; None when either is missing."""
    label = matching.page_label(place.page)
    return (matching.normalise_path(place.rel_path), label) if place.rel_path and label else None


def passage_of(chunk: GoldChunk) -> Passage | None:
    """Return the chunk as places are compared; None when the bot does not report its place."""
    place = place_of(chunk)
    return (
        None
        if place is None
        else Passage(place, chunk.text, chunk.truncated, matching.page_label(chunk.page))
    )


def whole_text(chunk: GoldChunk) -> str | None:
    """Return the chunk's text; None when it is missing or was cut."""
    return None if chunk.truncated else chunk.text


def quotes_of(support: GoldPlace) -> Sequence[str]:
    """The texts that a support quotes: its snippets, and without a heading its exact quote, too."""
    exact = "" if support.quote is None else str(support.quote.get("exact") or "")
    return quotes_that_count(support.heading_path, support.snippets, exact)


def quotes_that_count(heading_path: str, snippets: Sequence[str], exact: str) -> Sequence[str]:
    """The snippets and, where no heading says the place, the exact part of a support's quote."""
    exact = exact.strip()
    if not exact or exact in snippets or matching.heading_segments(heading_path):
        return snippets
    return [*snippets, exact]


class _ModeKey(NamedTuple):
    """What a mode compares of a chunk, and what to say when no chunk of a result has it."""

    of: Callable[[GoldChunk], object]
    missing: str


KEYS: dict[Mode, _ModeKey] = {
    "chunk": _ModeKey(lambda chunk: chunk.chunk_id, "no chunk_id in the result"),
    "anchor": _ModeKey(lambda chunk: chunk.rel_path, "no rel_path in the result"),
    "document": _ModeKey(lambda chunk: chunk.rel_path, "no rel_path in the result"),
    "doc": _ModeKey(doc_of, "no doc_id or rel_path in the result"),
    "page": _ModeKey(page_of, "no page in the result"),
    "text": _ModeKey(lambda chunk: chunk.text, "no chunk texts in the result"),
}

Match = Literal["auto", "chunk", "anchor", "doc", "page", "text", "document", "file"]
"""The ways to match gold. Two are no choice: ``document`` (cases that name whole files are scored
so) and ``file`` (as ``auto``, of a bot that never names a heading as the labels do: a place without
a quote is its whole file)."""


class CaseGold(NamedTuple):
    """The gold of a case, with a grade for each support. ``keys`` depend on the mode. ``groups``:
    indices of supports that are enough together; ``quotes``: those of each support, where places
    are compared; ``by_path``: documents are compared by their paths alone."""

    mode: Mode
    grades: list[float]
    keys: Any
    groups: list[list[int]] | None = None
    quotes: Sequence[Sequence[str]] = ()
    by_path: bool = False


def gold_of(case: GoldCase, match: Match) -> CaseGold | None:
    """The case's gold for a mode; ``auto`` takes the first of chunk, anchor, doc, text it has.

    A grade of 0 or less says "judged, not relevant": no gold. Support groups are indices into
    gold_supports, so they count in the modes that match those (anchor, text), and in ``doc`` when
    the files of all supports in a group are gold documents.
    """
    whole_files = match == "file"
    match = "auto" if whole_files else match
    if match in ("auto", "chunk"):
        gold = _id_gold("chunk", case.relevant_chunks, case.chunk_relevance_grades)
        if gold is not None or match == "chunk":
            return gold
    supports = case.gold_supports
    if match in ("auto", "anchor", "document") and supports:
        return _place_gold(case, whole_files)
    if match in ("auto", "doc"):
        gold = _id_gold("doc", case.relevant_docs, case.relevance_grades)
        if gold is not None and case.required_support_groups:
            return gold._replace(groups=_groups_of_files(case, gold.keys))
        if gold is None and match == "doc" and supports:
            paths = [matching.normalise_path(support.rel_path) for support in supports]
            return _merged_gold("doc", case, paths)
        if gold is not None or match == "doc":
            return gold
    if match == "page":
        pages = [page_of(support) for support in supports]
        return _merged_gold("page", case, pages) if supports and None not in pages else None
    if match in ("anchor", "document"):
        return None
    if supports and all(gold.snippets for gold in supports):
        snippets = [gold.snippets for gold in supports]
        return CaseGold("text", _grades(case), snippets, case.required_support_groups)
    if case.gold_contexts:
        snippet_lists = [[text] for text in case.gold_contexts]
        return CaseGold("text", [matching.DEFAULT_GRADE] * len(snippet_lists), snippet_lists)
    return None


def _place_gold(case: GoldCase, whole_files: bool) -> CaseGold:
    """The case's places; in mode ``document`` when one of them is a whole file. ``whole_files``:
    no heading counts."""
    supports = case.gold_supports
    anchors = [place_of_gold(gold) for gold in supports]
    quotes = [quotes_of(gold) for gold in supports]
    if whole_files:
        anchors = [anchor._replace(heading=()) for anchor in anchors]
    kinds = map(matching.kind_of, anchors, quotes)
    mode: Mode = "document" if "document" in kinds else "anchor"
    return CaseGold(mode, _grades(case), anchors, case.required_support_groups, quotes)


def _merged_gold(mode: Mode, case: GoldCase, names: Sequence[Hashable]) -> CaseGold:
    """The files or pages of the supports, each once, where they were asked for."""
    keys = {name: index for index, name in enumerate(dict.fromkeys(names))}
    grades = [0.0] * len(keys)
    for name, grade in zip(names, _grades(case), strict=True):
        grades[keys[name]] = max(grades[keys[name]], grade)
    groups = [
        sorted({keys[names[index]] for index in group})
        for group in case.required_support_groups or ()
    ]
    return CaseGold(mode, grades, keys, groups or None, by_path=True)


def unusable(gold: CaseGold, chunks: Sequence[GoldChunk]) -> str:
    """Why the chunks cannot be compared with the gold; "" when they can."""
    if gold.mode == "text" and any(chunk.truncated for chunk in chunks):
        return CUT
    if chunks and not any(KEYS[gold.mode].of(chunk) for chunk in chunks):
        return KEYS[gold.mode].missing
    if chunks and "page" in _kinds(gold) and not any(map(page_of, chunks)):
        return KEYS["page"].missing
    if chunks and needs_text(gold) and not any(chunk.text for chunk in chunks):
        return NO_QUOTED_TEXT
    return ""


def needs_text(gold: CaseGold) -> bool:
    """Return whether one of the supports is identified by its words alone."""
    return "quote" in _kinds(gold)


def _kinds(gold: CaseGold) -> set[matching.Kind]:
    """How the supports give their places; empty where places are not compared."""
    places = gold.mode in ("anchor", "document") and gold.quotes
    return set(map(matching.kind_of, gold.keys, gold.quotes)) if places else set()


def match_chunks(
    gold: CaseGold,
    chunks: Sequence[GoldChunk],
    min_similarity: float = matching.MIN_SIMILARITY,
) -> Matches:
    """Match the chunks, in their order, to the gold supports in the gold's mode."""
    if gold.mode == "chunk":
        ids = [chunk.chunk_id for chunk in chunks]
        return matching.match_ids(gold.keys, ids, len(gold.grades))
    if gold.mode == "page":
        return matching.match_ids(gold.keys, list(map(page_of, chunks)), len(gold.grades))
    if gold.mode == "doc":
        docs = [_path_of(chunk) if gold.by_path else doc_of(chunk) for chunk in chunks]
        return matching.match_ids(gold.keys, docs, len(gold.grades))
    if gold.mode in ("anchor", "document"):
        places = [passage_of(chunk) for chunk in chunks]
        return matching.match_anchors(gold.keys, places, gold.quotes, min_similarity)
    texts = [chunk.text or "" for chunk in chunks]
    return matching.match_texts(gold.keys, texts, min_similarity)


def _path_of(chunk: GoldChunk) -> str | None:
    return None if chunk.rel_path is None else matching.normalise_path(chunk.rel_path)


def _groups_of_files(case: GoldCase, docs: Mapping[str, int]) -> list[list[int]] | None:
    """The case's groups as gold documents, by their paths; None when a path is none of them."""
    paths = [matching.same_form(support.rel_path) for support in case.gold_supports]
    groups = [{paths[index] for index in group} for group in case.required_support_groups or ()]
    if not all(path in docs for group in groups for path in group):
        return None
    return [sorted(docs[path] for path in group) for group in groups]


def _grades(case: GoldCase) -> list[float]:
    return [gold.grade or matching.DEFAULT_GRADE for gold in case.gold_supports]


def _id_gold(mode: Mode, ids: Sequence[str], grades: dict[str, float]) -> CaseGold | None:
    if mode == "doc":
        ids = list(map(matching.same_form, ids))
        grades = {matching.same_form(name): grade for name, grade in grades.items()}
    graded = grades
    if ids or (grades and min(grades.values()) <= 0):
        graded = {name: grade for name, grade in grades.items() if grade > 0}
        graded |= {name: matching.DEFAULT_GRADE for name in ids if name not in grades}
    if not graded:
        return None
    return CaseGold(mode, list(graded.values()), {name: index for index, name in enumerate(graded)})


def gold_names(case: GoldCase, mode: Mode) -> list[str]:
    """Return a readable name for each gold support of a mode, in the order of ``found``."""
    gold = gold_of(case, mode)
    if gold is None:
        return []
    if gold.mode in ("chunk", "doc"):
        return list(gold.keys)
    if gold.mode == "page":
        return [f"{path}, page {page}" for path, page in gold.keys]
    if gold.mode in ("anchor", "document"):
        return [
            " > ".join((anchor.path, *anchor.heading))
            + (f", page {anchor.page}" if anchor.page else "")
            + _in_quotes(anchor, quotes)
            for anchor, quotes in zip(gold.keys, gold.quotes, strict=True)
        ]
    return [" / ".join(snippets) for snippets in gold.keys]


QUOTE_SHOWN = 60
"""Characters of a quote that name a place without a heading."""


def _in_quotes(anchor: Anchor, quotes: Sequence[str]) -> str:
    if matching.kind_of(anchor, quotes) != "quote":
        return ""
    text = " ".join(quotes[0].split())
    return f' "{text if len(text) <= QUOTE_SHOWN else text[: QUOTE_SHOWN - 1] + "…"}"'
