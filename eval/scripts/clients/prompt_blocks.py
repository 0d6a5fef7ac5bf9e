"""Foreign texts in prompts: fenced by a boundary nobody can guess, stripped of what models obey.

The boundary of a block is an HMAC of its text with a salt that never leaves this machine. It stays
the same for the same text, so replies can be cached, and whoever wrote the text cannot know it. A
cache key must not depend on the salt: ``fenced(None, …)`` writes a placeholder instead.
"""

from __future__ import annotations

import hmac
import re
from functools import lru_cache

PLACEHOLDER = "boundary"
CODE_LENGTH = 16

_FENCES = re.compile(r"<{2,}(?=\s*(?:BEGIN|END)\b)", re.IGNORECASE)
_TOKENS = re.compile(
    r"<\|[^|<>\n]{1,40}\|>"  # <|im_start|>, <|eot_id|>, <|channel|> …
    r"|</?s>|<(?:bos|eos|pad|unk)>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|</?(?:start|end)_of_(?:turn|role)>|<start_of_image>"
    r"|<[｜][^<>\n]{1,40}[｜]>"
    r"|</?think(?:ing)?>",
    re.IGNORECASE,
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@lru_cache(maxsize=1024)
def neutral(text: str) -> str:
    """The text without look-alikes of our boundaries, of chat-template tokens and control bytes.

    The brackets before BEGIN and END become guillemets, a token ``[token]``, a control character or
    lone surrogate U+FFFD. Everything else stays letter by letter, so quotes of it can be found.
    """
    text = _CONTROL.sub("�", text)
    if "<" not in text and "[" not in text:
        return text
    text = _TOKENS.sub("[token]", text)
    return _FENCES.sub(lambda found: "‹" * len(found[0]), text)


def boundary(salt: bytes | None, text: str) -> str:
    """The code of a neutral text: 16 hex digits, or the placeholder when there is no salt."""
    if salt is None:
        return PLACEHOLDER
    return hmac.digest(salt, text.encode(), "sha256").hex()[:CODE_LENGTH]


def fenced(salt: bytes | None, name: str, text: str) -> str:
    """One block: ``name`` is ours and says what the text is."""
    text = neutral(text)
    return _between(name, text, boundary(salt, text))


def fenced_both(salt: bytes, name: str, text: str) -> tuple[str, str]:
    """``fenced(salt, …)``, which is sent, and ``fenced(None, …)``, which the cache key is of."""
    text = neutral(text)
    return _between(name, text, boundary(salt, text)), _between(name, text, PLACEHOLDER)


def _between(name: str, text: str, code: str) -> str:
    return f"<<<BEGIN {name} {code}>>>\n{text}\n<<<END {code}>>>"


def one_line(text: str) -> str:
    """A text on a single line, so that it cannot pass itself off as several numbered ones."""
    return " ".join(text.split())
