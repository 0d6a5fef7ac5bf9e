"""The application: one session on one screen, chunks arriving, saves in the background.

It knows no file and no server. All foreign text is shown through `terminal.safe_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.command import Hit, Hits
from textual.content import Content
from textual.message import Message

from labeller.actions import keymap_problems
from labeller.fetching import Fetcher, deliver, prefetch
from labeller.screen import MainScreen
from labeller.session import Session
from labeller.store import LabelStore
from labeller.windows import ModeScreen
from labeller.worklist import queue_orders
from terminal.actions import keys_of, shown_key
from terminal.app import STYLE_SHEET, StyleSheets, TerminalApp, check_theme
from terminal.frame import Look
from terminal.palette import ActionCommands, PaletteRow
from terminal.safe_text import one_line
from terminal.tables import counted

AUTOSAVE_SECONDS = 60.0


class _LabelCommands(ActionCommands):
    """The command palette: every action with its key, the orders of the queue, any question.

    Actions are found by the letters of their label; a number or id goes to that question.
    """

    _done = False

    def rows(self) -> Iterator[PaletteRow]:
        screen = self.screen
        if not isinstance(screen, MainScreen):
            return
        for action in screen.actions.values():
            if action.id not in ("palette", "top", "mark-row", "interrupt"):
                keys = " ".join(dict.fromkeys(map(shown_key, keys_of(action, screen.keymap))))
                label = f"{action.label} ({keys})" if keys else action.label
                yield label, action.help, action.id, self._once(partial(screen.perform, action.id))
        for order in queue_orders():
            run = self._once(partial(screen.attempt, partial(screen.cases.order_questions, order)))
            yield f"questions in {order} order", "Another order of the questions.", "", run

    def _once(self, run: Callable[[], None]) -> Callable[[], None]:
        """A command that runs once for each time that the palette was opened."""

        def command() -> None:
            if not self._done:
                self._done = True
                run()

        return command

    async def search(self, query: str) -> Hits:
        """The question of that number or id first, then the actions that match."""
        screen = self.screen
        if not isinstance(screen, MainScreen):
            return
        name, queue = query.strip().lstrip(":"), screen.session.queue
        if name and (name.isdecimal() or queue.find(name) is not None):
            score = 1000.0 if name.isdecimal() or name in queue else 0.1
            go = partial(screen.attempt, partial(screen.cases.go_to, name))
            yield Hit(score, Content(one_line(f"go to question {name}")), go)
        async for hit in super().search(query):
            yield hit


class LabelApp(TerminalApp, inherit_bindings=False):
    """Runs the main screen. `session` is changed in this thread only."""

    TITLE = "label"
    CSS_PATH: ClassVar[StyleSheets] = [STYLE_SHEET, "labeller.tcss"]
    FAILURE = (
        "The labeller failed. Every label is in the journal; start it again to continue.\n"
        "{file} says where it failed (without questions or chunks)."
    )
    COMMANDS = {_LabelCommands}  # noqa: RUF012 - Textual's way
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", show=False, priority=True),
        Binding("ctrl+c", "interrupt", "quit (twice)", show=False),
    ]

    class Arrived(Message):
        """Something came from the source (posted in its thread)."""

    @dataclass
    class Saved(Message):
        """A save ended with this status text."""

        text: str

    def __init__(
        self,
        session: Session,
        store: LabelStore,
        source: Fetcher,
        *,
        look: Look | None = None,
        theme: str | None = None,
        keymap: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(theme)
        self.session, self.store, self.source = session, store, source
        self._saving = False
        look, keymap = look or Look(), dict(keymap or {})
        self.main = MainScreen(session, store, source, look=look, keymap=keymap, save=self.save)

    def on_mount(self) -> None:
        self.end_with_terminal()
        self.source.listen(lambda: self.post_message(self.Arrived()))
        self.push_screen(self.main)
        prefetch(self.session, self.source)
        self.take_arrivals()
        self.set_interval(AUTOSAVE_SECONDS, self._autosave)
        if self.store.conflicts:
            self.call_after_refresh(self.main.cases.show_conflicts)

    def holds(self, key: str, character: str) -> bool:
        """Keys wait for a window to open, a save to end, and the passages that they are about."""
        if super().holds(key, character) or self._saving:
            return True
        screen, session = self._deciding, self.session
        if screen is None or not screen.needs_passages(key, character):
            return False
        return session.fetching or (screen.held > 0 and session.current not in session.pool)

    @property
    def _deciding(self) -> MainScreen | ModeScreen | None:
        """The screen on top, if cases are decided on it."""
        screen = self.screen_stack[-1] if self.screen_stack else None
        if isinstance(screen, ModeScreen):
            return screen if screen.DECIDES else None
        return screen if isinstance(screen, MainScreen) else None

    def show_held(self, count: int) -> None:
        """Keys wait for passages: the status line says so, until these come or Esc is pressed.

        On a screen that a window covers no key waits: those that come are for the window.
        """
        if self._saving:
            return
        for screen in self.screen_stack:
            if isinstance(screen, (MainScreen, ModeScreen)):
                waiting = count if screen is self._deciding else 0
                if waiting != screen.held:
                    screen.held = waiting
                    screen.show_end()

    async def on_event(self, event: events.Event) -> None:
        screen = self._deciding
        if isinstance(event, events.Key) and screen is not None and screen.held:
            if event.key == "escape":
                screen.say(f"{counted(self.drop_held(), 'key')} dropped")
                return
            if screen is self.main and screen.acts_at_once(event.key):
                screen.take_key(event.key, event.character or "")
                return
        await super().on_event(event)

    def take_arrivals(self) -> None:
        """Pass arrived passages to the session, and show them."""
        if self._saving:
            return
        before = len(self.session.rows()) if self.session.current else 0
        arrived = deliver(self.session, self.source)
        for arrival in arrived:
            anchors = ((chunk.rel_path, chunk.heading_path) for chunk in arrival.chunks)
            self.main.cases.anchors.update(anchors)
            if arrival.case_id == self.session.current and arrival.query is not None:
                new = len(self.session.rows()) - before
                chunks = f"{counted(new, 'new chunk')}, at the end of the list"
                count = chunks if new else "nothing new found"
                self.main.say(arrival.problem or count, "warn" if arrival.problem else "row")
        if not arrived or not self.main.is_mounted:
            return
        modes = [screen for screen in self.screen_stack if isinstance(screen, ModeScreen)]
        for mode in filter(lambda mode: mode.is_mounted, modes):
            mode.redraw()
        if not modes:  # they cover the main screen: no row of it is read meanwhile
            self.main.sync()

    async def on_label_app_arrived(self, event: Arrived) -> None:
        self.take_arrivals()
        await self.release()

    def save(self) -> None:
        """Write the set in a thread; one save at a time.

        A save also merges what others wrote into the session. So until it has ended nothing here
        looks at the session: keys wait in their order, and the screen stays unchanged."""
        if not self._saving:
            self._saving = self.main.questions.frozen = True
            self.run_worker(self._save, thread=True, exit_on_error=False, group="save")

    def _save(self) -> None:
        try:
            text = self.store.save()
        except Exception as error:
            # Not a promise of the store, but a failed save must never end the session.
            text = f"NOT SAVED: {type(error).__name__}"
        self.post_message(self.Saved(text))

    def _autosave(self) -> None:
        # Not under an open window: what is typed there may reach the session at any moment.
        quiet = self.screen is self.main
        if quiet and self.session.ledger.dirty and not self.session.ledger.read_only:
            self.save()

    async def on_label_app_saved(self, event: Saved) -> None:
        self._saving = self.main.questions.frozen = False
        self.take_arrivals()
        self.main.say(event.text, "warn" if self.store.problem else "row")
        self.main.questions.load()
        self.main.redraw()
        if self.store.conflicts and self.screen is self.main and not self.main.held:
            self.main.cases.show_conflicts()  # keys that wait are no answers to it
        await self.release()


def run(
    session: Session,
    store: LabelStore,
    source: Fetcher,
    *,
    ascii: bool = False,  # noqa: A002 - the option's name
    mouse: bool = True,
    theme: str | None = None,
    keymap: Mapping[str, str] | None = None,
) -> int:
    """Run the labeller in this terminal until the user leaves. Returns the exit code.

    Raises ValueError, one sentence a line, for an unknown theme, or a keymap that names an unknown
    action or gives one key to two. Closing store and source is the caller's.
    """
    problems = keymap_problems(keymap or {})
    if problems:
        raise ValueError("\n".join(problems))
    check_theme(theme)
    look = Look(ascii=ascii, info=session.inspect or not session.blind)
    app = LabelApp(session, store, source, look=look, theme=theme, keymap=keymap)
    app.run(mouse=mouse)
    return app.return_code or 0
