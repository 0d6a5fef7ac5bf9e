"""The help page, drawn from the table of actions, and the labelling guideline behind it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from labeller.actions import Keymap, actions_of, keys_of, shown_key
from terminal.safe_text import display
from terminal.text_pane import Mark, TextWindow

GUIDELINE = """\
How to label, so that everyone labels alike

The common case is two keys: the digit of the chunk that holds the answer, then Enter.

Support     A chunk is a support when the answer, or a needed part of it, can be read in it. That \
it is about the same subject is not enough.
Read first  Read a chunk before you pass it by; a dot before the row's key means "not read yet".
All of it   Mark every chunk that answers by itself. If retrieval missed one, search for it with p \
or name its path with P.

Groups      Chunks that are needed together stand in one group: A (2 and 7). Another group is \
another way to the answer: A (2 and 7) or B (.5). New marks join group A; M starts the next group, \
m b moves one chunk. The line under the question always says what will be written.
Grades      3 answers by itself   2 supports in part (a plain mark)   1 related   0 no support
Snippets    t picks the sentences that carry the answer. Without a pick they are found \
automatically, shown as ~ in the row; a picked one is shown as ".

Unanswerable  x: the documents do not hold the answer. Not the same as "not found": search first.
Cannot tell   c, the reason, Ctrl+t, Enter: you are not able to judge.
Later         s puts the question at the end of the queue; it comes back.

Blind mode  Rank, scores and other people's labels are hidden and the rows are shuffled, since \
seeing them pulls the judgement. B leaves it; that is recorded.

Signs       > cursor   [A] marked, group A   2 grade   " snippet   ~ automatic snippet
            ! support moved   ? found by similar text   ^ only its heading fits   · not read yet

Nothing is lost: every key is written to a journal at once. u undoes, as far back as you like.
"""


def help_text(where: str, keymap: Keymap) -> tuple[str, list[Mark]]:
    """The keys of a screen, one action a line under the headings of the table, with marks."""
    text = ""
    marks: list[Mark] = []
    part = ""
    for action in actions_of(where):
        if action.part != part:
            part = action.part
            text += ("\n" if text else "") + part + "\n"
            marks.append((len(text) - len(part) - 1, len(text), "rule"))
        names = keys_of(action, keymap)
        keys = " ".join(map(shown_key, names)) or "(in : commands)"
        if action.id == "mark-row" and len(names) == 10:
            keys = f"{names[0]}-{names[-1]}"
        marks.append((len(text), len(text) + len(keys), "key"))
        text += f"{keys:<22} {action.help}\n"
    return text, marks


class HelpScreen(TextWindow):
    """Page one: the keys that work on the screen it was opened from. Page two: the guideline."""

    KEYS = "Tab keys / guideline   PgDn PgUp, j k scroll   Esc back"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "leave", "leave", show=False),
        Binding("tab,shift+tab", "turn", "turn", show=False),
    ]

    def __init__(self, where: str, keymap: Keymap) -> None:
        super().__init__()
        self._pages = [help_text(where, keymap), (GUIDELINE, [(0, 43, "rule")])]
        self._page = 0

    def show_text(self) -> None:
        text, marks = self._pages[self._page]
        self.pane.show(display(text), marks)

    def action_turn(self) -> None:
        self._page = 1 - self._page
        self.show_text()
