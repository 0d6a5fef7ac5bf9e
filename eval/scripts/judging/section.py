"""From verdicts to the section ``judged`` of a run: the scorer with its embedding model."""

from __future__ import annotations

from pathlib import Path

import storage
from clients.embedder import Embedder, EmbeddingUnavailable
from judging import lines
from judging.lines import FILE
from judging.scorer import JudgedScorer, read_verdicts, rows_for
from ragmetrics.judged import CORRECTNESS_WEIGHT
from scorers.abstention import Reply
from scorers.embedding import answered

NEEDS_MODEL = ("answer_relevancy", "answer_correctness_judged")


def make_scorer(
    folder: Path,
    *,
    weight: float = CORRECTNESS_WEIGHT,
    model: str | None = None,
    cache_dir: Path = storage.CACHE_DIR,
) -> JudgedScorer:
    """A scorer of the verdicts that the run has.

    Raises StorageError when there are none of the judge in config.json. Without an embedding model
    the two metrics that need one do not apply.
    """
    if not (folder / FILE).exists():
        raise storage.StorageError(f"{folder / FILE}: no such file; run judge_answers.py first.")
    judge = lines.judge_of(folder)
    verdicts = read_verdicts(folder, judge)
    if not verdicts.found:
        raise storage.StorageError(
            f"{folder / FILE}: no verdicts of the judge in config.json; run judge_answers.py."
        )
    scorer = JudgedScorer(verdicts, rows_for(verdicts), weight=weight)
    if any(metric.name in NEEDS_MODEL for metric in scorer.metrics):
        try:
            embedder = Embedder(model, cache_dir)
        except EmbeddingUnavailable as error:
            scorer.no_model = f"no embedding model: {error}"
        else:
            scorer.embed, scorer.embedding_model = embedder, _name(embedder)
    return scorer


def replies(folder: Path) -> dict[tuple[str, int], Reply]:
    """What the run's judge called each answer. Raises StorageError when it was not asked."""
    path = folder / FILE
    verdicts = read_verdicts(
        folder, lines.judge_of(folder), keep=lambda line: bool(line["metric"] == "abstained_judged")
    )
    found: dict[tuple[str, int], Reply] = {}
    for key, calls in verdicts.found.items():
        line = calls.get(("abstained_judged", 0), {}).get(0)
        if line is not None and line["status"] == "ok":
            by = "phrases" if "by_code" in line["extra"] else "judge"
            answer = line["input"].get("answer", "")
            found[key] = Reply(line["verdicts"][0]["verdict"], by, answer)
    if not found:
        raise storage.StorageError(
            f"{path}: no verdicts on abstention; run judge_answers.py --metrics abstained_judged."
        )
    return found


def judge_name(folder: Path) -> str:
    """The run's judge as ``provider/model@mark``."""
    return str(lines.identity_of(lines.judge_of(folder)["identity"]))


def warm(scorer: JudgedScorer, folder: Path, eval_set: Path, labels_dir: Path | None) -> None:
    """Embed what has no vector yet, many texts together; a model that cannot be loaded is told."""
    if scorer.embed is None:
        return
    try:
        scorer.warm(answered(folder, eval_set, labels_dir))
    except EmbeddingUnavailable as error:
        scorer.embed, scorer.no_model = None, f"no embedding model: {error}"


def _name(embedder: Embedder) -> str:
    """The model's name, for a folder with the hash of its content; no path of this machine."""
    if embedder.folder is None:
        return embedder.name
    return f"{Path(embedder.name).name} {embedder.identity[:12]}"
