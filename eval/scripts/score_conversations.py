"""Score whole conversations: which turn fails, what turns owe to earlier ones, asking back.

For sets with conversations (``conversation`` and ``turn``) or a fixed ``history``. In: a run folder
with full texts and the eval set. Out: tables on the terminal, scores/conversations.jsonl (a line a
turn) and the section ``conversations`` of the run's metrics.json.

\b
Examples:
  python eval/scripts/score_conversations.py
  python eval/scripts/score_conversations.py --worst 5
  python eval/scripts/score_conversations.py --worst 5 --worst-by over_asking
"""

from __future__ import annotations

import options
from scorers.score_request import MatchScoring


@options.script(MatchScoring, help=__doc__)
def main(asked: MatchScoring) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("conversations", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
