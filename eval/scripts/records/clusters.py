"""Which cases belong together: several questions about one document tell less than as many about
several documents, so intervals and tests count them together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any, Protocol

import msgspec

from records.cases import TestCase, canonical, iter_cases
from records.errors import Problem, StorageError
from records.id_numbers import id_number
from records.lines import iter_lines, parse_object

AUTO, GROUP, CONVERSATION, DOCUMENT, NONE = "auto", "group", "conversation", "doc", "none"
"""Ways to put cases together besides a field's name."""

FIXED, SAMPLED = "fixed", "sampled"
"""The declarations of documents, see ``records.targets.Decide``."""

SECTION = "section"
"""As ``auto``, but by the gold's section instead of its document, for documents that are fixed."""

FEWEST_DOCUMENTS = 6
"""Gold documents, as if all had as many cases, below which they are taken as fixed."""

_DOCUMENTED, _TALKED, _GROUPED = 1, 2, 3
"""The last two bits of the number of a cluster."""

_KINDS = {"group": _GROUPED, "conversation": _TALKED}
"""By the first word of a label; any other is a document's or a chunk's."""

_NOUNS = ("group", "conversation", "document", "section", "quote", "chunk", "cluster")


class LabelsById(Protocol):
    """The label of the cluster of every case, by the case's id."""

    def __getitem__(self, case_id: str, /) -> str: ...


class ClusterLabels:
    """The label of the cluster of every case id; a case that shares no cluster has its own label.

    ``shared``: by case id the labels that several cases have, in the order of the cases.
    """

    def __init__(self, shared: Mapping[str, str] | None = None) -> None:
        self.shared = shared or {}
        self.scope = ""
        """What a verdict is limited to that counts cases by these labels, see Clustering."""

    def __getitem__(self, case_id: str, /) -> str:
        return self.shared.get(case_id) or f"case: {case_id}"


class Clustering(msgspec.Struct):
    """Which cases are counted together. ``labels`` answers for every case id, see ClusterLabels.

    ``by`` is what was done: ``group``, ``doc``, ``section``, ``none`` or a field's name.
    ``sentence`` says it to a person. ``documents``: of labels by document, how many there are, and
    ``effective`` as if all had as many cases (infinite where there is none). ``fixed``: whether
    cases were put together within these documents, so that verdicts are about no others.
    """

    by: str
    labels: ClusterLabels
    sentence: str
    documents: int = 0
    effective: float = inf
    fixed: bool = False

    def few_documents(self, documents: str) -> bool:
        """Whether the documents are to be fixed; ``documents``: AUTO, FIXED or SAMPLED."""
        if documents == AUTO:
            return self.effective < FEWEST_DOCUMENTS
        return documents == FIXED and self.documents > 0

    @property
    def scope(self) -> str:
        """The limit of every verdict, in words; "" where documents are a sample."""
        if not self.fixed:
            return ""
        these = "this document" if self.documents == 1 else f"these {self.documents:,} documents"
        return f"on {these}; other documents may differ"


def label_of(case: TestCase, by: str = AUTO) -> str | None:
    """The label of the cluster that a case's own fields put it into; None: a cluster by itself.

    ``auto``: its ``group``, else its conversation, else its first gold document. ``doc``: the path
    of the first gold support, else the first relevant document, else the first relevant chunk.
    ``section``: as ``auto``, but the section of the first gold support, else its first snippet,
    else the first relevant chunk. Any other: that field of a case (of a list, the first item
    counts).
    """
    if by == AUTO and case.group is None and case.conversation is None:
        return _document(case)  # most cases
    if by in (AUTO, SECTION, GROUP) and case.group not in (None, ""):
        return f"group: {case.group}"
    if by in (AUTO, SECTION, CONVERSATION) and case.conversation is not None:
        return f"conversation: {case.conversation}"
    if by in (AUTO, SECTION, DOCUMENT):
        return _document(case, within=by == SECTION)
    if by in (GROUP, CONVERSATION, NONE):
        return None
    return _labelled(by, getattr(case, by, None))


@lru_cache(maxsize=1 << 12)
def cluster_number(label: str | None) -> int:
    """A number for a cluster, the same in every process; 0 for a case by itself."""
    if label is None:
        return 0
    digest = blake2b(label.encode("utf-8", "surrogatepass"), digest_size=7).digest()
    return int.from_bytes(digest) << 2 | _KINDS.get(label.partition(": ")[0], _DOCUMENTED)


def is_of_document(number: int) -> bool:
    """Whether a cluster number is that of a document, a section, a quote or a chunk."""
    return number & 3 == _DOCUMENTED


def clustered_by(labels: Iterable[str | None]) -> str:
    """How cases with these labels were clustered: ``group``, ``conversation``, ``doc`` or
    ``none``, if no two share a label."""
    sizes = Counter(labels)
    kinds = {
        _KINDS.get(label.partition(": ")[0], _DOCUMENTED)
        for label, size in sizes.items()
        if size > 1 and label is not None
    }
    return _by_kinds(kinds) if kinds else NONE


def _by_kinds(kinds: set[int]) -> str:
    return GROUP if _GROUPED in kinds else CONVERSATION if _TALKED in kinds else DOCUMENT


