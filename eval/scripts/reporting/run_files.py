"""What the report reads of a run besides its scores: answers, configuration, the judge's report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

import storage
from calibration import document
from judging.evidence import evidence_of
from judging.lines import FILE, judge_of
from judging.scorer import read_verdicts
from reporting.scan import Key, Scan
from storage import TestCase, TestResult

PARTS = ("dataset", "index", "retriever", "answerer", "api", "judge", "run")
MOST_IDS = 20


@dataclass
class Returned:
    """What one pass over results.jsonl found."""

    results: dict[Key, TestResult] = field(default_factory=dict)
    confidences: dict[Key, float | None] = field(default_factory=dict)
    """Of the answers that any scorer has looked at, in order."""
    errors: list[dict[str, Any]] = field(default_factory=list)
    configuration: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_results(folder: Path, scan: Scan, rows: Iterable[int]) -> Returned:
    """One pass over the answers: confidences, errors by kind, and the answers of some rows whole.

    Raises StorageError for a damaged line. Memory: a number an answer, and the chosen answers.
    """
    back = Returned(configuration=list(_configuration(folder)))
    path = folder / storage.RESULTS
    if not path.exists():
        back.notes.append(
            f"{storage.RESULTS} is not there: no answer, error or confidence is shown."
        )
        return back
    keys = list(scan.keys)
    wanted = {keys[row] for row in rows}
    errors: dict[str, dict[str, Any]] = {}
    for result in storage.iter_results(path):
        key = (result.test_case_id, result.repeat)
        if result.status == "error":
            _add_error(errors, result)
        elif key in scan.keys:
            back.confidences[key] = result.confidence
            if key in wanted:
                back.results[key] = result
    back.errors = sorted(errors.values(), key=lambda one: (-one["count"], one["kind"]))
    return back


def _add_error(errors: dict[str, dict[str, Any]], result: TestResult) -> None:
    error = result.error
    kind = error.kind if error else "unknown"
    one = errors.setdefault(kind, {"kind": kind, "count": 0, "example": "", "cases": []})
    one["count"] += 1
    one["example"] = one["example"] or (error.message[:300] if error else "")
    if len(one["cases"]) < MOST_IDS:
        one["cases"].append(result.test_case_id)


def _configuration(folder: Path) -> Iterator[dict[str, Any]]:
    """config.json as tables of names and values, a table a part; nothing where it is absent."""
    if not (folder / "config.json").exists():
        return
    config = msgspec.to_builtins(storage.read_config(folder))
    plain = {name: value for name, value in config.items() if name not in PARTS}
    for name, values in (("run", plain), *((part, config[part]) for part in PARTS)):
        rows = [{"name": key, "value": value} for key, value in _flat(values)]
        if rows:
            title = "how it was asked" if values is config["run"] else name
            yield {"part": "run" if values is plain else title, "rows": rows}


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Nested values as dotted names and text; what is empty is left out."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, list):
            if value:
                yield before + name, ", ".join(map(str, value))
        elif value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield before + name, text


def read_cases(eval_set: Path, labels_dir: Path | None, ids: set[str]) -> dict[str, TestCase]:
    """The cases with these ids. Faulty lines were reported when the run was scored."""
    if not ids:
        return {}
    labels, _ = storage.read_labels(labels_dir, _pass_over)
    cases = storage.iter_cases(eval_set, _pass_over, labels)
    return {case.id: case for case in cases if case.id in ids}


def _pass_over(problem: storage.Problem) -> None:
    """See read_cases."""


def read_judged(
    folder: Path, cases: Mapping[str, TestCase], results: Mapping[Key, TestResult]
) -> dict[Key, Mapping[str, Any]]:
    """By answer, what the run's present judge said of it: claims and facts, as the scores count it.

    ``stale`` is True where verdicts were left out since the answer or its labels have changed.
    Raises StorageError for a damaged file.
    """
    if not (folder / FILE).exists():
        return {}
    verdicts = read_verdicts(
        folder, judge_of(folder), keep=lambda line: (line["case_id"], line["repeat"]) in results
    )
    found: dict[Key, Mapping[str, Any]] = {}
    for key, result in results.items():
        if (case := cases.get(key[0])) is not None:
            opinions, stale = verdicts.opinions(verdicts.subject(case, result))
            found[key] = evidence_of(opinions.get(0, {})) | {"stale": stale}
    return found


def read_calibrations(folder: Path) -> list[dict[str, Any]]:
    """What calibrate_judge.py found of the judge, a metric each; empty where it has not been run.

    Raises StorageError for a file that is none.
    """
    places = [folder / document.name_of(metric) for metric in document.METRICS]
    return [document.read(path) for path in places if path.exists()]
