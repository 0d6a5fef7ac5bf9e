"""Score the tool calls of each answer: expected tools, forbidden tools, arguments.

For bots that report their tool calls (``tools`` in results.jsonl, see the profile). In: a run
folder and an eval set with ``expected_tools``, ``forbidden_tools`` or ``max_tool_calls``. Out: a
table by metric; scores/tools.jsonl and the section ``tools`` of metrics.json. No model, no network.

\b
Examples:
  python eval/scripts/score_tools.py
  python eval/scripts/score_tools.py --worst 5
  python eval/scripts/score_tools.py --worst 5 --worst-by forbidden_called
"""

from __future__ import annotations

import options
from scorers.score_request import ScoreRequest


@options.script(ScoreRequest, help=__doc__)
def main(asked: ScoreRequest) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("tools", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
