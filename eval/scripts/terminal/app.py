"""An application in the terminal: no key is lost, clean ends, crash files without any text."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path, PurePath
from threading import Thread
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from rich.color import ColorSystem
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import App
from textual.color import BLACK, WHITE, Color
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES

from terminal.actions import ActionRefused
from terminal.safe_text import display

# A theme's own pairs may fall short: white on the blue of Textual's dark cursor has a contrast of
# 3.8, the amber of its light theme 3.3 on its ground. Formula and limit: WCAG 2.2, criterion 1.4.3.
_READABLE: Final = 5
"""The least contrast of text with its ground: over the 4.5 of the guideline, since the same letters
also stand on the ground of windows, and colours are rounded when they are drawn."""

_STEPS: Final = 20

_TEXT: Final = ("accent", "warning", "error", "success", "primary")


def line_colours(variables: Mapping[str, str]) -> dict[str, str]:
    """The CSS variables `line-…` of terminal.tcss, from the variables of any theme."""
    ground = Color.parse(variables["background"])
    colours = {
        f"line-{name}": _readable(Color.parse(variables[f"text-{name}"]), ground) for name in _TEXT
    }
    cursor = Color.parse(variables["primary"])
    text = WHITE if _luminance(cursor) < 0.4 else BLACK
    colours["line-cursor-text"] = text
    colours["line-cursor"] = _readable(cursor, text)
    return {name: colour.hex for name, colour in colours.items()}


def _readable(colour: Color, against: Color) -> Color:
    """`colour`, moved away from `against` until the two can be told apart."""
    end = BLACK if _luminance(against) > 0.18 else WHITE  # which of them lies farther away
    for step in range(_STEPS + 1):
        moved = colour.blend(end, step / _STEPS)
        drawn = _contrast(_of_256(moved), _of_256(against))
        if min(drawn, _contrast(moved, against)) >= _READABLE:
            return moved
    return end


def _of_256(colour: Color) -> Color:
    """What a terminal of 256 colours shows for it."""
    return Color.from_rich_color(colour.rich_color.downgrade(ColorSystem.EIGHT_BIT))


def _contrast(first: Color, second: Color) -> float:
    """The ratio of two colours' luminances, 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Color) -> float:
    """Relative luminance, 0 to 1."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


STYLE_SHEET = Path(__file__).with_name("terminal.tcss")
"""Colours of lines, and the windows of the kit; an app adds a sheet of its own behind it."""

StyleSheets = str | PurePath | list[str | PurePath] | None
"""The possible values of an app's CSS_PATH."""

STYLES = frozenset(
    "row cursor cursor-blurred marked dim term rule focus hit warn bad good key".split()  # noqa: SIM905
)
"""Component classes `line--NAME` that spans may use; the colours are in terminal.tcss."""

THEMES = {"dark": "textual-dark", "light": "textual-light"}

PASTE_LIMIT = 1 << 20

COPY_LIMIT = 1 << 20
"""Characters that are copied at most."""

TRIES = 20
"""Refreshes in which the first field of a window may take the focus."""


@runtime_checkable
class _Keyed(Protocol):
    """A screen that takes key presses itself."""

    def take_key(self, key: str, character: str) -> bool:
        """Do what the key stands for; False leaves it to Textual."""


def check_theme(theme: str | None) -> None:
    """Raises ValueError, one sentence, for a theme that there is not."""
    if theme and theme not in {*THEMES, *BUILTIN_THEMES}:
        raise ValueError(f"theme {theme!r} is unknown; use dark, light or one of Textual's")


