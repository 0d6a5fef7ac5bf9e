"""Scores by vectors how near context and question are, and the answer to context and reference.

A case is scored in steps, each of which names the texts whose vectors it needs next. ``warm``
drives many cases side by side, so that all texts of a step are embedded together and once; after
it every vector lies in the embedder's cache, and scoring case by case embeds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import orjson

from clients.embedder import Embedder, EmbeddingUnavailable
from ragmetrics import embedding
from ragmetrics.case_scores import CaseScores
from ragmetrics.catalogue.embedding import ROWS
from ragmetrics.catalogue.metric import Metric
from records.cases import TestCase
from records.errors import Problem, StorageError
from records.file_access import read_whole
from records.lines import parse_json
from records.results import RetrievedChunk, TestResult
from records.run import Run
from records.runs import CACHE_DIR, EVAL_SET, RESULTS
from scorers.abstention import decide
from scorers.common import row_of, with_known_passages
from scorers.contract import CannotRun, Evidence, ScoreRow, ScoringJob, SectionScorer

if TYPE_CHECKING:
    from ragmetrics.embedding import Steps, Vectors


BLOCK = 256
"""Results whose texts are embedded together, which limits the memory."""


def answered(
    folder: Path, eval_set: Path, labels_dir: Path | None
) -> Iterator[tuple[TestCase, TestResult]]:
    """The cases of a run that the bot answered, with their results.

    Faulty lines are passed over here: the scoring that follows reports them all.
    """
    run = Run(folder, eval_set, labels_dir, tolerant=True)
    for result in run.iter_results():
        case = run.cases.get(result.test_case_id)
        if case is not None and result.status == "ok":
            yield case, result


class Embed(Protocol):
    """The embedder that makes the vectors, such as clients.embedder.Embedder."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts, shape (n, d)."""

    def windows(self, text: str) -> list[str]:
        """The text in pieces that the model reads whole."""


