"""The command palette: every action with its key, the orders of the queue, and any question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from labeller.actions import actions_of
from labeller.commands import go_to, queue_order
from labeller.screen import MainScreen
from labeller.worklist import ORDERS
from terminal.actions import keys_of, shown_key
from terminal.safe_text import display, one_line

Command = tuple[str, str, str, Callable[[], None]]
"""Label, help, other names that find it, and what it does."""


class LabelCommands(Provider):
    """Finds actions by the letters of their label; a number or id goes to that question."""

    _done = False

    def _commands(self, screen: MainScreen) -> Iterator[Command]:
        for action in actions_of("main"):
            if action.id in ("palette", "top", "mark-row", "interrupt"):
                continue
            keys = " ".join(map(shown_key, keys_of(action, screen.keymap)))
            label = f"{action.label} ({keys})" if keys else action.label
            yield label, action.help, action.id, partial(self._run, screen.perform, action.id)
        for order in ORDERS:
            run = partial(self._run, partial(queue_order, screen), order)
            yield f"questions in {order} order", "Another order of the questions.", "", run

    def _run(self, action: Callable[[str], None], argument: str) -> None:
        """Run a command, once for each time that the palette was opened."""
        if not self._done:
            self._done = True
            action(argument)

    def _go(self, screen: MainScreen, name: str) -> None:
        screen.attempt(lambda: go_to(screen, name))

    async def discover(self) -> Hits:
        """Every action, before anything is typed."""
        if isinstance(self.screen, MainScreen):
            for label, text, _, run in self._commands(self.screen):
                yield DiscoveryHit(Content(display(label)), run, text=label, help=text)

    async def search(self, query: str) -> Hits:
        """The question of that number or id first, then the actions that match."""
        screen = self.screen
        if not isinstance(screen, MainScreen):
            return
        name = query.strip().lstrip(":")
        if name and (name.isdecimal() or screen.session.find(name) is not None):
            score = 2.0 if name.isdecimal() or screen.session.knows(name) else 0.1
            question = one_line(f"go to question {name}")
            yield Hit(score, Content(question), partial(self._go, screen, name))
        matcher = self.matcher(query)
        for label, text, names, run in self._commands(screen):
            score = max(matcher.match(label), matcher.match(names))
            if score > 0:
                yield Hit(score, Content(display(label)), run, text=label, help=text)
