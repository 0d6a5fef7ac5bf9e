"""Loaders of the support sets: claims that people checked against contexts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from humanlabels.rows import LabelledClaim, read_rows
from ragmetrics.claimfilter import extract

FILE = "data.jsonl.gz"


def _row(
    row: dict[str, Any],
    claim: str,
    supported: int,
    contexts: list[str] | None = None,
    lead: str = "",
) -> LabelledClaim:
    """A row with the fields that all sets share; ``contexts`` defaults to the row's own."""
    held = row["contexts"] if contexts is None else contexts
    return LabelledClaim(
        claim, tuple(held), supported, str(row["group"]), row.get("question") or "", lead
    )


def ragtruth(folder: Path, subset: str) -> Iterator[LabelledClaim]:
    """The claims our own filter finds; one that touches a marked span is unsupported."""
    for _, row in read_rows(folder / "ragtruth" / FILE):
        if not row["subset"].startswith(subset):
            continue
        spans = [(span["start"], span["end"]) for span in row["spans"]]
        for claim in extract(row["answer"]).claims:
            touched = any(
                row["answer"][max(start, claim.start) : min(end, claim.end)].strip()
                for start, end in spans
                if start < claim.end and claim.start < end
            )
            yield _row(row, claim.text, int(not touched), lead=claim.lead)


def attributionbench(folder: Path) -> Iterator[LabelledClaim]:
    """Claims against the references that their answers cite."""
    for _, row in read_rows(folder / "attributionbench" / FILE):
        yield _row(row, row["claim"], row["supported"])


def expertqa(folder: Path) -> Iterator[LabelledClaim]:
    """Claims against their own evidence; Complete is supported, Partial and Incomplete are not."""
    for _, row in read_rows(folder / "expertqa" / FILE):
        for claim in row["claims"]:
            evidence = [row["contexts"][place] for place in claim["evidence"]]
            if evidence:
                yield _row(row, claim["text"], int(claim["support"] == "Complete"), evidence)


def factscore(folder: Path) -> Iterator[LabelledClaim]:
    """Atomic facts of biographies against the person's article, its paragraphs being one text."""
    for _, row in read_rows(folder / "factscore" / FILE):
        for claim in row["claims"]:
            yield _row(row, claim["text"], claim["supported"])


def wice(folder: Path) -> Iterator[LabelledClaim]:
    """Wikipedia sentences against the cited page, whose sentences are joined to one text."""
    for _, row in read_rows(folder / "wice" / FILE):
        yield _row(row, row["claim"], row["supported"], ["\n".join(row["contexts"])])


def begin(folder: Path) -> Iterator[LabelledClaim]:
    """Dialogue replies against one snippet; replies that say nothing factual are left out."""
    for _, row in read_rows(folder / "begin_wow" / FILE):
        if row["supported"] is not None:
            yield _row(row, row["answer"], row["supported"])


def factcheckgpt(folder: Path) -> Iterator[LabelledClaim]:
    """Atomic claims against one search result; only complete support counts."""
    for _, row in read_rows(folder / "factcheckgpt_stance" / FILE):
        yield _row(row, row["claim"], int(row["stance"] == "completely-support"))
