"""The cases that one metric changed most for, each as both runs answered it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from decisions.compare_words import flips_summary
from decisions.flips import Flips
from terminal.page import Block, Heading, Quoted, from_to
from views.case import Case
from views.case_blocks import ShownWith, case_blocks


def flip_blocks(
    flips: Flips, before: Mapping[str, Case], now: Mapping[str, Case], runs: tuple[str, str]
) -> Iterator[Block]:
    """How many cases rose and fell, and those that changed most, as both runs answered them.
    ``runs``: their names."""
    yield Heading(Quoted(flips_summary(flips)))
    for title, changed in (("Got worse", flips.worse), ("Got better", flips.better)):
        for flip in changed:
            scores = from_to(flip.base, flip.new)
            yield Heading((f"{title}: ", Quoted(flip.case_id), f"  {scores}"), 3)
            if flip.case_id in before and flip.case_id in now:
                view = ShownWith(before=before[flip.case_id], runs=runs, brief=True)
                yield from case_blocks(now[flip.case_id], ("question", "answer", "gold"), view)
