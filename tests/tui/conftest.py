"""Shared by the TUI tests: the hostile corpus, and (below) a terminal to run real processes in."""

from __future__ import annotations

import pytest

MARKUP = (
    "[/]",
    "[bold]",
    "[/path]",
    "[link=http://example.org]x[/link]",
    "[@click=app.quit]leave[/]",
    "[$primary]",
    "a [b",
    "[[x]]",
    "\\[bold]",
    "[red on blue]warm[/red on blue]",
    "[]",
    "[/bold",
    "[not closed",
    "x[1]y[2]",
    "[on #ff0000]",
    "[bold italic underline]",
    "[@click='app.bell']ring[/]",
    "[link]",
    "{markup}",
    ":smile:",
    "[b]unclosed",
    "]backwards[",
)
CONTROLS = (
    "\x1b]0;taken over\x07",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b[2J",
    "\x1b[31mred",
    "\x1bc",
    "\x9b2J",
    "\x9d0;taken over\x9c",
    "\x00",
    "\x07\x08\x0b\x0c",
    "\x0e\x0f",
    "\x7f",
    "one\rtwo",
    "\u202egnirts\u202c",
    "\u2066isolate\u2069",
    "zero\u200bwidth\ufeff",
    "line\u2028separator\u2029end",
    "\ud800 alone",
    "\U000e0041tag",
    "a\tb\r\nc",
)
WIDE = (
    "日本語のテキスト",
    "👨‍👩‍👧‍👦 family",
    "🇨🇭 flag",
    "e\u0301" + "\u0301" * 300,
    "ไทย",
    "مرحبا",
    "❤️ heart",
)


@pytest.fixture(scope="session")
def hostile() -> tuple[str, ...]:
    """Every hostile string: markup, control sequences, characters of unusual width."""
    return MARKUP + CONTROLS + WIDE


@pytest.fixture(scope="session")
def markup() -> tuple[str, ...]:
    """Strings that a markup parser would crash on or obey."""
    return MARKUP


@pytest.fixture(scope="session")
def controls() -> tuple[str, ...]:
    """Strings with characters that a terminal would obey or hide."""
    return CONTROLS
