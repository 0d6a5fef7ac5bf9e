"""Score the searches behind each answer: what each one found, and what was lost after them.

For bots that search several times and report it (``searches`` in results.jsonl, see the profile).
In: a run folder and the eval set with gold. Out: a table by metric, by search and, for
conversations, by turn; scores/searches.jsonl and the section ``searches`` of metrics.json.

\b
Examples:
  python eval/scripts/score_searches.py
  python eval/scripts/score_searches.py --worst 5
  python eval/scripts/score_searches.py --worst 5 --worst-by lost_supports
"""

from __future__ import annotations

import options
from scorers.score_request import MatchScoring


@options.script(MatchScoring, help=__doc__)
def main(asked: MatchScoring) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("searches", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
