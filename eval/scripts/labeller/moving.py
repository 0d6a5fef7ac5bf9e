"""Moving through the queue: nothing here changes a label or enters the journal."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from labeller.core import Core
from labeller.worklist import Brief, next_open
from terminal.actions import ActionRefused


class Moving(Core):
    """Actions that open another case, and what the queue holds."""

    def briefs(self) -> list[Brief]:
        """The list entries in queue order, filtered."""
        return [self._briefs[case_id] for case_id in self.visible]

    @property
    def place(self) -> tuple[int, int]:
        """The current case's place in the queue from 1, and the number of cases."""
        return self._places.get(self.current, -1) + 1, len(self._queue)

    def goto(self, case_id: str) -> str:
        """Open a case by its id."""
        if not self.knows(case_id):
            raise ActionRefused(f"There is no case {case_id}.")
        self._go(case_id)
        return case_id

    def goto_number(self, number: int) -> str:
        """Open the n-th case of the queue, from 1."""
        if not 1 <= number <= len(self._queue):
            raise ActionRefused(f"There is no question {number}; there are {len(self._queue)}.")
        return self.goto(self._queue[number - 1])

    def next(self) -> str:
        """Open the next visible case; nothing is confirmed."""
        return self._move(1)

    def previous(self) -> str:
        """Open the visible case before; nothing is confirmed."""
        return self._move(-1)

    def _move(self, step: int) -> str:
        here, at = self._places.get(self.current, -1), self._places.__getitem__
        if step > 0:
            found = bisect_right(self.visible, here, key=at)
        else:
            found = bisect_left(self.visible, here, key=at) - 1
        if not 0 <= found < len(self.visible):
            raise ActionRefused("This is the last one." if step > 0 else "This is the first one.")
        return self.goto(self.visible[found])

    def next_open(self) -> str:
        """Open the next open case; the skipped ones come when no other is open."""
        found = next_open(self.visible, self._briefs, self.current)
        if found is None:
            raise ActionRefused("No other case is open.")
        return self.goto(found)

    def back(self) -> str:
        """Open the case that was looked at before this one."""
        while self._trail:
            case_id = self._trail.pop()
            if self.knows(case_id) and case_id != self.current:
                self.current = case_id
                self._opened[case_id] = self._now()
                return case_id
        raise ActionRefused("There is no earlier case.")

    def find(self, text: str) -> str | None:
        """The next case after the current one whose id or question holds `text`, round the end."""
        wanted = text.casefold()
        start = self._places.get(self.current, -1) + 1
        for case_id in [*self._queue[start:], *self._queue[:start]]:
            if wanted in self._briefs[case_id].folded:
                return case_id
        return None

    def set_filter(self, text: str) -> str:
        """Show only the cases that `text` asks for (see `worklist.parse_filter`)."""
        old, self.filter = self.filter, text.strip()
        try:
            self._refilter()
        except ValueError as error:
            self.filter = old
            raise ActionRefused(f"{error}.") from None
        return f"{len(self.visible)} of {len(self._queue)} cases"

    def set_order(self, order: str) -> str:
        """Put the queue in another order: one of `worklist.ORDERS`."""
        old, self.order = self.order, order
        try:
            self._requeue()
        except ValueError as error:
            self.order = old
            raise ActionRefused(f"{error}.") from None
        return f"order: {order}"
