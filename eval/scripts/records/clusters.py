"""Which cases belong together: several questions about one document tell less than as many about
several documents, so intervals and tests count them together.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import inf
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, Protocol

import msgspec

from records.cases import TestCase, canonical, iter_cases
from records.errors import Problem, StorageError
from records.lines import iter_lines, parse_object

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AUTO, GROUP, CONVERSATION, DOCUMENT, NONE = "auto", "group", "conversation", "doc", "none"
"""Ways to put cases together besides a field's name."""

FIXED, SAMPLED = "fixed", "sampled"
"""The declarations of documents, see ``records.targets.declared_documents``."""

SECTION = "section"
"""As ``auto``, but by the gold's section instead of its document, for documents that are fixed."""

FEWEST_DOCUMENTS = 6
"""Gold documents, as if all had as many cases, below which they are taken as fixed."""

_DOCUMENTED, _TALKED, _GROUPED = 1, 2, 3
"""The last two bits of the number of a cluster."""

_KINDS = {"group": _GROUPED, "conversation": _TALKED}
"""By the first word of a label; any other is a document's or a chunk's."""

_KIND_OF_START = {kind[:5]: number for kind, number in _KINDS.items()}

_HASH_BITS = (1 << 56) - 1

_IN_MEMORY, _BLOCK = 8 << 20, 1 << 16
"""Bytes of labels from which on they are kept on disk, and those that are written together."""

_NOUNS = ("group", "conversation", "document", "section", "quote", "chunk", "cluster")


class LabelsById(Protocol):
    """The label of the cluster of every case, by the case's id."""

    def __getitem__(self, case_id: str, /) -> str: ...


class _Names:
    """Names that lie one after the other: as objects they would take three times as much."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._text, self._ends = bytearray(), array("q", [0])
        for part in parts:
            self._text += part
            self._ends.append(len(self._text))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, at: int) -> str:
        text = self._text[self._ends[at] : self._ends[at + 1]]
        return text.decode(errors="surrogatepass")


class ClusterLabels:
    """The label of the cluster of every case id; a case that shares no cluster has its own label.

    Only shared labels are stored, and of each case no more than a hash of its id: ``ids`` rise,
    ``positions`` are those of their labels in ``names``, which are in the order of the cases.
    """

    def __init__(
        self,
        ids: Sequence[int] = (),
        positions: Sequence[int] = (),
        names: Sequence[str] | _Names = (),
    ) -> None:
        self.ids, self.positions, self.names = ids, positions, names
        self.scope = ""
        """What a verdict is limited to that counts cases by these labels, see Clustering."""

    def __getitem__(self, case_id: str, /) -> str:
        at = bisect_left(self.ids, hash(case_id))
        if at < len(self.ids) and self.ids[at] == hash(case_id):
            return self.names[self.positions[at]]
        return f"case: {case_id}"


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


def conversation_number(case: TestCase) -> int:
    """A number for the conversation of a case, the same in every process; 0: it is no turn."""
    name = case.conversation
    return cluster_number(None if name is None else f"conversation: {name}")


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


def passing_number(label: str | None) -> int:
    """The same kind of number, in this process alone: quicker to make."""
    if label is None:
        return 0
    return (hash(label) & _HASH_BITS) << 2 | _KIND_OF_START.get(label[:5], _DOCUMENTED)


def clustered_by(numbers: Iterable[int]) -> str:
    """How the cases were clustered: ``group``, ``conversation``, ``doc`` or ``none``."""
    kinds = {number & 3 for number in numbers}
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
    """None when no case has a label, and one is required or a way was asked for. Memory: some bytes
    a case."""
    import numpy as np

    cases, ids, hashes, lengths = 0, array("q"), array("q"), array("I")
    text, written, kinds = bytearray(), SpooledTemporaryFile(_IN_MEMORY), set()  # noqa: SIM115
    documented = array("b")
    for case_id, label in labelled:
        cases += 1
        if label is not None:
            ids.append(hash(case_id))
            hashes.append(hash(label))
            encoded = label.encode(errors="surrogatepass")
            lengths.append(len(encoded))
            text += encoded
            if len(text) > _BLOCK:
                written.write(text)
                text.clear()
            kind = label.partition(": ")[0]
            kinds.add(kind)
            documented.append(kind == "document")
    if not ids and (required or by not in (AUTO, SECTION, NONE)):
        return None
    keys = np.frombuffer(hashes, np.int64) if ids else np.zeros(0, np.int64)
    ordered = np.sort(keys)
    again = ordered[1:] == ordered[:-1]
    distinct = len(keys) - int(again.sum())
    gold = ordered if kinds == {"document"} else np.sort(keys[np.frombuffer(documented, np.bool_)])
    sizes = np.diff(np.flatnonzero(np.diff(gold, append=gold[-1:] + 1)), prepend=-1)
    documents = len(sizes), len(gold) ** 2 / float(sizes @ sizes) if len(gold) else inf
    if distinct == len(keys):
        sentence = f"{_count(cases, 'case')}, each by itself"
        return Clustering(NONE, ClusterLabels(), sentence, *documents)
    shared = np.flatnonzero(np.isin(keys, ordered[1:][again]))
    del ordered, again
    _, first, positions = np.unique(keys[shared], return_index=True, return_inverse=True)
    in_set = np.argsort(first)  # hashes have another order in each process
    first, positions = first[in_set], np.argsort(in_set)[positions]
    by_id = np.argsort(np.frombuffer(ids, np.int64)[shared])
    order, positions = shared[by_id], positions[by_id]
    written.write(text)
    names = _Names(_texts(written, np.frombuffer(lengths, np.uint32), shared[first]))
    labels = ClusterLabels(
        array("q", np.frombuffer(ids, np.int64)[order].tobytes()),
        array("i", positions.astype(np.int32).tobytes()),
        names,
    )
    done = _by_kinds({_KINDS.get(kind, _DOCUMENTED) for kind in kinds}) if by == AUTO else by
    noun = kinds.pop() if len(kinds) == 1 else "cluster"
    noun = noun if noun in _NOUNS else f"value of {by}"
    sentence = f"{_count(cases, 'case')} in {_count(distinct, noun)}"
    if own := cases - len(ids):
        sentence = f"{_count(cases, 'case')}: {cases - own:,} in {_count(distinct, noun)}, "
        sentence += f"{own:,} without one"
    return Clustering(done, labels, sentence, *documents)


def _texts(
    file: IO[bytes], lengths: NDArray[np.uint32], places: NDArray[np.int64]
) -> Iterator[bytes]:
    """Some of the texts that stand one after the other in a file, by how many are before them."""
    import numpy as np

    begins = np.cumsum(lengths, dtype=np.int64)[places] - lengths[places]
    for begin, length in zip(begins.tolist(), lengths[places].tolist(), strict=True):
        file.seek(begin)
        yield file.read(length)


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
    does not, AUTO does where documents are few. ``ids``: hashes of the only cases that count.
    Raises StorageError for a line that is no case, and when no case has the key that was named.
    """
    problems: list[Problem] = []

    def labelled(by: str) -> Iterator[tuple[str, str | None]]:
        for case in iter_cases(eval_set, problems.append):
            if ids is None or hash(case.id) in ids:
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
        where = f"--cluster {by}: no case of {eval_set} has that key"
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
