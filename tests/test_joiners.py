"""Characters without a width: shown where they hide, left where a script or an emoji needs them."""

from __future__ import annotations

import pytest

from terminal.joiners import mark_lone_joiners
from terminal.safe_text import display
from terminal.tables import harmless_lines, plain

NEEDED = [
    "می\u200cخواهم",  # Persian: "I want", two parts of one word that are not joined
    "ه\u200d",  # Persian: the letter heh in its initial form, as for the Hijri year
    "क्\u200dष, क्\u200cष",  # Hindi: half form and visible virama
    "👨\u200d👩\u200d👧",  # a family
    "❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈",  # behind a variation selector
    "🧑🏽\u200d⚕\ufe0f 🐻\u200d❄\ufe0f",  # a skin tone before, a symbol behind
]
HIDDEN = {
    "pass\u200cword": "pass�word",
    "pass\u200dword": "pass�word",
    "\u200dx\u200c": "�x�",
    "x \u200d y": "x � y",
    "漢\u200d字": "漢�字",  # no script that joins
    "👨\u200d and 👨\u200c👩": "👨� and 👨�👩",  # one emoji alone; a non-joiner between two
    "a\u200d👩": "a�👩",
    "می\u200c\u200c\u200c\u200cخواهم": "می\u200c��\u200cخواهم",  # the middle ones join nothing
    "👨\u200d\u200d👩": "👨��👩",
}
ALWAYS = "\u200b\u2060\ufeff"


@pytest.mark.parametrize(
    "shown", [plain, harmless_lines, display], ids=["table", "diff.md", "screen"]
)
@pytest.mark.parametrize("text", NEEDED)
def test_what_a_script_or_an_emoji_needs_stays(shown: object, text: str) -> None:
    assert callable(shown)
    assert shown(text) == text


@pytest.mark.parametrize(
    "shown", [plain, harmless_lines, display], ids=["table", "diff.md", "screen"]
)
@pytest.mark.parametrize(("text", "marked"), HIDDEN.items())
def test_what_joins_nothing_is_shown(shown: object, text: str, marked: str) -> None:
    assert callable(shown)
    assert shown(text) == marked
    assert shown(marked) == marked


@pytest.mark.parametrize(
    "shown", [plain, harmless_lines, display], ids=["table", "diff.md", "screen"]
)
def test_these_are_always_shown(shown: object) -> None:
    """Also beside letters of Persian, where a joiner would stay."""
    assert callable(shown)
    assert shown(f"pass{ALWAYS}word") == "pass���word"
    assert shown("می\u200bخواهم") == "می�خواهم"


def test_another_mark() -> None:
    assert mark_lone_joiners("a\u200db", lambda found: f"<{ord(found):x}>") == "a<200d>b"
