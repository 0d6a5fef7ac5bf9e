"""All tables that show what the decisions are worth, one after another.

    python bench/validate_decisions.py                       # about an hour on a quiet machine
    python bench/validate_decisions.py --tiny                # only to see that they run
    python bench/validate_decisions.py --part compare --part gate

Power at the printed MDE, false verdicts and EVALSIG beside (decisions_compare.py),
coverage of the intervals (decisions_coverage.py), few documents and scores in between
(decisions_few.py), the default gate (decisions_gate.py), the history's alerts
(decisions_history.py), lost scores, refusals and leads (decisions_lost.py), what failing cases
have in common (decisions_slices.py), turns of conversations (decisions_turns.py), unjudged passages
(decisions_unjudged.py). Each is a script of its own with more options.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PARTS = ("compare", "coverage", "few", "gate", "history", "lost", "slices", "turns", "unjudged")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one")
    parser.add_argument("--tiny", action="store_true", help="few simulations")
    options = parser.parse_args(words)
    failed = []
    for part in options.part or PARTS:
        script = Path(__file__).with_name(f"decisions_{part}.py")
        print(f"\n# {script.name}", flush=True)
        if part == "unjudged" and not options.tiny and "RAG_EVAL_DATA" not in os.environ:
            print("left out: set RAG_EVAL_DATA to the folder that holds trec_robust03")
            continue
        done = subprocess.run([sys.executable, script, *(["--tiny"] * options.tiny)], check=False)
        failed += [part] * (done.returncode != 0)
    print(f"\nNot as promised: {', '.join(failed)}" if failed else "\nAll as promised.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
