"""Topics of TREC in its own markup: <top> with <num> and <title>, or <topic number="…"> in XML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from converting.judged import Topic
from converting.notes import Notes

MARKUP = re.compile(rb"<(?:top|topics|topic|\?xml)\b[^>]*>", re.IGNORECASE)
BLOCK = re.compile(r"<top>(.*?)</top>|<topic\b([^>]*>.*?)</topic>", re.DOTALL | re.IGNORECASE)
FIELD = re.compile(
    r"<(num|title|query|question|desc|description|narr|narrative)>([^<]*)", re.IGNORECASE
)
NUMBER = re.compile(r"\b(?:number|id)\s*=\s*[\"']([^\"']+)")
LABEL = re.compile(r"^\s*(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
QUESTION = ("title", "query", "question", "desc", "description")
NAMES = {"desc": "description", "narr": "narrative"}


def is_markup(line: bytes) -> bool:
    """Whether a file that begins with this line holds topics in markup."""
    return MARKUP.match(line.strip()) is not None


def marked_up(path: Path, notes: Notes) -> Iterator[Topic]:
    """The topics of a file: the title is the question, the rest goes to metadata."""
    text = path.read_bytes().decode("utf-8", "replace")
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        inner = block[1] if block[1] is not None else block[2]
        found = {
            field.lower(): " ".join(html.unescape(LABEL.sub("", value)).split())
            for field, value in FIELD.findall(inner)
        }
        attribute = NUMBER.match(inner.strip()) if block[1] is None else None
        name = found.pop("num", "") or (attribute[1].strip() if attribute else "")
        kind = next((one for one in QUESTION if found.get(one)), None)
        if not name or kind is None:
            message = "is no topic; write its number in <num> and its text in <title>"
            notes.problem(path, line, "", message)
            continue
        question = found.pop(kind)
        extra = {NAMES.get(field, field): value for field, value in found.items() if value}
        notes.kept.update(list(extra))
        yield Topic(line, name, question, {"metadata": extra} if extra else {})
