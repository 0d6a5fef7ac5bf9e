"""The characters in which text hides, moves the cursor or turns the direction of reading.

Every renderer asks here: tables and prose on a terminal, full screens, Markdown and HTML. Each has
its own mark for them, and none a list of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

REPLACED = "\ufffd"
"""The usual mark."""

_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    "\xad\u034f\u061c"  # soft hyphen, grapheme joiner, Arabic letter mark
    "\u115f\u1160\u3164\uffa0\u17b4\u17b5\u180e"  # letters without a shape
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # no width, direction, line ends
    "\ufff0-\ufffb\ufffe\uffff"  # interlinear annotation, not assigned
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # formats of shorthand and of music
    "\U000e0000-\U000e0fff"  # tags, a copy of ASCII; selectors of ideographs
    "\ud800-\udfff"  # halves of a character, which UTF-8 cannot hold
)
"""Always taken out. Of Unicode's Default_Ignorable_Code_Point it lacks what scripts and emoji need:
the two joiners and the selectors of Mongolian and emoji, which are looked at in their place."""

_JOINERS = "\u200c\u200d"

_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f"
"""They choose a form of the character before them; a second one in a row chooses nothing."""

_SCRIPTS = (
    "\u0600-\u08ff"  # Arabic (Persian, Urdu), Syriac, N'Ko, Mandaic
    "\u0900-\u0dff"  # the scripts of India and Sri Lanka
    "\u0f00-\u109f\u1780-\u18af"  # Tibetan, Myanmar, Khmer, Mongolian
    "\u1a20-\u1aaf\u1b00-\u1c4f\ua840-\ua8ff\ua980-\uaaff\uabc0-\uabff"  # Tai Tham to Meetei
    "\ufb50-\ufdff\ufe70-\ufefc"  # forms of Arabic letters
    "\U00010a00-\U00011fff\U0001e900-\U0001e95f"  # historic scripts of India, Adlam
)
"""Scripts whose letters change their form with their neighbours, which the two characters steer."""

_EMOJI = "\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff"


@cache
def _pattern(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{characters}]")


@cache
def _out_of_place() -> re.Pattern[str]:
    """A joiner that joins nothing, a selector that chooses nothing. It takes a while to compile,
    and few texts have any."""
    return re.compile(
        f"[{_JOINERS}](?<![{_SCRIPTS}].)(?![{_SCRIPTS}])"
        f"(?!(?<=[{_EMOJI}\ufe0f]\u200d)[{_EMOJI}])"
        f"|(?<=[{_SELECTORS}])[{_SELECTORS}]",
        re.DOTALL,
    )


def mark_hidden(text: str, mark: Callable[[str], str] = lambda char: REPLACED) -> str:
    """The text with ``mark(…)``, by default U+FFFD, for each character that is invisible or steers
    the display. Line feeds and tabs stay.

    U+200C and U+200D stay beside a letter of a script that needs them (Persian, Hindi), U+200D also
    between two emoji. A row of them hides nothing: a joiner beside a joiner joins nothing.

    >>> mark_hidden("pass\\u200cword\\u202e", lambda char: "?")
    'pass?word?'
    """
    if text.isascii() and text.isprintable():
        return text
    if _pattern(_HIDDEN + _JOINERS + _SELECTORS).search(text) is None:
        return text
    text = _out_of_place().sub(lambda match: mark(match[0]), text)
    return _pattern(_HIDDEN).sub(lambda match: mark(match[0]), text)
