"""The labelling session: which cases there are, what was decided, and how that changes.

What goes in: the records of a set and the judgements of one annotator (mappings by case id, which
may parse lazily), chunks as they arrive, and actions. What comes out: rows, needs and progress to
show, and one event for each change, given to `record` before the change is seen. No file, no
screen, no clock: the caller brings them.

    session = Session(records, {}, record=journal.append, now=time.time)
    session.set_chunks(session.current, chunks)
    session.toggle(2)
    session.confirm()

The parts: core.py (cases, changes), undoing.py, moving.py (queue), rows.py (chunks on screen),
probing.py (rows of other queries), resuming.py (where it was left),
marking.py (supports, groups, snippets), deciding.py, editing.py, adjudication.py.
"""

from __future__ import annotations

from labeller.adjudication import Adjudicating, Disagreement
from labeller.anchors import Chunk
from labeller.deciding import Confirmed
from labeller.editing import CATEGORIES, EDITABLE
from labeller.entry import GOLD, LABEL_FIELDS, Entry
from labeller.ports import Arrival, Conflict, Source, Store, deliver, prefetch
from labeller.resuming import Resuming, View
from labeller.rows import ROW_ORDERS
from labeller.snippets import Sentence
from labeller.syncing import Syncing
from labeller.undoing import Undoing
from labeller.views import Row, SupportView, label_of
from labeller.worklist import ORDERS, STATUSES, Brief, Progress

__all__ = [
    "CATEGORIES",
    "EDITABLE",
    "GOLD",
    "LABEL_FIELDS",
    "ORDERS",
    "ROW_ORDERS",
    "STATUSES",
    "Arrival",
    "Brief",
    "Chunk",
    "Confirmed",
    "Conflict",
    "Disagreement",
    "Entry",
    "Progress",
    "Row",
    "Sentence",
    "Session",
    "Source",
    "Store",
    "SupportView",
    "View",
    "deliver",
    "label_of",
    "prefetch",
]


class Session(Adjudicating, Undoing, Resuming, Syncing):
    """One annotator at work on one set.

    `record` gets each event first and must not raise. `now` gives epoch seconds. `seed` decides the
    order of shuffled rows and of the random queue. `priority` orders the queues that teach most
    first. `blind` hides rank and scores; `inspect` shows them and refuses every change, as does a
    non-empty `read_only`, which says why (`turned_away` counts the changes that were lost so).
    `second` keeps the set as it is: labels go into the judgements alone. `validate` names what is
    wrong with a record. `others` holds the labels of other annotators by name and case id.
    `history` is what the journal told, oldest first.
    """
