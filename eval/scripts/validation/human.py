"""Claims that people labelled: the open sets, and a user's own file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from ragmetrics.claims import extract
from records.errors import Problem, StorageError
from records.jsonl import read_rows


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim, the contexts for its check, and people's verdict: 1 fully supported, 0 not."""

    claim: str
    contexts: tuple[str, ...]
    supported: int
    group: str
    question: str = ""
    lead: str = ""


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


def _ragtruth(folder: Path, subset: str) -> Iterator[LabelledClaim]:
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


def _attributionbench(folder: Path) -> Iterator[LabelledClaim]:
    """Claims against the references that their answers cite."""
    for _, row in read_rows(folder / "attributionbench" / FILE):
        yield _row(row, row["claim"], row["supported"])


def _expertqa(folder: Path) -> Iterator[LabelledClaim]:
    """Claims against their own evidence; Complete is supported, Partial and Incomplete are not."""
    for _, row in read_rows(folder / "expertqa" / FILE):
        for claim in row["claims"]:
            evidence = [row["contexts"][index] for index in claim["evidence"]]
            if evidence:
                yield _row(row, claim["text"], int(claim["support"] == "Complete"), evidence)


def _factscore(folder: Path) -> Iterator[LabelledClaim]:
    """Atomic facts of biographies against the person's article, its paragraphs being one text."""
    for _, row in read_rows(folder / "factscore" / FILE):
        for claim in row["claims"]:
            yield _row(row, claim["text"], claim["supported"])


def _wice(folder: Path) -> Iterator[LabelledClaim]:
    """Wikipedia sentences against the cited page, whose sentences are joined to one text."""
    for _, row in read_rows(folder / "wice" / FILE):
        yield _row(row, row["claim"], row["supported"], ["\n".join(row["contexts"])])


def _begin(folder: Path) -> Iterator[LabelledClaim]:
    """Dialogue replies against one snippet; replies that say nothing factual are left out."""
    for _, row in read_rows(folder / "begin_wow" / FILE):
        if row["supported"] is not None:
            yield _row(row, row["answer"], row["supported"])


def _factcheckgpt(folder: Path) -> Iterator[LabelledClaim]:
    """Atomic claims against one search result; only complete support counts."""
    for _, row in read_rows(folder / "factcheckgpt_stance" / FILE):
        yield _row(row, row["claim"], int(row["stance"] == "completely-support"))


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
    LabelledSet("ragtruth_qa", "RAGTruth QA", "ragtruth", partial(_ragtruth, subset="qa")),
    LabelledSet(
        "ragtruth_summary",
        "RAGTruth summaries",
        "ragtruth",
        partial(_ragtruth, subset="summary"),
    ),
    LabelledSet(
        "ragtruth_data2txt",
        "RAGTruth data-to-text",
        "ragtruth",
        partial(_ragtruth, subset="data2txt"),
    ),
    LabelledSet("attributionbench", "AttributionBench", "attributionbench", _attributionbench),
    LabelledSet("expertqa", "ExpertQA", "expertqa", _expertqa),
    LabelledSet("factscore", "FActScore", "factscore", _factscore),
    LabelledSet("wice", "WiCE", "wice", _wice),
    LabelledSet("begin_wow", "BEGIN", "begin_wow", _begin),
    LabelledSet(
        "factcheckgpt_stance", "Factcheck-GPT stance", "factcheckgpt_stance", _factcheckgpt
    ),
)


def _problems(path: Path, line: int, row: dict[str, Any]) -> list[Problem]:
    faults: list[tuple[str, str]] = []
    if not isinstance(row.get("claim"), str) or not row["claim"].strip():
        faults.append(("claim", "must be a text; write the claim that was checked"))
    contexts = row.get("contexts")
    if not isinstance(contexts, list) or not all(isinstance(text, str) for text in contexts):
        faults.append(("contexts", "must be a list of texts; write its passages"))
    if isinstance(row.get("supported"), bool) or row.get("supported") not in (0, 1):
        faults.append(("supported", "must be 1 (all of it supported) or 0"))
    for name in ("group", "question"):
        if name in row and not isinstance(row[name], str):
            faults.append((name, "must be a text; leave it out if there is none"))
    return [Problem(str(path), line, name, message) for name, message in faults]


def read_own(path: Path) -> list[LabelledClaim]:
    """All rows of a label file.

    Raises:
        StorageError: every problem of the file at once, or the file is empty.
    """
    rows: list[LabelledClaim] = []
    problems: list[Problem] = []
    for line, row in read_rows(path):
        faults = _problems(path, line, row)
        problems.extend(faults)
        if not faults:
            rows.append(
                LabelledClaim(
                    row["claim"],
                    tuple(row["contexts"]),
                    int(row["supported"]),
                    row.get("group", f"line {line}"),
                    row.get("question", ""),
                )
            )
    if problems:
        raise StorageError.from_problems(problems)
    if not rows:
        raise StorageError(f"{path}: has no labels; write one object a line.")
    return rows
