"""Chooses, for one question, the folders that are worth searching.

In: folders and scores of the best chunks. Out: the folders chosen and a reason for people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

FolderMode = Literal["off", "on", "on_with_fallback"]
FOLDER_MODES: tuple[FolderMode, ...] = ("off", "on", "on_with_fallback")

VOTERS = 20
"""How many of the best chunks vote."""
ENOUGH = 0.7
"""Share of the votes at which no further folder is taken."""
MOST_FOLDERS = 3
WEAK_SHARE = 0.3
"""Below this share of the votes the best folder does not stand out."""
WEAK_RELEVANCE = 0.3
"""Below this relevance the best chunk says little about where to look."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Folders that are searched; an empty ``chosen`` means all of them."""

    chosen: tuple[str, ...]
    reason: str


def select_folders(
    mode: FolderMode, votes: Sequence[tuple[str, float]], relevance: Callable[[], float]
) -> Selection:
    """Folders by the summed scores of their chunks.

    ``votes`` holds (folder, score >= 0) of the best chunks, best first; ``relevance()`` in [0, 1]
    tells how well the first of them fits the question, and is asked only when it matters. Folders
    are taken from the strongest on until they hold ``ENOUGH`` of all votes, at most
    ``MOST_FOLDERS``; equal ones keep the order of their best chunks. With ``on_with_fallback`` all
    folders are searched when the relevance is below ``WEAK_RELEVANCE`` or the strongest folder
    holds less than ``WEAK_SHARE``.
    """
    if mode == "off":
        return Selection((), "folder selection is off: all folders were searched")
    sums: defaultdict[str, float] = defaultdict(float)
    for folder, score in votes:
        sums[folder] += score
    total = sum(sums.values())
    if total <= 0:
        return Selection((), "no chunk matched: all folders were searched")
    ranked = sorted(sums, key=lambda folder: -sums[folder])
    best_share = sums[ranked[0]] / total
    if mode == "on_with_fallback" and (fit := relevance()) < WEAK_RELEVANCE:
        return Selection(
            (),
            f"fallback to all folders: the best chunk fits the question only to {fit:.2f} "
            f"(least: {WEAK_RELEVANCE:.2f})",
        )
    if mode == "on_with_fallback" and best_share < WEAK_SHARE:
        return Selection(
            (),
            f"fallback to all folders: the best one, {_name(ranked[0])}, holds only "
            f"{best_share:.0%} of the scores of the top {len(votes)} chunks",
        )
    chosen: list[str] = []
    held = 0.0
    for folder in ranked[:MOST_FOLDERS]:
        chosen.append(folder)
        held += sums[folder]
        if held >= ENOUGH * total:
            break
    names = ", ".join(_name(folder) for folder in chosen)
    return Selection(
        tuple(chosen),
        f"{names}: {held / total:.0%} of the scores of the top {len(votes)} chunks",
    )


def _name(folder: str) -> str:
    return folder or "(top folder)"
