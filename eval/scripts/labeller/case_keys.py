"""The keys that decide, search and edit: most open a window, and act when it closes.

The module of the forms is loaded when first used: the start stays quick.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from labeller import edits, marks
from labeller.conversation import AS_FOLLOW_UP
from labeller.fetching import Fetcher, prefetch, query_and_k
from labeller.panes import QuestionList
from labeller.row_list import RowList
from labeller.session import Session
from labeller.store import LabelStore
from labeller.windows import ConflictScreen, SnippetScreen, SupportsScreen, ToolsScreen
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.safe_text import one_line
from terminal.windows import Ask, LinePrompt


class CaseKeys:
    """Changes the open case and the set, except for the marks on its rows."""

    def __init__(
        self,
        owner: ActionScreen[None],
        session: Session,
        store: LabelStore,
        source: Fetcher,
        rows: RowList,
        questions: QuestionList,
    ) -> None:
        self._owner, self._session, self._store, self._source = owner, session, store, source
        self._rows, self._questions = rows, questions
        self.anchors: set[tuple[str, str]] = set()
        """Paths and headings of all chunks that have come."""

    def acts(self) -> Acts:
        """The functions of these actions."""
        session = self._session
        return {
            "supports": lambda: self._open(SupportsScreen(session, self._owner.say)),
            "tools": self._tools,
            "snippets": self._snippets,
            "unanswerable": lambda: session.do(edits.unanswerable),
            "answerable": lambda: session.do(edits.answerable),
            "skip": session.skip,
            "flag": lambda: session.do(edits.flag),
            "note": self._note,
            "undo": lambda: self._listed(session.undo),
            "redo": lambda: self._listed(session.redo),
            "next-question": session.queue.next,
            "previous-question": session.queue.previous,
            "back": session.queue.back,
            "go-to-row": self._go_to_row,
            "probe": self._probe,
            "add-path": self._add_path,
            "refetch": self._refetch,
            "edit": self._edit,
            "edit-text": self._edit_text,
            "new": self._new,
            "copy": self._copy,
            "delete": self._delete,
        }

    def confirm(self) -> str:
        """Confirm the case and open the next one; refuses first if something is missing."""
        if self._rows.range_start is not None:
            raise ActionRefused("a range is open: Space marks it, Esc drops it")
        return self._session.confirm()

    def _listed(self, change: Callable[[], str]) -> str:
        """A change after which the list of questions may be another one."""
        message = change()
        self._questions.load()
        return message

    def _open(self, window: Any, closed: Callable[[Any], None] | None = None) -> None:
        """Open a window; the screen is drawn when it closes."""
        self._owner.app.push_screen(window, closed or (lambda _: self._owner.show()))

    def _ask(self, window: Any, change: Callable[[Any], str | None]) -> None:
        """Open a window, and change something by its answer, if it gives one."""

        def closed(answer: Any) -> None:
            if answer:
                self._owner.attempt(lambda: change(answer))

        self._open(window, closed)

    def _need_case(self, purpose: str) -> str:
        if not self._session.current:
            raise ActionRefused(f"no question to {purpose}")
        return self._session.current

    def go_to(self, name: str) -> None:
        """Open a question by its number or id (from the command palette)."""
        queue = self._session.queue
        if name.isdecimal():
            queue.goto_number(int(name))
        elif (case_id := queue.find(name)) is not None:
            queue.goto(case_id)
        else:
            raise ActionRefused(f"no question {name}")

    def order_questions(self, name: str) -> str:
        """Put the questions in another order (from the command palette)."""
        self._listed(lambda: self._session.queue.set_order(name))
        return f"questions in {name} order"

    def _tools(self) -> None:
        self._need_case("label")
        self._open(ToolsScreen(self._session, self._owner.say))

    def _snippets(self) -> None:
        number, owner = self._rows.need_row().number, self._owner

        def closed(message: str | None) -> None:
            owner.say(message or "")
            owner.show()

        self._open(SnippetScreen(self._session, number, owner.look, owner.keymap), closed)

    def _note(self) -> None:
        """Write a note, or say that the question cannot be judged."""
        from labeller.forms import NoteForm

        session, judgement = self._session, self._session.judgement
        before = str(judgement.get("note") or judgement.get("reason") or "")
        could_not_tell = judgement.get("decision") == "cannot_tell"

        def set_note(answer: tuple[str, bool]) -> str:
            text, cannot_tell = answer
            if cannot_tell and (not could_not_tell or text != before):
                return session.do(edits.cannot_tell, text.strip() or "no reason given")
            if could_not_tell and not cannot_tell:
                return session.do(edits.cannot_tell, "")
            return session.do(edits.note, text) if text != before else "nothing was changed"

        self._ask(NoteForm(before, could_not_tell), set_note)

    def _go_to_row(self) -> None:
        self._rows.need_row()
        prompt = "Row number (+1 for a row that a search found):"
        self._ask(LinePrompt(prompt), lambda number: self._rows.go_to_label(number.strip()))

    def _probe(self) -> None:
        """Ask the API another question about the current case."""
        session, case_id = self._session, self._need_case("search for")

        def search(query: str) -> str | None:
            if not query.strip():
                return None
            words, k = query_and_k(query)
            question = str(session.ledger.case_of(case_id).get("question", ""))
            self._source.probe(case_id, words or question, k)
            return f"searching for {words or 'the question'} …"

        prompt = "Search the API for (k=50 at the end asks for more)"
        if session.messages_before():
            prompt = f"Search for ({AS_FOLLOW_UP} first: behind the conversation; k=50 last)"
        self._ask(LinePrompt(prompt), search)

    def _add_path(self) -> None:
        from labeller.forms import PickAnchor

        chunks = (row.chunk for row in self._session.rows())
        anchors = [*self.anchors, *((chunk.rel_path, chunk.heading_path) for chunk in chunks)]
        self._ask(PickAnchor(anchors), lambda at: self._session.do(marks.add_support, *at))

    def _refetch(self) -> str | None:
        if case_id := self._session.current:
            self._source.refetch(case_id, str(self._session.case.get("question", "")))
        return "fetching the passages again …" if case_id else None

    def _edit(self) -> None:
        case_id = self._need_case("edit; o adds one")

        def change(fields: dict[str, Any]) -> str:
            return self._session.revise(edits.edit, fields)

        self._open_form(f"Edit {case_id}", edits.EDITABLE, self._session.case, change)

    def _new(self) -> None:
        def add(fields: dict[str, Any]) -> str:
            return self._session.add_case(str(fields.pop("question", "")), **fields)

        question, *others = edits.EDITABLE
        fields = (question, ("id", "choice", ()), *others)
        self._open_form("New question", fields, {}, add, self._session.ledger.new_id)

    def _copy(self) -> None:
        """Add a case copied from this one, and edit it."""
        self._owner.say(self._listed(self._session.duplicate_case))
        prefetch(self._session, self._source)
        self._edit()

    def _open_form(self, *content: Any) -> None:
        from labeller.forms import CaseForm

        def closed(message: str | None) -> None:
            self._questions.load()
            prefetch(self._session, self._source)
            self._owner.attempt(lambda: message or "nothing was changed")

        self._open(CaseForm(*content), closed)

    def _delete(self) -> None:
        def closed(key: str | None) -> None:
            if key == "y":
                self._owner.attempt(lambda: self._listed(self._session.delete_case))

        name = one_line(self._session.current, 60)
        self._open(Ask(f"Delete question {name}?", {"y": "delete", "n": "keep"}), closed)

    def _edit_text(self, text: str = "") -> None:
        """Edit the whole record, or a text of it that was refused, in the user's editor."""
        self._need_case("edit; o adds one")
        present, owner = edits.as_text(self._session.case), self._owner
        edited = _edit_outside(owner.app, text or present)

        def closed(key: str | None) -> None:
            if key == "e":
                owner.attempt(lambda: self._edit_text(edited))
            else:
                owner.say("the edited record was dropped", "warn")

        if edited == present:
            owner.say("nothing was changed")
            return
        try:
            owner.say(self._session.revise(edits.edit_text, edited))
        except ActionRefused as refusal:
            answers = {"e": "edit it again", "d": "drop it"}
            self._open(Ask(f"The record was not accepted: {refusal}", answers), closed)
        self._questions.load()
        owner.show()

    def show_conflicts(self) -> None:
        """Show the fields that were changed both here and in the file, for a choice."""

        def closed(_: object) -> None:
            self._questions.load()
            self._owner.show()

        self._open(ConflictScreen(self._store, self._owner.say), closed)


def _edit_outside(app: App[Any], text: str) -> str:
    """`text` as $VISUAL or $EDITOR left it. Refuses when there is none or it failed."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command:
        remedy = "export EDITOR=nano (or vim), or press e for the form"
        raise ActionRefused(f"no editor is set; {remedy}")
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
