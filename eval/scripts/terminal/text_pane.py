"""The text pane: one text, wrapped, with highlighted stretches and a search; a line-API widget.

It draws only the lines in view. The text is the display copy, whose offsets equal the original's,
so highlights are plain `(start, end, style name)` offsets into the original text.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.strip import Strip
from textual.widgets import Static

from terminal.lists import Line, LineStyles, Span
from terminal.reflow import TextLine, as_is, drawn, reflowed
from terminal.safe_text import DisplayText, display
from terminal.windows import LinePrompt, Window, shown

Mark = tuple[int, int, str]
"""Start offset, end offset, style name of a highlighted stretch."""


class TextPane(LineStyles):
    """Shows one text from its line `top` on; scrolled by the owner's keys or the wheel.

    With `reflow`, paragraphs of prose are set anew for the width. What is broken off a longer line
    begins `hang` cells in.
    """

    def __init__(self, *, id: str, reflow: bool = False, hang: int = 0) -> None:  # noqa: A002
        super().__init__(id=id)
        self._text = DisplayText("")
        self._marks: tuple[Mark, ...] = ()
        self._lines: list[TextLine] = [TextLine(0, 0)]
        self._width = 0
        self._reflow, self._hang = reflow, hang
        self._hits: list[tuple[int, int]] = []
        self._hit = -1
        self.words = ""
        """What is searched for; empty for nothing."""
        self.top = 0

    def show(self, text: DisplayText, marks: Sequence[Mark] = ()) -> bool:
        """Show `text` from its start, unless it is the text shown already (then keep the place).

        Marks may overlap; a later one wins. Returns whether anything is another than before.
        """
        same = text == self._text
        if same and tuple(marks) == self._marks:
            return False
        self._marks = tuple(marks)
        if not same:
            self._text, self._width, self.top = text, 0, 0
            self._layout()
            self._search()
        self.refresh()
        return True

    @property
    def line_count(self) -> int:
        """Lines of the wrapped text."""
        self._layout()  # the size may be newer than the last resize event
        return len(self._lines)

    @property
    def bottom(self) -> int:
        """One past the last line in view."""
        return min(self.line_count, self.top + max(1, self.size.height))

    def scroll_by(self, lines: int) -> bool:
        """Scroll down by `lines` (up when negative), clamped; False when nothing moved."""
        top = max(0, min(self.top + lines, self.line_count - max(1, self.size.height)))
        if top == self.top:
            return False
        self.top = top
        self.refresh()
        return True

    def reveal(self, start: int, end: int) -> None:
        """Scroll so that the offsets `start` to `end` are in view, the start first."""
        first, last = self._line_of(start), self._line_of(max(start, end - 1))
        height = max(1, self.size.height)
        if last >= self.top + height:
            self.scroll_by(last - height + 1 - self.top)
        if first < self.top:
            self.scroll_by(first - self.top)

    def next_mark(self, name: str, by: int) -> bool:
        """Bring the next (`by` 1) or previous (-1) stretch marked `name` to the top line."""
        tops = sorted({self._line_of(start) for start, _, style in self._marks if style == name})
        ahead = [line for line in tops if (line > self.top if by > 0 else line < self.top)]
        if not tops:
            return False
        target = (ahead or tops)[0 if by > 0 else -1]
        self.top = max(0, min(target, self.line_count - 1))
        self.refresh()
        return True

    # -- searching ------------------------------------------------------------------------------

    def search(self, words: str) -> int:
        """Mark each place with `words` in this order, in any case; return the number of places."""
        self.words = " ".join(words.split())
        self._search()
        self.refresh()
        return len(self._hits)

    def _search(self) -> None:
        """Find the words in a text that is new, or new words in the text."""
        self._hit, self._hits = -1, []
        if self.words:
            pattern = r"\s+".join(map(re.escape, self.words.split()))
            self._hits = [match.span() for match in re.finditer(pattern, self._text, re.IGNORECASE)]

    @property
    def hit_count(self) -> int:
        """The number of places with the searched words."""
        return len(self._hits)

    def next_hit(self, by: int) -> str:
        """Go to the next (`by` 1) or previous (-1) hit, round the end; return its position: `2 of
        17`.

        The first step goes to the first hit from the top of the view on. Without a hit it says so.
        """
        count = len(self._hits)
        if not count:
            return f'"{self.words}" is not in this text'
        if self._hit < 0:
            ahead = bisect_left(self._hits, (self._lines[self.top].start, 0))
            self._hit = ahead - (by > 0)
        self._hit = (self._hit + by) % count
        self.reveal(*self._hits[self._hit])
        self.refresh()
        return f'"{self.words}": {self._hit + 1} of {count}'

    def _line_of(self, offset: int) -> int:
        return max(0, bisect_right(self._lines, (offset, 1 << 40)) - 1)

    def _layout(self) -> None:
        width = self.size.width - 2
        if width != self._width and width > 0:
            self._width = width
            if self._reflow:
                self._lines = reflowed(self._text, width)
            else:
                self._lines = as_is(self._text, width, self._hang)
            self.top = max(0, min(self.top, self.line_count - max(1, self.size.height)))

    def on_resize(self, event: events.Resize) -> None:
        self._layout()
        self.refresh()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.scroll_by(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.scroll_by(-3)

    def render_line(self, y: int) -> Strip:
        """The wrapped line `y` lines below the top of the view."""
        number = self.top + y
        line: Line = ()
        if number < len(self._lines):
            line = self._spans(*self._lines[number])
        return self.strip_for(line, self.size.width)

    def _spans(self, start: int, end: int, indent: int) -> Line:
        """The stretch from `start` to `end`, cut where the style changes."""
        here = [mark for mark in self._marks if mark[0] < end and mark[1] > start]
        first = max(0, bisect_left(self._hits, (start, 0)) - 1)
        for begin, stop in itertools.islice(self._hits, first, None):
            if begin >= end:
                break
            if stop > start:
                here.append((begin, stop, "hit"))
        cuts = {start, end}
        for begin, stop, _ in here:
            cuts |= {max(start, begin), min(end, stop)}
        points = sorted(cuts)
        spans: list[Span] = [("row", DisplayText(" " * (1 + indent)))]
        for left, right in itertools.pairwise(points):
            style = "row"
            for begin, stop, name in here:
                if begin <= left and stop >= right:
                    style = name
            spans.append((style, drawn(self._text[left:right])))
        return tuple(spans)


class TextWindow(Window[None]):
    """A window of text. Subclasses show theirs on `pane`; `foot` is the line below it.

    `/` searches in it; the line below says how many hits there are.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "leave", show=False),
        Binding("down,j", "scroll(1)", "down", show=False),
        Binding("up,k", "scroll(-1)", "up", show=False),
        Binding("pagedown,space,ctrl+d", "page(1)", "page down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False),
        Binding("home,g", "scroll(-1000000)", "start", show=False),
        Binding("end,G", "scroll(1000000)", "end", show=False),
        Binding("slash", "search", "search", show=False),
        Binding("n,f3", "hit(1)", "next hit", show=False),
        Binding("N,f15,shift+f3", "hit(-1)", "previous hit", show=False),
    ]

    def __init__(self, foot: str, *, hang: int = 0) -> None:
        super().__init__()
        self.pane = TextPane(id="help-text", hang=hang)
        self._foot = foot

    def compose(self) -> ComposeResult:
        with Vertical(id="help"):
            yield self.pane
            yield shown(display(self._foot), id="window-foot", classes="keys")

    def on_mount(self) -> None:
        self.show_text()

    def show_text(self) -> None:
        """Put the text on the pane."""
        raise NotImplementedError

    def action_scroll(self, by: int) -> None:
        self.pane.scroll_by(by)

    def action_page(self, by: int) -> None:
        self.pane.scroll_by(by * max(1, self.pane.size.height - 1))

    def action_search(self) -> None:
        """Ask for words; each change is searched at once."""
        self.app.push_screen(SearchPrompt(self.pane), self._searched)

    def _searched(self, words: str | None) -> None:
        self.pane.search(words or "")
        if words:
            self.action_hit(1)

    def action_hit(self, by: int) -> None:
        if self.pane.words:
            foot = display(f"{self.pane.next_hit(by)}   n N next, previous")
            self.query_one("#window-foot", Static).update(Content(foot))


class SearchPrompt(LinePrompt):
    """Asks for words to find in a text; the hits are marked and counted during typing."""

    def __init__(self, pane: TextPane) -> None:
        super().__init__("Search:", pane.words, lambda words: found_words(pane.search(words)))


def found_words(count: int) -> str:
    """How many hits there are, in words."""
    return "1 hit" if count == 1 else f"{count} hits" if count else "no hit"
