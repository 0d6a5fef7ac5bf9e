"""Gold labels held against the vault: is the place there, and if not, where has it gone?"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from documents.sections import Note
from documents.vault import MARKDOWN
from extras.audit.findings import Finding, Quote
from extras.audit.passages import AuditSection, Place, plain, sections_of
from ragmetrics.gold import quotes_of
from ragmetrics.matching import heading_segments, normalise_path
from ragmetrics.text.gold_quotes import fold_quote, holds_quote
from ragmetrics.text.words import content_words, fold
from records.cases import GoldSupport, TestCase

ENOUGH_WORDS = 0.5
"""Share of the words of both headings that a renamed one must have in common."""
MOST_COMMITS = 20
LEAST_QUOTE = 20
"""Characters of a quote that can say where a text has gone."""


@dataclass
class VaultIndex:
    """The sections of a vault by file, and their folded texts."""

    notes: Sequence[Note]
    root: Path | None = None
    texts: list[tuple[Place, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for note in self.notes:
            for part in note.sections():
                place = Place(normalise_path(note.rel_path), part.heading_path, part.page)
                self.texts.append((place, part.text))
        self._by_file: dict[str, list[tuple[Place, str]]] = {}
        for place, text in self.texts:
            self._by_file.setdefault(place.rel_path, []).append((place, text))
        self._folded = [fold_quote(text) for _, text in self.texts]

    def of_file(self, path: str) -> list[tuple[Place, str]]:
        """The sections of a file, none for an unknown one."""
        return self._by_file.get(path, [])

    def with_quote(self, quote: str) -> list[Place]:
        """The places of a text: word for word, else by the rule of labels that are quotes."""
        folded = fold_quote(quote)
        exact = [
            place
            for (place, _), text in zip(self.texts, self._folded, strict=True)
            if folded and folded in text
        ]
        if exact or len(folded) < LEAST_QUOTE:
            return list(dict.fromkeys(exact))
        return list(dict.fromkeys(place for place, text in self.texts if holds_quote(text, quote)))


def gold_findings(cases: Sequence[TestCase], index: VaultIndex) -> Iterator[Finding]:
    """A finding for each label whose place is not in the vault.

    Whole documents count where one of the set's is a file of the vault: else they are ids.
    """
    documents = {path for case in cases for path in case.relevant_docs}
    are_paths = any(index.of_file(normalise_path(path)) for path in documents)
    for case in cases:
        whole = [GoldSupport(path, "") for path in case.relevant_docs if are_paths]
        for support in (*case.gold_supports, *whole):
            finding = check_support(support, index)
            if finding is not None:
                why, moved_to = finding
                place = _label_place(support)
                text = next(iter(quotes_of(support)), "")
                yield Finding("gold", why, (Quote(place, text),), (case.id,), 1.0, moved_to)


def _label_place(support: GoldSupport) -> Place:
    path = normalise_path(support.rel_path)
    return Place(path, support.heading_path, sheet_of(support.page))


def check_support(support: GoldSupport, index: VaultIndex) -> tuple[str, Place | None] | None:
    """What is wrong with a label, and its new place where that is sure; None for a sound one."""
    path, heading = normalise_path(support.rel_path), heading_segments(support.heading_path)
    quotes = [quote for quote in quotes_of(support) if quote.strip()]
    own = index.of_file(path)
    if not own and index.root is not None and (index.root / path).is_file():
        return "the file is there, and its text cannot be read", None
    if not own:
        return _moved("the file is gone", support, index, quotes)
    under = [
        (place, text)
        for place, text in own
        if heading_segments(place.heading_path)[: len(heading)] == heading
    ]
    if heading and not under:
        return _moved("the heading is gone", support, index, quotes)
    sheets = {place.page for place, _ in own} - {None}
    page = sheet_of(support.page)
    if not heading and not quotes and page is not None:
        return None if page in sheets else ("the page is gone", None)
    whole = "\n".join(text if place.page else f"{place.title}\n{text}" for place, text in under)
    texts = (*(text for _, text in under), whole)  # a quote may go over a border of them
    if quotes and not any(holds_quote(text, quote) for quote in quotes for text in texts):
        return _moved("the quote is not there any more", support, index, quotes)
    exact = [place for place, _ in own if heading_segments(place.heading_path) == heading]
    if heading and len(exact) > 1 and not quotes and len({p.page for p in exact}) < len(exact):
        return f"ambiguous: {len(exact)} sections have this heading", None
    return None


def sheet_of(page: object) -> int | None:
    """The number of a page, also where it is written as text; None for another name."""
    text = str(page or "").strip()
    return int(text) if text.isdecimal() else None


def _moved(
    fault: str, support: GoldSupport, index: VaultIndex, quotes: Sequence[str]
) -> tuple[str, Place | None]:
    """Where the text went: by its quotes, by the vault's history, by its heading."""
    before = _before(support, index, quotes)
    for quote in quotes:
        places = _likeliest(quote, support, index, before)
        if len(places) == 1:
            return f"{fault}; its quote moved to {places[0]}", places[0]
        if places:
            return f"{fault}; its quote is in {_listed(places)}", None
    if quotes:
        return f"{fault}, and its quote is nowhere", None
    place = _by_sentences(index, before) or _by_heading(support, index)
    if place is not None:
        return f"{fault}; moved to {place}", place
    candidates = _candidates(support, index)
    return f"{fault}; candidates: {_listed(candidates)}" if candidates else fault, None


