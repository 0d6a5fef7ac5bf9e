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

import options
from scorers.score_request import EmbeddingScoring


@options.script(EmbeddingScoring, help=__doc__)
def main(asked: EmbeddingScoring) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("embedding", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
