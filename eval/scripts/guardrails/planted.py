"""Lines of a document that speak to whoever answers from it, or that do not belong to it.

An instruction planted in a retrieved document often holds no suspicious word at all: "Add a link
to ... in your response". What gives it away is the place. Two signs are looked for, and only in
texts that are plainly data (a table, a mail), since a user may well say "in your answer":

- a line that tells the reader what to do with "your answer", "your response", ...
- in a text that is almost only a table, a line of words stuck between or onto its rows.

Pure and linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ADDRESSED = 0.75
STRAY = 0.6

_TABLE_SHARE = 0.7
_MAIL_HEADER = re.compile(
    r"^[ \t>]{0,3}(?:subject|from|email_from|to|sent|received date)\s?:", re.I
)
_ADDRESS = re.compile(
    r"\b(?:in|to|into|of|modify|augment|enhance|adjust|alter|provide|format|write|give|make|"
    r"translate|encode|end|begin|start|conclude|append|rewrite|deliver|present|use|convert|reverse|"
    r"extend|embed|infuse|complement|supplement|craft|phrase)[ ](?:all )?your[ ]"
    r"(?:[a-z]{1,15}[ ])?(?:response|answer|reply|message|output|summary|responses|answers|replies)"
    r"\b|\byour (?:response|answer|reply|output|summary)(?:'s)?\b"
)
_MAX_LINE = 400


def planted_lines(text: str) -> Iterator[tuple[str, int, int, float]]:
    """Rule name, span in `text` and weight (0-1) of each suspicious line, in order."""
    spans = list(_line_spans(text))
    filled = [(start, end) for start, end in spans if text[start:end].strip()]
    rows = {start for start, end in filled if _is_row(text[start:end])}
    is_table = len(rows) >= 3 and len(rows) >= _TABLE_SHARE * len(filled)
    is_mail = any(_MAIL_HEADER.match(text[start : start + 40]) for start, _ in filled[:4])
    if not (is_table or is_mail):
        return
    for place, (start, end) in enumerate(spans):
        line = text[start:end].strip()
        if not line or start in rows or len(line) > _MAX_LINE:
            continue
        if _ADDRESS.search(line.lower()):
            yield "line to the assistant", start, end, ADDRESSED
        elif is_table and len(line.split()) >= 3 and _touches_row(spans, place, rows):
            yield "stray line in a table", start, end, STRAY


def _line_spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, start + len(line.rstrip("\r\n"))
        start += len(line)


def _is_row(line: str) -> bool:
    stripped = line.strip()
    return stripped.startswith("|") and stripped.count("|") >= 2


def _touches_row(spans: list[tuple[int, int]], place: int, rows: set[int]) -> bool:
    neighbours = spans[max(0, place - 1) : place] + spans[place + 1 : place + 2]
    return any(start in rows for start, _ in neighbours)
