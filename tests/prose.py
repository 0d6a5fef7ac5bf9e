"""The sentences of a Markdown document, and how long they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"^<!-- generated.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
NEW_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |#|\|))")
END = re.compile(r"(?<=[.!?])[)*\"”]*\s+(?=[*`(\[“\"]*[A-Z0-9])")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
WORD = re.compile(r"[^\W_]")


def sentences(document: str) -> Iterator[list[str]]:
    """The words of each sentence of the running text: paragraphs and items of lists.

    Headings, tables, code blocks, contents lists and generated parts are no running text. A span in
    backticks is one word.
    """
    text = GENERATED.sub("", FENCE.sub("", document))
    for block in NEW_BLOCK.split(text):
        block = block.strip()
        if block.startswith(("#", "|", "<!--", "[![")):
            continue
        block = LINK.sub(r"\1", re.sub(r"`[^`]*`", "Code", block))
        block = re.sub(r"^(?:[-*]|\d+\.)\s+", "", block)
        for sentence in END.split(" ".join(block.split())):
            words = [word for word in sentence.split() if WORD.search(word)]
            if len(words) > 2:
                yield words


def words_per_sentence(document: str) -> float:
    """Mean number of words of a sentence. The document has a sentence."""
    lengths = [len(words) for words in sentences(document)]
    return sum(lengths) / len(lengths)
