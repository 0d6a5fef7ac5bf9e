"""Does the rule for gold quotes find a passage again, and only that one, however the text is cut?

    python bench/validate_quotes.py TEXT_OR_FOLDER [--quotes 120] [--seed 11]

A long text is cut into chunks of 150 to 1,000 characters, at blanks and with a fifth of overlap, as
loaders of PDFs cut; every heading is lost. Quotes are sentences of it, drawn at random, each of
which stands there once. A chunk is right when it shares half of the quote's place or lies in it,
which the places tell without any comparison of words. A quote is found when a right chunk matches.
Wrong: chunks that match and do not touch the quote's place; beside it, those that the file alone
would match, which is what an empty heading meant before.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from pathlib import Path

from measuring import SCRIPTS, print_table

sys.path.insert(0, str(SCRIPTS))

from ragmetrics.text.gold_quotes import fold_quote, holds_quote

SIZES = (150, 200, 300, 500, 700, 1000)
SHORTEST, LONGEST = 40, 240
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n\s*\n")


def read(source: Path) -> str:
    """One text of all files, in the order of their names."""
    files = sorted(source.rglob("*.md")) if source.is_dir() else [source]
    return "\n\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def sentences(text: str) -> list[tuple[int, int]]:
    """Where sentences stand that occur once."""
    whole = fold_quote(text)
    ends = [match.span() for match in _SENTENCE.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    spans = zip(starts, [*(start for start, _ in ends), len(text)], strict=True)
    return [
        (start, end)
        for start, end in spans
        if SHORTEST <= end - start <= LONGEST
        and "```" not in text[start:end]
        and whole.count(fold_quote(text[start:end])) == 1
    ]


def chunks(text: str, size: int) -> list[tuple[int, int]]:
    """Spans of at most ``size`` characters that end at a blank, a fifth of each in the next."""
    spans, start = [], 0
    while start < len(text):
        end = min(len(text), start + size)
        if end < len(text):
            end = max(text.rfind(" ", start + size // 2, end), text.rfind("\n", start, end), start)
            end = end if end > start else min(len(text), start + size)
        spans.append((start, end))
        if end == len(text):
            break
        back = max(text.find(" ", end - size // 5, end), start + 1)
        start = back if back > start else end
    return spans


def is_right(chunk: tuple[int, int], quote: tuple[int, int]) -> bool:
    shared = min(chunk[1], quote[1]) - max(chunk[0], quote[0])
    return 2 * shared >= min(quote[1] - quote[0], chunk[1] - chunk[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--quotes", type=int, default=120)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--most", type=int, default=400_000, help="Characters of the text.")
    given = parser.parse_args()
    text = read(given.source)[: given.most]
    drawn = random.Random(given.seed).sample(sentences(text), given.quotes)
    rows = []
    for size in SIZES:
        cut = chunks(text, size)
        found = wrong = 0
        for quote in drawn:
            words = text[slice(*quote)]
            rule = [chunk for chunk in cut if holds_quote(text[slice(*chunk)], words)]
            found += any(is_right(chunk, quote) for chunk in rule)
            wrong += sum(chunk[1] <= quote[0] or chunk[0] >= quote[1] for chunk in rule)
        total = sum(
            chunk[1] <= quote[0] or chunk[0] >= quote[1] for quote in drawn for chunk in cut
        )
        row = (size, len(cut), found, wrong, total)
        rows.append([f"{value:,}" for value in row])
    head = ("size", "chunks", "quotes found", "wrong chunks", "wrong by the file alone")
    print(f"{given.source.name}: {len(text):,} characters, {len(drawn)} quotes, seed {given.seed}")
    print_table(head, rows)


if __name__ == "__main__":
    main()
