"""What the three bots share: the pages of a bicycle shop, cut at headings, and a search."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PAGES = Path(__file__).parent / "pages"
COMMON = re.compile(
    r"(an?|and|are|at|by|do|does|for|from|how|i|in|is|it|my|of|on|or|the|there|to|what|when|which|who"
    r"|why|with)"
)


@dataclass(frozen=True)
class Section:
    file: str
    headings: tuple[str, ...]
    text: str


@lru_cache
def sections() -> tuple[Section, ...]:
    """Every section that has a text of its own, page by page."""
    found = []
    for page in sorted(PAGES.rglob("*.md")):
        headings: list[str] = []
        for block in re.split(r"^(?=#)", page.read_text("utf-8"), flags=re.MULTILINE):
            title, _, text = block.partition("\n")
            level = len(title) - len(title.lstrip("#"))
            headings = [*headings[: max(0, level - 1)], title.lstrip("# ").strip()]
            if text.strip():
                file = page.relative_to(PAGES).as_posix()
                found.append(Section(file, tuple(headings), " ".join(text.split())))
    return tuple(found)


def words(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z]+", text.lower()) if not COMMON.fullmatch(word)]


def search(query: str, top_k: int = 3) -> list[tuple[float, Section]]:
    """The sections with the rarest words of the query, best first; none without a shared word."""
    everything = sections()
    bags = [Counter(words(" ".join((*part.headings, part.text)))) for part in everything]
    spread = Counter(word for bag in bags for word in bag)
    scored = []
    for part, bag in zip(everything, bags, strict=True):
        weights = (math.log(1 + len(bags) / spread[word]) for word in words(query) if bag[word])
        score = sum(weights)
        if score > 0:
            scored.append((round(score, 4), part))
    return sorted(scored, key=lambda item: (-item[0], item[1].file, item[1].headings))[:top_k]
