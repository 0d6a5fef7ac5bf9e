"""Open sets of answers that people rated, compared, or called abstentions; claims: validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from records.jsonl import read_rows
from validation.human import FILE, LabelledSet


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """An answer whose faithfulness people rated on a scale."""

    answer: str
    contexts: tuple[str, ...]
    rating: float
    group: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """Two answers to one question; ``preference`` is above 0 when people prefer the second."""

    first: str
    second: str
    reference: str
    preference: float
    group: str


@dataclass(frozen=True, slots=True)
class LabelledAbstention:
    """An answer and whether people call it an abstention or refusal (1) or an answer (0)."""

    answer: str
    abstained: int
    group: str


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer and whether people found a hallucination anywhere in it (1) or none (0)."""

    answer: str
    contexts: tuple[str, ...]
    hallucinated: int
    group: str
    question: str = ""


def _ragtruth_answers(folder: Path) -> Iterator[LabelledAnswer]:
    for _, row in read_rows(folder / "ragtruth" / FILE):
        yield LabelledAnswer(
            row["answer"],
            tuple(row["contexts"]),
            int(row["hallucinated"]),
            str(row["group"]),
            row.get("question") or "",
        )


def _mtrag_faithfulness(folder: Path, by_people: bool) -> Iterator[RatedAnswer]:
    """Answers of multi-turn conversations with the mean of three faithfulness ratings, 1 to 4.

    People wrote the reference answers, from the passages: they are another kind of text than the
    models' answers.
    """
    for _, row in read_rows(folder / "mtrag_human" / FILE):
        if (row["system"] == "reference") != by_people:
            continue
        yield RatedAnswer(
            row["answer"],
            tuple(row["contexts"]),
            float(row["faithfulness"]),
            str(row["group"]),
            row.get("question") or "",
        )


def _ragchecker_pairs(folder: Path) -> Iterator[AnswerPair]:
    """Pairs of answers with the mean overall preference of two people, above 0 for the second."""
    for _, row in read_rows(folder / "ragchecker_pairs" / FILE):
        overall = sum(row["overall"]) / len(row["overall"])
        yield AnswerPair(
            row["answer1"], row["answer2"], row["reference"], overall, str(row["group"])
        )


def _abstentions(folder: Path, name: str, field: str) -> Iterator[LabelledAbstention]:
    for _, row in read_rows(folder / name / FILE):
        if row[field] is not None:
            yield LabelledAbstention(row["answer"], int(row[field]), str(row["group"]))


def _delucionqa(folder: Path) -> Iterator[LabelledAbstention]:
    """Answers of a RAG bot over a car manual; 1 says that it does not know."""
    return _abstentions(folder, "delucionqa_idk", "abstained")


def _mtrag_un(folder: Path) -> Iterator[LabelledAbstention]:
    """People's answers to answerable (0) and unanswerable (1) turns; others left out."""
    return _abstentions(folder, "mtrag_un", "abstained")


def _xstest(folder: Path) -> Iterator[LabelledAbstention]:
    """Full refusals (1) and full compliance (0); partial ones are left out."""
    return _abstentions(folder, "xstest_refusals", "refused")


RATINGS: tuple[LabelledSet[RatedAnswer], ...] = (
    LabelledSet(
        "mtrag_models",
        "MTRAG faithfulness, answers of two models",
        "mtrag_human",
        partial(_mtrag_faithfulness, by_people=False),
    ),
    LabelledSet(
        "mtrag_references",
        "MTRAG faithfulness, reference answers by people",
        "mtrag_human",
        partial(_mtrag_faithfulness, by_people=True),
    ),
)

PAIRS: tuple[LabelledSet[AnswerPair], ...] = (
    LabelledSet("ragchecker_pairs", "RAGChecker pairs", "ragchecker_pairs", _ragchecker_pairs),
)

ABSTENTION: tuple[LabelledSet[LabelledAbstention], ...] = (
    LabelledSet("delucionqa", "DelucionQA", "delucionqa_idk", _delucionqa),
    LabelledSet("mtrag_un", "MTRAG-UN", "mtrag_un", _mtrag_un),
    LabelledSet("xstest", "XSTest refusals", "xstest_refusals", _xstest),
)

EXAMPLES = (LabelledSet("ragtruth_answers", "RAGTruth answers", "ragtruth", _ragtruth_answers),)
