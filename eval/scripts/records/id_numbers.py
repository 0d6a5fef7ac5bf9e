"""A number for each case id, so that cases of several runs are matched as columns of numbers."""

from __future__ import annotations

from itertools import count

_NUMBERS: dict[str, int] = {}
_IDS: dict[int, str] = {}
_next = count().__next__


def id_number(case_id: str) -> int:
    """The number of a case id, from 0 up: the same for every run that this process reads."""
    number = _NUMBERS.get(case_id)
    if number is None:
        number = _NUMBERS.setdefault(case_id, _next())
        _IDS[number] = case_id
    return number


def id_of(number: int) -> str:
    """The case id that has a number. Raises KeyError for a number that none has."""
    return _IDS[number]
