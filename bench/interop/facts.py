"""What every peer is given: two questions with all that a RAG tool may know of them.

Each value is found nowhere else, so that a file tells by it whether a field came through.
"""

from __future__ import annotations

import random
from typing import Any

FACTS: list[dict[str, Any]] = [
    {
        "question": f"What is the number of item {n}?",
        "answer": f"The number of item {n} is {n}17.",
        "reference": f"It is {n}17, as the list of {n} says.",
        "gold": [f"Gold text of item {n}: the number is {n}17."],
        "passages": [
            {
                "id": f"chunk-{n}-{rank}",
                "text": f"Passage {rank} about item {n}.",
                "rel_path": f"folder-{n}/page-{rank}.md",
                "heading": f"Items-{n} > Part-{rank}",
                "score": round(0.9 - rank / 10 + n / 1000, 3),
            }
            for rank in (1, 2, 3)
        ],
        "relevant": {f"chunk-{n}-2": 2, f"chunk-{n}-9": 1},
        "input_tokens": 1000 + n,
        "output_tokens": 2000 + n,
        "cost": n / 1024,
        "seconds": n / 8,
        "note": f"note-of-{n}",
        "model": "model-xyz",
        "judged": f"reason-of-{n}",
        "searches": [f"items near {n}", f"list of items {n}", f"What is the number of item {n}?"],
    }
    for n in (1, 2)
]


Call = tuple[str, dict[str, Any]]
"""The name of a tool and its arguments."""


def trajectories(count: int = 400) -> list[tuple[list[Call], list[Call]]]:
    """Expected and actual tool calls, drawn alike in every environment: often the same, in another
    order, or with one more or less."""
    rng = random.Random(7)
    tools: list[Call] = [(name, {"q": q, "n": n}) for name in "ab" for q in "xy" for n in (1, 2)]
    drawn = []
    for _ in range(count):
        expected = rng.choices(tools, k=rng.randint(1, 4))
        actual = [*expected]
        for change in rng.sample(["shuffle", "drop", "add", "swap"], rng.randint(0, 2)):
            if change == "shuffle":
                rng.shuffle(actual)
            elif change == "drop" and actual:
                actual.pop(rng.randrange(len(actual)))
            elif change == "add":
                actual.insert(rng.randint(0, len(actual)), rng.choice(tools))
            elif actual:
                actual[rng.randrange(len(actual))] = rng.choice(tools)
        drawn.append((expected, actual))
    return drawn
