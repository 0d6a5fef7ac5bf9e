"""Scoring: the loop over a run, a module for each section, and the suite of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scorers.contract import SectionScorer


class _Sections(Mapping[str, "SectionScorer"]):
    """The code of each section: ``SECTION`` of the module that has its name, read when needed."""

    def __getitem__(self, name: str) -> SectionScorer:
        from ragmetrics import catalogue

        if name not in catalogue.SECTIONS:
            raise KeyError(name)
        section: SectionScorer = import_module(f"scorers.{name}").SECTION
        return section

    def __iter__(self) -> Iterator[str]:
        from ragmetrics import catalogue  # slow to load, and no page of help needs it

        return iter(catalogue.SECTIONS)

    def __len__(self) -> int:
        from ragmetrics import catalogue

        return len(catalogue.SECTIONS)


SECTIONS: Mapping[str, SectionScorer] = _Sections()
"""Section scorers by name, in the order in which they are scored and shown."""
