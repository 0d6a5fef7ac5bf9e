"""Gold labels held against the vault: is the place there, and if not, where has it gone?"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from documents.sections import Note
from extras.audit.findings import Finding, Quote
from extras.audit.passages import AuditSection, Place, plain, sections_of, sentences
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
    """A finding for each label whose place is not in the vault."""
    for case in cases:
        for support in case.gold_supports:
            finding = check_support(support, index)
            if finding is not None:
                why, moved_to = finding
                place = _label_place(support)
                text = next(iter(quotes_of(support)), "")
                yield Finding("gold", why, (Quote(place, text),), (case.id,), 1.0, moved_to)


def _label_place(support: GoldSupport) -> Place:
    page = support.page if isinstance(support.page, int) else None
    return Place(normalise_path(support.rel_path), support.heading_path, page)


def check_support(support: GoldSupport, index: VaultIndex) -> tuple[str, Place | None] | None:
    """What is wrong with a label, and its new place where that is sure; None for a sound one."""
    path, heading = normalise_path(support.rel_path), heading_segments(support.heading_path)
    quotes = [quote for quote in quotes_of(support) if quote.strip()]
    own = index.of_file(path)
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
    missing = [quote for quote in quotes if not any(holds_quote(text, quote) for _, text in under)]
    if quotes and len(missing) == len(quotes):
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
    for quote in quotes:
        places = _likeliest(index.with_quote(quote), support)
        if len(places) == 1:
            return f"{fault}; its quote moved to {places[0]}", places[0]
        if places:
            return f"{fault}; its quote is in {_listed(places)}", None
    if quotes:
        return f"{fault}, and its quote is nowhere", None
    place = _by_history(support, index) or _by_heading(support, index)
    if place is not None:
        return f"{fault}; moved to {place}", place
    candidates = _candidates(support, index)
    return f"{fault}; candidates: {_listed(candidates)}" if candidates else fault, None


def _likeliest(places: list[Place], support: GoldSupport) -> list[Place]:
    """Of several places those in the label's own file, else those with the label's headings."""
    path, heading = normalise_path(support.rel_path), heading_segments(support.heading_path)
    own = [place for place in places if place.rel_path == path]
    same = [place for place in places if heading_segments(place.heading_path) == heading]
    return own or (same if heading else []) or places


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
    ours, theirs = (set(content_words(fold(plain(text)))) for text in (heading, other))
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 0.0


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


def _by_history(support: GoldSupport, index: VaultIndex) -> Place | None:
    """Where the text went that the section had in an earlier commit of the vault."""
    path, heading = normalise_path(support.rel_path), heading_segments(support.heading_path)
    for section in _old_sections(index.root, path):
        if heading_segments(section.place.heading_path) != heading:
            continue
        old = sorted({s for text in section.paragraphs for s in sentences(text)}, key=len)[-3:]
        found = [places[0] for text in old if len(places := index.with_quote(text)) == 1]
        return found[0] if found and len(set(found)) == 1 else None
    return None


def _old_sections(root: Path | None, path: str) -> Iterator[AuditSection]:
    """The sections of a file in its earlier commits, the latest first."""
    if root is None or not path.lower().endswith((".md", ".markdown")):
        return
    commits = _git(root, "log", f"-{MOST_COMMITS}", "--format=%H", "--", path)
    for commit in (commits or "").split():
        text = _git(root, "show", f"{commit}:./{path}")
        if text is not None:
            yield from sections_of([Note("", path, text)])


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
