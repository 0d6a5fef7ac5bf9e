"""Writes the listed cases to a file: asks for its form and name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from records.errors import StorageError
from terminal.action_screen import ActionScreen
from terminal.actions import ActionRefused
from terminal.tables import counted
from terminal.windows import Ask, LinePrompt
from views.browser.listing import CaseList
from views.library import EXPORTS


def ask_export(screen: ActionScreen[Any], cases: CaseList) -> None:
    """Ask for form and name of a file for the listed cases, and write it."""
    listed = cases.listed
    if not listed:
        raise ActionRefused("no case is shown, so there is nothing to export")

    def chosen(key: str | None) -> None:
        if not key:
            return
        form = answers[key]
        name = _free_name(cases.export_name(form))
        label = f"Write {counted(len(listed), 'case')} to (nothing is overwritten):"
        screen.app.push_screen(LinePrompt(label, name), lambda text: named(form, text))

    def named(form: str, text: str | None) -> None:
        if text and text.strip():
            _export(screen, cases, form, Path(text.strip()).expanduser())

    answers = {form[0]: form for form in EXPORTS}
    text = f"Export {counted(len(listed), 'case')} as\n" + "\n".join(
        f"  {form[0]}  {about}" for form, about in EXPORTS.items()
    )
    screen.app.push_screen(Ask(text, answers), chosen)


def _export(screen: ActionScreen[Any], cases: CaseList, form: str, path: Path) -> None:
    table, listed = cases.drawn[0], cases.listed
    keys = [table.keys[row] for row in listed]
    reasons = [cases.reason(row) for row in listed]
    screen.say(f"writing {path} …")

    def write() -> None:
        try:
            count = cases.run.export(keys, reasons, form, path)
        except StorageError as error:
            screen.app.call_from_thread(screen.say, error.message, "warn")
        else:
            done = f"Wrote {counted(count, 'case')} to {path}."
            screen.app.call_from_thread(screen.say, done)

    screen.run_worker(write, thread=True, exit_on_error=False)


def _free_name(name: str) -> str:
    """A file name that is not taken in the present folder."""
    path = Path(name)
    number = 2
    while path.exists():
        path = Path(f"{Path(name).stem}-{number}{Path(name).suffix}")
        number += 1
    return str(path)
