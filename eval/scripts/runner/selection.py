"""Which cases a run asks: filters, limit, repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from runner.tally import printable
from storage import StorageError, TestCase

FILTERS = ("id", "category", "difficulty", "tag", "answerable", "query_type")


@dataclass(frozen=True, slots=True)
class Job:
    """One asking of one case."""

    case: TestCase
    repeat: int = 0

    @property
    def key(self) -> tuple[str, int]:
        return self.case.id, self.repeat


def select(cases: Sequence[TestCase], filters: Sequence[str], limit: int | None) -> list[TestCase]:
    """The first ``limit`` cases that pass all filters, in their order in the set.

    A filter is ``name=pattern`` with ``*`` and ``?``. One name given several times is an "or",
    several names are an "and". Raises StorageError for unknown names and when nothing is left.
    """
    wanted: dict[str, list[str]] = {}
    for text in filters:
        name, equals, pattern = text.partition("=")
        if not equals or name not in FILTERS:
            known = ", ".join(FILTERS)
            raise StorageError(f"--filter {text!r}: write NAME=VALUE; the names are: {known}.")
        wanted.setdefault(name, []).append(pattern)
    kept = [case for case in cases if _passes(case, wanted)]
    if not kept:
        hint = printable(_hint(cases, wanted))  # the set's own words
        raise StorageError(f"no case passes --filter {' '.join(filters)}.{hint}")
    return kept[:limit]


def expand(cases: Iterable[TestCase], repeats: int) -> Iterator[Job]:
    """Each case ``repeats`` times; all cases once before any is asked again."""
    kept = list(cases)
    for repeat in range(repeats):
        for case in kept:
            yield Job(case, repeat)


def _passes(case: TestCase, wanted: dict[str, list[str]]) -> bool:
    return all(
        any(fnmatchcase(value, pattern) for value in _values(case, name) for pattern in patterns)
        for name, patterns in wanted.items()
    )


def _values(case: TestCase, name: str) -> list[str]:
    if name == "tag":
        return case.tags
    if name == "answerable":
        return ["unknown" if case.answerable is None else str(case.answerable).lower()]
    value = getattr(case, name)
    return [] if value is None else [value]


def _hint(cases: Sequence[TestCase], wanted: dict[str, list[str]]) -> str:
    """What values there are of the names that were asked for."""
    parts = []
    for name in wanted:
        known = sorted({value for case in cases for value in _values(case, name)})
        shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
        parts.append(f" The set has {name}: {shown or 'nowhere'}.")
    return "".join(parts)
