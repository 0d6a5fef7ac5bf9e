"""How a run is asked in portions, by the options of run_eval.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from extras.sweep.repeating import RepeatUntilSure
from extras.sweep.scoring import full_name
from extras.sweep.stopping import StopWhenDecided
from records.runs import find_run
from scorers.contract import ScoringJob


def pace_of(own: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any] | None:
    """How the run is asked.

    Raises UsageError for options that do not go together.
    """
    against, width = own["against"], own["until_sure"]
    budgets = {name: own[name] for name in ("max_calls", "max_cost")}
    if width is None and any(limit is not None for limit in budgets.values()):
        raise click.UsageError("--max-calls and --max-cost are for --until-sure.")
    if against is None and width is None:
        return None
    if against is not None and width is not None:
        raise click.UsageError("--against and --until-sure: choose one of them.")
    if width is not None and values["repeat"] > 1:
        raise click.UsageError("--repeat and --until-sure: choose one of them.")
    if values["from_jsonl"]:
        raise click.UsageError("--from-jsonl asks no bot, so there is nothing to stop.")
    job = ScoringJob(
        values["results_dir"], values["eval_set"], values["labels_dir"], values["seed"]
    )
    if width is not None:
        return {"pace": RepeatUntilSure(full_name(own["metric"]), width, job=job, **budgets)}
    base = find_run(values["results_dir"], against)
    return {"pace": StopWhenDecided(base, own["metric"], values["repeat"], job)}
