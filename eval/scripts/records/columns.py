"""Columns of numbers about many answers, in a few bytes each: its number, and its scores."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Sequence

_BLOCK = 4096
"""Rows of a block: within it the values of a column stand together."""

_IN_MEMORY = 8 << 20
"""Bytes from which on columns are kept on disk."""

_MOST_SEARCHES = 500
"""Searches from end to end before a table is made, which takes 100 bytes an answer."""


class AnswerNumbers:
    """Numbers answers by case id and repeat, by 8 bytes each: it keeps hashes.

    The files of a run tell of the same answers in the same order, so the next number is tried
    first; a table of all is made only where many of them do not.
    """

    def __init__(self) -> None:
        self._hashes = array("q")
        self._next = 0
        self._places: dict[int, int] | None = None
        self._searches = 0

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def hashes(self) -> Sequence[int]:
        """The stored hash of each key, by its number."""
        return self._hashes

    def rewind(self) -> None:
        """Another file begins."""
        self._next = 0

    def find(self, key: Hashable) -> int | None:
        """The number of an answer; None for one that is not known."""
        return self.find_hash(hash(key))

    def find_hash(self, digest: int) -> int | None:
        """The number of an answer by the hash of its key; None for one that is not known."""
        if self._next < len(self._hashes) and self._hashes[self._next] == digest:
            number: int | None = self._next
        else:
            number = self._search(digest)
        if number is not None:
            self._next = number + 1
        return number

    def _search(self, digest: int) -> int | None:
        """A number out of order; a table is made once that was asked for often."""
        if self._places is None and self._searches < _MOST_SEARCHES:
            self._searches += 1
            try:
                return self._hashes.index(digest)
            except ValueError:
                return None
        if self._places is None:
            self._places = {value: place for place, value in enumerate(self._hashes)}
        return self._places.get(digest)

    def extend(self, digests: Iterable[int]) -> None:
        """Give the next numbers to answers that are not known, by the hashes of their keys."""
        self._hashes.extend(digests)
        self._places = None

    def append(self, key: Hashable) -> int:
        """Give the next number to an answer that is not known."""
        return self.append_hash(hash(key))

    def append_hash(self, digest: int) -> int:
        """The same by the hash of its key."""
        number = len(self._hashes)
        self._hashes.append(digest)
        if self._places is not None:
            self._places[digest] = number
        self._next = number + 1
        return number
