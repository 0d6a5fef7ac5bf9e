"""The runs of a results folder: what each one is, and one case over all of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from decisions.case_verdict import Key
from records import jsonl
from records.asked import (
    asked_counts,
    asked_of,
    count_results,
    missing_remark,
    unreadable_remark,
)
from records.errors import StorageError
from records.file_access import open_plain, read_whole
from records.metrics import MetricsSummary, read_summary
from records.results import UNREADABLE, RunConfig
from records.run import Run
from records.runs import CONFIG, METRICS, PARTIAL, results_file

STILL_SECONDS = 120.0
"""A partial file that did not grow for so long belongs to a run that was stopped."""

_SHOWN = ("dataset", "index", "retriever", "answerer", "judge", "api")

_LEFT_OUT = {"sha256", "labels_sha256", "fields_seen", "mapped", "profile_sha256", "requested"}
"""Of the configuration, what tells a reader little."""

T = TypeVar("T")

_Name = tuple[str, str]
"""A section and a metric of it."""

Signature = tuple[tuple[int, int] | None, ...]


_OF_CONFIG = jsonl.project(RunConfig, (*_SHOWN, "run", "started"))


State = Literal["complete", "running", "stopped", "empty"]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run folder at a glance.

    ``done`` counts result lines (of ``planned``, None when unknown). ``state``: running when a
    results.partial.jsonl grows, stopped when it stands still. ``sections``: means by section and
    metric, with the number of cases behind each. ``config``: ``label: value`` pairs.
    """

    run_id: str
    state: State
    started: str = ""
    done: int | None = None
    planned: int | None = None
    errors: int | None = None
    missing: str = ""
    """How many of the asked cases have no result, and how many answers could not be read, in words;
    "" for none."""
    sections: Mapping[str, Mapping[str, tuple[float | None, int]]] = field(default_factory=dict)
    config: tuple[tuple[str, str], ...] = ()
    problem: str = ""

    def mean(self, metric: str) -> float | None:
        """The mean of a metric in whatever section has it; None when none has."""
        for means in self.sections.values():
            if metric in means:
                return means[metric][0]
        return None


@dataclass(frozen=True, slots=True)
class MetricTrend:
    """A metric of one case, a value a run (None: no score), the oldest first.

    ``breaks``: before these points the metric's definition became another one.
    """

    section: str
    metric: str
    values: tuple[float | None, ...]
    breaks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Trend:
    """A case over the runs that scored it: their ids and dates, and its metrics."""

    runs: tuple[tuple[str, str], ...] = ()
    metrics: tuple[MetricTrend, ...] = ()
    problems: tuple[str, ...] = ()


def signature(folder: Path, more: Iterable[Path] = ()) -> Signature:
    """Changes when any of the files that a RunInfo is made of does, or one of ``more``."""
    own = (*(folder / name for name in (CONFIG, METRICS, PARTIAL)), results_file(folder))
    return file_states((*own, *more))


def file_states(paths: Iterable[Path]) -> Signature:
    """When each file was changed, and its size; None for a file that is not there."""
    states: list[tuple[int, int] | None] = []
    for path in paths:
        try:
            stat = path.stat()
            states.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            states.append(None)
    return tuple(states)


def dataset_hash(folder: Path) -> str:
    """sha256 of the set that the run was asked with; empty when config.json does not say."""
    config, _ = _read(folder / CONFIG, _config)
    sha256 = config.dataset.get("sha256") if config is not None else None
    return sha256 if isinstance(sha256, str) else ""