class TerminalApp(App[None], inherit_bindings=False):
    """Gives keys to the screen on top, in their order; pasted text is made harmless first."""

    # Of the app and not of each list, bar and pane: Textual works out the styles of every one of
    # them anew whenever it looks at its widget, which was a tenth of a start.
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line--{name}" for name in STYLES}

    ENABLE_COMMAND_PALETTE = False  # its keys are in the screens' tables of actions
    FAILURE: ClassVar[str]
    """The message after a crash; `{file}` is the name of the crash file."""

    def __init__(self, theme: str | None = None) -> None:
        super().__init__()
        self._line_styles: dict[str, Style] = {}
        self.animation_level = "none"
        self.theme = THEMES.get(theme or "dark", theme or "")
        self.crash_file = ""
        self._opening = False
        self._held: list[events.Key] = []

    def get_css_variables(self) -> dict[str, str]:
        """Those of the theme, and the colours of lines made from them."""
        variables = super().get_css_variables()
        return variables | line_colours(variables)

    def notify_style_update(self) -> None:
        """Forget the colours of the old theme."""
        super().notify_style_update()
        self._line_styles.clear()

    def line_style(self, name: str) -> Style:
        """The look of a span of a line, by its name in STYLES."""
        if name not in self._line_styles:
            self._line_styles[name] = self.get_component_styles(f"line--{name}").rich_style
        return self._line_styles[name]

    # -- keys -----------------------------------------------------------------------------------

    def holds(self, key: str, character: str) -> bool:
        """Must this key wait now, and with it all that come after it?"""
        return self._opening

    def show_held(self, count: int) -> None:
        """So many keys wait now."""

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Paste):
            event.text = display(event.text, PASTE_LIMIT)
        elif isinstance(event, events.Key) and not event.is_forwarded:
            self._held.append(event)
            await self.release()
            return
        await super().on_event(event)

    async def _take(self, event: events.Key) -> None:
        screen = self.screen
        if not isinstance(screen, _Keyed) or not screen.take_key(event.key, event.character or ""):
            await super().on_event(event)

    def push_screen(self, screen: Any, *args: Any, **options: Any) -> Any:
        """Keys that come while a screen opens do not fall on the one below."""
        opening = super().push_screen(screen, *args, **options)
        self._opening = True
        self.call_next(self._wait_open, opening, self.screen)
        return opening

    async def _wait_open(self, opening: Awaitable[None], screen: Screen[Any]) -> None:
        await opening
        screen.call_after_refresh(self._opened_screen, screen, TRIES)

    async def _opened_screen(self, screen: Screen[Any], tries: int) -> None:
        """Go on once the first field of the screen can take the keys."""
        field = screen.query("Input, TextArea") and screen.focused is None
        if tries and screen.is_current and field:
            screen.call_after_refresh(self._opened_screen, screen, tries - 1)
            return
        self._opening = False
        await self.release()

    async def release(self) -> None:
        """Do the keys that waited, in their order, until one of them must wait again."""
        while self._held and not self.holds(self._held[0].key, self._held[0].character or ""):
            await self._take(self._held.pop(0))
        self.show_held(len(self._held))

    def drop_held(self) -> int:
        """Forget the keys that wait. Returns how many they were."""
        count = len(self._held)
        self._held.clear()
        self.show_held(0)
        return count

    # -- the shell and the clipboard ------------------------------------------------------------

    def suspend_to_shell(self) -> None:
        """Stop the program as Ctrl+Z does elsewhere; `fg` in the shell goes on with it.

        Raises ActionRefused where there is no shell to go to: Windows, and the browser.
        """
        driver = self._driver
        if not hasattr(signal, "SIGTSTP") or driver is None or not driver.can_suspend:
            raise ActionRefused("there is no shell here; q leaves the program")
        self.action_suspend_process()

    def turn_theme(self) -> None:
        """Dark to light and back."""
        dark = self.theme == THEMES["dark"]
        self.theme = THEMES["light" if dark else "dark"]

    def copy_out(self, text: str, noun: str) -> str:
        """Copy a text to the clipboard, or to a file where the terminal has none; return a report.

        It goes through the terminal (OSC 52), which also reaches over ssh.
        """
        harmless = display(text, COPY_LIMIT)
        if _has_clipboard():
            self.copy_to_clipboard(harmless)
            return f"copied the {noun} (if your terminal lets programs copy)"
        handle, path = tempfile.mkstemp(prefix="copied-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(harmless + "\n")
        return f"this terminal has no clipboard: the {noun} is in {path}"

    # -- ends -----------------------------------------------------------------------------------

    def end_with_terminal(self) -> None:
        """Leave in order, with exit code 130, when the terminal goes or the user's system says so.

        A terminal that is not the controlling one goes without a signal.
        """
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            # Not in the main thread (a test), or no such signals (Windows): then without.
            try:
                loop.add_signal_handler(getattr(signal, name), self.exit, None, 130)
            except (AttributeError, NotImplementedError, RuntimeError, ValueError):
                break
        driver = self._driver
        stdin = sys.__stdin__
        if driver is None or driver.is_headless or driver.is_web or stdin is None:
            return
        if hasattr(select, "poll") and stdin.isatty():
            leave = partial(loop.call_soon_threadsafe, self.exit, None, 130)
            watch = Thread(target=_wait_for_hangup, args=(stdin.fileno(), leave), daemon=True)
            watch.start()

    def _fatal_error(self) -> None:
        """In place of Textual's traceback, which shows local values: a file without any text."""
        self._close_messages_no_wait()
        error = self._exception
        if self.crash_file or error is None:
            return  # a second error on the way out: the first is told
        self.crash_file = _write_crash_file(error)
        self._exit_renderables.append(Text(display(self.FAILURE.format(file=self.crash_file))))


def _wait_for_hangup(fileno: int, leave: Callable[[], object]) -> None:
    """Call `leave` once a terminal has gone. Textual reads nothing from it then, for ever."""
    poll = select.poll()
    poll.register(fileno, 0)  # an end and an error are told unasked
    if any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        with contextlib.suppress(RuntimeError):  # the program has left already
            leave()


def _has_clipboard() -> bool:
    """Might this terminal do OSC 52? Those that are known not to ignore it without a word."""
    return (
        os.environ.get("TERM") not in ("linux", "dumb")
        and os.environ.get("TERM_PROGRAM") != "Apple_Terminal"
    )


def _write_crash_file(error: BaseException) -> str:
    """Write where `error` came from: types and places, no messages and no values."""
    lines = []
    seen: BaseException | None = error
    while seen is not None:
        lines.append(type(seen).__name__)
        for step in traceback.extract_tb(seen.__traceback__):
            lines.append(f"  {step.filename}:{step.lineno} in {step.name}")
        seen = seen.__cause__ or seen.__context__
    handle, path = tempfile.mkstemp(prefix="label-crash-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path
