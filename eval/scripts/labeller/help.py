"""The help page, drawn from the table of actions, and the labelling guideline behind it."""

from __future__ import annotations

from labeller.actions import actions_of
from terminal.actions import Action, Keymap, keys_of, shown_key
from terminal.help import HelpScreen, keys_page

FOOT = "Tab keys / guideline   PgDn PgUp, j k scroll   Esc back"

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


def key_names(action: Action, keymap: Keymap) -> str:
    """The keys of an action, as the help page shows them."""
    names = keys_of(action, keymap)
    if action.id == "mark-row" and len(names) == 10:
        return f"{names[0]}-{names[-1]}"
    return " ".join(map(shown_key, names)) or "(in : commands)"


def help_screen(where: str, keymap: Keymap) -> HelpScreen:
    """Page one: the keys that work on the screen `where`. Page two: the guideline."""
    keys = keys_page(actions_of(where), lambda action: key_names(action, keymap))
    return HelpScreen([keys, (GUIDELINE, [(0, 43, "rule")])], FOOT)
