"""calibration.json: who judged, by which prompt, against which labels, and every figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from records.errors import StorageError
from records.files import read_json, replace_json
from records.metrics import rounded
from records.rubrics import PREFIX

NAME = "calibration.json"

METRICS = ("groundedness", "correctness")
"""Metrics whose verdicts people can label."""

SCHEMA = 1

Interval = tuple[float, float]


class _Figure(msgspec.Struct):
    value: float | None = None
    ci95: Interval | None = None


class _Mean(msgspec.Struct):
    mean: float
    ci95: Interval


class _Confusion(msgspec.Struct):
    supported_supported: int
    supported_not: int
    not_supported: int
    not_not: int


class _Slice(msgspec.Struct):
    n: int
    unsupported: int
    agree: int
    specificity: float | None = None
    sensitivity: float | None = None
    kappa: float | None = None


class _Labels(msgspec.Struct):
    annotators: dict[str, int] = {}
    alpha: float | None = None
    by_verdict: dict[str, dict[str, int]] = {}


class _Disagreement(msgspec.Struct):
    case_id: str
    claim_id: str
    claim: str
    human: str
    verdict: str
    reason: str


class _Form(msgspec.Struct):
    """What the readers of a stored calibration use of it."""

    judge: dict[str, Any]
    prompt: dict[str, Any]
    metric: str
    too_few: bool
    parameters: dict[str, Any] | None = None
    attack: dict[str, Any] | None = None
    n: int = 0
    sources: int = 0
    supported: int = 0
    unsupported: int = 0
    cases: int = 0
    weighted: bool = False
    also_runs: list[str] = []
    confusion: _Confusion | None = None
    figures: dict[str, _Figure] | None = None
    corrected: dict[str, _Mean | float | None] | None = None
    by: dict[str, dict[str, _Slice]] = {}
    labels: _Labels = msgspec.field(default_factory=_Labels)
    worst: list[_Disagreement] = []


def name_of(metric: str) -> str:
    """The file of a metric's calibration in a run folder."""
    return NAME if metric == METRICS[0] else f"calibration_{metric}.json"


def files_of(folder: Path) -> list[Path]:
    """The calibrations in a run folder: of the metrics, then of rubrics by name."""
    paths = [folder / name_of(metric) for metric in METRICS]
    return [
        *(path for path in paths if path.exists()),
        *sorted(folder.glob(f"calibration_{PREFIX}*.json")),
    ]


def write(path: Path, calibration: dict[str, Any], *, texts: bool = True) -> None:
    """Replace the file. ``texts=False`` leaves out claims and questions: for a committed file."""
    shown = (
        calibration
        if texts
        else {name: part for name, part in calibration.items() if name != "worst"}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_json(path, rounded(shown))


def read(path: Path) -> dict[str, Any]:
    """A stored calibration. Raises StorageError when it is absent or is none."""
    if not path.is_file():
        raise StorageError(f"{path}: no such file; write one with --output FILE.")
    calibration = read_json(path, SCHEMA)
    try:
        msgspec.convert(calibration, _Form)
    except msgspec.ValidationError as error:
        raise StorageError(
            f"{path}: is not a calibration of a judge ({error}); write it again with "
            "calibrate_judge.py."
        ) from None
    return calibration
