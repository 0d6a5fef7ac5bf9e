"""Zero-width joiners and non-joiners that join nothing, where text could be hidden in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

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
def _lone() -> re.Pattern[str]:
    """Compiled when a text has a joiner at all: few have, and it takes a while."""
    return re.compile(
        f"[\u200c\u200d](?<![{_SCRIPTS}].)(?![{_SCRIPTS}])"
        f"(?!(?<=[{_EMOJI}\ufe0f]\u200d)[{_EMOJI}])",
        re.DOTALL,
    )


def mark_lone_joiners(text: str, mark: Callable[[str], str] = lambda joiner: "\ufffd") -> str:
    """The text with ``mark(…)``, by default U+FFFD, for each U+200C and U+200D that joins nothing.

    They stay beside a letter of a script that needs them (Persian, Hindi), and U+200D between two
    emoji. A row of them stays hidden nowhere: a joiner beside a joiner joins nothing.

    >>> mark_lone_joiners("pass\\u200cword", lambda found: "?")
    'pass?word'
    """
    if "\u200c" not in text and "\u200d" not in text:
        return text
    return _lone().sub(lambda match: mark(match[0]), text)