@dataclass(frozen=True)
class EmbeddingScorer:
    """Scores one result by cosines; the thresholds give the cosine that counts as near."""

    embed: Embed
    model: str = ""
    sufficiency: float = embedding.SUFFICIENT
    hallucination: float = embedding.HALLUCINATED
    window_hallucination: float = embedding.HALLUCINATED_WINDOWS

    section = "embedding"
    metrics: tuple[Metric, ...] = ROWS

    @property
    def options(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "sufficiency_threshold": self.sufficiency,
            "hallucination_threshold": self.hallucination,
            "window_threshold": self.window_hallucination,
        }

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Scores of one result; texts that have no vector yet are embedded."""
        steps = self._steps(case, result)
        texts = next(steps)
        while True:
            try:
                texts = steps.send(vectors_of(self.embed, texts))
            except StopIteration as end:
                scores: CaseScores = end.value
                scores = with_known_passages(scores, result)
                return row_of(scores, self.metrics), scores.evidence

    def warm(self, pairs: Iterable[tuple[TestCase, TestResult]]) -> int:
        """Embed the texts that these results need, many together. Returns their number.

        Memory: the texts and vectors of ``BLOCK`` results.
        """
        pending = iter(pairs)
        count = 0
        while block := list(islice(pending, BLOCK)):
            count += len(block)
            steps = [self._steps(case, result) for case, result in block]
            waiting = [(step, next(step)) for step in steps]
            while waiting:
                vectors = vectors_of(self.embed, [text for _, texts in waiting for text in texts])
                waiting = list(_advance(waiting, vectors))
        return count

    def _steps(self, case: TestCase, result: TestResult) -> Steps:
        return embedding.score_case(
            case.whole_question(),
            result.answer or "",
            case.reference_answer or "",
            result.chunks(),
            tools=result.tool_sources(),
            abstained=bool(result.answer and decide(result).abstained),
            sufficient=self.sufficiency,
            hallucinated=self.hallucination,
            hallucinated_windows=self.window_hallucination,
        )


def _advance(
    waiting: Iterable[tuple[Steps, list[str]]], vectors: Mapping[str, Vectors]
) -> Iterator[tuple[Steps, list[str]]]:
    """The cases that need another step, with the texts it needs."""
    for steps, texts in waiting:
        try:
            yield steps, steps.send({text: vectors[text] for text in texts})
        except StopIteration:
            continue


def vectors_of(embed: Embed, texts: Iterable[str]) -> dict[str, Vectors]:
    """The vectors of each text: one row, or one a window where the text is too long for one."""
    pieces = {text: embed.windows(text) for text in dict.fromkeys(texts)}
    row_of_piece = {
        piece: number
        for number, piece in enumerate(
            dict.fromkeys(piece for parts in pieces.values() for piece in parts)
        )
    }
    if not row_of_piece:
        return {}
    matrix = embed.encode(list(row_of_piece))
    return {
        text: matrix[[row_of_piece[piece] for piece in parts]] for text, parts in pieces.items()
    }


@dataclass(frozen=True)
class EmbeddingOptions:
    """The model, the folder of its vectors, the thresholds from which a cosine counts as near.
    ``cached_only``: only use cached vectors. ``allow_download``: a hub may be asked for the model.
    """

    embedding_model: str | None = None
    cache_dir: Path = CACHE_DIR
    sufficiency_threshold: float = embedding.SUFFICIENT
    hallucination_threshold: float = embedding.HALLUCINATED
    window_threshold: float = embedding.HALLUCINATED_WINDOWS
    cached_only: bool = False
    allow_download: bool = False


class _CachedEmbedder(Embedder):
    """Gives vectors that are kept already, and loads no model for others."""

    def _run_model(self, texts: list[str]) -> Vectors:
        raise CannotRun(
            "left out of the smoke suite: some texts have no vector yet, and embedding them is "
            "slow. Run score_embedding.py or the full suite once."
        )


def _make_scorer(job: ScoringJob, options: EmbeddingOptions) -> EmbeddingScorer:
    """Embed what the run's scores need and has no vector yet; the scorer then embeds nothing.

    Raises CannotRun, with what to install or correct, when there is no model, or when one would
    have to be loaded and only kept vectors are wanted.
    """
    kind = _CachedEmbedder if options.cached_only else Embedder
    try:
        embedder = kind(
            options.embedding_model, options.cache_dir, allow_download=options.allow_download
        )
        embedder.console = job.console
        scorer = EmbeddingScorer(
            embedder,
            embedder.public_name,
            options.sufficiency_threshold,
            options.hallucination_threshold,
            options.window_threshold,
        )
        pairs = answered(job.folder, job.eval_set, job.labels_dir)
        scorer.warm(pairs)
    except EmbeddingUnavailable as error:
        raise CannotRun(str(error)) from error
    return scorer


FIELDS = ("question", "reference_answer", "answer", "contexts")


def as_run(path: Path, parent: Path) -> Path:
    """Write a data set as eval set and results of a run folder in ``parent``; return the folder.

    Raises StorageError naming every faulty item.
    """
    items = _read(path)
    problems = [
        Problem(str(path), None, f"[{number}]{field}", message)
        for number, item in enumerate(items)
        for field, message in _wrong(item)
    ]
    if problems:
        raise StorageError.from_problems(problems)
    folder = parent / "".join(c if c.isalnum() or c in "-_" else "-" for c in path.stem)[:80]
    folder.mkdir()
    with open(folder / EVAL_SET.name, "wb") as cases, open(folder / RESULTS, "wb") as results:
        for number, item in enumerate(items, 1):
            case = {"id": f"item-{number}", "question": item["question"]}
            if item.get("reference_answer"):
                case["reference_answer"] = item["reference_answer"]
            cases.write(orjson.dumps(case) + b"\n")
            results.write(msgspec.json.encode(_result(case["id"], item)) + b"\n")
    return folder


def _result(case_id: str, item: dict[str, Any]) -> TestResult:
    return TestResult(
        test_case_id=case_id,
        question=item["question"],
        answer=item.get("answer") or "",
        retrieved=[
            RetrievedChunk(chunk_id=str(rank), text=text, text_length=len(text), rank=rank)
            for rank, text in enumerate(item.get("contexts") or (), 1)
        ],
    )


def _read(path: Path) -> list[Any]:
    try:
        raw = parse_json(read_whole(path))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None
    except orjson.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        raise StorageError(f"{where}: not JSON ({error.msg}); write a list of objects.") from None
    if not isinstance(raw, list) or not raw:
        raise StorageError(
            f"{path}: is not a list; write [{{{', '.join(FIELDS)}}}, …] with at least one item."
        )
    return raw


def _wrong(item: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(item, dict):
        yield "", f"is not an object; write {{{', '.join(FIELDS)}}}"
        return
    question = item.get("question")
    if not isinstance(question, str) or not question.strip():
        yield ".question", "is missing or empty; write the user's question"
    for name in ("reference_answer", "answer"):
        if not isinstance(item.get(name), str | None):
            yield f".{name}", "is not a text; write a string"
    contexts = item.get("contexts")
    if contexts is not None and not (
        isinstance(contexts, list) and all(isinstance(text, str) for text in contexts)
    ):
        yield ".contexts", "is not a list of texts; write the retrieved passages as strings"


SECTION = SectionScorer(
    options=EmbeddingOptions, scorer=_make_scorer, in_processes=False, as_run=as_run
)
