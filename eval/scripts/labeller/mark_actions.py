"""Actions of the main screen that change labels; each is one call of the session."""

from __future__ import annotations

from labeller.label_screen import LabelScreen
from terminal.actions import ActionRefused


class MarkActions(LabelScreen):
    """Marking and deciding. Every change can be undone."""

    def do_mark(self) -> None:
        row = self.need_row()
        if self.range_start is None:
            self.say(self.session.toggle(row.number))
            return
        start, self.range_start = min(self.range_start, len(self.rows) - 1), None
        low, high = sorted((start, self.chunks.cursor))
        self.chunks.refresh()
        self.say(self.session.toggle_range(self.rows[low].number, self.rows[high].number))

    def do_mark_row(self, key: str) -> None:
        self._mark_labelled(key)

    def do_mark_high_row(self, key: str) -> None:
        self._mark_labelled(f".{key}")

    def _mark_labelled(self, label: str) -> None:
        for row in self.rows:
            if row.label == label:
                self.say(self.session.toggle(row.number))
                return
        raise ActionRefused(
            f"no row {label} here" if self.rows else "no chunk here; p searches for one"
        )

    def do_range(self) -> None:
        self.need_row()
        self.range_start = None if self.range_start is not None else self.chunks.cursor
        self.chunks.refresh()

    def do_grade_up(self) -> None:
        self.say(self.session.grade_step(self.need_row().number, 1))

    def do_grade_down(self) -> None:
        self.say(self.session.grade_step(self.need_row().number, -1))

    def do_grade(self, key: str) -> None:
        self.say(self.session.grade(self.need_row().number, int(key)))

    def do_rate_mode(self) -> None:
        self.rating = not self.rating

    def do_group(self, key: str) -> None:
        self.say(self.session.group(self.need_row().number, key))

    def do_share(self, key: str) -> None:
        self.say(self.session.share(self.need_row().number, key))

    def do_next_group(self) -> None:
        self.say(self.session.next_group())

    def do_shorten(self) -> None:
        self.say(self.session.shorten(self.need_row().number))

    def do_lengthen(self) -> None:
        self.say(self.session.lengthen(self.need_row().number))

    def do_reanchor(self) -> None:
        self.say(self.session.reanchor(self.need_row().number))

    def do_unanswerable(self) -> None:
        self.say(self.session.unanswerable())

    def do_answerable(self) -> None:
        self.say(self.session.answerable())

    def do_skip(self) -> None:
        self.say(self.session.skip())

    def do_flag(self) -> None:
        self.say(self.session.flag())

    def do_undo(self) -> None:
        self.say(self.session.undo())
        self.list_questions()

    def do_redo(self) -> None:
        self.say(self.session.redo())
        self.list_questions()

    def do_blind(self) -> None:
        self.say(self.session.set_blind(not self.session.blind))
        self.chunks.refresh()
