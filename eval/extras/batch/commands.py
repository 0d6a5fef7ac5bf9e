"""Writes the missing requests as batch files, sends them, and fetches their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import options
from clients.http import RetryPolicy
from extras.batch.request_files import (
    BATCH,
    PRELIMINARY,
    PROVIDERS,
    BatchCounts,
    BatchFolder,
    RequestCollector,
    declared,
    read_folder,
    write_requests,
)
from extras.batch.server import BatchServer, fetch, submit
from judging.asking import fact_store
from judging.cache import VerdictCache
from judging.connect import Connection, JudgeOptions, read_salt, unasked
from judging.identity import JudgeError, JudgePin
from judging.judge_files import LOCAL
from judging.protocols import ANTHROPIC, endpoint
from judging.run import JudgingPlan, rehearse
from records.files import json_bytes
from records.results import SCHEMA
from records.runs import JUDGE_CACHE
from terminal.tables import printable

IMPORT = "eval/extras/batch/import_results.py"

Plans = Callable[[], Sequence[JudgingPlan]]


def write_out(
    own: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    judge_options: JudgeOptions,
    plans: Plans,
) -> int | None:
    """Write the requests that the cache lacks; None where --batch-out is not given.

    ``own``: the values of the extra's options. ``values``: those of the script. ``plans``: what is
    to be judged, a run each.
    """
    if own["batch_out"] is None:
        source = click.get_current_context().get_parameter_source("batch_format")
        if source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError("--batch-format says whose files --batch-out FOLDER writes.")
        return None  # a default of config.toml, which asks for nothing
    folder: Path = own["batch_out"]
    provider = own["batch_format"] or _format_of(judge_options.server)
    with collecting(judge_options, folder, provider) as batch:
        facts = fact_store(judge_options, batch.connection)
        tasks = (
            task
            for plan in plans()
            for _ in rehearse(plan, batch.connection.judge, batch.connection, facts)
            for task in batch.collector.taken()
        )
        counts = write_requests(folder, batch.state, tasks, batch.cache.get)
    if values["as_json"]:
        click.echo(json_bytes(_report(counts)), nl=False)
    else:
        click.echo("\n".join(_lines(counts, folder)))
    return options.Exit.DONE


def _format_of(server: str) -> str:
    """The format of the provider at an address; OpenAI's where that does not say."""
    return "anthropic" if server and endpoint(server).form is ANTHROPIC else "openai"


def run(
    own: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    judge_options: JudgeOptions,
    plans: Plans,
) -> int | None:
    """Send batch files, fetch the finished ones, or write the missing requests."""
    if not (own["batch_submit"] or own["batch_fetch"]):
        return write_out(own, values, judge_options=judge_options, plans=plans)
    _refuse_panel(judge_options, "--batch-submit and --batch-fetch")
    folder: Path = own["batch_submit"] or own["batch_fetch"]
    url = judge_options.server or PROVIDERS[read_folder(folder).provider].url
    policy = RetryPolicy(judge_options.timeout, judge_options.retries)
    server = BatchServer(url, judge_options.api_key, policy)
    try:
        return _submit(folder, server) if own["batch_submit"] else _fetch(folder, server)
    finally:
        server.close()


def _say(text: str) -> None:
    options.say(printable(text), err=False)


def _submit(folder: Path, server: BatchServer) -> int:
    under_way = submit(folder, server, _say)
    options.say(f"{under_way} batches are in progress; check again with --batch-fetch.", err=False)
    return options.Exit.DONE


def _fetch(folder: Path, server: BatchServer) -> int:
    counts = fetch(folder, server, _say)
    if counts.results:
        click.echo(f"Import them: python {IMPORT} {' '.join(map(str, counts.results))}")
    if counts.running:
        click.echo(f"{counts.running} batches still run.")
    if counts.without_results:
        options.say(
            f"Batches that ended without results: {counts.without_results}. Their requests "
            f"can be sent again: use --batch-submit {folder}."
        )
        return options.Exit.UNREACHABLE
    return options.Exit.DONE


def _refuse_panel(judge_options: JudgeOptions, option: str) -> None:
    """Raises JudgeError for a panel, which has no server of its own."""
    if judge_options.compound is not None:
        names = ", ".join(judge_options.compound.names)
        raise JudgeError(
            f"{option}: a panel is asked online. Make and import the batch files of each member "
            f"({names}); the panel then finds these verdicts in the cache."
        )


@dataclass(frozen=True)
class BatchConnection:
    """A connection that asks no judge; ``collector`` has its requests."""

    connection: Connection
    collector: RequestCollector
    cache: VerdictCache
    state: BatchFolder


@contextmanager
def collecting(
    judge_options: JudgeOptions, folder: Path, provider: str
) -> Iterator[BatchConnection]:
    """A judge that asks no one and records its requests, for the batch files of a folder.

    It asks as the folder has learnt from its results, else as this judge was asked last. Raises
    StorageError when the options do not say who judges.
    """
    _refuse_panel(judge_options, "--batch-out")
    if judge_options.judge == LOCAL:
        raise JudgeError(
            "--batch-out: the local judge works here and needs no batch files; leave the option "
            "out, or name another judge with --judge."
        )
    pin = JudgePin(judge_options.revision, judge_options.file, judge_options.unpinned)
    identity, capabilities = declared(
        provider, judge_options.server, judge_options.model, pin, judge_options.mode
    )
    sampling = judge_options.sampling
    salt = read_salt(judge_options.cache_dir)
    cache = VerdictCache(judge_options.cache_dir / JUDGE_CACHE)
    known = read_folder(folder).capabilities if (folder / BATCH).exists() else None
    known = known or cache.found_for(identity)
    if known is not None and judge_options.mode in (None, known.mode):
        capabilities = known
    try:
        collector = RequestCollector(identity, capabilities, sampling, cache)
        connection = unasked(collector, judge_options, cache, salt, (identity, capabilities))
        state = BatchFolder(
            SCHEMA,
            provider,
            judge_options.model or "",
            identity,
            capabilities.mode,
            capabilities.dropped,
            sampling.temperature,
            sampling.seed,
            extra=dict(sampling.extra),
        )
        yield BatchConnection(connection, collector, cache, state)
    finally:
        cache.close()


def _report(counts: BatchCounts) -> dict[str, Any]:
    return {
        "round": counts.round,
        "files": [str(path) for path in counts.files],
        "requests": counts.requests,
        "again": counts.again,
        "under_way": counts.under_way,
        "preliminary": dict(counts.preliminary),
        "bytes": counts.size,
    }


def _lines(counts: BatchCounts, folder: Path) -> list[str]:
    """What was written, and the next step."""
    lines = []
    if counts.under_way:
        lines.append(
            f"{counts.under_way:,} requests of earlier rounds have no result yet; import the "
            f"results with {IMPORT}."
        )
    elif not counts.requests:
        lines.append("Nothing is left to ask: score with --offline.")
    if counts.requests:
        lines.append(
            f"Round {counts.round}: {counts.requests:,} requests ({counts.again:,} of them again), "
            f"{counts.size:,} bytes, in {len(counts.files)} files of {folder}."
        )
        lines.append(
            f"Send them with judge_answers.py --batch-submit {folder} and the same judge, or "
            f"upload them yourself; take the results in with {IMPORT}."
        )
    lines += [
        f"{number:,} of them ask for {PRELIMINARY[name]}: verdicts that need these come in round "
        f"{counts.round + 1}, after {IMPORT}."
        for name, number in sorted(counts.preliminary.items())
        if counts.requests
    ]
    return lines
