"""Measure the detectors on lists that were written without knowledge of their rules.

In: a folder of lists (`FOLDER/en/business.jsonl`, …); a list that is absent is left out. Out: one
line a figure with its count. Writers had one page that says who the bots and their users are, and
neither the rules nor the phrases nor earlier results; a second person labelled the rows of the
refusal lists without seeing the first labels, and rows on which the two differ are kept apart. Half
of each list (by the hash of its id) may be read; the other half lies outside the repository. The
hashes in `blind_lists.sha256` were committed before the detectors were changed.

\b
Examples:
  python bench/research/blind_lists.py bench/research/blind --ids
  python bench/research/blind_lists.py ~/lists/sealed
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "eval" / "scripts"))

from guardrails.injection import BLOCK, WARN, score_injection
from guardrails.pii import find_pii
from guardrails.secrets import find_secrets
from ragmetrics import abstention, claims, support, windows
from ragmetrics.text import numbers
from records.jsonl import read_rows
from research.passage_refusals import Passage

Row = Mapping[str, Any]

LANGUAGES = ("de", "fr", "es", "it", "pt", "nl", "pl", "sv", "ja", "zh", "ru", "tr")

CHANGE = 0.02
"""How much a polite prefix may change the strength of the claim after it."""


@dataclass(frozen=True)
class Figure:
    """A share of rows: ``ids`` are the rows that count, of ``rows`` in all."""

    name: str
    ids: tuple[str, ...]
    rows: int

    def __str__(self) -> str:
        share = len(self.ids) / self.rows if self.rows else 0.0
        return f"{self.name:<58} {len(self.ids):>4} of {self.rows:<4} {share:.3f}"


def _rows(folder: Path, name: str) -> list[Row]:
    path = folder / f"{name}.jsonl"
    return [row for _, row in read_rows(path)] if path.is_file() else []


def _figure(name: str, rows: Sequence[Row], counts: Callable[[Row], bool]) -> Figure:
    return Figure(name, tuple(str(row["id"]) for row in rows if counts(row)), len(rows))


def _by_passages(row: Row) -> bool:
    found = abstention.detect_with_passages(
        row["answer"], [Passage(row["passage"])], row["question"]
    )
    return found.abstained


def _by_phrases(row: Row) -> bool:
    return abstention.detect(row["answer"]).abstained


WAYS = {"with passages": _by_passages, "by phrases alone": _by_phrases}


def _refusals(name: str, answers: Sequence[Row], abstentions: Sequence[Row]) -> Iterator[Figure]:
    if not answers or not abstentions:
        return
    for way, found in WAYS.items():
        wrong = _figure(f"{name}: answers called abstentions, {way}", answers, found)
        right = _figure(f"{name}: abstentions found, {way}", abstentions, found)
        hits = 2 * len(right.ids)
        f1 = hits / (hits + len(wrong.ids) + len(abstentions) - len(right.ids)) if hits else 0.0
        yield wrong
        yield right
        click.echo(f"{name + ': F1, ' + way:<58} {f1:.3f}")


def _strengths(answer: str, passage: str) -> list[float]:
    """The strengths of an answer's claims."""
    chunk = windows.prepare(passage)
    found = (
        support.judge(claim.text, [chunk], question=numbers.index(""), kind=claim.type)
        for claim in claims.extract(answer).claims
    )
    return [one.strength for one in found if one is not None]


def _changes(claim: Row, said: str) -> bool:
    alone = _strengths(claim["claim"], claim["passage"])
    after = _strengths(said, claim["passage"])
    return len(alone) != len(after) or any(
        abs(a - b) > CHANGE for a, b in zip(alone, after, strict=True)
    )


def _talk(folder: Path) -> Iterator[Figure]:
    polite, prefixed = _rows(folder, "misc/polite"), _rows(folder, "misc/prefixed")
    pairs = {
        str(row["id"]): (row["prefix"], prefixed[i % len(prefixed)])
        for i, row in enumerate(polite)
        if prefixed
    }
    for name, order in (("before", "{0} {1}"), ("behind", "{1} {0}")):
        yield _figure(
            f"polite words {name} a claim that change its strength",
            polite if prefixed else [],
            lambda row, order=order: _changes(  # type: ignore[misc]
                pairs[str(row["id"])][1],
                order.format(pairs[str(row["id"])][0], pairs[str(row["id"])][1]["claim"]),
            ),
        )
    yield _figure(
        "claims that begin like polite words: lost",
        _rows(folder, "misc/lookalike"),
        lambda row: not claims.extract(row["claim"]).claims,
    )


def _supported(row: Row) -> bool:
    chunk = windows.prepare(row["passage_sentence"])
    found = support.judge(row["claim"], [chunk], question=numbers.index(""))
    return found is not None and found.supported


def _edits(folder: Path) -> Iterator[Figure]:
    for name in ("negation", "antonym", "order"):
        yield _figure(f"opposites by {name}: pass", _rows(folder, f"misc/{name}"), _supported)
    yield _figure(
        "equal meanings with one negation: fail",
        _rows(folder, "misc/equal"),
        lambda row: not _supported(row),
    )


def _guardrails(folder: Path) -> Iterator[Figure]:
    everyday = _rows(folder, "misc/everyday")
    for name, limit in (("flagged", WARN), ("blocked", BLOCK)):
        yield _figure(
            f"everyday questions: {name}",
            everyday,
            lambda row, limit=limit: score_injection(row["question"]).score >= limit,  # type: ignore[misc]
        )
    yield _figure(
        "look-alikes of secrets: flagged",
        _rows(folder, "misc/lookalikes_secret"),
        lambda row: any(True for _ in find_secrets(row["text"])),
    )
    for name, kind, file in (
        ("versions of four parts: called an address", "ip_address", "versions4"),
        ("public addresses: found", "ip_address", "ips"),
        ("social security numbers: found", "us_ssn", "ssn"),
        ("other numbers of nine digits: called one", "us_ssn", "nine"),
    ):
        yield _figure(
            name,
            _rows(folder, f"misc/{file}"),
            lambda row, kind=kind: any(span[0] == kind for span in find_pii(row["text"])),  # type: ignore[misc]
        )


def figures(folder: Path) -> Iterator[Figure]:
    """All figures of the lists in a folder; a list that is absent gives none."""
    yield from _refusals("en", _rows(folder, "en/business"), _rows(folder, "en/abstain"))
    for language in LANGUAGES:
        rows = _rows(folder, f"langs/{language}")
        sides = ([r for r in rows if r["kind"] == kind] for kind in ("answer", "abstention"))
        yield from _refusals(language, *sides)
    for figure in (*_talk(folder), *_edits(folder), *_guardrails(folder)):
        if figure.rows:
            yield figure


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--ids", is_flag=True, help="Name the rows that count.")
def main(folder: Path, ids: bool) -> None:
    """Print the figures."""
    for figure in figures(folder):
        click.echo(str(figure))
        if ids and figure.ids:
            click.echo("    " + " ".join(figure.ids))


if __name__ == "__main__":
    main()
