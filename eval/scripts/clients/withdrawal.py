"""A line that takes back what one run of judging has stored: ``{"withdrawn": ID, "reason": …}``.

It stands in the cache of verdicts and in verdicts.jsonl, behind or before what it takes back.
Nothing is deleted: readers treat the entries and lines of that judging run as not there.
"""

from __future__ import annotations

import secrets

import msgspec

_START = b'{"withdrawn"'


class Withdrawal(msgspec.Struct):
    """The id of a judging run whose verdicts do not count, and why."""

    withdrawn: str
    reason: str = ""


_decode = msgspec.json.Decoder(Withdrawal).decode


def new_judging_run() -> str:
    """An id for one run of judging: 16 hex digits, drawn at random."""
    return secrets.token_hex(8)


def withdrawal(judging_run: str, reason: str) -> dict[str, str]:
    """The record that takes back a judging run; its fields stay in this order."""
    return {"withdrawn": judging_run, "reason": reason}


def read_withdrawal(line: bytes) -> Withdrawal | None:
    """The withdrawal that a whole line holds; None when it is another line, or torn."""
    if not line.startswith(_START) or not line.endswith(b"\n"):
        return None
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
