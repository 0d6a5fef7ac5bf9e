"""What a bot means by a page: the sheet counted from 1 or 0, or the number printed on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from documents.sections import Note, Sheet
from ragmetrics.matching import normalise_path
from ragmetrics.text.words import fold, words

RUN = 8
"""Words in a row by which a text is found on a sheet."""
LEAST, AGREE = 3, 0.9
"""Passages that are needed, and the share of them that must agree."""

REMEDY = {
    1: "",
    0: "The bot counts pages from 0: write page_base = 0 in its profile.",
    "label": "The bot's pages are printed numbers, and labels count sheets from 1: "
    "label such cases with a quote, which decides without the page.",
    None: "The bot's page numbers fit neither sheets nor printed numbers of the files: label its "
    "cases with quotes.",
}


def page_note(passages: Iterable[tuple[str, int | str, str]], notes: Sequence[Note]) -> str:
    """What to do about the pages of a bot, "" for nothing; ``passages``: path, page and text."""
    files = {normalise_path(note.rel_path): note.pages for note in notes if note.pages}
    votes: Counter[int | str] = Counter()
    count = 0
    for path, page, text in passages:
        readings = _readings(files.get(normalise_path(path), ()), page, text)
        count += bool(readings)
        votes.update(reading for reading in readings if reading is not None)
    if count < LEAST:
        return ""
    for reading in (1, 0, "label"):
        if votes[reading] >= AGREE * count:
            return REMEDY[reading]
    return REMEDY[None]


def _readings(sheets: Sequence[Sheet], page: int | str, text: str) -> set[int | str | None]:
    """The readings under which a text is on its page; {None} for none, empty if it is nowhere."""
    number = int(page) if str(page).strip().isdecimal() else None
    own = words(fold(text))
    runs = [" ".join(own[at : at + RUN]) for at in range(0, max(len(own) - RUN + 1, 0), RUN)]
    texts = [f" {' '.join(words(fold(sheet.text)))} " for sheet in sheets]
    there = {at for at, sheet in enumerate(texts, 1) if any(f" {run} " in sheet for run in runs)}
    if not there:
        return set()
    named: Mapping[int | str, set[int]] = {
        1: set() if number is None else {number},
        0: set() if number is None else {number + 1},
        "label": {at for at, sheet in enumerate(sheets, 1) if sheet.label == str(page).strip()},
    }
    return {reading for reading, sheet in named.items() if sheet & there} or {None}
