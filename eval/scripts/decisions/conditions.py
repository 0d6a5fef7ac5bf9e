"""A scored run: its numbers, and the conditions under which they were measured.

It is a run folder, a metrics.json alone as git keeps one, or a report of the suite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from records.errors import StorageError
from records.metrics import (
    ComparedSection,
    MeasuredSection,
    MetricsSection,
    SectionJudge,
    read_metrics,
    read_sections,
)
from records.results import RunConfig
from records.runs import (
    CONFIG,
    ENRICHED,
    METRICS,
    SAMPLE,
    SCORES,
    find_run,
    known_config,
    scored_sections,
)

REMEDY = "give a report of eval_suite.py or a metrics.json, unchanged"


@dataclass(frozen=True)
class Conditions:
    """A scored run. ``metrics``: its metrics.json, or a report of it. ``source``: the run folder or
    that file. ``folder``: None where there is only a file. ``has_settings``: whether ``config`` is
    its config.json, and not its id alone."""

    id: str
    metrics: Mapping[str, Any]
    config: RunConfig
    source: Path
    folder: Path | None = None
    has_settings: bool = True

    @property
    def sections(self) -> Mapping[str, Mapping[str, Any]]:
        """The sections by name."""
        sections: Mapping[str, Mapping[str, Any]] = self.metrics.get("sections", {})
        return sections

    def section(self, name: str) -> Mapping[str, Any]:
        """A section; {} when it is not there."""
        return self.sections.get(name, {})

    def part(self, section: str, part: str, metric: str) -> Any:
        """One entry of a section, such as its mean of a metric; None when it is not there."""
        return self.section(section).get(part, {}).get(metric)

    def measured(self) -> Iterator[tuple[str, str]]:
        """Section and name of each metric that has a mean."""
        for name, section in self.sections.items():
            for metric, mean in section.get("mean", {}).items():
                if mean is not None:
                    yield name, metric

    def counts(self, section: str, metric: str) -> tuple[int, int, int]:
        """Cases scored, not applicable, failed."""
        scored, missing, failed = (
            self.part(section, part, metric) or 0 for part in ("n", "not_applicable", "failed")
        )
        return scored, missing, failed


def read_run(folder: Path, whole: type[MetricsSection] = MetricsSection) -> Conditions:
    """A run folder. ``whole``: as of ``read_metrics``.

    Raises StorageError when it holds no metrics, with what to do.
    """
    if not (folder / METRICS).exists():
        raise StorageError(
            f"{folder}: is not scored; run score_retrieval.py --run {folder.name} (and other "
            "score_* scripts), or eval_suite.py."
        )
    metrics = read_metrics(folder, whole)
    run_id = folder.resolve().name
    run = with_settings(Conditions(run_id, metrics, RunConfig(folder.name), folder, folder))
    refuse_enriched(folder, run.config)
    return run


def measured_run(folder: Path) -> Conditions:
    """A run folder whose sections can be examined each by itself. Raises StorageError as above."""
    return _with_means(read_run(folder, MeasuredSection))


def baseline_of(results_dir: Path, baseline: str) -> Conditions:
    """A baseline: a run (id or folder), a metrics.json, or a report of eval_suite.py.

    With its run folder behind it, cases are paired by their score lines; else by the scores that
    the file holds of them, and a config.json beside it tells the settings. Raises StorageError
    for anything else, and a faulty part.
    """
    path = Path(baseline)
    if not path.is_file():
        return measured_run(find_run(results_dir, baseline))
    if path.name == METRICS and (path.parent / SCORES).is_dir():
        return measured_run(path.parent)
    metrics = read_sections(path, ComparedSection, REMEDY)
    run_id = str(metrics.get("run_id") or path)
    run = with_settings(Conditions(run_id, metrics, RunConfig(run_id), path))
    refuse_enriched(path, run.config)
    return _with_means(run)


def with_settings(run: Conditions) -> Conditions:
    """The run with config.json, of its folder or beside its metrics.json, as far as that is there.

    One with another hash than a metrics.json without score lines names is of another run, and does
    not count. Raises StorageError for a damaged file.
    """
    place = run.source.parent if run.source.name == METRICS else run.source
    config = config_of(place) if (place / CONFIG).is_file() else None
    if config and not scored_sections(place):
        known = {config.config_hash, run.metrics.get("config_hash")} - {"", None}
        config = config if len(known) < 2 else None
    if config is None:
        return replace(run, has_settings=False)
    return replace(run, config=config)


def _with_means(run: Conditions) -> Conditions:
    if "sections" in run.metrics and all("mean" in own for own in run.sections.values()):
        return run
    path = run.source / METRICS if run.folder else run.source
    raise StorageError(f"{path}: is no baseline; {REMEDY}.")


def refuse_enriched(folder: Path, config: RunConfig) -> None:
    """Raises StorageError for a run of cases that were drawn because they were bad."""
    sample = config.run.get(SAMPLE)
    if isinstance(sample, dict) and sample.get("kind") == ENRICHED:
        raise StorageError(
            f"{folder}: holds cases that were chosen because something was wrong with them "
            "(sample: enriched), so its means cannot be compared; compare runs of a uniform sample."
        )


class _Api(msgspec.Struct):
    fields_seen: list[str] | None = None


def config_of(folder: Path) -> RunConfig:
    """config.json where there is one, the parts that are looked into checked."""
    path = folder / CONFIG
    config = known_config(folder)
    try:
        msgspec.convert(config.judge, SectionJudge)
        msgspec.convert(config.api, _Api)
    except msgspec.ValidationError as error:
        raise StorageError(f"{path}: judge or api: {error}; take the file from a backup.") from None
    return config
