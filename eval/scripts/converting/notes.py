"""What a conversion met: problems that stop it, and counts of what did not go over as it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from storage import Problem, StorageError

MOST_PROBLEMS = 1000
"""After so many problems reading on tells nothing new."""


class Notes:
    """Counts by what they are about; every one is printed and stands in the report.

    ``rows``: what was read. ``kept``: fields that no script reads, kept under ``metadata`` of the
    case. ``changed``: values that had to be written differently. ``left_out``: what the other
    side has no place for. ``written``: lines by file.
    """

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        self._problems: list[Problem] = []

    def problem(self, path: Path, line: int | None, field: str, message: str) -> None:
        """Record a fault of the input. Raises StorageError when there are too many to go on."""
        self.report(Problem(str(path), line, field, message))

    def report(self, problem: Problem) -> None:
        """The same for a finished Problem."""
        self._problems.append(problem)
        if len(self._problems) >= MOST_PROBLEMS:
            self.check()

    def check(self) -> None:
        """Raise StorageError with every problem found so far, if there is one."""
        if self._problems:
            raise StorageError.from_problems(self._problems)

    @property
    def lossless(self) -> bool:
        """True when everything went over as it was."""
        return not (self.changed or self.left_out)

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data, each group sorted by name."""
        groups = ("rows", "kept", "changed", "left_out", "written")
        return {
            name: {key: n for key, n in sorted(getattr(self, name).items()) if n} for name in groups
        }

    def lines(self) -> list[str]:
        """The counts for a person, a line each."""
        titles = {
            "rows": "read",
            "kept": "kept under metadata, which no script reads",
            "changed": "changed",
            "left_out": "left out",
            "written": "written",
        }
        return [
            f"{title}: {name}: {count}"
            for group, title in titles.items()
            for name, count in sorted(getattr(self, group).items())
            if count
        ]