def run_info(folder: Path, done: int | None = None) -> RunInfo:
    """The description of a run. Never raises: what cannot be read is named in ``problem``.

    ``done``: how many results there are, where that is known.
    """
    config, bad_config = _read(folder / CONFIG, _config)
    metrics, bad_metrics = _read(folder / METRICS, read_summary)
    state = _state(folder)
    config = config or _OF_CONFIG()
    metrics = metrics or MetricsSummary()
    snapshot = RunConfig(folder.name, dataset=config.dataset, run=config.run)
    asked = asked_of(snapshot)
    planned = asked.cases * asked.repeats if asked else None
    if state == "empty" or (state == "complete" and metrics.cases is not None):
        done = metrics.cases
    elif done is None:
        done = _count_lines(folder / PARTIAL if state != "complete" else results_file(folder))
    head = {"asked": metrics.asked, "missing": metrics.missing}
    unreadable = unreadable_remark({UNREADABLE: metrics.unreadable})
    scored = bool(metrics.sections) or state != "complete"
    if not scored and done is not None and planned is not None and done < planned:
        with contextlib.suppress(OSError):  # gone since its lines were counted
            head = asked_counts(snapshot, count_results(results_file(folder)))
    return RunInfo(
        run_id=folder.name,
        state=state,
        started=config.started or "",
        done=done,
        planned=planned,
        errors=metrics.errors,
        missing="; ".join(
            filter(None, (missing_remark(head, asked.repeats if asked else 1), unreadable))
        ),
        sections={
            name: {
                metric: (mean, section.n.get(metric, 0)) for metric, mean in section.mean.items()
            }
            for name, section in metrics.sections.items()
        },
        config=tuple(_config_pairs(config)),
        problem="; ".join(filter(None, (bad_config, bad_metrics))),
    )


def _read(path: Path, reader: Callable[[Path], T]) -> tuple[T | None, str]:
    try:
        return reader(path), ""
    except FileNotFoundError:
        return None, ""
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return None, f"{path.name} cannot be read ({error})"


def _config(path: Path) -> Any:
    return msgspec.json.decode(read_whole(path), type=_OF_CONFIG)


def _state(folder: Path) -> State:
    try:
        age = time.time() - (folder / PARTIAL).stat().st_mtime
    except OSError:
        return "complete" if results_file(folder).exists() else "empty"
    return "running" if age < STILL_SECONDS else "stopped"


def _count_lines(path: Path) -> int | None:
    with contextlib.suppress(OSError), open_plain(path) as file:
        return sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 20), b""))
    return None


def _config_pairs(config: RunConfig) -> list[tuple[str, str]]:
    """``label: value`` of what the run was made with, nested values with dots."""
    pairs: list[tuple[str, str]] = []

    def add(label: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if name not in _LEFT_OUT:
                    add(f"{label}.{name}", inner)
        elif value not in (None, "", [], False):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            pairs.append((label, shown))

    for name in _SHOWN:
        add(name, getattr(config, name))
    return pairs


def case_trend(runs: Sequence[tuple[Path, RunInfo]], key: Key) -> Trend:
    """The scores of a case in all runs that scored it. ``runs``: from the newest to the oldest.

    What cannot be read is left out, and named in ``problems``.
    """
    problems: list[str] = []
    points: list[tuple[RunInfo, Mapping[_Name, float | None], Mapping[_Name, str]]] = []
    for folder, info in reversed(runs):
        try:
            lines = Run(folder).find_scores(*key)
        except StorageError as error:
            problems.append(f"{info.run_id}: {error.message}")
            continue
        values = {
            (section, name): lines[section].scores[name]
            for section in lines
            for name in lines[section].scores
        }
        if lines:
            points.append((info, values, _definitions(folder, values)))
    names = dict.fromkeys(name for _, values, _ in points for name in values)
    return Trend(
        tuple((info.run_id, info.started) for info, _, _ in points),
        tuple(
            MetricTrend(
                *name,
                tuple(values.get(name) for _, values, _ in points),
                tuple(_breaks([definitions.get(name, "") for _, _, definitions in points])),
            )
            for name in sorted(names, key=itemgetter(0))
        ),
        tuple(problems),
    )


def _definitions(folder: Path, names: Iterable[_Name]) -> Mapping[_Name, str]:
    """What each metric of a run was; those are left out of which metrics.json does not say it."""
    metrics, _ = _read(folder / METRICS, read_summary)
    of = (
        {name: section.definitions for name, section in metrics.sections.items()} if metrics else {}
    )
    return {
        (section, metric): definition
        for section, metric in names
        if (known := of.get(section))
        and (definition := known.get(metric) or known.get(metric.partition("@")[0]))
    }


def _breaks(definitions: Sequence[str]) -> Iterable[int]:
    """Before which runs the definition became another one."""
    last = ""
    for index, definition in enumerate(definitions):
        if definition and last and definition != last:
            yield index
        last = definition or last
