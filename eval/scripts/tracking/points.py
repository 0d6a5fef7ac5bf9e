"""One point of the history: what a metrics.json said, and which commit or run said it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from typing import Any

import orjson

from storage import SCHEMA

Key = tuple[str, str]
"""Section and metric."""


class NotMetrics(Exception):
    """The bytes are no metrics.json that this version reads; the message says why."""


@dataclass(frozen=True, slots=True)
class Value:
    """One metric at one point. ``definition`` is the id of what was measured."""

    mean: float
    ci95: tuple[float, float] | None
    n: int
    not_applicable: int
    failed: int
    definition: str


@dataclass(frozen=True, slots=True)
class Point:
    """``sha`` is None for a run that is not committed; then ``date`` is when the run started, ""
    when its config.json does not say so.

    ``settings``: a hash of each section's options, which may change what its numbers mean.
    ``labels``: their SHA-256, "" for none; None when the file does not tell.
    """

    sha: str | None
    date: str
    subject: str
    path: str
    run_id: str
    eval_set: str | None
    cases: int | None
    errors: int | None
    values: Mapping[Key, Value]
    settings: Mapping[str, str] = field(default_factory=dict)
    labels: str | None = None

    @property
    def label(self) -> str:
        """The short commit, or the run's id where there is no commit."""
        return self.sha[:9] if self.sha else self.run_id

    @property
    def title(self) -> str:
        """Commit, day, run and subject; for a run its id and, where it is known, its day."""
        day = self.date[:10]
        if self.sha is None:
            return f"{self.run_id} ({day}{', ' if day else ''}not committed)"
        return f'{self.label} ({day}, run {self.run_id}) "{self.subject}"'


def read_point(data: bytes, *, sha: str | None, date: str, subject: str, path: str) -> Point:
    """The point that a metrics.json makes. Metrics without a mean are left out.

    Raises NotMetrics for what is damaged, or of another schema.
    """
    try:
        raw = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise NotMetrics(f"not JSON ({error.msg})") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("sections"), dict):
        raise NotMetrics("no metrics.json: it has no sections")
    if raw.get("schema") != SCHEMA:
        raise NotMetrics(f"schema {raw.get('schema')!r}; this version reads {SCHEMA}")
    values: dict[Key, Value] = {}
    settings = {}
    for name, section in raw["sections"].items():
        if isinstance(section, dict):
            values |= {(name, metric): value for metric, value in _values(section)}
            options = orjson.dumps(section.get("options"), option=orjson.OPT_SORT_KEYS)
            settings[name] = sha256(options).hexdigest()
    return Point(
        sha=sha,
        date=date,
        subject=subject,
        path=path,
        run_id=_text(raw.get("run_id")) or path,
        eval_set=_text(raw.get("eval_set_sha256")),
        cases=_count(raw.get("cases")),
        errors=_count(raw.get("errors")),
        values=values,
        settings=settings,
        labels=_text(raw["labels_sha256"]) or "" if "labels_sha256" in raw else None,
    )


def _values(section: Mapping[str, Any]) -> list[tuple[str, Value]]:
    parts = ("mean", "ci95", "n", "not_applicable", "failed", "definitions")
    mean, ci95, n, missing, failed, definitions = (_table(section.get(part)) for part in parts)
    found = []
    for metric, value in mean.items():
        if not _is_number(value):
            continue
        found.append(
            (
                metric,
                Value(
                    float(value),
                    _interval(ci95.get(metric)),
                    _count(n.get(metric)) or 0,
                    _count(missing.get(metric)) or 0,
                    _count(failed.get(metric)) or 0,
                    _text(definitions.get(metric)) or "",
                ),
            )
        )
    return found


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _interval(value: object) -> tuple[float, float] | None:
    if isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
        return float(value[0]), float(value[1])
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
