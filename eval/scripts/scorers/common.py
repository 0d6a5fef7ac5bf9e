"""The retrieved chunks of a result: in which order, and what of them is compared with the gold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ragmetrics import matching
from ragmetrics.case_scores import CaseScores
from ragmetrics.catalogue.metric import Metric
from ragmetrics.matching import Anchor, Matches, Mode
from records.cases import TestCase
from records.results import Reference, RetrievedChunk, TestResult
from scorers.contract import ScoreRow

_IN_ORDER = [list(range(1, n + 1)) for n in range(257)]


def are_in_order(chunks: Sequence[Any]) -> bool:
    """True when all are chunks whose ranks count from 1."""
    try:
        return [chunk.rank for chunk in chunks] == _IN_ORDER[len(chunks)]
    except (AttributeError, IndexError):
        return False


def in_rank_order(result: TestResult) -> Sequence[RetrievedChunk]:
    """The retrieved chunks by rank; the list as it is when it says nothing else."""
    chunks: Any = result.retrieved
    return chunks if are_in_order(chunks) else result.chunks()


def doc_of(chunk: RetrievedChunk) -> str | None:
    """The id of the chunk's document in NFC: doc_id, else rel_path."""
    name = chunk.rel_path if chunk.doc_id is None else chunk.doc_id
    return None if name is None else matching.same_form(name)


def place_of(chunk: RetrievedChunk) -> Anchor | None:
    """Where the chunk stands; None when the bot does not say."""
    path = chunk.rel_path
    return None if path is None else matching.anchor(path, chunk.heading_path)


def whole_text(chunk: RetrievedChunk) -> str | None:
    """The chunk's text; None when it is not there or was cut."""
    return None if chunk.truncated else chunk.text


def resolve(reference: Reference, chunks: Sequence[RetrievedChunk]) -> RetrievedChunk:
    """A cited source as a chunk: the retrieved chunk of its id, else what the reference says."""
    for chunk in chunks:
        if reference.chunk_id and chunk.chunk_id == reference.chunk_id:
            return chunk
    return RetrievedChunk(
        chunk_id=reference.chunk_id or "",
        doc_id=reference.doc_id,
        rel_path=reference.rel_path,
        heading_path=reference.heading_path,
    )


class _ModeKey(NamedTuple):
    """What a mode compares of a chunk, and what to say when no chunk of a result has it."""

    of: Callable[[RetrievedChunk], object]
    missing: str


KEYS: dict[Mode, _ModeKey] = {
    "chunk": _ModeKey(lambda chunk: chunk.chunk_id, "no chunk_id in the result"),
    "anchor": _ModeKey(lambda chunk: chunk.rel_path, "no rel_path in the result"),
    "doc": _ModeKey(doc_of, "no doc_id or rel_path in the result"),
    "text": _ModeKey(lambda chunk: chunk.text, "no chunk texts in the result"),
}

Match = Literal["auto", "chunk", "anchor", "doc", "text"]


class CaseGold(NamedTuple):
    """What a case wants found: a grade for each support; ``keys`` depend on the mode. ``groups``:
    indices of supports that are enough together; ``snippets``: those of each support, where
    places are compared."""

    mode: Mode
    grades: list[float]
    keys: Any
    groups: list[list[int]] | None = None
    snippets: Sequence[Sequence[str]] = ()


