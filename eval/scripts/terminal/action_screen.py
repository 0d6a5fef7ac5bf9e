"""A screen whose keys, hints and messages follow its table of actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from textual import events
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.screen import Screen

from terminal import frame
from terminal.actions import Action, ActionRefused, Keymap, keys_of, shown_key
from terminal.app import TerminalApp
from terminal.lists import Bar, Span
from terminal.safe_text import DisplayText, one_line
from terminal.text_pane import SearchPrompt, TextPane
from terminal.windows import Ask, Result, dismiss_once

Acts = Mapping[str, Callable[..., Any]]
"""The function of each action of a table, by its id."""


def _keys_for(
    actions: Iterable[Action], keymap: Keymap | None = None
) -> dict[str, tuple[Action, int]]:
    """Each key, as Textual names it: its action, and its place among the keys of that action.

    Not Textual's bindings: those run one after the other in the app's queue, after the key has
    bubbled there, so that the second key of `m b` could overtake the first.
    """
    return {
        binding.key: (action, index)
        for action in actions
        for index, key in enumerate(keys_of(action, keymap or {}))
        for binding in Binding.make_bindings([Binding(key, "")])
    }


class ActionScreen(Screen[Result], inherit_bindings=False):
    """A full screen with a status line and hints at its end, the bar `end`.

    A subclass draws itself in `show` and says in `acts` what its actions do. `hints` are ids of
    actions, most needed first; the key of `help` stands at the right end. What an action refuses
    (`ActionRefused`) is said on the status line.
    """

    AUTO_FOCUS = ""
    ALLOW_SELECT = False

    def __init__(
        self,
        actions: Iterable[Action],
        hints: Iterable[str],
        look: frame.Look,
        keymap: Keymap | None = None,
        *,
        end: str = "end",
    ) -> None:
        super().__init__()
        self.look = look
        self.keymap: Keymap = keymap or {}
        self.actions = {action.id: action for action in actions}
        self.pending: Action | None = None
        self.end = Bar(id=end)
        self._hints = tuple(hints)
        self._keys = _keys_for(self.actions.values(), keymap)
        self._message: Span = ("row", DisplayText(""))

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        return dismiss_once(self, super().dismiss, result)

    # -- drawing --------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.call_after_refresh(self.redraw)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Draw everything."""
        self.show()
        self.show_end()

    def redraw_all(self) -> None:
        """Draw everything, on every cell of the screen."""
        self.refresh(layout=True)
        self.redraw()

    def show(self) -> None:
        """Draw the content of this screen."""
        raise NotImplementedError

    def show_end(self) -> None:
        """Draw status line and hints."""
        width = self.end.size.width
        if width > 0:
            status = frame.status(self._message, self.waits_for(), width)
            help_key = self.key_name(self.actions["help"])
            self.end.show([status, frame.hints(self.hint_parts(), help_key, width)])

    def waits_for(self) -> str:
        """The key that a started action of two keys needs, in words; empty when none is started."""
        return f"{self.pending.then[0]} to go on, Esc" if self.pending else ""

    def hint_parts(self) -> Iterable[tuple[str, str]]:
        """`(key, label)` pairs of the hint line."""
        actions = [self.actions[name] for name in self._hints]
        return [(self.key_name(action), action.label) for action in actions]

    def key_name(self, action: Action) -> str:
        """The first key of an action, as a person reads it; its label when it has none."""
        keys = keys_of(action, self.keymap)
        return shown_key(keys[0]) if keys else action.label

    def say(self, text: str, style: str = "row") -> None:
        """Show a message on the status line until the next key."""
        self._message = (style, one_line(text, 500))
        if self.is_mounted:
            self.show_end()

    # -- keys -----------------------------------------------------------------------------------

    def acts(self) -> Acts:
        """The functions of this screen's actions."""
        raise NotImplementedError

    def take_key(self, key: str, character: str) -> bool:
        """Perform the action of a key press; False leaves the key to Textual."""
        if self.pending is not None:
            action, self.pending = self.pending, None
            self.say("")
            if character and character in action.then:
                self.perform(action.id)
            return True
        if key not in self._keys:
            return False
        action, _ = self._keys[key]
        if action.then:
            self.pending = action
            self.show_end()
        else:
            self.perform(action.id)
        return True

    def perform(self, name: str) -> None:
        """Perform the action `name`; the status line shows a refusal."""
        if self._message[1]:
            self.say("")
        try:
            self.acts()[name]()
        except ActionRefused as refusal:
            self.say(str(refusal), "warn")

    def attempt(self, change: Callable[[], str | None]) -> None:
        """Do something after a window closed: its message or refusal goes to the status line."""
        try:
            message = change()
        except ActionRefused as refusal:
            self.say(str(refusal), "warn")
        else:
            if message:
                self.say(message)
        self.show()

    # -- what screens have in common ------------------------------------------------------------

    def ask_search(self, pane: TextPane) -> None:
        """Ask for words to find in a text, and go to the first hit; Esc keeps the last search."""
        before = pane.words

        def answered(words: str | None) -> None:
            if words is None or not words.strip():
                pane.search("" if words is not None else before)
            else:
                pane.search(words)
                self.say(pane.next_hit(1))

        self.app.push_screen(SearchPrompt(pane), answered)

    def next_hit(self, pane: TextPane, by: int) -> None:
        """Go to the next (`by` 1) or previous (-1) hit of the search in a text."""
        if not pane.words:
            raise ActionRefused("no search yet; / asks for words")
        self.say(pane.next_hit(by))

    def suspend(self) -> None:
        """Go to the shell, and come back with `fg`."""
        assert isinstance(self.app, TerminalApp)
        self.app.suspend_to_shell()

    def turn_theme(self) -> None:
        """Dark to light and back."""
        assert isinstance(self.app, TerminalApp)
        self.app.turn_theme()

    def copy_out(self, text: str, noun: str) -> None:
        """Copy a text to the clipboard, and report it."""
        assert isinstance(self.app, TerminalApp)
        self.say(self.app.copy_out(text, noun))

    def ask_to_leave(self) -> None:
        """Ask before the program ends: one Esc too many must not leave it."""

        def answered(answer: str | None) -> None:
            if answer:
                self.app.exit()

        self.app.push_screen(Ask("Leave the program?", {"y": "leave", "q": "leave"}), answered)
