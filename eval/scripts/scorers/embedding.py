"""Embedding: is the context near the question, and the answer near context and reference?

A case is scored in steps, each of which names the texts whose vectors it needs next. ``warm``
drives many cases side by side, so that all texts of a step are embedded together and once; after
it every vector lies in the embedder's cache, and scoring case by case embeds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import orjson

from clients.embedder import Embedder, EmbeddingUnavailable
from ragmetrics import embedding
from ragmetrics.catalogue.embedding import ROWS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.text.sentences import MARK, units
from records.cases import TestCase, iter_cases
from records.errors import Problem, StorageError
from records.labels import read_labels
from records.results import RetrievedChunk, TestResult, iter_results
from records.runs import (
    CACHE_DIR,
    EVAL_SET,
    RESULTS,
)
from scorers.abstention import decide
from scorers.common import in_rank_order
from scorers.contract import CannotRun, Evidence, ScoreRow, ScoringJob, SectionScorer, WorstCase

if TYPE_CHECKING:
    from rich.console import Console

    from ragmetrics.embedding import Vectors


BLOCK = 256
"""Results whose texts are embedded together; what bounds the memory."""

CLAIMING = ("prose", "item", "table")

NAMES = tuple(metric.name for metric in ROWS)

_MARK = re.compile(rf"\s*{MARK}")

VectorsByText = Mapping[str, "Vectors"]

Steps = Generator[list[str], VectorsByText, tuple["_EmbeddingScores", dict[str, Any]]]


def answered(
    folder: Path, eval_set: Path, labels_dir: Path | None
) -> Iterator[tuple[TestCase, TestResult]]:
    """The cases of a run that the bot answered, with their results.

    Faulty lines are passed over here: the scoring that follows reports them all.
    """
    labels, _ = read_labels(labels_dir, _pass_over)
    cases = {case.id: case for case in iter_cases(eval_set, _pass_over, labels)}
    for result in iter_results(folder / RESULTS, _pass_over):
        case = cases.get(result.test_case_id)
        if case is not None and result.status == "ok":
            yield case, result


def _pass_over(problem: Problem) -> None: ...


class Embed(Protocol):
    """What makes the vectors, such as clients.embedder.Embedder."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts, shape (n, d)."""

    def windows(self, text: str) -> list[str]:
        """The text in pieces that the model reads whole."""


@dataclass
class _EmbeddingScores:
    """Scores by name, and for the others why there is none."""

    values: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def put(self, name: str, value: float | None, reason: str) -> None:
        if value is None:
            self.reasons[name] = reason
        else:
            self.values[name] = value


