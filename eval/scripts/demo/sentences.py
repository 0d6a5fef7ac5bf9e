"""Takes a chunk's Markdown apart into sentences that can be quoted.

In: Markdown. Out: its sentences in order, white space collapsed; the code that a sentence
announces stays with it. Example: ``"Write:\\n\\n```\\nx = 1\\n```\\n\\nDone."`` gives a sentence
``Write:`` with the block, and ``Done.``
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_QUOTE = re.compile(r"^\s*(?:> ?)+")
_NOT_PROSE = re.compile(r"\s*(?:\||#{1,6} |<!--|[-=*_]{3,}\s*$|\[[^\]]+\]: )")
_BOLD_SENTENCES = re.compile(r"\*\*(?=[^\s*])([^*]+[.!?])\*\*")  # the marks would end up apart
_SPACE = re.compile(r"\s+")
_LETTER = re.compile(r"[^\W\d_]")

LONGEST_BLOCK = 12
"""Lines of code that are quoted; a longer block is left out rather than cut."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """``text`` on one line; ``block`` is the fenced code right below it, "" if there is none."""

    text: str
    block: str = ""


def sentences(markdown: str) -> list[Sentence]:
    """The sentences of ``markdown``; no code, tables, headings, rules or link targets.

    A code block belongs to the last sentence of the paragraph before it if that one ends with a
    colon and the block is short.
    """
    from sentencex import segment

    found: list[Sentence] = []
    for kind, block in _blocks(markdown):
        if kind == "code":
            announced = found and found[-1].text.endswith(":") and not found[-1].block
            if announced and block.count("\n") <= LONGEST_BLOCK + 1:
                found[-1] = Sentence(found[-1].text, block)
            continue
        # English rules serve other languages too: they know the sentence marks of all scripts.
        for part in segment("en", _BOLD_SENTENCES.sub(r"\1", block)):
            if _LETTER.search(part):
                found.append(Sentence(part.strip()))
    return found


def _blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """("prose", one line) for paragraphs and list items, ("code", lines) for fenced blocks."""
    prose: list[str] = []
    code: list[str] = []
    fence = ""
    for line in [*markdown.split("\n"), ""]:
        if fence:
            code.append(line)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                yield "code", "\n".join(code)
                code, fence = [], ""
            continue
        opening = _FENCE.match(line)
        starts_anew = not line.strip() or opening or _NOT_PROSE.match(line)
        if prose and (starts_anew or _LIST_ITEM.match(line)):
            yield "prose", _SPACE.sub(" ", " ".join(prose)).strip()
            prose = []
        if opening:
            code, fence = [line], opening[1]
        elif not starts_anew:
            prose.append(_QUOTE.sub("", _LIST_ITEM.sub("", line, count=1)))
