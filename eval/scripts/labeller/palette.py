"""The command palette: every action with its key, the orders of the queue, and any question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from labeller.actions import actions_of
from labeller.open_actions import OpenActions
from labeller.worklist import ORDERS
from terminal.actions import ActionRefused, keys_of, shown_key
from terminal.safe_text import display, one_line

Command = tuple[str, str, str, Callable[[], None]]
"""Label, help, other names that find it, and what it does."""


class LabelCommands(Provider):
    """Finds actions by the letters of their label; a number or id goes to that question."""

    _done = False

    def _commands(self, screen: OpenActions) -> Iterator[Command]:
        for action in actions_of("main"):
            if action.id in ("palette", "top", "mark-row", "interrupt"):
                continue
            keys = " ".join(map(shown_key, keys_of(action, screen.keymap)))
            label = f"{action.label} ({keys})" if keys else action.label
            yield label, action.help, action.id, partial(self._run, screen.perform, action.id)
        for order in ORDERS:
            run = partial(self._run, screen.queue_order, order)
            yield f"questions in {order} order", "Another order of the questions.", "", run

    def _run(self, action: Callable[[str], None], argument: str) -> None:
        """Run a command, once for each time that the palette was opened."""
        if not self._done:
            self._done = True
            action(argument)

    def _go(self, screen: OpenActions, wanted: str) -> None:
        try:
            screen.go_to(wanted)
        except ActionRefused as refusal:
            screen.say(str(refusal), "warn")
        screen.sync()

    async def discover(self) -> Hits:
        """Every action, before anything is typed."""
        if isinstance(self.screen, OpenActions):
            for label, text, _, run in self._commands(self.screen):
                yield DiscoveryHit(Content(display(label)), run, text=label, help=text)

    async def search(self, query: str) -> Hits:
        """The question of that number or id first, then the actions that match."""
        screen = self.screen
        if not isinstance(screen, OpenActions):
            return
        wanted = query.strip().lstrip(":")
        if wanted:
            label = f"go to question {wanted}"
            found = wanted.isdecimal() or screen.session.find(wanted) is not None
            if found:
                score = 2.0 if wanted.isdecimal() or screen.session.knows(wanted) else 0.1
                yield Hit(score, Content(one_line(label)), partial(self._go, screen, wanted))
        matcher = self.matcher(query)
        for label, text, name, run in self._commands(screen):
            score = max(matcher.match(label), matcher.match(name))
            if score > 0:
                yield Hit(score, Content(display(label)), run, text=label, help=text)
