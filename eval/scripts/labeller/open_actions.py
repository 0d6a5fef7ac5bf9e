"""Actions of the main screen that open another window, and what happens when it closes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from labeller.move_actions import MoveActions
from terminal.actions import ActionRefused
from terminal.safe_text import one_line

if TYPE_CHECKING:
    from labeller.app import LabelApp


class OpenActions(MoveActions):
    """Windows. Their modules are loaded when first opened: the start stays quick."""

    @property
    def label_app(self) -> LabelApp:
        """The app, by its own type."""
        from labeller.app import LabelApp

        assert isinstance(self.app, LabelApp)
        return self.app

    def attempt(self, action: Callable[[], str | None]) -> None:
        """Do something after a window closed: its message or refusal goes to the status line."""
        try:
            message = action()
        except ActionRefused as refusal:
            self.say(str(refusal), "warn")
        else:
            if message:
                self.say(message)
        self.sync()

    def case_opened(self) -> None:
        self.label_app.prefetch()

    def do_confirm(self) -> None:
        if self.pane == "questions":
            self.open_question(self.questions.cursor)
            return
        if self.range_start is not None:
            raise ActionRefused("a range is open: Space marks it, Esc drops it")
        confirmed = self.session.confirm()
        self.say(confirmed.message, "row" if confirmed.done else "warn")

    def do_filter(self) -> None:
        from terminal.windows import Prompt

        pane = self.pane
        before = {"chunks": self.words, "text": self.text_words, "questions": self.session.filter}
        label = {
            "chunks": "Chunks that hold these words",
            "text": "Words in this text",
            "questions": "Questions: words, status:open, flag, tag:x, category:x, anchor:lost",
        }[pane]

        def live(text: str) -> str:
            try:
                return self._apply_filter(pane, text)
            except ActionRefused as refusal:
                return str(refusal)

        def closed(text: str | None) -> None:
            self.attempt(lambda: self._apply_filter(pane, before[pane] if text is None else text))

        self.app.push_screen(Prompt(label, before[pane], live), closed)

    def _apply_filter(self, pane: str, text: str) -> str:
        if pane == "questions":
            message = self.session.set_filter(text)
            self.list_questions()
            self.sync()
            return message
        if pane == "text":
            self.text_words = text
            self.sync()
            return ""
        self.words = text
        self.last_words = text or self.last_words
        self.sync()
        return f"{len(self.rows)} chunks"

    def do_note(self) -> None:
        from labeller.form import NoteForm

        session = self.session
        note = str(session.judgement.get("note") or session.judgement.get("reason") or "")
        cannot_tell = session.judgement.get("decision") == "cannot_tell"

        def closed(result: tuple[str, bool] | None) -> None:
            if result is not None:
                self.attempt(lambda: self._keep_note(note, cannot_tell, *result))

        self.app.push_screen(NoteForm(note, cannot_tell), closed)

    def _keep_note(self, old: str, could_not: bool, note: str, cannot: bool) -> str:
        if cannot and (not could_not or note != old):
            return self.session.cannot_tell(note.strip() or "no reason given")
        if could_not and not cannot:
            return self.session.cannot_tell("")
        return self.session.note(note) if note != old else "nothing was changed"

    def do_probe(self) -> None:
        from terminal.windows import Prompt

        case_id = self.session.current
        if not case_id:
            raise ActionRefused("no question to search for")

        def closed(query: str | None) -> None:
            if query and query.strip():
                words, k = query_and_k(query)
                self.label_app.source.probe(
                    case_id, words or str(self.session.case_of(case_id).get("question", "")), k
                )
                self.say(f"searching for {words or 'the question'} …")

        self.app.push_screen(Prompt("Search the API for (k=50 at the end asks for more)"), closed)

    def do_refetch(self) -> None:
        case_id = self.session.current
        if case_id:
            question = str(self.session.case.get("question", ""))
            self.label_app.source.refetch(case_id, question)
            self.say("fetching the chunks again …")

    def do_add_path(self) -> None:
        from labeller.pickers import PickPlace

        known = [
            *self.label_app.places,
            *((row.chunk.rel_path, row.chunk.heading_path) for row in self.session.rows()),
        ]

        def closed(place: tuple[str, str] | None) -> None:
            if place is not None:
                self.attempt(lambda: self.session.add_support(*place))

        self.app.push_screen(PickPlace(known), closed)

    def do_supports(self) -> None:
        from labeller.pickers import SupportsScreen

        self.app.push_screen(SupportsScreen(self.session, self.say), lambda _: self.sync())

    def do_snippets(self) -> None:
        from labeller.snippet_screen import SnippetScreen

        row = self.need_row()

        def closed(message: str | None) -> None:
            self.say(message or "")
            self.sync()

        self.app.push_screen(
            SnippetScreen(self.session, row.number, self.look, self.keymap), closed
        )

    def do_edit(self) -> None:
        session = self.session
        if not session.current:
            raise ActionRefused("no question to edit; o adds one")
        self._form(f"Edit {session.current}", session.case, session.edit)

    def do_new(self) -> None:
        self._form("New question", {}, self._add)

    def _add(self, fields: dict[str, Any]) -> str:
        return self.session.add_case(str(fields.pop("question", "")), **fields)

    def _form(
        self, title: str, values: dict[str, Any], submit: Callable[[dict[str, Any]], str]
    ) -> None:
        from labeller.editing import EDITABLE
        from labeller.form import CaseForm

        def closed(message: str | None) -> None:
            self.list_questions()
            self.label_app.prefetch()
            self.say(message or "nothing was changed")
            self.sync()

        self.app.push_screen(CaseForm(title, EDITABLE, values, submit), closed)

    def do_copy(self) -> None:
        self.say(self.session.duplicate_case())
        self.list_questions()
        self.label_app.prefetch()
        self.do_edit()

    def do_delete(self) -> None:
        from terminal.windows import Ask

        name = one_line(self.session.current, 60)

        def closed(key: str | None) -> None:
            if key == "y":
                self.attempt(self._delete)

        self.app.push_screen(Ask(f"Delete question {name}?", {"y": "delete", "n": "keep"}), closed)

    def _delete(self) -> str:
        message = self.session.delete_case()
        self.list_questions()
        return message

    def do_edit_text(self) -> None:
        if not self.session.current:
            raise ActionRefused("no question to edit; o adds one")
        self._edit_as_text(self.session.record_text())

    def _edit_as_text(self, text: str) -> None:
        edited = self._run_editor(text)
        if edited == self.session.record_text():
            self.say("nothing was changed")
            return
        try:
            self.say(self.session.edit_text(edited))
        except ActionRefused as refusal:
            self._offer_again(edited, str(refusal))
        self.list_questions()
        self.sync()

    def _offer_again(self, edited: str, problem: str) -> None:
        from terminal.windows import Ask

        def closed(key: str | None) -> None:
            if key == "e":
                self._edit_as_text(edited)
            else:
                self.say("the edited record was dropped", "warn")

        answers = {"e": "edit it again", "d": "drop it"}
        self.app.push_screen(Ask(f"The record was not taken: {problem}", answers), closed)

    def _run_editor(self, text: str) -> str:
        from labeller.editor import edit_outside

        return edit_outside(self.app, text)

    def do_adjudicate(self) -> None:
        from labeller.adjudication_screen import AdjudicationScreen

        names = self.session.annotators
        if not names:
            raise ActionRefused("no second annotator: label with --annotator NAME first")

        def closed(message: str | None) -> None:
            self.list_questions()
            self.say(message or "")
            self.sync()

        fetch = self.label_app.prefetch
        self.app.push_screen(
            AdjudicationScreen(self.session, names, self.look, self.keymap, fetch), closed
        )

    def show_conflicts(self) -> None:
        """Show what was changed both here and in the file, for a choice."""
        from labeller.conflict_screen import ConflictScreen

        def closed(_: object) -> None:
            self.list_questions()
            self.sync()

        self.app.push_screen(ConflictScreen(self.store, self.say), closed)

    def do_help(self) -> None:
        from labeller.help import help_screen

        self.app.push_screen(help_screen("main", self.keymap))

    def do_palette(self) -> None:
        from terminal.windows import Palette

        self.app.push_screen(Palette(id="--command-palette"))

    def do_save(self) -> None:
        self.say("saving …")
        self.label_app.save()

    def do_leave(self) -> None:
        if self.zoomed:
            self.do_zoom()
        else:
            self.app.exit()

    def do_quit(self) -> None:
        self.app.exit()

    def do_interrupt(self) -> None:
        if self.last_action == "interrupt":
            self.app.exit()
        else:
            self.say("Ctrl+c again leaves; q leaves too; y and Y copy")


def query_and_k(text: str) -> tuple[str, int | None]:
    """`extend retention k=50` as words and the number of chunks asked for."""
    words = text.split()
    if words and words[-1].startswith("k=") and words[-1][2:].isdecimal():
        return " ".join(words[:-1]), max(1, min(1000, int(words[-1][2:])))
    return " ".join(words), None