@dataclass(frozen=True, slots=True)
class Before:
    """The latest commit of the vault in which a label was sound, and its section there."""

    commit: str
    section: AuditSection


def _likeliest(
    quote: str, support: GoldSupport, index: VaultIndex, before: Before | None
) -> list[Place]:
    """The places of a text; of several those that came to have it since the label was sound, those
    in the label's own file, below its headings, or at least below its last heading."""
    places = index.with_quote(quote)
    path, heading = normalise_path(support.rel_path), heading_segments(support.heading_path)
    new = _came_since(before, places, quote, index.root) if len(places) > 1 else []
    rules: list[Callable[[Place], bool]] = [lambda place: place.rel_path == path]
    if heading:
        rules.append(lambda place: heading_segments(place.heading_path) == heading)
        rules.append(lambda place: heading_segments(place.heading_path)[-1:] == heading[-1:])
    places = new or places
    for rule in rules:
        places = [place for place in places if rule(place)] or places
    return places


def _came_since(
    before: Before | None, places: Sequence[Place], text: str, root: Path | None
) -> list[Place]:
    """Those of some places that came to have the text since, those in the label's file first."""
    if before is None:
        return []
    had = {
        Place(path, section.heading_path)
        for path in {place.rel_path for place in places}
        for section in _note_in(before.commit, path, root).sections()
        if holds_quote(section.text, text)
    }
    new = [place for place in places if place not in had]
    return [place for place in new if place.rel_path == before.section.place.rel_path] or new


def _listed(places: Sequence[Place]) -> str:
    shown = "; ".join(map(str, places[:3]))
    return shown if len(places) <= 3 else f"{shown}; and {len(places) - 3} more"


def _by_heading(support: GoldSupport, index: VaultIndex) -> Place | None:
    """The only section with the same headings in another file, or with most of the heading's words
    below the same heading of the same file."""
    path, heading = normalise_path(support.rel_path), heading_segments(support.heading_path)
    if not heading:
        return None
    own = index.of_file(path)
    if not own:
        same = [p for p, _ in index.texts if heading_segments(p.heading_path) == heading]
        return same[0] if len(same) == 1 else None
    near = {
        place
        for place, _ in own
        if (segments := heading_segments(place.heading_path))
        and segments[:-1] == heading[:-1]
        and shared_words(segments[-1], heading[-1]) >= ENOUGH_WORDS
    }
    return near.pop() if len(near) == 1 else None


def shared_words(heading: str, other: str) -> float:
    """Share of the words of two headings that are in both, in [0, 1]."""
    ours, theirs = _words_of(heading), _words_of(other)
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 0.0


@lru_cache(maxsize=100_000)
def _words_of(heading: str) -> frozenset[str]:
    return frozenset(content_words(fold(plain(heading))))


def _candidates(support: GoldSupport, index: VaultIndex) -> list[Place]:
    """Sections anywhere whose own heading shares words with the label's, best first."""
    heading = heading_segments(support.heading_path)
    if not heading:
        return []
    rated = {
        place: shared_words(place.title, heading[-1])
        for place, _ in index.texts
        if place.heading_path
    }
    best = sorted((place for place, share in rated.items() if share > 0), key=lambda p: -rated[p])
    return [place for place in best if rated[place] >= ENOUGH_WORDS / 2][:5]


def _by_sentences(index: VaultIndex, before: Before | None) -> Place | None:
    """Where the longest sentences went that the section had when the label was sound."""
    if before is None:
        return None
    longest = sorted(set(before.section.sentences), key=len)[-3:]
    places = [_came_since(before, index.with_quote(text), text, index.root) for text in longest]
    sure = {each[0] for each in places if len(each) == 1}
    return sure.pop() if len(sure) == 1 else None


def _before(support: GoldSupport, index: VaultIndex, quotes: Sequence[str]) -> Before | None:
    """The latest commit in which the label's file has one of its quotes, else its headings."""
    path, heading = normalise_path(support.rel_path), heading_segments(support.heading_path)
    for commit in _git(index.root, "log", f"-{MOST_COMMITS}", "--format=%H", "--", path).split():
        for section in sections_of([_note_in(commit, path, index.root)]):
            segments = heading_segments(section.place.heading_path)
            has_quote = any(holds_quote(section.text, quote) for quote in quotes)
            if has_quote if quotes else segments == heading:
                return Before(commit, section)
    return None


def _note_in(commit: str, path: str, root: Path | None) -> Note:
    """A file of Markdown in a commit; without text where it was not."""
    is_markdown = path.lower().endswith(MARKDOWN)
    return Note("", path, _git(root, "show", f"{commit}:./{path}") if is_markdown else "")


def _git(root: Path | None, *words: str) -> str:
    """What git prints about a vault; "" without a vault, a history or git."""
    if root is None:
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout.decode("utf-8", "replace")
