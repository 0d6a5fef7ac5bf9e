"""The keys of the main screen: bindings, two-key actions, refusals, the digits of rate mode.

The actions themselves are methods `do_<action id>` of the classes built on this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from labeller.actions import find, hint_parts
from labeller.keys import keys_for
from labeller.label_view import LabelView
from terminal import frame
from terminal.actions import Action, ActionRefused, Keymap, keys_of, shown_key
from terminal.frame import Look
from terminal.lists import Line, Span
from terminal.safe_text import DisplayText, one_line

if TYPE_CHECKING:
    from labeller.model import Session
    from labeller.ports import Store
    from labeller.views import Row


class LabelScreen(LabelView, inherit_bindings=False):
    """Turns keys into actions, and shows what a refused action says."""

    def __init__(
        self, session: Session, store: Store, look: Look, keymap: Keymap, source_name: str
    ) -> None:
        super().__init__(session, store, look, keymap, source_name)
        self._keys = keys_for("main", keymap)
        self.pending: Action | None = None
        self.rating = False
        self._hint_line: tuple[int, Line] = (-1, ())
        self._message: Span = ("row", DisplayText(""))
        if store.notices:
            self.say("; ".join(store.notices))
        self.last_action = ""
        self.last_words = ""  # what n and N look for

    def need_row(self) -> Row:
        """The row under the cursor; refuses when there is none."""
        row = self.row
        if row is None:
            raise ActionRefused("no chunk here; p searches for one, P adds a support by path")
        return row

    def perform(self, name: str, key: str = "") -> None:
        """Do the action `name` of this screen; `key` is its digit or letter, if it takes one."""
        action = find("main", name)
        if action.then and not key:
            self.pending = action
            self._show_end()
            return
        self._message = ("row", DisplayText(""))
        self.resumed_row = ""
        method: Callable[..., None] = getattr(self, "do_" + name.replace("-", "_"))
        try:
            method(key) if key else method()
        except ActionRefused as refusal:
            self.say(str(refusal), "warn")
        self.last_action = name
        self.sync()

    def take_key(self, key: str, character: str) -> bool:
        """Do what a key press stands for: second key of an action, grade, or action."""
        action = self.pending
        if action is not None:
            self.pending = None
            if character and character in action.then:
                self.perform(action.id, character)
            elif key == "escape":
                self.say("")
            else:
                wanted = f"{action.then[0]} to {action.then[-1]}" if action.then[1:] else "g"
                self.say(f"{self._key_of(action)} takes {wanted}; nothing was done", "warn")
            return True
        if self.rating and character and character in "0123":
            self.perform("grade", character)
            self.chunks.move_to(self.chunks.cursor + 1)
            self.sync()
            return True
        if key not in self._keys:
            return False
        self.perform(*self._keys[key])
        return True

    # -- status line and hints

    def say(self, text: str, style: str = "row") -> None:
        """Show a message on the status line until the next one."""
        self._message = (style, one_line(text, 500))
        if self.is_mounted:
            self._show_end()

    def _key_of(self, action: Action) -> str:
        keys = keys_of(action, self.keymap)
        return shown_key(keys[0]) if keys else action.label

    def _show_end(self) -> None:
        bar = self.bars["end"]
        width = bar.size.width
        pending = ""
        if self.pending is not None:
            choices = self.pending.then
            pending = f"{self._key_of(self.pending)}_ ({choices[0]}-{choices[-1]}, Esc)"
        elif self.rating:
            pending = "RATE: 0-3 grades, Esc leaves"
        elif self.range_start is not None:
            pending = "RANGE: move, Space marks, Esc leaves"
        self.bars["end"].show(
            [
                frame.status(self._message, pending, width),
                self._hints(width),
            ]
        )

    def _hints(self, width: int) -> Line:
        if self._hint_line[0] != width:
            help_key = self._key_of(find("main", "help"))
            shown = frame.hints(hint_parts("main", self.keymap), help_key, width)
            self._hint_line = (width, shown)
        return self._hint_line[1]
