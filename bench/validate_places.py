"""Is a gold quote found in the sections below its heading, and only where it is?

    python bench/validate_places.py FOLDER [FOLDER …] [--golds 150] [--seed 11]

A label names a broad section and quotes a sentence that is in one of the sections below it. The
notes are cut anew, at the headings and then into chunks of 40 to 200 words, at blanks and without
overlap; each chunk has the heading of its own section. A chunk is right when it shares half of the
quote's place, which the positions decide without any comparison of words. Found: labels of which a
right chunk matches. Wrong: labels with a chunk that matches and does not touch the quote's place,
beside those of which the heading alone lets such a chunk match. Then the same with the chunks as
plain text, without Markdown marks, as other loaders give them. At last the share of the hits under
the label's own heading that the same rule would lose if it were asked of them, too. "Anywhere": the
wrong ones if half of the quote's words in a row were enough in the middle of a passage, too.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from measuring import SCRIPTS, print_table
from validate_quotes import is_right, sentences

sys.path.insert(0, str(SCRIPTS))

from demo.chunker import chunk_notes
from documents.vault import read_vault
from ragmetrics.matching import Anchor, Passage, heading_segments, is_within, matches_place
from ragmetrics.text.gold_quotes import LEAST_RUN, fold_quote, holds_run

SIZES = (40, 80, 120, 160, 200)
"""Words of a chunk."""

_WORD = re.compile(r"\S+")

_MARKUP = re.compile(r"<|\[[^\[\]]+\]:")
"""Tags and targets of links, which no label quotes."""

Span = tuple[int, int]


class Section(NamedTuple):
    """A section of a file without the sections below it."""

    path: str
    heading: tuple[str, ...]
    text: str


class Label(NamedTuple):
    """A gold support: a broad heading, and a quote with its place in the text of one section."""

    gold: Anchor
    section: Section
    quote: Span

    @property
    def words(self) -> str:
        return self.section.text[slice(*self.quote)]


def sections_of(folder: Path) -> list[Section]:
    notes = read_vault(folder).notes
    longest = max(len(note.text) for note in notes)
    return [
        Section(chunk.rel_path, heading_segments(chunk.heading_path), chunk.text)
        for chunk in chunk_notes(notes, longest + 1)
    ]


def labels_of(sections: Sequence[Section], number: int, rng: random.Random) -> list[Label]:
    """Labels at a random heading above the section of their quote, which is once in the file."""
    whole: dict[str, str] = defaultdict(str)
    for section in sections:
        whole[section.path] += "\n\n" + section.text
    deep = [section for section in sections if len(section.heading) > 1]
    labels: list[Label] = []
    while len(labels) < number:
        section = rng.choice(deep)
        spans = [
            span
            for span in sentences(section.text)
            if not _MARKUP.match(section.text, span[0])
            and whole[section.path].count(section.text[slice(*span)]) == 1
        ]
        if spans:
            heading = section.heading[: rng.randrange(1, len(section.heading))]
            labels.append(Label(Anchor(section.path, heading), section, rng.choice(spans)))
    return labels


def spans_of(text: str, size: int) -> Iterator[Span]:
    """The places of chunks of so many words; a rest of less than half of that joins the last."""
    places = [match.span() for match in _WORD.finditer(text)]
    starts = list(range(0, len(places), size))
    if len(starts) > 1 and len(places) - starts[-1] < size // 2:
        starts.pop()
    for start, end in zip(starts, [*starts[1:], len(places)], strict=True):
        yield places[start][0], places[end - 1][1]


def plain(markdown: str) -> str:
    """The text that a page shows: no marks, cells and lines as words in a row."""
    from markdown_it import MarkdownIt

    shown = []
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        for part in token.children or [token]:
            shown.append(part.content if part.type in _TEXTS else " " * (part.type in _BREAKS))
        shown.append(" ")
    return " ".join("".join(shown).split())


_TEXTS = {"text", "code_inline", "code_block", "fence"}
_BREAKS = {"softbreak", "hardbreak"}


def has_half(text: str, quote: str) -> bool:
    """Whether half of the quote's words, at least LEAST_RUN, are in a row anywhere in the text."""
    wording = _WORD_ALONE.findall(fold_quote(quote))
    least = min(len(wording), max(LEAST_RUN, (len(wording) + 1) // 2))
    words = f" {' '.join(_WORD_ALONE.findall(fold_quote(text)))} "
    runs = (wording[start : start + least] for start in range(len(wording) - least + 1))
    return any(f" {' '.join(run)} " in words for run in runs)


_WORD_ALONE = re.compile(r"\w+")


def figures(sections: Sequence[Section], labels: Sequence[Label], size: int) -> list[str]:
    """A row of the table: for one size of chunks."""
    found = plain_found = wrong = plain_wrong = anywhere = by_heading = lost = own_hits = 0
    for label in labels:
        below = [
            (section, span, section.text[slice(*span)])
            for section in sections
            if section.path == label.gold.path
            and section.heading != label.gold.heading
            and is_within(section.heading, label.gold.heading)
            for span in spans_of(section.text, size)
        ]
        there = [section is label.section for section, _, _ in below]
        right = [
            own and is_right(span, label.quote)
            for own, (_, span, _) in zip(there, below, strict=True)
        ]
        apart = [
            not own or span[1] <= label.quote[0] or span[0] >= label.quote[1]
            for own, (_, span, _) in zip(there, below, strict=True)
        ]
        anchors = [Anchor(section.path, section.heading) for section, _, _ in below]
        as_written = [text for _, _, text in below]
        for kind, texts in (("written", as_written), ("plain", list(map(plain, as_written)))):
            hits = [
                bool(matches_place(label.gold, [label.words], Passage(place, text or ".")))
                for place, text in zip(anchors, texts, strict=True)
            ]
            is_found = any(a and b for a, b in zip(hits, right, strict=True))
            is_wrong = any(a and b for a, b in zip(hits, apart, strict=True))
            if kind == "written":
                found, wrong = found + is_found, wrong + is_wrong
            else:
                plain_found, plain_wrong = plain_found + is_found, plain_wrong + is_wrong
        by_heading += any(apart)
        anywhere += any(
            a and has_half(t, label.words) for a, t in zip(apart, as_written, strict=True)
        )
        own = [label.section.text[slice(*span)] for span in spans_of(label.section.text, size)]
        own_hits += len(own)
        lost += sum(not holds_run(text, label.words) for text in own)
    number = len(labels)
    shares = (found / number, plain_found / number)
    return [
        f"{size}",
        *(f"{share:.3f}" for share in shares),
        f"{wrong}",
        f"{plain_wrong}",
        f"{anywhere}",
        f"{by_heading}",
        f"{lost / own_hits:.0%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+", help="folders of Markdown")
    parser.add_argument("--golds", type=int, default=150)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    head = ("words", "found", "plain text", "wrong", "plain text", "anywhere", "by heading", "lost")
    for folder in options.folders:
        sections = sections_of(folder)
        labels = labels_of(sections, options.golds, random.Random(options.seed))
        print(f"\n{folder}: {len(sections):,} sections, {len(labels)} labels, seed {options.seed}")
        print_table(head, [figures(sections, labels, size) for size in SIZES])


if __name__ == "__main__":
    main()
