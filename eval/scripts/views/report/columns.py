"""What a report keeps of each of many answers, in a few bytes: its number, and its scores."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from math import isnan, nan
from typing import overload

_MOST_DISTINCT = 65_535


class AnswerNumbers:
    """Numbers answers by case id and repeat, by 8 bytes each: it keeps hashes.

    The files of a run tell of the same answers in the same order, so the next number is tried
    first; a table of all is made only where one of them does not.
    """

    def __init__(self) -> None:
        self._hashes = array("q")
        self._next = 0
        self._places: dict[int, int] | None = None

    def __len__(self) -> int:
        return len(self._hashes)

    def rewind(self) -> None:
        """Another file begins."""
        self._next = 0

    def find(self, key: tuple[str, int]) -> int | None:
        """The number of an answer; None for one that is not known."""
        digest = hash(key)
        if self._next < len(self._hashes) and self._hashes[self._next] == digest:
            number: int | None = self._next
        else:
            if self._places is None:
                self._places = {value: place for place, value in enumerate(self._hashes)}
            number = self._places.get(digest)
        if number is not None:
            self._next = number + 1
        return number

    def append(self, key: tuple[str, int]) -> int:
        """Give the next number to an answer that is not known."""
        digest, number = hash(key), len(self._hashes)
        self._hashes.append(digest)
        if self._places is not None:
            self._places[digest] = number
        self._next = number + 1
        return number


class ScoreColumn(Sequence[float]):
    """One score an answer, not a number where there is none: 2 bytes each, since most metrics have
    few distinct values; 8 bytes each once there are more than 65,535 of them."""

    def __init__(self, values: Iterable[float] = ()) -> None:
        self._values = array("d", [nan])
        self._codes: array[int] | None = array("H")
        self._code_of: dict[float, int] = {}
        for value in values:
            self.append(value)

    def __len__(self) -> int:
        return len(self._values if self._codes is None else self._codes)

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> list[float]: ...
    def __getitem__(self, place: int | slice) -> float | list[float]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        return self._values[place if self._codes is None else self._codes[place]]

    def __iter__(self) -> Iterator[float]:
        if self._codes is None:
            return iter(self._values)
        return map(self._values.__getitem__, self._codes)

    def __setitem__(self, place: int, value: float) -> None:
        code = self._code(value)
        if self._codes is None:
            self._values[place] = value
        else:
            self._codes[place] = code

    def append(self, value: float) -> None:
        """Add the score of the next answer."""
        code = self._code(value)
        if self._codes is None:
            self._values.append(value)
        else:
            self._codes.append(code)

    def pad(self, length: int) -> None:
        """Fill up with answers that have no score."""
        while len(self) < length:
            self.append(nan)

    def _code(self, value: float) -> int:
        """The code of a value, a new one where it is first seen; widens when there are too many."""
        if isnan(value) or self._codes is None:
            return 0
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self._values)
            if code > _MOST_DISTINCT:
                self._values = array("d", self)
                self._codes = None
                self._code_of = {}
                return 0
            self._values.append(value)
        return code
