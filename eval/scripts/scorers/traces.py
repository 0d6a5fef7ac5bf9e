"""Traces: for each failed case of a perspective, one line with all that is needed to debug it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

from decisions.measures import known_metrics
from ragmetrics.catalogue.metric import Metric
from records.cases import iter_cases
from records.errors import Problem, StorageError
from records.files import replace_bytes
from records.labels import read_labels
from records.results import SCHEMA, iter_results
from records.runs import CONFIG, RESULTS, read_config, scores_file
from records.runs import SAFETY_RESULTS as SAFETY_ANSWERS
from records.targets import Target
from scorers.sections import Perspective, Settings

Key = tuple[str, int]


def write_traces(
    perspective: Perspective,
    section: Mapping[str, Any],
    targets: Mapping[str, Target],
    settings: Settings,
    folder: Path,
    label: str,
) -> tuple[Path, int]:
    """Write traces/<perspective>-<label>.jsonl in ``folder``; returns its path and its lines.

    A case fails when one of its scores misses the metric's target, when a binary metric of the
    perspective's ``must`` has its bad end, or when the bot's call failed. Raises StorageError when
    the folder cannot be written. Memory: the traces.
    """
    failed = dict(_failed_rows(perspective, section, targets, settings))
    path = folder / "traces" / f"{perspective.name}-{label}.jsonl"
    config = settings.folder / CONFIG
    known = read_config(settings.folder) if config.exists() else None
    run = {"run_id": folder.name, "config_hash": known.config_hash if known else None}
    cases = _cases(settings, {case_id for case_id, _ in failed})
    results = dict(_results(settings.folder, failed))
    lines = []
    for key, row in failed.items():
        trace = {"schema": SCHEMA, "perspective": perspective.name} | run | row
        trace |= {"case": cases.get(key[0]), "result": results.get(key)}
        lines.append(orjson.dumps(trace) + b"\n")
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path.parent}: cannot be made ({error.strerror}).") from None
    replace_bytes(path, b"".join(lines))
    return path, len(failed)


def _failed_rows(
    perspective: Perspective,
    section: Mapping[str, Any],
    targets: Mapping[str, Target],
    settings: Settings,
) -> Iterator[tuple[Key, dict[str, Any]]]:
    rows = known_metrics(settings.custom)
    directions = {
        name: row for name, one in section["definitions"].items() if (row := rows.get(one))
    }
    with open(scores_file(settings.folder, perspective.name), "rb") as file:
        for line in file:
            row = orjson.loads(line)
            misses = list(_misses(row["scores"], targets, directions, perspective.must))
            if misses or row["status"] == "failed":
                yield (row["case_id"], row["repeat"]), {**row, "failed": misses}


def _misses(
    scores: Mapping[str, float | None],
    targets: Mapping[str, Target],
    rows: Mapping[str, Metric],
    must: Sequence[str],
) -> Iterator[dict[str, Any]]:
    for name, score in scores.items():
        if score is None:
            continue
        target = targets.get(name)
        row = rows.get(name)
        if name in must and row is not None:
            wanted = 1.0 if row.higher_is_better else 0.0
            if score != wanted:
                yield {"metric": name, "score": score, "target": f"{wanted:g}"}
        elif target is not None and not target.passed(score):
            yield {"metric": name, "score": score, "target": str(target)}


def _cases(settings: Settings, ids: set[str]) -> dict[str, Any]:
    labels, _ = read_labels(settings.labels_dir, _pass_over)
    return {
        case.id: msgspec.to_builtins(case)
        for case in iter_cases(settings.eval_set, _pass_over, labels)
        if case.id in ids
    }


def _results(folder: Path, wanted: Mapping[Key, Any]) -> Iterator[tuple[Key, dict[str, Any]]]:
    """What the bot returned, whole, to the failed cases and labelled prompts."""
    for name in (RESULTS, SAFETY_ANSWERS):
        path = folder / name
        for result in iter_results(path) if path.exists() else ():
            key = (result.test_case_id, result.repeat)
            if key in wanted:
                yield key, result.to_dict(store_full_text=True)


def _pass_over(problem: Problem) -> None:
    """Faulty lines were reported when the run was scored."""
