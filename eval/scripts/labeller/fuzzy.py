"""Finding by some of the letters, as fuzzy finders do: in order, not necessarily side by side."""

from __future__ import annotations

from collections.abc import Iterable


def ranked(typed: str, texts: Iterable[str]) -> list[str]:
    """The texts that hold every word of `typed`, best first; case does not matter.

    All of them, in their order, when nothing is typed.
    """
    words = typed.casefold().split()
    if not words:
        return list(texts)
    matches = []
    for text in texts:
        folded = text.casefold()
        scores = [_closeness(word, folded) for word in words]
        if all(scores):
            matches.append((-sum(scores), len(text), text))
    return [text for _, _, text in sorted(matches)]


def _closeness(word: str, text: str) -> float:
    """How well `text` holds the letters of `word`: 3 as the start of a word of it, 2 elsewhere in
    one piece, up to 1 scattered (letters over the length of the stretch that they stand in), 0 not.

    The stretch is that of the first place where all letters have come, made as short as it goes
    (as in fzf's first algorithm), so the time grows with the length of the text alone.
    """
    start = text.find(word)
    while start > 0 and text[start - 1].isalnum():
        later = text.find(word, start + 1)
        if later < 0:
            return 2.0
        start = later
    if start >= 0:
        return 3.0
    at = -1
    for letter in word:
        at = text.find(letter, at + 1)
        if at < 0:
            return 0.0
    end, start = at, at + 1
    for letter in reversed(word):
        start = text.rfind(letter, 0, start)
    return len(word) / (end - start + 1)
