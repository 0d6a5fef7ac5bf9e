"""Fixtures of the eval set: the vault as sections, and the verdict on a label.

The anchors and snippets were labelled on the releases in LABELLED_ON; there each of them must
hold. The texts change even between patch releases (in 3.11.2 the type hierarchy has no headings
below the first), so on any other release a case that differs is skipped, with the difference as
the reason, and most cases must still hold. A case may narrow the list with a field of its own,
``python_versions``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from demo.chunker import chunk_notes
from demo.vault import python_reference
from documents.sections import HEADING_SEPARATOR, Note

LABELLED_ON = ("3.11.7", "3.12.1", "3.13.0")
RUNNING = ".".join(str(part) for part in sys.version_info[:3])

Case = dict[str, Any]


class Vault:
    """``sections``: (rel_path, heading_path) to the section's own text, white space collapsed."""

    def __init__(self, notes: Sequence[Note]) -> None:
        texts: dict[tuple[str, str], list[str]] = {}
        for chunk in chunk_notes(notes, max_chars=10**9):
            texts.setdefault((chunk.rel_path, chunk.heading_path), []).append(chunk.text)
        self.sections = {place: self.collapse(" ".join(parts)) for place, parts in texts.items()}

    @staticmethod
    def collapse(text: str) -> str:
        """The text with one space for any white space."""
        return re.sub(r"\s+", " ", text).strip()

    @staticmethod
    def is_under(heading: str, gold: str) -> bool:
        """Is the heading the gold one or nested below it? An empty one is the whole note."""
        return not gold or heading == gold or heading.startswith(gold + HEADING_SEPARATOR)

    def under(self, rel_path: str, gold: str) -> str:
        """The text of a section and of all below it; "" when there is none."""
        return " ".join(
            text
            for (path, heading), text in self.sections.items()
            if path == rel_path and self.is_under(heading, gold)
        )


@pytest.fixture(scope="session")
def vault() -> Vault:
    """The language reference of the running interpreter."""
    return Vault(python_reference())


@pytest.fixture
def judge() -> Callable[[Case, list[str]], None]:
    """No problem may be found on a release that the case was labelled on; elsewhere, skip."""

    def check(case: Case, problems: list[str]) -> None:
        versions = case.get("python_versions", LABELLED_ON)
        if problems and RUNNING not in versions:
            pytest.skip(f"labelled on Python {', '.join(versions)}; on {RUNNING}: {problems[0]}")
        assert problems == []

    return check
