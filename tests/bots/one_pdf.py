"""A bot over one PDF: passages of pages without headings, each under the same running header.

``view(worse=True)`` is the same bot after its ranking was turned round: it gives the five passages
that fit a question least, and answers from the first of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.bots.serving import Answer, View

HEADER = "Northern Library, house rules, edition of May."

TEXTS = (
    "Books are lent for four weeks. A loan is renewed twice, unless the book is reserved.",
    "Films are lent for seven days. A film is renewed once, at the desk or by telephone.",
    "A reminder costs two euros. After the third reminder the card is locked until all is paid.",
    "A lost card is replaced for five euros. The old card is locked on the day you report it.",
    "The reading room is open from nine to eight. On Saturdays it closes at two in the afternoon.",
    "Drinks are allowed in bottles with a lid. Food is eaten in the entrance hall alone.",
    "Rooms for groups are booked at most two weeks ahead. A booking lapses after fifteen minutes.",
    "Printing costs ten cents a page, in colour thirty. The printer takes coins and the card.",
    "Children under twelve get a card when a parent signs. Their card costs nothing at all.",
    "Maps and atlases are not lent. They are read at the long table beside the window.",
    "Interlibrary loans take about ten days. Each of them costs three euros, paid when collected.",
    "Damaged books are replaced by the reader. The library buys the new copy and sends the bill.",
)
"""A page each, from page 1 on."""

QUESTIONS = {
    "books": ("For how long are books lent?", 0, "For four weeks."),
    "films": ("How many days are films lent?", 1, "For seven days."),
    "reminder": ("How much does a reminder cost?", 2, "Two euros."),
    "card": ("What does a lost card cost?", 3, "Five euros."),
    "room": ("When is the reading room open?", 4, "From nine to eight."),
    "drinks": ("Are drinks allowed?", 5, "Yes, in bottles with a lid."),
    "groups": ("How far ahead are rooms for groups booked?", 6, "At most two weeks."),
    "printing": ("What does printing cost?", 7, "Ten cents a page."),
    "children": ("When do children get a card?", 8, "When a parent signs."),
    "maps": ("Are maps and atlases lent?", 9, "No, they are read here."),
    "interlibrary": ("How long do interlibrary loans take?", 10, "About ten days."),
    "damaged": ("Who replaces damaged books?", 11, "The reader does."),
}
"""By case id: the question, the page that answers it, counted from 0, and the bot's answer."""


def words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[a-z]+", text.lower())}


def ranked(question: str) -> list[int]:
    """The pages by how many words they share with a question, the first ones first."""
    asked = words(question) - {"a", "are", "for", "how", "i", "is", "the", "what", "when", "do"}
    return sorted(range(len(TEXTS)), key=lambda page: -len(asked & words(TEXTS[page])))


def reply(question: str, *, worse: bool) -> dict[str, Any]:
    pages = ranked(question)
    pages = pages[::-1][:5] if worse else pages[:5]
    known = {asked: answer for asked, _, answer in QUESTIONS.values()}
    answer = TEXTS[pages[0]].split(".")[0] + "." if worse else known.get(question, "See below.")
    place = {"source": "rules.pdf"}
    sources = [
        {"pageContent": f"{HEADER} {TEXTS[page]}", "metadata": place | {"page": page}}
        for page in pages
    ]
    return {"text": answer, "sourceDocuments": sources}


def view(*, worse: bool = False) -> View:
    def answer(body: Any, headers: Mapping[str, str]) -> Answer:
        question = body.get("question") if isinstance(body, dict) else None
        if not isinstance(question, str):
            return Answer({"detail": "question is missing"}, 400)
        return Answer(reply(question, worse=worse))

    return answer
