"""The one error class for a user's mistake: a sentence with the remedy, exit code 2."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any, NamedTuple

import click

MAX_SHOWN = 50


class Problem(NamedTuple):
    """One thing wrong with an input file, printed as ``file:line: field: message``."""

    path: str
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return (
            f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}"
        )


class StorageError(click.ClickException):
    """A file cannot be used. Printed without a traceback; the process ends with 2."""

    exit_code = 2

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    @classmethod
    def from_problems(cls, problems: Iterable[Problem]) -> StorageError:
        """All problems in one error, a line each; the count comes last."""
        all_problems = tuple(problems)
        lines = [str(problem) for problem in all_problems[:MAX_SHOWN]]
        if len(all_problems) > MAX_SHOWN:
            lines.append(f"… and {len(all_problems) - MAX_SHOWN} more")
        noun = "problem" if len(all_problems) == 1 else "problems"
        lines.append(f"{len(all_problems)} {noun}; nothing was written.")
        return cls("\n".join(lines), all_problems)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print to stderr: one ``Error:`` line, or the list of problems unchanged."""
        prefix = "" if self.problems else "Error: "
        click.echo(prefix + _shown(self.format_message()), file=file, err=file is None)


class Unreachable(click.ClickException):
    """The bot cannot be reached, or fails too often: exit code 3."""

    exit_code = 3


def _shown(text: str) -> str:
    """Text that may quote a file, without what could steer a terminal: lines stay, the rest of
    what is not printable becomes a replacement character."""
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`` Did you mean 'k10'?`` with up to three of ``names`` that look like it; "" for none."""
    import difflib

    by_lower = {known.casefold(): known for known in names}
    near = difflib.get_close_matches(name.casefold(), by_lower, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(by_lower[key]) for key in near)}?" if near else ""
