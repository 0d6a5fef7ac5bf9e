"""Score a run by sentence embeddings: are contexts near the question, is the answer near both?

In: a run folder with full chunk texts (run_eval.py --store-full-text) and the eval set, or a plain
data set: --dataset FILE, a JSON list of {question, reference_answer, answer, contexts}. Out: a
table on the terminal; for a run also scores/embedding.jsonl (each sentence with its nearest
context) and the section ``embedding`` of metrics.json. eval/cache/embeddings keeps the vectors:
scoring again embeds nothing.

\b
Examples:
  python eval/scripts/score_embedding.py
  python eval/scripts/score_embedding.py --run night-12 --by category --worst 10
  python eval/scripts/score_embedding.py --dataset answers.json \\
      --embedding-model BAAI/bge-small-en-v1.5 --set allow_download=true
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import options
from records import opt
from scorers.score_request import ScoreRequest


@dataclass(frozen=True, kw_only=True)
class EmbeddingScoring(ScoreRequest):
    """The options of score_embedding.py."""

    dataset: Path | None = opt.value(
        "Score this JSON list of {question, reference_answer, answer, contexts}; no run needed.",
        path="file",
    )
    embedding_model: str | None = opt.value(
        "Embedding model: a hub's name or a folder.  [default: bundled all-MiniLM-L6-v2]",
        names="--embedding-model --model",
    )
    allow_download: bool = opt.setting(
        "true downloads a missing embedding model from its hub", default=False
    )
    cache_dir: Path = opt.cache_dir("Where vectors are kept.")
    sufficiency_threshold: float | None = opt.setting(
        "cosine with the question from which a context is sufficient (default 0.5)", low=-1, high=1
    )
    hallucination_threshold: float | None = opt.setting(
        "cosine with a whole context under which a sentence is unsupported, @1 (default 0.4)",
        low=-1,
        high=1,
    )
    window_threshold: float | None = opt.setting(
        "the same for 1-3 sentences of a context, @2 (default 0.65)", low=-1, high=1
    )


@options.script(EmbeddingScoring, help=__doc__)
def main(asked: EmbeddingScoring) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("embedding", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
