"""The lines around the content of a screen: rules, status line, hints; cut to the width."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from terminal.lists import Line, Span
from terminal.safe_text import DisplayText, cells, display, fit


@dataclass(frozen=True, slots=True)
class Look:
    """How lines are drawn: choices of the user, not of the data."""

    ascii: bool = False
    info: bool = False

    @property
    def rule(self) -> str:
        return "-" if self.ascii else "─"

    @property
    def unread(self) -> str:
        return "*" if self.ascii else "·"


def words_pattern(words: Collection[str]) -> re.Pattern[str] | None:
    """Matches any of `words` as a whole word, whatever its case; None when there is none."""
    if not words:
        return None
    choices = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{choices})(?!\w)", re.IGNORECASE)


def rule(look: Look, width: int, left: str, right: str = "", *, focused: bool = False) -> Line:
    """A line of dashes with words set into it; heavy and coloured above the focused pane."""
    dash = look.rule
    if focused:
        dash = "=" if look.ascii else "━"
    style = "focus" if focused else "rule"
    head = display(f"{dash}{dash} {left} ")
    tail = display(f" {right} {dash}{dash}") if right else DisplayText("")
    gap = width - cells(head) - cells(tail)
    if gap < 0:
        return ((style, fit(head, width)),)
    return ((style, DisplayText(head + dash * gap + tail)),)


def cut(spans: Sequence[Span], width: int) -> Line:
    """The line on `width` cells at most; `…` ends it where something is left out."""
    left = width
    if sum(cells(text) for _, text in spans) > width:
        for index, (style, text) in enumerate(spans):
            if cells(text) >= left:
                rest = DisplayText("".join(text for _, text in spans[index:]))
                return (*spans[:index], (style, fit(rest, left)))
            left -= cells(text)
    return tuple(spans)


def status(message: Span, pending: str, width: int) -> Line:
    """The last message, and at the right end the keys that would complete an action."""
    tail = display(f" {pending} ") if pending else DisplayText("")
    style, text = message
    return ((style, fit(DisplayText(" " + text), width - cells(tail))), ("key", tail))


def hints(parts: Iterable[tuple[str, str]], help_key: str, width: int) -> Line:
    """`key label` pairs as far as they fit, and the help key always at the right end."""
    tail = f" {help_key} help "
    left = width - len(tail)
    spans: list[Span] = [("row", DisplayText(" "))]
    left -= 1
    for key, label in parts:
        size = len(key) + len(label) + 3
        if size > left:
            break
        spans += [("key", display(key)), ("dim", display(f" {label}  "))]
        left -= size
    spans.append(("row", DisplayText(" " * max(0, left))))
    return (*spans, ("key", display(tail[:-6])), ("dim", display(tail[-6:])))