@dataclass(frozen=True)
class EmbeddingScorer:
    """Scores one result by cosines; the thresholds say from where a cosine counts as near."""

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
                scores, evidence = end.value
                return _row(scores), evidence

    def warm(self, pairs: Iterable[tuple[TestCase, TestResult]]) -> int:
        """Embed what the scores of these results need, many together. Returns their number.

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
        """Yields the texts that it needs, is sent their vectors, returns scores and evidence."""
        answer = _MARK.sub("", result.answer or "").strip()
        silent = "" if answer else "empty answer"
        if answer and decide(result).abstained:
            answer, silent = "", "abstained"
        reference = (case.reference_answer or "").strip()
        answer_sentences, reference_sentences = _sentences_of(answer), _sentences_of(reference)
        contexts, no_contexts = _contexts_of(in_rank_order(result))
        whole = [text for text in (answer, reference) if text]
        vectors = yield [case.question, *whole, *answer_sentences, *reference_sentences, *contexts]
        scores, evidence = _EmbeddingScores(), dict[str, Any]()
        question = vectors[case.question]
        self._contexts(
            scores, evidence, question, [vectors[text] for text in contexts], no_contexts
        )
        similarity = embedding.whole_similarity(question, vectors[answer]) if answer else None
        scores.put("question_answer_similarity", similarity, silent)
        why = silent or ("" if reference else "no reference_answer")
        _against_reference(
            scores, vectors, answer, reference, answer_sentences, reference_sentences, why
        )
        why = silent or ("" if answer_sentences else "no sentences") or no_contexts
        if why:
            scores.put("answer_hallucination", None, why)
            scores.put("answer_hallucination@2", None, why)
            return scores, evidence
        near = embedding.nearest(
            [vectors[s] for s in answer_sentences], [vectors[c] for c in contexts]
        )
        best = embedding.as_list(near.max(axis=1))
        below = embedding.share_below(best, self.hallucination)
        scores.put("answer_hallucination", below, "")
        windows = _windows(contexts)
        if embedding.too_many_pairs(len(answer_sentences), len(windows)):
            scores.put("answer_hallucination@2", None, "answer and contexts are too long")
            return scores, evidence
        supported = yield from self._by_window(answer_sentences, vectors, windows)
        close = [similarity for _, similarity in supported]
        scores.put(
            "answer_hallucination@2", embedding.share_below(close, self.window_hallucination), ""
        )
        evidence["sentences"] = [
            {
                "text": text,
                "context": round(cosine, 4),
                "window": round(value, 4),
                "nearest": window,
            }
            for text, cosine, (window, value) in zip(answer_sentences, best, supported, strict=True)
        ]
        return scores, evidence

    def _contexts(
        self,
        scores: _EmbeddingScores,
        evidence: dict[str, Any],
        question: Vectors,
        contexts: Sequence[Vectors],
        why: str,
    ) -> None:
        near = embedding.as_list(embedding.nearest([question], contexts)[0])
        relevance = embedding.context_relevance(near)
        scores.put("context_relevance", relevance["mean"], why)
        scores.put("context_relevance_max", relevance["max"], why)
        scores.put("context_relevance_top3", relevance["top3"], why)
        scores.put("context_sufficiency", embedding.share_from(near, self.sufficiency), why)
        if near:
            evidence["contexts"] = [round(value, 4) for value in near]
        if long := sum(len(vectors) > 1 for vectors in contexts):
            evidence["contexts_in_windows"] = long

    def _by_window(
        self, sentences: Sequence[str], vectors_by_text: VectorsByText, windows: Sequence[str]
    ) -> Generator[list[str], VectorsByText, list[tuple[str, float]]]:
        """For each sentence a window that reaches the threshold, else the nearest of all.

        Embedding every window of every context would cost ten times the rest. The verdict needs
        only one that is near enough: an equal one needs no vector, then the likely ones are tried,
        and all others only where these fail.
        """
        equal = {embedding.flat(window): window for window in windows}
        nearest: dict[str, tuple[str, float]] = {
            text: (equal[flat], 1.0)
            for text in sentences
            if (flat := embedding.flat(text)) in equal
        }
        likely = embedding.likely_windows([s for s in sentences if s not in nearest], windows)
        if likely:
            vectors = yield [window for texts in likely.values() for window in texts]
            nearest |= {
                text: _nearest(vectors_by_text[text], texts, vectors)
                for text, texts in likely.items()
            }
        far = [text for text in likely if nearest[text][1] < self.window_hallucination]
        if far:
            vectors = yield list(windows)
            nearest |= {text: _nearest(vectors_by_text[text], windows, vectors) for text in far}
        return [nearest[text] for text in sentences]


def _advance(
    waiting: Iterable[tuple[Steps, list[str]]], vectors: VectorsByText
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


def _sentences_of(text: str) -> list[str]:
    """The sentences that claim something: no headings, no code, no citation marks; each once."""
    claiming = (text[unit.start : unit.end] for unit in units(text) if unit.kind in CLAIMING)
    bare = (_MARK.sub("", sentence).strip() for sentence in claiming)
    return list(dict.fromkeys(sentence for sentence in bare if any(map(str.isalnum, sentence))))


def _windows(contexts: Iterable[str]) -> list[str]:
    """All windows of 1-3 sentences of the contexts, each once."""
    return list(
        dict.fromkeys(
            window
            for context in contexts
            for window in embedding.sentence_windows(
                [context[unit.start : unit.end] for unit in units(context)]
            )
        )
    )


def _contexts_of(chunks: Sequence[RetrievedChunk]) -> tuple[list[str], str]:
    """The chunks' texts, each once, or none and why."""
    if not chunks:
        return [], "no contexts"
    if any(chunk.truncated for chunk in chunks):
        return [], "text was truncated"
    texts = list(dict.fromkeys(chunk.text for chunk in chunks if chunk.text and chunk.text.strip()))
    return texts, "" if texts else "no chunk texts"


def _against_reference(
    scores: _EmbeddingScores,
    vectors: VectorsByText,
    answer: str,
    reference: str,
    answer_sentences: Sequence[str],
    reference_sentences: Sequence[str],
    why: str,
) -> None:
    if why:
        scores.put("answer_relevance", None, why)
        scores.put("answer_correctness", None, why)
        return
    near = embedding.nearest(
        [vectors[text] for text in reference_sentences],
        [vectors[text] for text in answer_sentences],
    )
    scores.put("answer_relevance", embedding.answer_relevance(near), "no sentences")
    whole = embedding.whole_similarity(vectors[answer], vectors[reference])
    scores.put("answer_correctness", whole, "")


