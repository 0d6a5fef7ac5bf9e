"""The labelling session: what a person sees of the open case, and every action on it.

What goes in: the records of a set and the judgements of one annotator (mappings by case id, which
may parse lazily), chunks as they arrive, and actions. What comes out: what to show (rows, needs,
progress), and one event for each change, before it is seen. No file, no screen, no clock.

    session = Session(records, {}, record=journal.append, now=time.time)
    session.set_chunks(session.current, chunks)
    session.toggle(2)
    session.confirm()

An action asks a pure function for the state after it (marks.py, edits.py) and commits that
(ledger.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labeller import conversation, edits, marks
from labeller.case_state import CaseState, Event, Probe, Record, probes_in, timestamp
from labeller.edits import Confirmed
from labeller.ledger import CaseLedger
from labeller.needs import formula, lost_groups, membership, open_words, sentence
from labeller.passages import Chunk, Sentence, Span, content_words, trimmed
from labeller.rows import (
    GENERIC,
    ROW_ORDERS,
    CaseView,
    ChunkRow,
    SupportView,
    arranged,
    judged_rows,
    sentences_of,
    support_names,
    view_of,
)
from labeller.supports import read_supports
from labeller.worklist import IDLE_SECONDS, SKIPPED
from terminal.actions import ActionRefused

Change = Callable[[CaseState], tuple[CaseState, str]]
"""The state after an action, and what was done in words."""


@dataclass(frozen=True)
class View:
    """The present view: case, key of the chunk under the cursor, filter and order of the queue.

    `row_order` counts for sessions that are as `blind` as the one that it was chosen in.
    """

    case: str = ""
    row: str = ""
    filter: str = ""
    order: str = "file"
    row_order: str = "shuffled"
    blind: bool = True


class Session(CaseLedger):
    """One annotator at work on one set.

    `record` gets each event first and must not raise. `now` gives epoch seconds. `seed` decides the
    order of shuffled rows and of the random queue. `priority` orders the queues that teach most
    first. `blind` hides rank and scores; `inspect` shows them and refuses every change, as does a
    non-empty `read_only`, which says why (`turned_away` counts the changes that were lost so).
    A non-empty `fixed` says why the set is not changed here: cases can be labelled, not edited.
    `validate` names what is wrong with a record. `history` is what the journal told, oldest first.
    """

    def __init__(
        self,
        records: Mapping[str, Record],
        judgements: Mapping[str, Record],
        *,
        blind: bool = True,
        inspect: bool = False,
        history: Iterable[Event] = (),
        **options: Any,
    ) -> None:
        events = list(history)
        self.blind = blind and not inspect
        self.row_order = "shuffled" if self.blind else "rank"
        self.resumed_row = ""
        """Key of the chunk that was under the cursor when the last session was left."""
        self._probed = probes_in(events)
        self._unblinded = {str(e["case"]) for e in events if e.get("action") == "blind"}
        self._view: tuple[tuple[Any, ...], CaseState | None, CaseView] | None = None
        super().__init__(records, judgements, inspect=inspect, history=events, **options)

    # -- chunks, and rows of other queries -----------------------------------------------------

    def has_chunks(self, case_id: str | None = None) -> bool:
        """Have the chunks of the case come?"""
        return (case_id or self.current) in self.pool

    def chunks_problem(self, case_id: str | None = None) -> str:
        """Why there are no chunks, or ``""``."""
        return self.pool.problems.get(case_id or self.current, "")

    def set_chunks(self, case_id: str, chunks: Sequence[Chunk]) -> None:
        """The chunks of the case's own question, in rank order; probed ones stay."""
        self.pool.put(case_id, chunks)

    def set_problem(self, case_id: str, text: str) -> None:
        """The chunks could not be fetched; the case stays open and can be edited."""
        self.pool.put_problem(case_id, text)

    def forget_chunks(self, case_id: str) -> None:
        """Drop the chunks of a case's own question, before they are fetched again."""
        self.pool.forget(case_id)

    def upcoming(self, ahead: int) -> list[str]:
        """The current case and the next `ahead` ones that still lack chunks."""
        cases = self.queue.upcoming(self.current, ahead)
        return [c for c in cases if c not in self.pool and c not in self.pool.problems]

    def add_chunks(
        self, case_id: str, chunks: Sequence[Chunk], query: str, k: int | None = None
    ) -> int:
        """Append the new chunks of a probe. Returns how many rows are new."""
        new = self.pool.add(case_id, chunks, query, k)
        if query and new and (query, k) not in self.probes(case_id) and not self.read_only:
            self._note("probed", case=case_id, query=query, k=k)
            self._probed.setdefault(case_id, []).append((query, k))
        return new

    def probes(self, case_id: str) -> list[Probe]:
        """The probes that found rows of a case: by the journal, else by the rows as judged."""
        probes = list(self._probed.get(case_id, ()))
        queries = {query for query, _ in probes} | {GENERIC}
        for row in self.entry(case_id).judgement.get("rows") or ():
            origin = row.get("origin") if isinstance(row, dict) else None
            if isinstance(origin, str) and origin and origin not in queries:
                queries.add(origin)
                probes.append((origin, None))
        return probes

    def next_recall(self, case_id: str) -> Probe | None:
        """A probe of an earlier session to repeat now; they come one by one, in their order."""
        return self.pool.next_recall(case_id, self.probes(case_id))

    def recall_failed(self, case_id: str, probe: Probe, why: str) -> None:
        """Record that the rows of a probe are no longer available: said in place, until F5 fetches
        again."""
        self.pool.fail_probe(case_id, probe, why)

    def recalling(self) -> bool:
        """Are rows of earlier probes of the current case still on their way?"""
        return self.pool.recalling(self.current)

    def lost_probes(self) -> list[tuple[str, str]]:
        """Probes of the current case whose results could not be restored, and why."""
        return self.pool.lost_probes(self.current)

    # -- rows ----------------------------------------------------------------------------------

    def rows(self) -> list[ChunkRow]:
        """The rows of the current case, numbered from 1 in screen order."""
        return self._shown().rows

    def supports(self) -> list[SupportView]:
        """The gold supports of the current case, in the order of the set."""
        return self._shown().supports

    def _shown(self) -> CaseView:
        state = self.entry(self.current) if self.current else None
        key = (self.current, self.pool.version, self.blind, self.row_order)
        if self._view is None or self._view[0] != key or self._view[1] is not state:
            shuffled_by = (self.seed, self.annotator, self.current)
            labelled = arranged(self.pool.chunks(self.current), self.row_order, shuffled_by)
            seen = self.pool.seen(self.current)
            supports = read_supports(state.case, state.layout) if state else []
            view = view_of(supports, labelled, seen=seen, blind=self.blind)
            self._view = (key, state, view)
        return self._view[2]

    def row(self, number: int) -> ChunkRow:
        """A row by its number on screen, from 1."""
        self._need_case()
        rows = self.rows()
        if not 1 <= number <= len(rows):
            raise ActionRefused(f"There is no row {number}." if rows else "No passages are here.")
        return rows[number - 1]

    def row_by_label(self, label: str) -> ChunkRow:
        """A row by its number, ``3`` or ``+1``, or by its keys: ``0`` is row 10, ``,5`` row 15."""
        key = label.strip()
        for row in self.rows():
            if row.label == key:
                return row
        if key.isascii() and key[1:].isdigit() and key[0] in ",." and len(key) == 2:
            return self.row(10 + (int(key[1]) or 10))
        if key == "0":
            return self.row(10)
        raise ActionRefused(f"There is no row {key}." if self.rows() else "No passages are here.")

    def see(self, number: int) -> None:
        """The last line of a row's text was shown: it counts as read, and as judged."""
        self.pool.see(self.current, self.row(number).chunk.key)

    def needs(self) -> str:
        """The needs of the answer: ``(1 try.md or 4 with.md) AND (2 with.md)``; ``""`` without."""
        return "".join(piece for piece, _ in self.needs_pieces())

    def needs_pieces(self) -> list[tuple[str, bool]]:
        """The same in pieces, each with whether it is the need that marks join."""
        names = support_names(self.supports())
        if not names and len(self.layout.parts) == 1 and self.layout.open == 1:
            return []
        return formula(self.layout, len(names), names.__getitem__)

    def needs_words(self) -> str:
        """The same as a sentence."""
        names = support_names(self.supports())
        return sentence(self.layout, len(names), names.__getitem__)

    def sentences(self, number: int) -> list[Sentence]:
        """The sentences of a row's text; picked ones are in a snippet."""
        return sentences_of(self.row(number), self.case)

    def terms(self) -> frozenset[str]:
        """Casefolded content words of the question made whole, to be marked in the text."""
        return content_words(conversation.whole_question(self.case))

    def set_row_order(self, order: str) -> str:
        """Order the rows: ``shuffled`` (by the seed), ``rank`` (not when blind), or ``path``."""
        if order not in ROW_ORDERS:
            orders = ", ".join(ROW_ORDERS)
            raise ActionRefused(f"Row order {order!r} is unknown; use one of: {orders}.")
        if order == "rank" and self.blind:
            raise ActionRefused("Blind mode hides the rank; B leaves it.")
        self.row_order = order
        return f"rows: {order}"

    def set_blind(self, blind: bool) -> str:
        """Hide or show rank and scores. Leaving blind mode is journalled, and noted at the case."""
        if self.inspect and blind:
            raise ActionRefused("Inspecting shows rank and scores.")
        if blind == self.blind:
            raise ActionRefused("Nothing to change.")
        self.blind = blind
        if blind and self.row_order == "rank":
            self.row_order = "shuffled"
        if self.current and not self.read_only:
            self._note("blind", case=self.current, blind=blind)
            self._unblinded.add(self.current)
        return "blind: rank and scores are hidden" if blind else "rank and scores are shown"

    # -- marks ---------------------------------------------------------------------------------

    def toggle(self, number: int) -> str:
        """Mark a row, or take its mark away."""
        row, state = self.row(number), self._need_case()
        others = marks.unmarked_with(state, row, self.supports())
        lost = self._commit_marks("toggle", marks.toggle(state, row), row)
        if not row.marked:
            return f"{self._where(number)}{lost}"
        nor = f", nor is {', '.join(others)}" if others else ""
        return f"row {row.label} is not marked{nor}{lost}"

    def _row_named(self, key: str) -> str:
        return next((row.label for row in self.rows() if key and row.chunk.key == key), "")

    def _commit_marks(self, action: str, after: CaseState, row: ChunkRow | None = None) -> str:
        """Make `after` the current case's state; what of the groups went with that, in words."""
        lost = lost_groups(self.case, after.case)
        self._commit(action, after, row=row.chunk.key if row else "")
        return f"; {lost} dropped" if lost else ""

    def _where(self, number: int) -> str:
        """What a marked row counts for, in words."""
        row = self.row(number)
        return f"row {row.label} {membership(self.layout, row.parts)}"

    def toggle_range(self, first: int, last: int) -> str:
        """Mark all rows from `first` to `last`; when all are marked, take the marks away."""
        rows = [self.row(number) for number in range(min(first, last), max(first, last) + 1)]
        lost = self._commit_marks("toggle_range", marks.toggle_range(self._need_case(), rows))
        done = "not marked" if all(row.marked for row in rows) else "marked"
        return f"rows {rows[0].label} to {rows[-1].label} are {done}{lost}"

    def grade(self, number: int, grade: int) -> str:
        """Grade a row 1 to 3, marking it if need be; 0 takes the mark away."""
        if not 0 <= grade <= 3:
            raise ActionRefused("A grade is 0, 1, 2 or 3.")
        row = self.row(number)
        if grade == 0:
            marks.need_mark(row)
            return self.toggle(number)
        had = row.parts
        lost = self._commit_marks("grade", marks.grade(self._need_case(), row, grade), row)
        row = self.row(number)
        moved = f"; {self._where(number)}" if row.parts != had or grade == 1 else ""
        return f"row {row.label}: grade {grade}{moved}{lost}"

    def grade_step(self, number: int, step: int) -> str:
        """Grade a row one up or down; below 1 the mark goes."""
        return self.grade(number, marks.stepped_grade(self.row(number), step))

    def group(self, number: int, need: int) -> str:
        """Let a row meet one need and no other, marking it if need be; 0: it is not required."""
        row = self.row(number)
        lost = self._commit_marks("group", marks.group(self._need_case(), row, need), row)
        return f"{self._where(number)}{lost}"

    def share(self, number: int, need: int) -> str:
        """Let a marked row meet one more need, or that need no longer; 0: it is not required."""
        row = self.row(number)
        lost = self._commit_marks("share", marks.share(self._need_case(), row, need), row)
        return f"{self._where(number)}{lost}"

    def open_need(self, number: int | None) -> str:
        """Let marks join a need; 0: they are not required; None: they join a new need."""
        before = self.layout
        state = marks.open_need(self._need_case(), number)
        if state.layout != before:
            self._commit("open_need", state)
        return self.open_words()

    def next_need(self, by: int) -> str:
        """Let marks join the next need (1) or the one before (-1), round the end."""
        return self.open_need((self.layout.open - 1 + by) % len(self.layout.parts) + 1)

    def open_words(self) -> str:
        """The part that new marks join, as a sentence."""
        return open_words(self.layout)

    def turn_needs(self) -> str:
        """Show the needs as ways, or the ways as needs."""
        self._commit("turn_needs", marks.turn(self._need_case()))
        return self.needs_words()

    def shorten(self, number: int) -> str:
        """Shorten the heading of a row's support by its last segment; ``""`` is the whole file."""
        return self.set_heading(*marks.shortened(self._need_case(), self.row(number)))

    def lengthen(self, number: int) -> str:
        """Lengthen the heading of a row's support by the next segment of the row's own heading."""
        return self.set_heading(*marks.lengthened(self._need_case(), self.row(number)))

    def set_heading(self, support_index: int, heading_path: str) -> str:
        """Give a support another heading; supports that become the same are joined."""
        state, name = marks.set_heading(self._need_case(), support_index, heading_path)
        return self._commit("set_heading", state, f"support: {name}")

    def reanchor(self, number: int) -> str:
        """Give the support of a row that was found elsewhere the row's own path and heading."""
        state, name = marks.reanchor(self._need_case(), self.row(number))
        return self._commit("reanchor", state, f"support: {name}")

    def add_support(self, rel_path: str, heading_path: str = "") -> str:
        """Add a support by path and heading, for a passage that no query finds."""
        state, name = marks.add_support(self._need_case(), rel_path, heading_path)
        return f"support added: {name}{self._commit_marks('add_support', state)}"

    def remove_support(self, support_index: int) -> str:
        """Take a support away, whether a row shows it or not."""
        state, name = marks.remove_support(self._need_case(), support_index)
        return f"support removed: {name}{self._commit_marks('remove_support', state)}"

    def pick(self, number: int, sentence_index: int) -> str:
        """Pick a sentence of a row as a snippet, or drop it. Automatic snippets give way."""
        sentences = self.sentences(number)
        if not 0 <= sentence_index < len(sentences):
            raise ActionRefused(f"There is no sentence {sentence_index + 1}.")
        sentence = sentences[sentence_index]
        return self._pick("pick", number, (sentence.start, sentence.end))

    def select(self, number: int, start: int, end: int) -> str:
        """Pick the characters ``text[start:end]`` of a row as a snippet, or drop them."""
        span = trimmed(self.row(number).chunk.text, (max(0, start), max(0, end)))
        if span is None:
            raise ActionRefused("Nothing is selected.")
        return self._pick("select", number, span)

    def _pick(self, action: str, number: int, span: Span) -> str:
        row = self.row(number)
        state, count = marks.pick(self._need_case(), row, span)
        text = row.chunk.text
        unique = text.casefold().count(text[span[0] : span[1]].casefold()) == 1
        message = f"row {row.label}: {count} snippet{'' if count == 1 else 's'}"
        return self._commit(action, state, message + ("" if unique else "; not unique here"))

    # -- decisions -----------------------------------------------------------------------------

    def unanswerable(self) -> str:
        """Call the case unanswerable, which takes its marks away; or take that back."""
        return self._commit("unanswerable", *edits.unanswerable(self._need_case()))

    def answerable(self) -> str:
        """Call the case answerable, or leave that open again."""
        return self._commit("answerable", *edits.answerable(self._need_case()))

    def skip(self) -> str:
        """Judge the case later: it comes back when no other is open. Moves on."""
        state, message = edits.skipped(self._need_case(), self.current)
        self._commit("skip", state)
        if state.judgement["decision"] == SKIPPED:
            self._onward()
        return message

    def cannot_tell(self, reason: str) -> str:
        """Say that the case cannot be judged, and why; an empty reason takes that back."""
        return self._commit("cannot_tell", *edits.cannot_tell(self._need_case(), reason))

    def flag(self) -> str:
        """Flag the case, or take the flag off."""
        return self._commit("flag", *edits.flagged(self._need_case()))

    def note(self, text: str) -> str:
        """Keep a note with the case; an empty text takes it away."""
        return self._commit("note", *edits.noted(self._need_case(), text))

    def confirm(self) -> Confirmed:
        """Confirm the case in its present state, and open the next open one. A draft is accepted by
        it.

        Without a decision, or answerable without a mark, the first call says what is missing.
        """
        self._writable()
        state, here = self._need_case(), self.current
        missing = edits.missing_of(state)
        if missing and self._warned != (here, missing):
            self._warned = (here, missing)
            return Confirmed(False, missing)
        if edits.decision_of(state) is None:
            raise ActionRefused(missing)
        now = self.now()
        seconds = round(min(IDLE_SECONDS, max(0.0, now - self._opened[here])), 1)
        after, message = edits.confirmed(
            state,
            judged_rows(self.rows()),
            accepts=not self.fixed,
            by=self.annotator,
            at=timestamp(now),
            seconds=seconds,
            blind=self.blind and here not in self._unblinded,
            seed=self.seed,
            row_order=self.row_order,
        )
        self._commit("confirm", after)
        self.queue.add_time(seconds)
        return Confirmed(True, message, self._onward())

    # -- the cases themselves ------------------------------------------------------------------

    def edit(self, fields: Record) -> str:
        """Set fields of the current case in place; an empty value takes an absent field nowhere."""
        self._own_set()
        message = f"{self.current}: {', '.join(fields)} changed"
        return self._commit("edit", edits.edited(self._need_case(), fields), message)

    def label_tools(self, change: Change) -> str:
        """Change the current case's expected tool calls by one of the functions of `tools`."""
        self._own_set()
        return self.change("label_tools", change)

    def change(self, action: str, change: Change) -> str:
        """Change the current case by a function of its state; `action` names it in the journal."""
        return self._commit(action, *change(self._need_case()))

    def key_fact(self, text: str) -> str:
        """Add a text as an expected key fact."""
        return self.edit({"expected_key_facts": edits.key_facts_with(self.case, text)})

    def record_text(self) -> str:
        """The current record as JSON to edit; every field, two-space indent."""
        return edits.as_text(self._need_case().case)

    def edit_text(self, text: str) -> str:
        """Take a record as it was edited as text. Refuses, with the reason, what is none."""
        self._own_set()
        state = edits.edited_text(self._need_case(), self.current, text)
        return self._commit("edit_text", state, f"{self.current} changed")

    def add_case(self, question: str, **fields: Any) -> str:
        """Add a case after the current one, and open it. Ids are never given twice."""
        self._own_set()
        return self._insert("add_case", edits.with_fields({"question": question.strip()}, fields))

    def duplicate_case(self) -> str:
        """Add a copy of the current case without its labels, and open it."""
        self._own_set()
        return self._insert("duplicate_case", edits.copied(self._need_case().case))

    def delete_case(self) -> str:
        """Take the current case out of the set. Undo brings it back."""
        self._own_set()
        self._writable()
        state, gone = self._need_case(), self.current
        position = conversation.place_of_last(gone, self.queue.ids, self.case_of)
        event = self._event("delete_case", gone, state, None, position)
        self._journal(event)
        self._show(event, None)
        return f"{gone} is deleted; u brings it back"

    def near_duplicate(self, question: str) -> str | None:
        """The id of another case that asks nearly the same, or None."""
        return edits.near_duplicate(question, self.queue.summaries.values(), self.current)

    def new_id(self, question: str) -> str:
        """An id for a question, a slug of it, that no case has or had."""
        return edits.slug_id(question, {*self._records, *self.queue.ids, *self._used_ids})

    def _insert(self, action: str, fields: Record) -> str:
        self._writable()
        asked = str(fields.get("id") or "").strip()
        case_id = asked or self.new_id(str(fields.get("question") or ""))
        if case_id in {*self._records, *self.queue.ids, *self._used_ids}:
            raise ActionRefused(f"{case_id} is the id of another case, or was: choose another one.")
        case = {"id": case_id, **{k: v for k, v in fields.items() if k != "id"}}
        self._check(case, None)
        near = self.near_duplicate(str(case["question"])) if action == "add_case" else None
        position = conversation.place_behind(self.current, self.queue.ids, self.case_of)
        state = CaseState(case, {})
        event = self._event(action, case_id, None, state, position)
        self._journal(event)
        self._show(event, state)
        self._go(case_id)
        return f"{case_id} added" + (f"; {near} asks nearly the same" if near else "")

    def _own_set(self) -> None:
        if self.fixed:
            raise ActionRefused(self.fixed)

    # -- going on where a session was left -----------------------------------------------------

    def view(self, row: str = "") -> View:
        """The present view, with the cursor on the chunk of key `row`."""
        return View(self.current, row, self.filter, self.order, self.row_order, self.blind)

    def resume(self, view: View) -> list[str]:
        """Restore the stored view. Returns what the user should know, a sentence each.

        The order of the queue is an argument of the session: it may need results to go by.
        """
        notices = []
        if view.filter:
            try:
                notices.append(f"Still filtered by {view.filter}: {self.set_filter(view.filter)}.")
            except ActionRefused as refusal:
                notices.append(f"The filter of last time is dropped: {refusal}")
        if view.blind == self.blind and view.row_order != self.row_order:
            try:
                self.set_row_order(view.row_order)
            except ActionRefused as refusal:
                notices.append(f"The row order of last time is dropped: {refusal}")
        if self.knows(view.case):
            self.current = ""
            self._go(view.case)
            self._trail.clear()
            self.resumed_row = view.row
        return notices
