"""Score a run by sentence embeddings: are contexts near the question, is the answer near both?

In: a run folder with full chunk texts (run_eval.py --store-full-text) and the eval set, or a plain
data set: --dataset FILE, a JSON list of {question, reference_answer, answer, contexts}. Out: a
table on the terminal; for a run also scores/embedding.jsonl (each sentence with its nearest
context) and the section ``embedding`` of metrics.json. Vectors are kept in eval/cache/embeddings:
scoring again embeds nothing.

\b
Examples:
  python eval/scripts/score_embedding.py
  python eval/scripts/score_embedding.py --run night-12 --by category --worst 10
  python eval/scripts/score_embedding.py --dataset answers.json \\
      --embedding-model BAAI/bge-small-en-v1.5 --allow-download
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

import options
import storage


@options.command(help=__doc__)
@options.score_options
@options.scheduler_option
@click.option(
    "--dataset",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Score this JSON list of {question, reference_answer, answer, contexts}; no run needed.",
)
@click.option(
    "--embedding-model",
    "--model",
    help=options.EMBEDDING_MODEL,
)
@click.option(
    "--allow-download",
    is_flag=True,
    help="Fetch an embedding model that is not on this machine from its hub.",
)
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=storage.CACHE_DIR,
    show_default="eval/cache",
    help="Where vectors are kept.",
)
@click.option(
    "--sufficiency-threshold",
    type=options.FiniteRange(-1, 1),
    default=0.5,
    show_default=True,
    help="Cosine with the question from which a context counts as sufficient.",
)
@click.option(
    "--hallucination-threshold",
    type=options.FiniteRange(-1, 1),
    default=0.4,
    show_default=True,
    help="Cosine with a whole context under which a sentence counts as unsupported (@1).",
)
@click.option(
    "--window-threshold",
    type=options.FiniteRange(-1, 1),
    default=0.65,
    show_default=True,
    help="The same for 1-3 sentences of a context (@2).",
)
def main(dataset: Path | None, **values: Any) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    with tempfile.TemporaryDirectory(prefix="rag-eval-") as temporary:
        if dataset is not None:
            from scorers.embedding import as_run

            folder = as_run(dataset, Path(temporary))
            eval_set = folder / storage.EVAL_SET.name
            values |= {"run": str(folder), "eval_set": eval_set, "labels_dir": folder}
        score_and_show("embedding", values, options.Streams(values), print_worst)


if __name__ == "__main__":
    main()
