"""What `--help` and the imports of each script cost.

    python bench/bench_start.py --rounds 7

Checks that --help loads none of the slow libraries (python -X importtime).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial

from measuring import SCRIPTS, in_turn, measure, median, print_table

SLOW = {"textual", "sentence_transformers", "torch", "sklearn", "numpy", "requests"}
HEAD = ("process", "--help, CPU ms", "import, CPU ms", "peak MB", "slow libraries loaded")


def loaded(script: str) -> set[str]:
    """The slow libraries that ``--help`` of a script imports."""
    command = [sys.executable, "-X", "importtime", str(SCRIPTS / f"{script}.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    return names & SLOW


def scripts() -> list[str]:
    """The commands: files of eval/scripts that do something when they are run."""
    return [
        path.stem
        for path in sorted(SCRIPTS.glob("*.py"))
        if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="(%(default)s)")
    parser.add_argument("--scripts", help="some of them, as name,name (all)")
    options = parser.parse_args()
    names = options.scripts.split(",") if options.scripts else scripts()
    enter = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import "
    runs = {"Python alone": partial(measure, [sys.executable, "-c", "pass"])}
    for name in names:
        runs[f"{name} help"] = partial(measure, [sys.executable, SCRIPTS / f"{name}.py", "--help"])
        runs[f"{name} import"] = partial(measure, [sys.executable, "-c", enter + name])
    found = in_turn(runs, options.rounds)
    floor = median(found["Python alone"], "cpu") * 1000
    rows = [
        ["Python alone", f"{floor:.0f}", "", f"{median(found['Python alone'], 'peak_mb'):.0f}", ""]
    ]
    slow = {name: loaded(name) for name in names}
    for name in names:
        shown, imported = found[f"{name} help"], found[f"{name} import"]
        figures = [f"{median(runs, 'cpu') * 1000:.0f}" for runs in (shown, imported)]
        peak = f"{median(shown, 'peak_mb'):.0f}"
        rows.append([name, *figures, peak, ", ".join(sorted(slow[name])) or "none"])
    print(f"## Starting each script, median of {options.rounds}")
    print_table(HEAD, rows)
    if any(slow.values()):
        sys.exit("A script loads a slow library for --help.")


if __name__ == "__main__":
    main()
