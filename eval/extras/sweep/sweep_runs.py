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
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options

MOST = 1_000_000
SHARED: dict[str, Any] = {
    "from_jsonl": None,
    "k": 10,
    "folder_mode": None,
    "retrieval_only": False,
    "demo_arg": (),
}
"""Options of run_eval.py that a setting sets, or that keep their usual value here."""


@options.command(how_to_go_on="")
@click.argument("grid", type=options.FILE)
@options.eval_set_option
@options.results_dir_option
@options.api_url_option
@options.profile_option
@options.header_option
@options.limits_option
@click.option("--run-id", help="Name of the sweep.  [default: time and grid]")
@click.option(
    "--resume", is_flag=True, help="Continue the sweep --run-id: ask the missing questions."
)
@options.retry_errors_option
@click.option(
    "--max-calls",
    type=click.IntRange(1, MOST * MOST),
    help="Stop before a block that would exceed this.",
)
@click.option(
    "--max-cost",
    type=options.FiniteRange(0, min_open=True),
    help="Limit in USD, by the cost that the bot reports or the profile's prices of tokens.",
)
@click.option(
    "--confirm",
    type=click.IntRange(0, MOST),
    default=0,
    metavar="N",
    help="At the end ask winner and baseline N cases: set aside, if half are left, else again.",
)
@click.option("--ask-all", is_flag=True, help="Continue when no further difference is expected.")
@options.history_option
@options.full_text_option
@click.option("--filter", multiple=True, metavar="NAME=VALUE", help="Only cases that pass it.")
@click.option("--limit", type=click.IntRange(1, MOST), help="Only the first N cases.")
@click.option("--repeat", type=click.IntRange(1, MOST), default=1, help="Ask each case N times.")
@options.error_rate_option(
    help="Drop a setting when more than this share of its calls provably fail."
)
@options.labels_option
@options.seed_option
@options.json_option
@options.verbosity_options
def main(grid: Path, run_id: str | None, **values: Any) -> None:
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

    if values["resume"] and not run_id:
        raise click.UsageError("--resume needs --run-id: name the sweep to continue.")
    budgets = {name: values.pop(name) for name in ("max_calls", "max_cost", "confirm", "ask_all")}
    filters = values.pop("filter")
    limits = from_pairs(values.pop("set"), BOT_LIMITS)
    common = RunOptions(
        **SHARED,
        **values,
        filters=filters,
        set_limits=limits,
        run_id=run_id or time.strftime("%Y%m%d-%H%M%S-sweep"),
    )
    console = options.stderr_console(quiet=common.quiet)
    sweep = SweepProgress(SweepOptions(read_grid(grid), grid, common, **budgets), console)
    try:
        outcome = sweep.run()
    except KeyboardInterrupt:
        words = f"Stopped; what came in is kept. Go on with {sweep.how_to_resume()}."
        console.print(words)
        raise
    if common.as_json:
        click.echo(sweep.path.read_bytes(), nl=False)
        return
    print_page(options.stdout_console(), sweep_page(outcome))


if __name__ == "__main__":
    main()