def _document(case: TestCase, *, within: bool = False) -> str | None:
    """The first gold document; ``within`` it the section, else the quote."""
    if case.gold_supports:
        gold = case.gold_supports[0]
        if not within:
            return f"document: {gold.rel_path}"
        if gold.heading_path:
            return f"section: {gold.rel_path}#{gold.heading_path}"
        quote = _first(gold.snippets) or (gold.quote or {}).get("exact")
        return f"quote: {gold.rel_path}: {quote}" if quote else None
    if (
        not within
        and (case.relevant_docs or case.relevance_grades)
        and (document := _first(case.relevant_docs) or _best(case.relevance_grades))
    ):
        return f"document: {document}"
    chunk = _first(case.relevant_chunks) if case.relevant_chunks else None
    chunk = chunk or _best(case.chunk_relevance_grades)
    return f"chunk: {chunk}" if chunk else None


def _best(grades: Mapping[str, float]) -> str | None:
    """The first of the keys with the highest grade; None when no grade is above 0."""
    if not grades:
        return None
    best = max(grades, key=grades.__getitem__) if len(grades) > 1 else next(iter(grades))
    return best if grades[best] > 0 else None


def _first(value: Any) -> Any:
    return (value[0] if value else None) if isinstance(value, list) else value


def _labelled(by: str, value: Any) -> str | None:
    value = _first(value)
    return None if value in (None, "") else f"{by}: {value}"


def clusters_of(cases: Iterable[TestCase], by: str = AUTO) -> Clustering:
    """The clusters of the cases, see ``label_of``. Where no label recurs every case is a cluster by
    itself and ``by`` says ``none``.
    """
    clustering = clustering_of(((case.id, label_of(case, by)) for case in cases), by)
    return clustering or Clustering(NONE, ClusterLabels(), "each case by itself")


def clustering_of(
    labelled: Iterable[tuple[str, str | None]], by: str, *, required: bool = False
) -> Clustering | None:
    """None when no case has a label, and one is required or a way was asked for."""
    cases = list(labelled)
    labels = [(case_id, label) for case_id, label in cases if label is not None]
    if not labels and (required or by not in (AUTO, SECTION, NONE)):
        return None
    sizes = Counter(label for _, label in labels)
    kinds = {label.partition(": ")[0] for label in sizes}
    gold = [size for label, size in sizes.items() if label.startswith("document: ")]
    squares = sum(size * size for size in gold)
    documents = len(gold), sum(gold) ** 2 / squares if gold else inf
    if len(sizes) == len(labels):
        sentence = f"{_count(len(cases), 'case')}, each by itself"
        return Clustering(NONE, ClusterLabels(), sentence, *documents)
    shared = {case_id: label for case_id, label in labels if sizes[label] > 1}
    done = _by_kinds({_KINDS.get(kind, _DOCUMENTED) for kind in kinds}) if by == AUTO else by
    noun = kinds.pop() if len(kinds) == 1 else "cluster"
    noun = noun if noun in _NOUNS else f"value of {by}"
    sentence = f"{_count(len(cases), 'case')} in {_count(len(sizes), noun)}"
    if own := len(cases) - len(labels):
        sentence = f"{_count(len(cases), 'case')}: {len(labels):,} in {_count(len(sizes), noun)}, "
        sentence += f"{own:,} without one"
    return Clustering(done, ClusterLabels(shared), sentence, *documents)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {_plural(noun)}"


def _plural(noun: str) -> str:
    first, space, rest = noun.partition(" ")
    return f"{first}s{space}{rest}"


def read_clusters(
    eval_set: Path, by: str = AUTO, documents: str = AUTO, ids: Container[int] | None = None
) -> Clustering:
    """The clusters of a set's cases. ``by`` may also be any key of its lines.

    ``documents``: FIXED puts the cases of AUTO together by section instead of document, SAMPLED
    does not, AUTO does where documents are few. ``ids``: the numbers of the
    ids of the only cases that count. Raises StorageError for a line that is no case, and when no
    case has the key that was named.
    """
    problems: list[Problem] = []

    def labelled(by: str) -> Iterator[tuple[str, str | None]]:
        for case in iter_cases(eval_set, problems.append):
            if ids is None or id_number(case.id) in ids:
                yield case.id, label_of(case, by)

    if by in (AUTO, DOCUMENT, GROUP, CONVERSATION, NONE):
        clustering = clustering_of(labelled(by), by)
        if by == AUTO and clustering and not problems and clustering.few_documents(documents):
            inner = clustering_of(labelled(SECTION), SECTION)
            assert inner is not None
            inner.documents, inner.fixed = clustering.documents, True
            inner.labels.scope = inner.scope
            inner.sentence += f", of {_count(clustering.documents, 'document')}"
            return inner
    else:
        clustering = clustering_of(_by_key(eval_set, by, problems.append), by)
    if problems:
        raise StorageError.from_problems(problems)
    if clustering is None:
        where = f"--set cluster={by}: no case of {eval_set} has that key"
        raise StorageError(f"{where}; name a key of its lines, or doc, group or none.")
    return clustering


def _by_key(
    eval_set: Path, key: str, report: Callable[[Problem], None]
) -> Iterator[tuple[str, str | None]]:
    for number, line in iter_lines(eval_set, report):
        if (raw := parse_object(eval_set, number, line, report)) is None:
            continue
        raw = canonical(raw)
        if "id" in raw:
            yield str(raw["id"]), _labelled(key, raw.get(key))
        else:
            report(Problem(str(eval_set), number, "id", "is missing; every case needs one"))
