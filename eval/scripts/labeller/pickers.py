"""Windows with a list to choose from: a path for a support, the supports of the case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from labeller.chunk_lines import path_of
from labeller.fuzzy import ranked
from terminal.actions import ActionRefused
from terminal.lists import Line, LineList
from terminal.safe_text import display, one_line
from terminal.windows import Window, shown

if TYPE_CHECKING:
    from labeller.session import Session

Anchor = tuple[str, str]
"""Path of a file, and a heading path with ` > ` between its headings."""


def path_and_heading(anchor: Anchor) -> str:
    """`faq.md > Billing`, as it is typed."""
    return " > ".join(part for part in anchor if part)


class PickAnchor(Window[Anchor | None]):
    """A path and heading, picked from the known ones by some of their letters, or typed in full.

    What was typed is the last choice, and the first when it names a section that none is.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("down", "step(1)", "down", show=False),
        Binding("up", "step(-1)", "up", show=False),
    ]

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        super().__init__()
        self._anchors = {path_and_heading(anchor): anchor for anchor in sorted(set(anchors))}
        self._matches = list(self._anchors.values())
        self._typed: Anchor | None = None

    def compose(self) -> ComposeResult:
        self._list = LineList(self._line, id="places")
        with Vertical(id="picker"):
            yield shown(display("Support by path: some letters of it, or all of `path > heading`"))
            yield Input(id="place", compact=True)
            yield self._list
            yield shown(display("Up, Down choose   Enter take   Esc leave"), classes="keys")

    def on_mount(self) -> None:
        self._list.set_count(len(self._matches))

    def _line(self, index: int, width: int) -> Line:
        sign = "> " if index == self._list.cursor else "  "
        anchor = self._matches[index]
        more = "   (as typed)" if anchor == self._typed else ""
        return (("row", one_line(sign + path_of(*anchor) + more)),)

    def on_input_changed(self, event: Input.Changed) -> None:
        typed = " ".join(event.value.split())
        self._matches = [self._anchors[text] for text in ranked(typed, self._anchors)]
        path, _, heading = typed.partition(" > ")
        self._typed = None
        if typed and (path, heading) not in self._matches:
            self._typed = (path, heading)
            new = heading and not any(typed.casefold() in text.casefold() for text in self._anchors)
            self._matches.insert(0 if new else len(self._matches), self._typed)
        self._list.set_count(len(self._matches))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(self._matches[self._list.cursor] if self._matches else None)

    def action_step(self, by: int) -> None:
        self._list.move_to(self._list.cursor + by)

    def action_leave(self) -> None:
        self.dismiss(None)


class SupportsScreen(Window[None]):
    """The supports of the case as they will be written, in words; one can be taken out."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,w,enter", "leave", "leave", show=False),
        Binding("down,j", "step(1)", "down", show=False),
        Binding("up,k", "step(-1)", "up", show=False),
        Binding("d,delete", "remove", "remove", show=False),
        Binding("less_than_sign", "heading(-1)", "wider", show=False),
    ]

    def __init__(self, session: Session, after: Callable[[str], None]) -> None:
        super().__init__()
        self._session = session
        self._after = after

    def compose(self) -> ComposeResult:
        self._list = LineList(self._line, id="supports")
        with Vertical(id="picker"):
            yield shown(display(""), id="needs")
            yield self._list
            yield shown(
                display("d take out   < wider section   u in the main screen undoes   Esc leave"),
                classes="keys",
            )

    def on_mount(self) -> None:
        self._read()

    def _read(self) -> None:
        words = [self._session.needs_words() or "No support is marked yet."]
        for query, why in self._session.lost_probes():
            words.append(f'Not here (F5 tries again): rows of "{one_line(query, 30)}": {why}')
        self.query_one("#needs", Static).update(Content(display("\n".join(words))))
        self._views = self._session.supports()
        self._list.set_count(len(self._views), self._list.cursor)

    def _line(self, index: int, width: int) -> Line:
        view = self._views[index]
        where = f"row {', '.join(view.rows)}" if view.rows else "not on screen"
        grade = "" if view.grade is None else f" grade {view.grade:g}"
        sign = ">" if index == self._list.cursor else " "
        path = path_of(view.rel_path, view.heading_path)
        text = (
            f"{sign} {view.letters or '-'} {path} ({where}{grade}, {len(view.snippets)} snippets)"
        )
        return (("row" if view.rows else "warn", one_line(text)),)

    def action_step(self, by: int) -> None:
        self._list.move_to(self._list.cursor + by)

    def action_remove(self) -> None:
        self._change(lambda index: self._session.remove_support(index))

    def action_heading(self, by: int) -> None:
        def wider(index: int) -> str:
            heading = self._views[index].heading_path.rpartition(" > ")[0]
            return self._session.set_heading(index, heading)

        self._change(wider)

    def _change(self, action: Callable[[int], str]) -> None:
        if not self._views:
            return
        try:
            self._after(action(self._list.cursor))
        except ActionRefused as refusal:
            self.query_one("#needs", Static).update(Content(one_line(str(refusal))))
            return
        self._read()

    def action_leave(self) -> None:
        self.dismiss(None)

    def on_resize(self, event: events.Resize) -> None:
        self._list.refresh()