def _nearest(sentence: Vectors, texts: Sequence[str], vectors: VectorsByText) -> tuple[str, float]:
    """The text nearest to a sentence and its cosine; ("", -1) when there is none."""
    if not texts:
        return "", -1.0
    near = embedding.nearest([sentence], [vectors[text] for text in texts])[0]
    nearest_index = int(near.argmax())
    return texts[nearest_index], float(near[nearest_index])


def _row(scores: _EmbeddingScores) -> ScoreRow:
    """The row in the order of the catalogue; one reason for all is told once."""
    values = tuple(scores.values.get(name) for name in NAMES)
    reasons = tuple((name, scores.reasons[name]) for name in NAMES if name in scores.reasons)
    return ScoreRow(values, reasons)


@dataclass(frozen=True)
class EmbeddingOptions:
    """The model, where its vectors are kept, from where a cosine counts as near, and whether only
    vectors that are kept already may be used."""

    embedding_model: str | None = None
    cache_dir: Path = CACHE_DIR
    sufficiency_threshold: float = embedding.SUFFICIENT
    hallucination_threshold: float = embedding.HALLUCINATED
    window_threshold: float = embedding.HALLUCINATED_WINDOWS
    cached_only: bool = False


class _CachedEmbedder(Embedder):
    """Gives vectors that are kept already, and loads no model for others."""

    def _run_model(self, texts: list[str]) -> Vectors:
        raise CannotRun(
            "left out of the smoke suite: some texts have no vector yet, and embedding them is "
            "slow; run score_embedding.py or the full suite once."
        )


def _make_scorer(job: ScoringJob, options: EmbeddingOptions) -> EmbeddingScorer:
    """Embed what the run's scores need and has no vector yet; the scorer then embeds nothing.

    Raises CannotRun, with what to install or correct, when there is no model, or when one would
    have to be loaded and only kept vectors are wanted.
    """
    kind = _CachedEmbedder if options.cached_only else Embedder
    try:
        embedder = kind(options.embedding_model, options.cache_dir)
        scorer = EmbeddingScorer(
            embedder,
            _identity(embedder),
            options.sufficiency_threshold,
            options.hallucination_threshold,
            options.window_threshold,
        )
        pairs = answered(job.folder, job.eval_set, job.labels_dir)
        if job.console is None or not job.console.is_terminal:
            scorer.warm(pairs)
        else:
            with job.console.status("Embedding what has no vector yet…"):
                scorer.warm(pairs)
    except EmbeddingUnavailable as error:
        raise CannotRun(str(error)) from error
    return scorer


def _identity(embedder: Embedder) -> str:
    """The model's name, for a folder with the hash of its content; no path of this machine."""
    if embedder.folder is None:
        return embedder.name
    return f"{Path(embedder.name).name} {embedder.identity[:12]}"


FIELDS = ("question", "reference_answer", "answer", "contexts")


def as_run(path: Path, parent: Path) -> Path:
    """Write the data set as eval set and results of a run folder in ``parent``; returns it.

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
        raw = orjson.loads(path.read_bytes())
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None
    except orjson.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        raise StorageError(f"{where}: not JSON ({error.msg}); write a list of objects.") from None
    if not isinstance(raw, list) or not raw:
        raise StorageError(
            f"{path}: is no list; write [{{{', '.join(FIELDS)}}}, …] with at least one item."
        )
    return raw


def _wrong(item: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(item, dict):
        yield "", f"is no object; write {{{', '.join(FIELDS)}}}"
        return
    question = item.get("question")
    if not isinstance(question, str) or not question.strip():
        yield ".question", "is missing or empty; write the user's question"
    for name in ("reference_answer", "answer"):
        if not isinstance(item.get(name), str | None):
            yield f".{name}", "is no text; write a string"
    contexts = item.get("contexts")
    if contexts is not None and not (
        isinstance(contexts, list) and all(isinstance(text, str) for text in contexts)
    ):
        yield ".contexts", "is no list of texts; write the retrieved passages as strings"


SHOWN = 6
"""Sentences that are listed for a bad case."""


def _show_worst(console: Console, item: WorstCase) -> None:
    """Each sentence with its cosines, the farthest first, and what it is nearest to."""
    from terminal.tables import plain

    sentences = sorted(item.evidence.get("sentences", ()), key=lambda sentence: sentence["window"])
    for sentence in sentences[:SHOWN]:
        console.print(
            f"  {sentence['window']:6.3f}  {plain(sentence['text'], 160)}\n"
            f"          nearest: {plain(sentence['nearest'], 160)}",
            soft_wrap=True,
        )


SECTION = SectionScorer(
    options=EmbeddingOptions, scorer=_make_scorer, show_worst=_show_worst, one_process=True
)
