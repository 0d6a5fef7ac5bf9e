"""A support model of the user's own: a cross-encoder on local weights that reads passage and claim.

Nothing is downloaded. The library is imported, and the weights are read, when the first claim is
scored; each process of a scoring run reads them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from clients.embedder import folder_hash, hide_progress, holds_model, offline, whole

REMEDY = "run `make setup LIGHT=0`, or leave --support-model out"


class SupportModelUnavailable(RuntimeError):
    """The support model cannot be used; the message holds the remedy."""


@dataclass(frozen=True, slots=True)
class CrossEncoderSupport:
    """Says how likely a passage bears a claim. ``identity``: name and hash of the folder."""

    folder: Path
    identity: str

    def __call__(self, claim: str, passages: Sequence[str]) -> float:
        """The highest probability over passages, in [0, 1]; 0.0 without one."""
        if not passages:
            return 0.0
        model, column = _load(self.folder)
        pairs = [(whole(text), whole(claim)) for text in passages]
        scores = model.predict(pairs, show_progress_bar=False, apply_softmax=column is not None)
        return max(float(row if column is None else row[column]) for row in scores)


def support_model(folder: Path) -> CrossEncoderSupport:
    """The model in a folder, loaded once to see that it can be used.

    Raises:
        SupportModelUnavailable: no such folder, no library, or no classifier of pairs in it.
    """
    if not holds_model(folder):
        raise SupportModelUnavailable(
            f"{folder}: holds no config.json; name a folder with the weights of a cross-encoder."
        )
    _load(folder)
    return CrossEncoderSupport(folder, f"{folder.resolve().name}@{folder_hash(folder)}")


@cache
def _load(folder: Path) -> tuple[Any, int | None]:
    """The model, and the column of its output that means "supported"; None for a single score."""
    offline()
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise SupportModelUnavailable(
            f"--support-model needs sentence-transformers, which cannot be imported ({error}): "
            f"{REMEDY}."
        ) from error
    hide_progress()
    try:
        model = CrossEncoder(str(folder), device="cpu", local_files_only=True)
        labels = dict(model.config.id2label)
    except Exception as error:  # the library raises whatever lies beneath: OSError, ValueError…
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SupportModelUnavailable(
            f"{folder}: cannot be loaded as a cross-encoder ({first_line}); name a folder with its "
            "config.json, weights and tokenizer."
        ) from error
    return model, _column(folder, {int(index): str(name) for index, name in labels.items()})


def _column(folder: Path, labels: dict[int, str]) -> int | None:
    """Which output means support: the label of entailment; of two nameless labels the second."""
    if len(labels) == 1:
        return None
    plain = {index: name.lower().replace("-", "_") for index, name in labels.items()}
    bearing = [
        index
        for index, name in plain.items()
        if name.startswith(("entail", "support", "consistent", "grounded"))
    ]
    if len(bearing) == 1:
        return bearing[0]
    if len(labels) == 2 and not bearing:
        return 1
    raise SupportModelUnavailable(
        f"{folder}: none of its labels ({', '.join(labels.values())}) is called entailment or "
        "supported; name it so under id2label of config.json."
    )
