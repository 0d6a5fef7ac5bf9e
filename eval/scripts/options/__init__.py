"""The command line of all scripts: what each of them calls, and its consoles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from options.added import run_extras as run_extras
from options.commands import Command as Command
from options.commands import Exit as Exit
from options.commands import command as command
from options.commands import say as say
from options.declared import script as script
from options.declared import settings_of as settings_of
from options.sets import set_of_run as set_of_run
from options.values import FiniteRange as FiniteRange
from records import opt
from terminal.tables import folded

if TYPE_CHECKING:
    from rich.console import Console


def stdout_console() -> Console:
    """The console for data. Markup in texts is never interpreted; rich honours NO_COLOR."""
    return _console()


def stderr_console(*, quiet: bool = False) -> Console:
    """The console for messages and progress; ``quiet`` silences it."""
    return _console(stderr=True, quiet=quiet)


def _console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console that breaks lines of text at blanks, and only on a terminal."""
    from rich.console import Console

    class TextConsole(Console):
        def print(self, *objects: Any, sep: str = " ", style: Any = None, **how: Any) -> None:
            if objects and all(isinstance(item, str) for item in objects) and "end" not in how:
                text = sep.join(objects)
                shown = folded(text, self.width) if self.is_terminal else text
                super().print(shown, style=style, soft_wrap=True)
            else:
                super().print(*objects, sep=sep, style=style, **how)

    return TextConsole(markup=False, highlight=False, emoji=False, stderr=stderr, quiet=quiet)


def print_json(value: Any) -> None:
    """Write rounded JSON to stdout."""
    from records.files import json_bytes
    from records.metrics import rounded

    click.echo(json_bytes(rounded(value)), nl=False)


class Streams:
    """Outputs of a script that prints a section: tables or JSON on stdout, messages on stderr."""

    def __init__(self, asked: opt.Output) -> None:
        self.quiet = asked.quiet
        self.as_json = asked.as_json

    def console(self) -> Console:
        """The console of stdout."""
        return stdout_console()

    def talk(self) -> Console:
        """The console of stderr, silent with --quiet."""
        return stderr_console(quiet=self.quiet)

    def json(self, value: dict[str, Any]) -> None:
        """Write rounded JSON to stdout."""
        print_json(value)

    def note(self, text: str) -> None:
        """Print a note on stderr; nothing for "" and with --quiet."""
        if text and not self.quiet:
            say(f"Note: {text}")

    def nothing(self, reason: str) -> None:
        """Report that there is nothing to print: null as JSON, and the reason on stderr."""
        if self.as_json:
            click.echo("null")
        if not self.quiet:
            say(f"Not applicable: {reason}")
