"""metrics.json in its committed form (schema 2): a line for each metric and for each case.

In memory a section has a table for each number (mean, n, ci95, …) by metric; in the
file each metric has its numbers on one line, and what says nothing is left out.
Means by slice, turn losses and ranges are in a file of their own, slices.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec
import orjson

SCHEMA = 2

METRICS = "metrics"
"""The member of a written section with its lines."""

_TABLES = {
    "definitions": "def",
    "mean": "mean",
    "ci95": "ci95",
    "n": "n",
    "not_applicable": "na",
    "failed": "failed",
    "marks": "mark",
}
"""The tables of a section, and what each is called on a metric's line."""

_NOTHING = {"mean": None, "ci95": None, "n": 0, "not_applicable": 0, "failed": 0}
"""What a table holds for a metric whose line does not say it; other tables have no entry."""

_USUAL = ("method", "clusters")
"""Tables of which a section says the usual entry once: that of a metric with an interval, unless
its line says another one, or null for none."""

_SLICES = ("by", "by_turn", "turn_loss", "ranges")
"""Members of a section that stand in slices.json."""

_STABILITY, _REPEATS = "stability", "repeats"
"""What repeats tell of each metric stands on its line."""

PRIMARY = "primary"
"""The primary scores of every case, in eval-set order."""

_BROKEN = frozenset({PRIMARY, "sections", METRICS})
"""Members whose entries have a line each, whatever they are."""


class MetricLine(msgspec.Struct, kw_only=True):
    """The numbers of one metric as in metrics.json."""

    definition: str | None = msgspec.field(name="def", default=None)
    mean: float | None = None
    ci95: tuple[float, float] | None = None
    n: int = 0
    na: int = 0
    failed: int = 0
    mark: str = ""
    method: str | None = None
    clusters: int | None = None


class _OneLine(dict[str, Any]):
    """An object that stands on one line, whatever it holds."""


def written_section(section: Mapping[str, Any]) -> dict[str, Any]:
    """A section as in metrics.json, without its slices, which are in slices.json."""
    if "mean" not in section:
        return dict(section)
    apart = {*_TABLES, *_USUAL, *_SLICES}
    rest = {name: value for name, value in section.items() if name not in apart}
    repeats: Mapping[str, Any] = {}
    if _STABILITY in rest:
        repeats = rest[_STABILITY].get("metrics", {})
        rest[_STABILITY] = {k: v for k, v in rest[_STABILITY].items() if k != "metrics"}
    usual = {name: _most_common(section.get(name, {}).values()) for name in _USUAL}
    lines = {}
    for metric in dict.fromkeys(m for table in _TABLES for m in section.get(table, {})):
        line = _OneLine()
        for table, name in _TABLES.items():
            value = section.get(table, {}).get(metric)
            if value is not None and value != _NOTHING.get(table, ""):
                line[name] = value
        for name in _USUAL:
            value = section.get(name, {}).get(metric)
            if value != (usual[name] if "ci95" in line else None):
                line[name] = value
        if metric in repeats:
            line[_REPEATS] = repeats[metric]
        lines[metric] = line
    told = {name: value for name, value in usual.items() if value is not None}
    return rest | {METRICS: lines} | ({"usual": told} if told else {})


def slices_of_section(section: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a section that belongs to slices.json."""
    return {name: section[name] for name in _SLICES if name in section}


def read_section(written: Mapping[str, Any], slices: Mapping[str, Any]) -> dict[str, Any]:
    """The section that was written; without its ``slices`` it has none."""
    if METRICS not in written:
        return {**written, **slices}
    section = {k: v for k, v in written.items() if k not in (METRICS, "usual")} | {"by": {}}
    section |= {name: {} for name in (*_TABLES, *_USUAL)} | dict(slices)
    usual = written.get("usual", {})
    repeats = {}
    for metric, line in written[METRICS].items():
        for table, name in _TABLES.items():
            if name in line or table in _NOTHING:
                section[table][metric] = line.get(name, _NOTHING.get(table))
        for name in _USUAL:
            value = line.get(name, usual.get(name) if "ci95" in line else None)
            if value is not None:
                section[name][metric] = value
        if _REPEATS in line:
            repeats[metric] = line[_REPEATS]
    if _STABILITY in section:
        section[_STABILITY] = section[_STABILITY] | {"metrics": repeats}
    return section


def is_written(section: object) -> bool:
    """Whether a section has the shape that ``read_section`` takes."""
    if not isinstance(section, dict):
        return False
    lines, usual = section.get(METRICS, {}), section.get("usual", {})
    shaped = isinstance(lines, dict) and isinstance(usual, dict)
    stability = isinstance(section.get(_STABILITY, {}), dict)
    return shaped and stability and all(isinstance(line, dict) for line in lines.values())


def mark_of(written: Mapping[str, Any]) -> str:
    """A hash of a written section, by which slices.json names its section."""
    return sha256(orjson.dumps(written, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def metrics_bytes(metrics: Mapping[str, Any]) -> bytes:
    """metrics.json with written sections: sorted keys, one line a metric, a case, or a member that
    holds no further objects. Cases stay in their own order."""
    return b"\n".join(_lines(metrics, b"", "sections")) + b"\n"


def _lines(value: Any, indent: bytes, name: str) -> Iterator[bytes]:
    """A member of that name as lines of JSON; all but the first are indented."""
    nested = isinstance(value, dict) and any(isinstance(v, dict) for v in value.values())
    if not value or isinstance(value, _OneLine) or not (nested or name in _BROKEN):
        yield compact(value)
        return
    yield b"{"
    for at, key in enumerate(value if name == PRIMARY else sorted(value)):
        first, *more = _lines(value[key], indent + b"  ", key)
        lines = [b"%s  %s: %s" % (indent, compact(key), first), *more]
        lines[-1] += b"," if at < len(value) - 1 else b""
        yield from lines
    yield indent + b"}"


def compact(value: Any) -> bytes:
    """JSON on one line, sorted, with blanks to read it by."""
    if isinstance(value, dict):
        return b"{%s}" % b", ".join(
            compact(name) + b": " + compact(value[name]) for name in sorted(value)
        )
    if isinstance(value, list | tuple):
        return b"[%s]" % b", ".join(map(compact, value))
    return orjson.dumps(value)


def _most_common(values: Iterable[Any]) -> Any:
    """The most common value, of equally common ones the smallest; None of none."""
    counts = Counter(value for value in values if value is not None)
    return min(counts, key=lambda value: (-counts[value], value), default=None)
