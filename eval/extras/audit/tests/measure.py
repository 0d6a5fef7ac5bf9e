"""How much of what was planted in a vault the audit finds: python measure.py NAME.

The rules were made while looking at rust_book alone; python_reference is to be measured once.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[3]
    sys.path[:0] = [str(root / "scripts"), str(root)]

from demo.vault import python_reference
from documents.vault import read_vault
from extras.audit.contradictions import contradiction_candidates
from extras.audit.doubles import groups_of
from extras.audit.findings import Finding
from extras.audit.gold import VaultIndex, check_support
from extras.audit.passages import Place, paragraphs_of, plain, sections_of
from extras.audit.stale import stale_findings
from extras.audit.tests.planting import Planted, plant
from records.cases import GoldSupport

TODAY = date(2026, 11, 29)
BOOK = Path(os.environ.get("RAG_EVAL_DATA", ".")) / "vault_rust_book" / "vault"


@dataclass
class Measured:
    """Counts beside the ten of each kind, ranks of contradictions, and what was found besides."""

    gold: int = 0
    gold_false: int = 0
    gold_places: int = 0
    gold_wrong_places: int = 0
    doubles: int = 0
    stale: int = 0
    false_stale: list[Finding] = field(default_factory=list)
    ranks: dict[str, list[int | None]] = field(default_factory=lambda: {"copy": [], "own": []})
    other_doubles: list[tuple[str, str]] = field(default_factory=list)
    cpu_s: float = 0.0

    def within(self, how: str, most: int) -> int:
        """Contradictions of a kind among the first so many candidates."""
        return sum(rank is not None and rank <= most for rank in self.ranks[how])


def files_of(name: str) -> dict[str, str]:
    """The files of a vault before anything is planted."""
    if name == "python_reference":
        return {note.rel_path: note.text for note in python_reference()}
    return {
        path.relative_to(BOOK).as_posix(): path.read_text("utf-8") for path in BOOK.rglob("*.md")
    }


def measure(name: str, folder: Path) -> Measured:
    """Plant the faults of a list below a folder, and audit it."""
    truth = plant(name, files_of(name), folder)
    start = time.process_time()
    notes = read_vault(folder).notes
    sections = sections_of(notes)
    result = Measured()
    _gold(result, truth, VaultIndex(notes, folder))
    paragraphs = paragraphs_of(sections)
    groups, pairs = groups_of(paragraphs, sections)
    numbers: dict[str, list[int]] = {}
    for number, paragraph in enumerate(paragraphs):
        numbers.setdefault(paragraph.text, []).append(number)
    sets = [set(group.members) for group in groups]
    planted = set()
    for (_, text), (_, copy) in truth.doubles:
        ours, theirs = ({*numbers.get(_flat(one), ())} for one in (text, copy))
        result.doubles += any(group & ours and group & theirs for group in sets)
        planted |= theirs
    copies = {text for each in truth.stale for text in (each["to"],) if "source" in each}
    for group in groups:
        own = [n for n in group.members if n not in planted]
        own = [n for n in own if sections[paragraphs[n].section].place.rel_path not in copies]
        result.other_doubles += [(paragraphs[a].text, paragraphs[b].text) for a, b in pairwise(own)]
    stale = list(stale_findings(sections, pairs, TODAY))
    hits = {
        finding.key: each["old"]
        for each in truth.stale
        for finding in stale
        if _same(each["old"], finding.quotes[0].text)
        and finding.quotes[0].place.rel_path == each["to"]
    }
    result.stale = len(set(hits.values()))
    result.false_stale = [finding for finding in stale if finding.key not in hits]
    candidates = contradiction_candidates(sections)
    for each in truth.contradictions:
        ranks = [
            rank
            for rank, finding in enumerate(candidates, 1)
            if _is_pair(each["text"], each["quote"], *(quote.text for quote in finding.quotes))
        ]
        result.ranks[each["how"]].append(ranks[0] if ranks else None)
    result.cpu_s = time.process_time() - start
    return result


def _gold(result: Measured, truth: Planted, index: VaultIndex) -> None:
    for label, place in truth.moved:
        finding = check_support(GoldSupport(**label), index)
        result.gold += finding is not None
        moved_to = finding[1] if finding else None
        right = moved_to is not None and place is not None and moved_to == Place(*place)
        result.gold_places += right and "snippets" in label
        result.gold_wrong_places += moved_to is not None and not right
    result.gold_false = sum(
        check_support(GoldSupport(**label), index) is not None for label in truth.sound
    )


def _flat(text: str) -> str:
    return " ".join(plain(text).split())


def _same(text: str, other: str) -> bool:
    return _flat(text).rstrip(".") in _flat(other) or _flat(other).rstrip(".") in _flat(text)


def _is_pair(text: str, quote: str, first: str, second: str) -> bool:
    """One of two sentences is the planted text, the other is that of the vault."""
    return any(
        _flat(text) == own and _same(quote, other)
        for own, other in ((first, second), (second, first))
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        measured = measure(sys.argv[1], Path(temporary))
    print(f"gold: {measured.gold} of 10, false {measured.gold_false}, places right "
          f"{measured.gold_places} of 5, wrong places {measured.gold_wrong_places}")  # fmt: skip
    print(f"near doubles: {measured.doubles} of 10")
    print(f"stale: {measured.stale} of 10, false {len(measured.false_stale)}")
    for finding in measured.false_stale:
        print("  ", finding.why, [quote.text for quote in finding.quotes])
    for how, most in (("copy", 30), ("own", 100)):
        print(f"contradictions, {how}: {measured.within(how, most)} in the first {most}; "
              f"ranks {measured.ranks[how]}")  # fmt: skip
    pairs = measured.other_doubles
    print(f"{len(pairs)} other pairs of near doubles; 30 drawn, to be read:")
    for text, copy in random.Random(1).sample(pairs, min(30, len(pairs))):
        print("  -", text[:150], "\n   ", copy[:150])
    print(f"{measured.cpu_s:.1f} CPU s")
