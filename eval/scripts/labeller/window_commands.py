"""The actions of the main screen that open another window, and their effect when it closes.

The modules of the windows are loaded when first opened: the start stays quick.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App, SuspendNotSupported

from labeller import edits, marks
from labeller.conversation import AS_FOLLOW_UP
from labeller.fetching import prefetch
from terminal.actions import ActionRefused
from terminal.safe_text import one_line
from terminal.tables import counted
from terminal.text_pane import found_words

if TYPE_CHECKING:
    from labeller.screen import MainScreen


FILTER_LABELS = {
    "chunks": "Passages that hold these words",
    "text": "Words in this text",
    "conversation": "Words in the conversation",
    "question": "Words in the question",
    "state": "Words in the needs",
    "questions": "Questions: words, status:open, flag, tag:x, category:x, anchor:lost",
}


def filter_pane(screen: MainScreen) -> None:
    """Ask for the words that the rows of the focused pane must contain."""
    from terminal.windows import LinePrompt

    pane = screen.pane
    before = {
        "chunks": screen.words,
        **{name: text.words for name, text in screen.texts.items()},
        "questions": screen.session.queue.filter,
    }[pane]

    def live(text: str) -> str:
        try:
            return _apply_filter(screen, pane, text)
        except ActionRefused as refusal:
            return str(refusal)

    def closed(text: str | None) -> None:
        screen.attempt(lambda: _apply_filter(screen, pane, before if text is None else text))

    screen.app.push_screen(LinePrompt(FILTER_LABELS[pane], before, live), closed)


def _apply_filter(screen: MainScreen, pane: str, text: str) -> str:
    if pane == "questions":
        message = screen.session.queue.set_filter(text)
        screen.list_questions()
        screen.sync()
        return message
    if pane in screen.texts:
        count = screen.texts[pane].search(text)
        return found_words(count) if text.strip() else ""
    screen.words = text
    screen.last_words = text or screen.last_words
    screen.sync()
    return counted(len(screen.rows), "passage")


def note(screen: MainScreen) -> None:
    """Write a note, or say that the question cannot be judged."""
    from labeller.windows import NoteForm

    judgement = screen.session.judgement
    before = str(judgement.get("note") or judgement.get("reason") or "")
    could_not_tell = judgement.get("decision") == "cannot_tell"

    def set_note(text: str, cannot_tell: bool) -> str:
        if cannot_tell and (not could_not_tell or text != before):
            return screen.session.do(edits.cannot_tell, text.strip() or "no reason given")
        if could_not_tell and not cannot_tell:
            return screen.session.do(edits.cannot_tell, "")
        return screen.session.do(edits.note, text) if text != before else "nothing was changed"

    def closed(result: tuple[str, bool] | None) -> None:
        if result is not None:
            screen.attempt(lambda: set_note(*result))

    screen.app.push_screen(NoteForm(before, could_not_tell), closed)


def probe(screen: MainScreen) -> None:
    """Ask the API another question about the current case."""
    from terminal.windows import LinePrompt

    session = screen.session
    case_id = session.current
    if not case_id:
        raise ActionRefused("no question to search for")

    def closed(query: str | None) -> None:
        if query and query.strip():
            words, k = _query_and_k(query)
            question = str(session.ledger.case_of(case_id).get("question", ""))
            screen.source.probe(case_id, words or question, k)
            screen.say(f"searching for {words or 'the question'} …")

    prompt = "Search the API for (k=50 at the end asks for more)"
    if screen.talk.display:
        prompt = f"Search for ({AS_FOLLOW_UP} first: behind the conversation; k=50 last)"
    screen.app.push_screen(LinePrompt(prompt), closed)


def _query_and_k(text: str) -> tuple[str, int | None]:
    """`extend retention k=50` as words and the number of chunks asked for."""
    words = text.split()
    if words and words[-1].startswith("k=") and words[-1][2:].isdecimal():
        return " ".join(words[:-1]), max(1, min(1000, int(words[-1][2:])))
    return " ".join(words), None


def add_path(screen: MainScreen) -> None:
    """Add a support by path and heading."""
    from labeller.windows import PickAnchor

    chunks = (row.chunk for row in screen.session.rows())
    anchors = [*screen.anchors, *((chunk.rel_path, chunk.heading_path) for chunk in chunks)]

    def closed(anchor: tuple[str, str] | None) -> None:
        if anchor is not None:
            screen.attempt(lambda: screen.session.do(marks.add_support, *anchor))

    screen.app.push_screen(PickAnchor(anchors), closed)


def supports(screen: MainScreen) -> None:
    """Show the supports that will be written, in words."""
    from labeller.windows import SupportsScreen

    screen.app.push_screen(SupportsScreen(screen.session, screen.say), lambda _: screen.sync())


def tools(screen: MainScreen) -> None:
    """Mark the calls of tools that are expected, or forbid one."""
    from labeller.windows import ToolsScreen

    if not screen.session.current:
        raise ActionRefused("no question to label")
    screen.app.push_screen(ToolsScreen(screen.session, screen.say), lambda _: screen.sync())


def snippets(screen: MainScreen) -> None:
    """Pick the sentences of the chunk that carry the answer."""
    from labeller.modes import SnippetScreen

    number = screen.need_row().number

    def closed(message: str | None) -> None:
        screen.say(message or "")
        screen.sync()

    screen.app.push_screen(
        SnippetScreen(screen.session, number, screen.look, screen.keymap), closed
    )


def edit(screen: MainScreen) -> None:
    """Edit the fields of the case in a form."""
    session = screen.session
    if not session.current:
        raise ActionRefused("no question to edit; o adds one")
    _open_form(
        screen,
        f"Edit {session.current}",
        session.case,
        lambda fields: session.revise(edits.edit, fields),
    )


def new(screen: MainScreen) -> None:
    """Add a case, its fields from a form."""

    def add(fields: dict[str, Any]) -> str:
        return screen.session.add_case(str(fields.pop("question", "")), **fields)

    _open_form(screen, "New question", {}, add, new=True)


def copy(screen: MainScreen) -> None:
    """Add a case copied from this one, and edit it."""
    screen.say(screen.session.duplicate_case())
    screen.list_questions()
    prefetch(screen.session, screen.source)
    edit(screen)


def _open_form(
    screen: MainScreen,
    title: str,
    values: dict[str, Any],
    submit: Callable[[dict[str, Any]], str],
    *,
    new: bool = False,
) -> None:
    from labeller.edits import EDITABLE
    from labeller.windows import CaseForm

    def closed(message: str | None) -> None:
        screen.list_questions()
        prefetch(screen.session, screen.source)
        screen.say(message or "nothing was changed")
        screen.sync()

    question, *others = EDITABLE
    fields = (question, ("id", "choice", ()), *others) if new else EDITABLE
    name = screen.session.ledger.new_id if new else None
    screen.app.push_screen(CaseForm(title, fields, values, submit, name), closed)


def delete(screen: MainScreen) -> None:
    """Delete the case, after asking."""
    from terminal.windows import Ask

    def delete_case() -> str:
        message = screen.session.delete_case()
        screen.list_questions()
        return message

    def closed(key: str | None) -> None:
        if key == "y":
            screen.attempt(delete_case)

    name = one_line(screen.session.current, 60)
    screen.app.push_screen(Ask(f"Delete question {name}?", {"y": "delete", "n": "keep"}), closed)


def edit_text(screen: MainScreen) -> None:
    """Edit the whole record in the user's editor."""
    if not screen.session.current:
        raise ActionRefused("no question to edit; o adds one")
    _edit_as_text(screen, edits.as_text(screen.session.case))


