"""Look through runs and their cases on the terminal: what failed, why, and what changed.

In: the run folders of eval/results with their scores, and eval_set.jsonl with its labels. Out: your
notes and flags on cases, in labels/notes, and your exports. No run is changed. Without RUN you see
the list of runs, with one run its cases. With two (BASE NEW) you see the cases that succeed in one
and fail in the other. A changed file is read again (R: at once).

Enter opens and Esc goes back; in a case, left and right (h l) go to the case before and after it.
/ filters a list, such as `failing category=factual recall@5=0 words`, and searches in a case. ?
shows all keys of a screen. A key does the same in label_eval.py.

\b
Examples:
  python eval/scripts/browse_runs.py
  python eval/scripts/browse_runs.py latest
  python eval/scripts/browse_runs.py k5 k10

Exit codes: 0 done, 2 bad input or usage, 130 ended by a signal.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import click

import options
from records import errors, opt
from records.home import CACHE_DIR


@dataclass(frozen=True, kw_only=True)
class BrowseOptions:
    """The options of browse_runs.py."""

    runs: tuple[str, ...] = opt.argument(metavar="[RUN] | [BASE NEW]")
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    pairs: tuple[str, ...] = opt.screen()


@options.script(BrowseOptions, help=__doc__)
def main(asked: BrowseOptions) -> int:
    from clients.embedder import question_vectors
    from options.tables import screen_settings
    from records.runs import find_run
    from scorers.copies import scored_alike
    from views.library import RunLibrary

    runs = asked.runs
    if len(runs) > 2:
        raise click.UsageError("name one run, or two to compare; not more.")
    folders = [find_run(asked.results_dir, run) for run in runs]
    if len(runs) == 2 and len({folder.resolve() for folder in folders}) == 1:
        raise click.UsageError(f"{runs[0]} and {runs[1]} are the same run; name two.")
    if len({folder.name for folder in folders}) < len(folders):
        raise click.UsageError("both folders have the same name; rename one of them.")
    screen = screen_settings(asked.pairs)
    screen.pop("keymap", None)  # of the labeller
    check_terminal()
    labeller = (sys.executable, str(Path(__file__).with_name("label_eval.py")))
    embed = question_vectors(CACHE_DIR)
    library = RunLibrary(
        asked.results_dir,
        asked.eval_set,
        asked.labels_dir,
        extra=folders,
        labeller=labeller,
        embed=embed,
        score_base=scored_alike,
    )
    from views.browser.app import run as browse

    try:
        return browse(library, [folder.name for folder in folders], **screen)
    except ValueError as error:
        raise errors.StorageError(str(error)) from None


def check_terminal() -> None:
    """The full screen reads keys from stdin and draws on stderr; both must be a terminal."""
    for stream, name in ((sys.stdin, "stdin"), (sys.stderr, "stderr")):
        if not stream.isatty() or os.environ.get("TERM") == "dumb":
            raise errors.StorageError(
                f"{name} is not a terminal that can show a full screen. report_run.py and "
                "compare_runs.py work anywhere."
            )


if __name__ == "__main__":
    main()
