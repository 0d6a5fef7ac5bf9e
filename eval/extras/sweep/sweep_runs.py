"""Race the settings of a bot: drop those that are proven worse, and say which is best.

In: grid.toml (settings, goal, limits), an eval set, and a bot. Its settings are fields of its
requests, headers, options of the demo, or words of the command that starts it. Out: an ordinary run
folder for each setting, and eval/results/<sweep_id>.sweep.json; on stdout a table, and commands
that compare the remaining settings.

\b
Examples:
  python eval/extras/sweep/sweep_runs.py grid.toml --api-url demo
  python eval/extras/sweep/sweep_runs.py grid.toml --api-url http://localhost:8080 --max-calls 5000
  python eval/extras/sweep/sweep_runs.py grid.toml --api-url demo --resume --run-id k-and-weights
  python eval/extras/sweep/sweep_runs.py grid.toml --api-url demo --confirm 30

Exit codes: 0 done, 2 bad input or usage, 3 bot unreachable, 130 interrupted.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options
from clients.run_options import HISTORIES, LIMITS, MOST
from records import opt


@dataclass(frozen=True, kw_only=True)
class RaceOptions(opt.Output):
    """The options of sweep_runs.py."""

    grid: Path = opt.argument(path="file", required=True)
    eval_set: Path = opt.eval_set()
    results_dir: Path = opt.results_dir()
    api_url: str | None = opt.api_url()
    profile: str = opt.profile()
    header: tuple[str, ...] = opt.header(opt.SENT_HEADER)
    pairs: tuple[str, ...] = opt.pairs(LIMITS)
    run_id: str | None = opt.value("Name of the sweep.  [default: time and grid]")
    resume: bool = opt.flag("Continue the sweep --run-id: ask the missing questions.")
    retry_errors: bool = opt.flag("With --resume: ask failed cases again.")
    max_calls: int | None = opt.value(
        "Stop before a block that would exceed this.", low=1, high=MOST * MOST
    )
    max_cost: float | None = opt.value(
        "Limit in USD, by the cost that the bot reports or the profile's prices of tokens.",
        low=0,
        above=True,
    )
    confirm: int = opt.value(
        "At the end ask winner and baseline N cases: set aside, if half are left, else again.",
        default=0,
        low=0,
        high=MOST,
        metavar="N",
    )
    ask_all: bool = opt.flag("Continue when no further difference is expected.")
    history: str = opt.value(
        "History that later turns send. live: the bot's own answers; replay: the reference "
        "answers; alone: question_alone, no history; none: the question, no history. With "
        "--retrieval-only: replay.",
        default="live",
        choices=HISTORIES,
    )
    store_full_text: bool = opt.flag("Store whole chunk texts, not 200 characters.")
    filters: tuple[str, ...] = opt.repeated(
        "Only cases that pass it.", names="--filter", metavar="NAME=VALUE"
    )
    limit: int | None = opt.value("Only the first N cases.", low=1, high=MOST)
    repeat: int = opt.value("Ask each case N times.", default=1, low=1, high=MOST)
    max_error_rate: float = opt.error_rate(
        "Drop a setting when more than this share of its calls provably fail."
    )
    labels_dir: Path = opt.labels_dir()
    seed: int = opt.seed()


_OF_THE_RACE = ("grid", "pairs", "max_calls", "max_cost", "confirm", "ask_all")
"""The options that are not of each run."""


@options.script(RaceOptions, how_to_go_on="")
def main(asked: RaceOptions) -> None:
    """Ask a grid of settings as a race.

    The cases are asked in ten random blocks; after each, settings that are proven worse than the
    best, or break a limit of the grid, are dropped. The baseline is never dropped. The sweep ends
    when one setting is left, every case was asked, the budget is spent, or the rest of the cases
    would hardly show a difference, and says which.
    """
    from clients.limits import BOT_LIMITS
    from clients.run_plan import RunOptions
    from extras.sweep.grid import read_grid
    from extras.sweep.page import sweep_page
    from extras.sweep.running import SweepProgress
    from extras.sweep.setting_run import SweepOptions
    from records.settings import from_pairs
    from terminal.print_page import print_page

    if asked.resume and not asked.run_id:
        raise click.UsageError("--resume needs --run-id: name the sweep to continue.")
    of_runs = {name: value for name, value in vars(asked).items() if name not in _OF_THE_RACE}
    common = RunOptions(
        **of_runs | {"run_id": asked.run_id or time.strftime("%Y%m%d-%H%M%S-sweep")},
        set_limits=from_pairs(asked.pairs, BOT_LIMITS),
    )
    console = options.stderr_console(quiet=common.quiet)
    sweep_options = SweepOptions(
        read_grid(asked.grid),
        asked.grid,
        common,
        asked.max_calls,
        asked.max_cost,
        asked.confirm,
        asked.ask_all,
    )
    sweep = SweepProgress(sweep_options, console)
    try:
        outcome = sweep.run()
    except KeyboardInterrupt:
        words = f"Stopped; what came in is kept. Go on with {sweep.how_to_resume()}."
        console.print(words)
        raise
    if common.as_json:
        click.echo(sweep.path.read_bytes(), nl=False)
        return
    print_page(options.stdout_console(), sweep_page(outcome, common.results_dir))


if __name__ == "__main__":
    main()