def _edit_as_text(screen: MainScreen, text: str) -> None:

    edited = _edit_outside(screen.app, text)
    if edited == edits.as_text(screen.session.case):
        screen.say("nothing was changed")
        return
    try:
        screen.say(screen.session.revise(edits.edit_text, edited))
    except ActionRefused as refusal:
        _offer_again(screen, edited, str(refusal))
    screen.list_questions()
    screen.sync()


def _offer_again(screen: MainScreen, edited: str, problem: str) -> None:
    from terminal.windows import Ask

    def closed(key: str | None) -> None:
        if key == "e":
            screen.attempt(lambda: _edit_as_text(screen, edited))
        else:
            screen.say("the edited record was dropped", "warn")

    answers = {"e": "edit it again", "d": "drop it"}
    screen.app.push_screen(Ask(f"The record was not accepted: {problem}", answers), closed)


def show_conflicts(screen: MainScreen) -> None:
    """Show the fields that were changed both here and in the file, for a choice."""
    from labeller.windows import ConflictScreen

    def closed(_: object) -> None:
        screen.list_questions()
        screen.sync()

    screen.app.push_screen(ConflictScreen(screen.store, screen.say), closed)


def help_page(screen: MainScreen) -> None:
    """The keys, and the labelling guideline."""
    from labeller.windows import help_screen

    screen.app.push_screen(help_screen("main", screen.keymap))


def palette(screen: MainScreen) -> None:
    """Commands by name."""
    from terminal.windows import Palette

    screen.app.push_screen(Palette(id="--command-palette"))


def _edit_outside(app: App[Any], text: str) -> str:
    """`text` as $VISUAL or $EDITOR left it. Refuses when there is none or it failed."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command:
        raise ActionRefused(
            "no editor is set; export EDITOR=nano (or vim), or press e for the form"
        )
    handle, name = tempfile.mkstemp(suffix=".json", prefix="label-")
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        with app.suspend():
            code = subprocess.call([*shlex.split(command), name])
        if code != 0:
            raise ActionRefused(f"the editor ended with {code}; nothing was changed")
        return path.read_bytes().decode("utf-8", errors="surrogatepass")
    except SuspendNotSupported:  # in a browser, or where the system knows no suspending
        raise ActionRefused("an editor cannot be opened here; press e for the form") from None
    except (OSError, ValueError) as error:
        raise ActionRefused(f"the editor could not be used: {error}") from None
    finally:
        path.unlink(missing_ok=True)
