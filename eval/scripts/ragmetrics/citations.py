"""Citations in an answer: what they look like, what they point to, what they stand behind.

Accepted: ``[1]``, ``[1, 3]``, ``[1-3]``, ``[1][2]``, ``【1】``, ``[^1]``, ``[[note]]``,
``(doc.md)``, ``[doc.md]``, ``[internal-001]``. No citations: ``a[0]``, ``[x]``, ``[sic]``, and
anything in code or math.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragmetrics.case_scores import Cited, RetrievedText
from ragmetrics.claims import AnswerClaim, score_claim, supported_together
from ragmetrics.text.numbers import NumberIndex
from ragmetrics.text.plain import plain
from ragmetrics.text.sentences import MARK
from ragmetrics.text.words import clean, fold, words
from ragmetrics.windows import PreparedChunk

_CONTENT_THRESHOLD = 0.45
_MAX_RANGE = 100

_MARK = re.compile(MARK)
_HIDDEN = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,500}`|\$[^$\n]{1,300}\$", re.DOTALL)
_RANGE = re.compile(r"(\d{1,3})\s*[–-]\s*\^?(\d{1,3})|(\d{1,3})")
_NUMERIC = re.compile(r"[\[【]\s*\^?\d")
_LENTICULAR = re.compile(r"【\s*(\d{1,3})")
Target = int | str


@dataclass(frozen=True, slots=True)
class Mark:
    """One citation mark at ``answer[start:end]`` and the sources that it names, each once."""

    start: int
    end: int
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Citation:
    """One source cited for one claim. ``chunk`` is its place in the retrieved list, from 0.

    ``claim`` is the claim's place in the list of claims; None for a mark that follows none.
    ``covered`` is the text that the mark stands behind.
    """

    target: Target
    start: int
    end: int
    claim: int | None
    covered: str
    chunk: int | None


def _targets(mark: str) -> tuple[Target, ...]:
    if match := _LENTICULAR.match(mark):
        return (int(match[1]),)
    if not _NUMERIC.match(mark):
        return (mark.strip("[]()【】 ").strip(),)
    targets: list[Target] = []
    for first, last, single in _RANGE.findall(mark):
        if single:
            targets.append(int(single))
        elif int(first) <= int(last) <= int(first) + _MAX_RANGE:
            targets.extend(range(int(first), int(last) + 1))
        else:
            targets.extend((int(first), int(last)))
    return tuple(dict.fromkeys(targets))


def marks(answer: str) -> list[Mark]:
    """Return all citation marks of an answer in reading order, ignoring code and math.

    Places are those in the answer as its reader sees it (``plain``).
    """
    text = _HIDDEN.sub(lambda match: " " * len(match[0]), plain(answer).text)
    return [Mark(match.start(), match.end(), _targets(match[0])) for match in _MARK.finditer(text)]


def _name(text: str) -> str:
    """A path or id for comparing: NFC, ``/``, no ``./``, no anchor, casefolded."""
    plain = unicodedata.normalize("NFC", text.strip()).replace("\\", "/").removeprefix("./")
    return plain.partition("#")[0].strip().casefold()


def _names(chunk: RetrievedText) -> set[str]:
    """What a citation may call a chunk: its ids, its path, its file with and without ending."""
    names = {_name(name) for name in (chunk.chunk_id, chunk.doc_id, chunk.rel_path) if name}
    if chunk.rel_path:
        file = _name(chunk.rel_path).rpartition("/")[2]
        names |= {file, file.rpartition(".")[0], _name(chunk.rel_path).rpartition(".")[0]}
    return names - {""}


class Resolver:
    """Finds the retrieved chunk that a citation means; built once for an answer.

    A number is the ``index`` of one of the bot's references when they carry one, else the place in
    the list of chunks, counted from ``first`` (1 unless the bot's profile says otherwise).
    """

    def __init__(
        self, chunks: Sequence[RetrievedText], references: Iterable[Cited] = (), first: int = 1
    ) -> None:
        self._first = first
        self._size = len(chunks)
        self._by_name: dict[str, int] = {}
        for index, chunk in enumerate(chunks):
            for name in _names(chunk):
                self._by_name.setdefault(name, index)
        self._by_index = {
            reference.index: self.reference(reference)
            for reference in references
            if reference.index is not None
        }

    def reference(self, reference: Cited) -> int | None:
        """The place of the chunk that a listed reference names by chunk id, document or path."""
        for name in (reference.chunk_id, reference.doc_id, reference.rel_path):
            if name and (index := self._by_name.get(_name(name))) is not None:
                return index
        bare = not (reference.chunk_id or reference.doc_id or reference.rel_path)
        return self._numbered(reference.index) if bare and reference.index is not None else None

    def _numbered(self, number: int) -> int | None:
        index = number - self._first
        return index if 0 <= index < self._size else None

    def __call__(self, target: Target) -> int | None:
        """Place of the cited chunk from 0; None when it was not retrieved."""
        if isinstance(target, str):
            return self._by_name.get(_name(target))
        return self._by_index[target] if target in self._by_index else self._numbered(target)


def _covered(text: str, claim: AnswerClaim, mark: Mark, clause: tuple[int, int]) -> str:
    """At the end of its sentence a mark covers all of it, inside it the clause up to the mark."""
    start, end = claim.sentence
    rest = _MARK.sub(" ", text[mark.end : end])
    if not words(fold(rest)):
        return text[max(start, claim.start) : end]
    return text[max(start, clause[0]) : clause[1]]


def _claim_of(text: str, claims: Sequence[AnswerClaim], mark: Mark) -> int | None:
    """The claim whose sentence holds the mark, else the one that it directly follows."""
    for index, claim in enumerate(claims):
        if claim.sentence[0] <= mark.start < claim.sentence[1]:
            return index
    for index in reversed(range(len(claims))):
        gap = text[claims[index].sentence[1] : mark.start]
        if claims[index].sentence[1] <= mark.start:
            return None if words(fold(_MARK.sub(" ", gap))) else index
    return None


def attach(answer: str, claims: Sequence[AnswerClaim], resolver: Resolver) -> list[Citation]:
    """Return every cited source with the claim that it supports; a source counts once per claim.

    The answer is plain already, and so are the places of the claims.
    """
    text = clean(answer)
    citations: list[Citation] = []
    seen: set[tuple[int | None, Target]] = set()
    before, clause = 0, (0, 0)
    for mark in marks(text):
        # "[1][2]" is one group: both stand behind the words before the first.
        if text[before : mark.start].strip() or not before:
            clause = (before, mark.start)
        claim_index = _claim_of(text, claims, mark)
        covered = "" if claim_index is None else _covered(text, claims[claim_index], mark, clause)
        before = mark.end
        for target in mark.targets:
            if (claim_index, target) not in seen:
                seen.add((claim_index, target))
                chunk = resolver(target)
                citations.append(
                    Citation(target, mark.start, mark.end, claim_index, covered, chunk)
                )
    return citations


def validity_form(resolved: Sequence[int | None]) -> float | None:
    """Citations that name a retrieved chunk / citations; None without a citation."""
    if not resolved:
        return None
    return sum(chunk is not None for chunk in resolved) / len(resolved)


def content_checks(
    citations: Sequence[Citation],
    chunks: Sequence[PreparedChunk],
    question: NumberIndex | None = None,
) -> list[tuple[Citation, bool]]:
    """Citations that resolve and cover words; True when that chunk alone supports them at 0.45."""
    checked: list[tuple[Citation, bool]] = []
    for citation in citations:
        if citation.chunk is None:
            continue
        support = score_claim(
            citation.covered,
            [chunks[citation.chunk]],
            question=question,
            threshold=_CONTENT_THRESHOLD,
        )
        if support is not None:
            checked.append((citation, support.supported))
    return checked


def coverage(claims: int, cited: Iterable[int]) -> float | None:
    """Claims with at least one citation / claims; None without a claim."""
    return len(set(cited)) / claims if claims else None


def _cited_chunks(citations: Sequence[Citation]) -> dict[int, list[int]]:
    """By claim, the retrieved chunks that it cites, each once, in order; [] for none of them."""
    cited: dict[int, set[int]] = {}
    for citation in citations:
        if citation.claim is not None:
            cited.setdefault(citation.claim, set()).update(
                () if citation.chunk is None else (citation.chunk,)
            )
    return {claim: sorted(sources) for claim, sources in cited.items()}


def _together(
    claim: AnswerClaim,
    sources: Sequence[int],
    chunks: Sequence[PreparedChunk],
    question: NumberIndex | None,
) -> bool:
    """True when these chunks together support a claim."""
    return supported_together(
        claim.text,
        [chunks[source] for source in sources],
        question=question,
        kind=claim.type,
        lead=claim.lead,
    )


def joint(
    claims: Sequence[AnswerClaim],
    citations: Sequence[Citation],
    chunks: Sequence[PreparedChunk],
    question: NumberIndex | None = None,
) -> float | None:
    """Claims that their cited chunks support together / claims with a citation, in [0, 1].

    Together: the best windows of all of them in one. None without a claim with a citation. Source:
    citation recall of ALCE (Gao et al. 2023), which divides by all sentences.
    """
    cited = _cited_chunks(citations)
    held = [_together(claims[claim], cited[claim], chunks, question) for claim in cited]
    return sum(held) / len(held) if held else None


def precision(
    claims: Sequence[AnswerClaim],
    citations: Sequence[Citation],
    chunks: Sequence[PreparedChunk],
    question: NumberIndex | None = None,
) -> float | None:
    """Cited chunks that their claim needs / cited chunks, each once a claim, in [0, 1].

    Needed: the claim's cited chunks together support it, and the chunk supports it alone, or the
    others do not without it. None when no citation of a claim resolves. Source: citation precision
    of ALCE (Gao et al. 2023).
    """
    needed: list[bool] = []
    for index, sources in _cited_chunks(citations).items():
        claim = claims[index]
        held = _together(claim, sources, chunks, question)
        for source in sources:
            rest = [other for other in sources if other != source]
            needed.append(
                held
                and (
                    not rest
                    or _together(claim, [source], chunks, question)
                    or not _together(claim, rest, chunks, question)
                )
            )
    return sum(needed) / len(needed) if needed else None
