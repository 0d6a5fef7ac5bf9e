"""The shop that every golden trace is about: its passages, what is asked, and what is found.

Nothing here depends on a framework. A driver asks `TURNS` in order, its retriever answers with
`search`, and the scripted model (model.py) takes the next query or the answer from `SCRIPT`.
"""

from __future__ import annotations

from dataclasses import dataclass

THREAD = "thread-of-two-turns"
"""The id under which a framework is given the two turns that belong together."""

REFUSAL = "I cannot answer this from the documents that I have."
INSTRUCTIONS = "You answer questions about a shop. Search before you answer."


@dataclass(frozen=True)
class Passage:
    chunk_id: str
    rel_path: str
    heading: str
    text: str
    score: float


PASSAGES = {
    passage.chunk_id: passage
    for passage in (
        Passage(
            "returns-1",
            "shop/returns.md",
            "Shoes",
            "Shoes can be returned within 60 days of delivery if they are unworn.",
            0.91,
        ),
        Passage(
            "returns-2",
            "shop/returns.md",
            "Hats",
            "Hats cannot be returned, for reasons of hygiene.",
            0.82,
        ),
        Passage(
            "shipping-1",
            "shop/shipping.md",
            "Standard",
            "Standard shipping costs 4.90 euros and takes 3 working days.",
            0.73,
        ),
        Passage(
            "shipping-2",
            "shop/shipping.md",
            "Express",
            "Express shipping costs 12 euros and takes 1 working day.",
            0.64,
        ),
        Passage(
            "stores-1",
            "shop/stores.md",
            "Opening hours",
            "The shop in Lyon is open from 10 to 19 on weekdays.",
            0.55,
        ),
    )
}


@dataclass(frozen=True)
class Turn:
    """A question, what an agent searches for it, and the answer."""

    name: str
    question: str
    queries: tuple[str, ...]
    answer: str
    thread: str = ""
    standalone: str = ""
    """The question with its history put into it, for chat engines that condense."""


TURNS = (
    Turn(
        "one",
        "How long can I return shoes?",
        ("return shoes",),
        "You can return shoes within 60 days of delivery, if they are unworn.",
    ),
    Turn(
        "two",
        "Can I send back a hat, and what does express shipping cost?",
        ("hat", "express shipping"),
        "No, hats cannot be returned. Express shipping costs 12 euros.",
    ),
    Turn("refusal", "Do you sell gift cards?", ("gift cards",), REFUSAL),
    Turn(
        "thread-1",
        "What does standard shipping cost?",
        ("standard shipping",),
        "Standard shipping costs 4.90 euros.",
        THREAD,
    ),
    Turn(
        "thread-2",
        "And how long does it take?",
        ("standard shipping days",),
        "It takes 3 working days.",
        THREAD,
        "How long does standard shipping take?",
    ),
)

_FOUND = {
    "return shoes": ("returns-1", "returns-2"),
    "hat": ("returns-2", "returns-1"),
    "express shipping": ("shipping-2", "shipping-1"),
    "gift cards": ("stores-1",),
    "standard shipping": ("shipping-1", "shipping-2"),
    "standard shipping days": ("shipping-1",),
}


def turn_of(text: str) -> Turn:
    """The turn whose question stands last in a text. Raises LookupError without any."""
    places = {turn: max(text.rfind(turn.question), _last(text, turn.standalone)) for turn in TURNS}
    turn = max(places, key=lambda turn: places[turn])
    if places[turn] < 0:
        raise LookupError(f"no question of the shop in {text[-400:]!r}")
    return turn


def _last(text: str, part: str) -> int:
    return text.rfind(part) if part else -1


def search(query: str) -> list[Passage]:
    """What the shop's index gives for a query of the script, or for a whole question."""
    if query in _FOUND:
        return [PASSAGES[chunk_id] for chunk_id in _FOUND[query]]
    return [PASSAGES[chunk_id] for name in turn_of(query).queries for chunk_id in _FOUND[name]]


def as_text(passages: list[Passage]) -> str:
    """Passages as the tool hands them to the model."""
    return "\n\n".join(passage.text for passage in passages)