def gold_of(case: TestCase, match: Match) -> CaseGold | None:
    """The case's gold for a mode; ``auto`` takes the first of chunk, anchor, doc, text it has.

    A grade of 0 or less says "judged, not relevant": no gold. Support groups are indices into
    gold_supports, so they count in the modes that match those (anchor, text), and in ``doc`` when
    the files of all supports in a group are gold documents.
    """
    if match in ("auto", "chunk"):
        gold = _id_gold("chunk", case.relevant_chunks, case.chunk_relevance_grades)
        if gold is not None or match == "chunk":
            return gold
    supports = case.gold_supports
    if match in ("auto", "anchor") and supports:
        anchors = [matching.anchor(gold.rel_path, gold.heading_path) for gold in supports]
        snippets = [gold.snippets for gold in supports]
        groups = case.required_support_groups
        return CaseGold("anchor", _grades(case), anchors, groups, snippets)
    if match in ("auto", "doc"):
        gold = _id_gold("doc", case.relevant_docs, case.relevance_grades)
        if gold is not None and case.required_support_groups:
            return gold._replace(groups=_groups_of_files(case, gold.keys))
        if gold is not None or match == "doc":
            return gold
    if match == "anchor":
        return None
    if supports and all(gold.snippets for gold in supports):
        snippets = [gold.snippets for gold in supports]
        return CaseGold("text", _grades(case), snippets, case.required_support_groups)
    if case.gold_contexts:
        snippet_lists = [[text] for text in case.gold_contexts]
        return CaseGold("text", [matching.DEFAULT_GRADE] * len(snippet_lists), snippet_lists)
    return None


def match_chunks(
    gold: CaseGold, chunks: Sequence[RetrievedChunk], min_similarity: float
) -> Matches:
    """Which of the chunks, in their order, match which gold supports, in the gold's mode."""
    if gold.mode == "chunk":
        ids = [chunk.chunk_id for chunk in chunks]
        return matching.match_ids(gold.keys, ids, len(gold.grades))
    if gold.mode == "doc":
        docs = [doc_of(chunk) for chunk in chunks]
        return matching.match_ids(gold.keys, docs, len(gold.grades))
    if gold.mode == "anchor":
        places = [place_of(chunk) for chunk in chunks]
        whole = [whole_text(chunk) for chunk in chunks]
        return matching.match_anchors(gold.keys, places, gold.snippets, whole, min_similarity)
    passages = [chunk.text or "" for chunk in chunks]
    return matching.match_texts(gold.keys, passages, min_similarity)


def _groups_of_files(case: TestCase, docs: Mapping[str, int]) -> list[list[int]] | None:
    """The case's groups as gold documents, by their paths; None when a path is none of them."""
    paths = [matching.same_form(support.rel_path) for support in case.gold_supports]
    groups = [{paths[index] for index in group} for group in case.required_support_groups or ()]
    if not all(path in docs for group in groups for path in group):
        return None
    return [sorted(docs[path] for path in group) for group in groups]


def _grades(case: TestCase) -> list[float]:
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


def gold_names(case: TestCase, mode: Mode) -> list[str]:
    """How each gold support of a mode is called for people, in the order of ``found``."""
    gold = gold_of(case, mode)
    if gold is None:
        return []
    if gold.mode in ("chunk", "doc"):
        return list(gold.keys)
    if gold.mode == "anchor":
        return [" > ".join((anchor.path, *anchor.heading)) for anchor in gold.keys]
    return [" / ".join(snippets) for snippets in gold.keys]


def row_of(scores: CaseScores, metrics: Sequence[Metric]) -> ScoreRow:
    """Scores by name as a row in the order of the metrics; one reason for all is told once."""
    values = tuple(scores.values[metric.name] for metric in metrics)
    reasons = {
        metric.name: scores.reasons[metric.name]
        for metric in metrics
        if metric.name in scores.reasons
    }
    distinct = set(reasons.values())
    if len(distinct) == 1 and all(value is None for value in values):
        return ScoreRow(values, (("*", distinct.pop()),))
    return ScoreRow(values, tuple(reasons.items()))


def citation_count(result: TestResult) -> int:
    """Sources that an answer cites: those the bot lists, else those its marks name, each once.

    An answer without text cites nothing.
    """
    if not (result.answer or "").strip():
        return 0
    if result.references:
        return len(result.references)
    from ragmetrics import citations  # the rules of claims come with it; few results need them

    mentions = citations.marks(result.answer or "")
    return len({target for mark in mentions for target in mark.targets})
