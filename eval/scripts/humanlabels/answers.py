"""Loaders of the sets that label whole answers: faithfulness ratings, preferences, abstentions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from humanlabels.rows import AnswerPair, LabelledAbstention, RatedAnswer, read_rows

FILE = "data.jsonl.gz"


def mtrag_faithfulness(folder: Path) -> Iterator[RatedAnswer]:
    """Answers of multi-turn conversations with the mean of three faithfulness ratings, 1 to 4."""
    for _, row in read_rows(folder / "mtrag_human" / FILE):
        yield RatedAnswer(
            row["answer"],
            tuple(row["contexts"]),
            float(row["faithfulness"]),
            str(row["group"]),
            row.get("question") or "",
        )


def ragchecker_pairs(folder: Path) -> Iterator[AnswerPair]:
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


def delucionqa(folder: Path) -> Iterator[LabelledAbstention]:
    """Answers of a RAG bot over a car manual; 1 says that it does not know."""
    return _abstentions(folder, "delucionqa_idk", "abstained")


def mtrag_un(folder: Path) -> Iterator[LabelledAbstention]:
    """People's answers to answerable (0) and unanswerable (1) turns; others left out."""
    return _abstentions(folder, "mtrag_un", "abstained")


def xstest(folder: Path) -> Iterator[LabelledAbstention]:
    """Full refusals (1) and full compliance (0); partial ones are left out."""
    return _abstentions(folder, "xstest_refusals", "refused")
