"""Refusals beside their passages: what the passages themselves deny, and abstentions that quote.

Both are made from open sets, so nobody's wording of an answer was read for them. A negated sentence
of a passage is an answer. An abstention is made from each unanswerable question and the sentence of
its passage that shares most of its words, in eight forms by turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragmetrics import abstention
from ragmetrics.text.sentences import units
from ragmetrics.text.words import content_words, fold
from records.jsonl import read_rows
from validation.human import FILE

_NEGATED = re.compile(r"\b(?:not|no|never|cannot|nor|none|without)\b|n['’]t\b", re.IGNORECASE)

_SENTENCE = range(20, 400)
"""Characters of a sentence that can be an answer."""

FORMS = (
    'I cannot answer the question "{question}" from the passages.',
    'The passage says: "{quote}" It does not say {topic}.',
    "The passages do not mention {topic}.",
    "There is no information about {topic} in the document.",
    "It is not stated {topic}. {quote}",
    "I could not find {topic}. The document only says this: {quote}",
    "Based on the passages, it is not clear {topic}.",
    "{quote} However, {topic} is not specified in the text.",
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as the detector reads it."""

    text: str
    chunk_id: str = "p"
    doc_id: str | None = None
    rel_path: str | None = None
    truncated: bool = False


def _passages(data: Path) -> Iterator[str]:
    """Paragraphs of SQuAD 2, contexts of MTRAG-UN, and blocks of the Rust book."""
    if (data / "squad2").is_dir():
        yield from (row["text"] for _, row in read_rows(data / "squad2" / "paragraphs.jsonl.gz"))
    if (data / "mtrag_un").is_dir():
        for _, row in read_rows(data / "mtrag_un" / FILE):
            yield from row.get("contexts") or ()
    for page in sorted((data / "vault_rust_book" / "vault").rglob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        yield from (" ".join(block.split()) for block in re.split(r"\n\s*\n", text))


def negated_sentences(data: Path) -> dict[str, str]:
    """Each negated sentence of the open passages, with its passage."""
    negated: dict[str, str] = {}
    for text in _passages(data):
        for unit in units(text):
            sentence = text[unit.start : unit.end].strip()
            if unit.kind == "prose" and len(sentence) in _SENTENCE and _NEGATED.search(sentence):
                negated.setdefault(sentence, text)
    return negated


def _closest(question: str, sentences: Sequence[str]) -> str:
    asked = set(content_words(fold(question)))
    return max(sentences, key=lambda text: len(asked.intersection(content_words(fold(text)))))


def quoting_abstentions(data: Path) -> list[tuple[str, str, str]]:
    """Answer, passage and question of each unanswerable question of SQuAD 2."""
    passages = {
        row["id"]: row["text"] for _, row in read_rows(data / "squad2" / "paragraphs.jsonl.gz")
    }
    made: list[tuple[str, str, str]] = []
    for _, row in read_rows(data / "squad2" / "questions.jsonl.gz"):
        if row["answerable"]:
            continue
        text, question = passages[row["doc"]], row["question"]
        sentences = [text[unit.start : unit.end] for unit in units(text)]
        topic = question.rstrip("? ")
        answer = FORMS[len(made) % len(FORMS)].format(
            question=question,
            topic=topic[:1].lower() + topic[1:],
            quote=_closest(question, sentences),
        )
        made.append((answer, text, question))
    return made


def measure(data: Path) -> dict[str, Any]:
    """Negated sentences called abstentions, and abstentions that the passages turn into answers."""
    by_phrases, with_passage = 0, 0
    negated = negated_sentences(data)
    for sentence, text in negated.items():
        by_phrases += abstention.detect(sentence).abstained
        with_passage += abstention.detect_with_passages(sentence, [Passage(text)], "").abstained
    found, turned = 0, 0
    abstentions = quoting_abstentions(data) if (data / "squad2").is_dir() else []
    for answer, text, question in abstentions:
        detected = abstention.detect(answer).abstained
        found += detected
        beside = abstention.detect_with_passages(answer, [Passage(text)], question)
        turned += detected and beside.state == "answered"
    return {
        "negated_sentences": len(negated),
        "called_abstentions_by_phrases": by_phrases,
        "called_abstentions_with_passage": with_passage,
        "quoting_abstentions": len(abstentions),
        "found_by_phrases": found,
        "turned_into_answers": turned,
    }
