"""The table of known sets: a folder under the data folder, what it is called, how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from humanlabels import answers, support
from humanlabels.rows import AnswerPair, LabelledAbstention, LabelledClaim, RatedAnswer

Row = TypeVar("Row")


@dataclass(frozen=True)
class LabelledSet(Generic[Row]):
    """One set: ``key`` in JSON, ``title`` in tables, ``folder`` under the data folder."""

    key: str
    title: str
    folder: str
    load: Callable[[Path], Iterable[Row]]

    def present(self, data: Path) -> bool:
        """True when the set's folder is there."""
        return (data / self.folder).is_dir()


SUPPORT: tuple[LabelledSet[LabelledClaim], ...] = (
    LabelledSet("ragtruth_qa", "RAGTruth QA", "ragtruth", partial(support.ragtruth, subset="qa")),
    LabelledSet(
        "ragtruth_summary",
        "RAGTruth summaries",
        "ragtruth",
        partial(support.ragtruth, subset="summary"),
    ),
    LabelledSet(
        "ragtruth_data2txt",
        "RAGTruth data-to-text",
        "ragtruth",
        partial(support.ragtruth, subset="data2txt"),
    ),
    LabelledSet(
        "attributionbench", "AttributionBench", "attributionbench", support.attributionbench
    ),
    LabelledSet("expertqa", "ExpertQA", "expertqa", support.expertqa),
    LabelledSet("factscore", "FActScore", "factscore", support.factscore),
    LabelledSet("wice", "WiCE", "wice", support.wice),
    LabelledSet("begin_wow", "BEGIN", "begin_wow", support.begin),
    LabelledSet(
        "factcheckgpt_stance", "Factcheck-GPT stance", "factcheckgpt_stance", support.factcheckgpt
    ),
)
RATINGS: tuple[LabelledSet[RatedAnswer], ...] = (
    LabelledSet("mtrag_human", "MTRAG faithfulness", "mtrag_human", answers.mtrag_faithfulness),
)
PAIRS: tuple[LabelledSet[AnswerPair], ...] = (
    LabelledSet(
        "ragchecker_pairs", "RAGChecker pairs", "ragchecker_pairs", answers.ragchecker_pairs
    ),
)
ABSTENTION: tuple[LabelledSet[LabelledAbstention], ...] = (
    LabelledSet("delucionqa", "DelucionQA", "delucionqa_idk", answers.delucionqa),
    LabelledSet("mtrag_un", "MTRAG-UN", "mtrag_un", answers.mtrag_un),
    LabelledSet("xstest", "XSTest refusals", "xstest_refusals", answers.xstest),
)
