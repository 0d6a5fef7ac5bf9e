"""Score retrieval of a run: recall, precision, F1, NDCG, MAP and MRR against the gold supports.

In: a run folder (results.jsonl) and the eval set. Out: a table on the terminal,
scores/retrieval.jsonl (a line a case, with the rank of each gold support) and the section
``retrieval`` of the run's metrics.json.

\b
Examples:
  python eval/scripts/score_retrieval.py
  python eval/scripts/score_retrieval.py --run night-12 --by category --worst 10
  python eval/scripts/score_retrieval.py --match doc --k 5,20 --json
"""

from __future__ import annotations

from dataclasses import dataclass

import options
from ragmetrics.defaults import KS
from records import opt
from scorers.score_request import MatchScoring


@dataclass(frozen=True, kw_only=True)
class RetrievalScoring(MatchScoring):
    """The options of score_retrieval.py."""

    ks: tuple[int, ...] = opt.value(
        "Cut-offs, separated by commas.", names="--k ks", default=KS, shown="1,3,5,10"
    )
    gain: str | None = opt.setting(
        "linear (NDCG's gain is the grade) or exp (2^grade - 1)", choices=("linear", "exp")
    )


@options.script(RetrievalScoring, help=__doc__)
def main(asked: RetrievalScoring) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("retrieval", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
