"""The history: committed versions in the order of the commits, and the runs that are not committed
between them by the time they were started. The time of a file says nothing: a copy has another."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Literal

from storage import StorageError, read_config
from tracking.git import Repository, Version, find_repository
from tracking.points import NotMetrics, Point, read_point

Source = Literal["both", "git", "runs"]
FILE = "metrics.json"


@dataclass
class History:
    """``points``, oldest first; ``notes``: what was left out or is uncertain, in sentences."""

    points: list[Point] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    repository: Repository | None = None

    def place_of(self, name: str) -> int:
        """Which point a commit (hash, tag, HEAD~3), a run id or a date names: its last one.

        Raises StorageError when there is none, with the labels that there are.
        """
        sha = self.repository.commit(name) if self.repository else None
        for place in reversed(range(len(self.points))):
            point = self.points[place]
            if name == point.run_id or (sha is not None and point.sha == sha):
                return place
        known = ", ".join(point.label for point in self.points[-5:]) or "none"
        raise StorageError(
            f"{name!r}: no point of this history; the newest are: {known}. Give a commit that "
            "changed a metrics.json, or the id of a run."
        )


def read_history(
    places: Sequence[Path], source: Source = "both", *, first_parent: bool = False
) -> History:
    """Read the history of metrics.json files, run folders, or folders of runs.

    Raises StorageError when a place holds none, when git is asked for outside a repository, or
    when the places lie in different repositories.
    """
    history = History()
    repository = find_repository(places[0]) if source != "runs" else None
    if source == "git" and repository is None:
        raise StorageError(f"{places[0]}: lies in no git repository; give --source runs.")
    history.repository = repository
    versions: list[Version] = []
    if source == "both" and repository is None:
        history.notes.append(f"{places[0]} lies in no git repository; only runs on disk count.")
    if repository is not None:
        for place in places:
            other = find_repository(place)
            if other is None or other.top != repository.top:
                raise StorageError(f"{place}: lies in another repository than {places[0]}.")
            file = _is_file(place)
            path = place / FILE if file and place.name != FILE else place
            versions += repository.versions(path, follow=file, first_parent=first_parent)
        if len(places) > 1:
            versions = _in_order(versions, repository.order(first_parent=first_parent))
        history.points += _committed(repository, versions, history.notes)
        history.notes += repository.notes
    if source != "git":
        runs = _on_disk(places, repository, versions, history.notes)
        history.points = _merged(history.points, runs, repository)
    if not history.points:
        where = ", ".join(str(place) for place in places)
        raise StorageError(
            f"{where}: no metrics.json, neither committed nor on disk; score a run first, and "
            "commit its metrics.json." + ("".join(f"\n{note}" for note in history.notes))
        )
    return history


def _is_file(place: Path) -> bool:
    """Whether a place is one metrics.json, or the folder of one run."""
    if place.name == FILE or (place / FILE).is_file():
        return True
    if place.is_file():
        raise StorageError(f"{place}: is no metrics.json; give one, a run folder or its parent.")
    return (place / "results.jsonl").is_file()


def _in_order(versions: list[Version], order: Mapping[str, int]) -> list[Version]:
    """Versions of several places in the order of their commits, once each."""
    once = {(one.sha, one.path): one for one in versions}
    return sorted(once.values(), key=lambda one: order[one.sha])


def _committed(
    repository: Repository, versions: Sequence[Version], notes: list[str]
) -> list[Point]:
    """A point for each version; those of one commit by their run ids, since nothing orders them."""
    points: list[Point] = []
    for sha, group in groupby(_points(repository, versions, notes), key=lambda one: one.sha):
        together = sorted(group, key=lambda one: (one.run_id, one.path))
        points += together
        if sha and len(together) > 1:
            notes.append(
                f"{sha[:9]} holds {len(together)} metrics.json files; they are in the order of "
                "their run ids."
            )
    return points


def _points(
    repository: Repository, versions: Sequence[Version], notes: list[str]
) -> Iterator[Point]:
    data = repository.read([one.blob for one in versions])
    for one, content in zip(versions, data, strict=True):
        where = f"{one.path} at {one.sha[:9]}"
        if content is None:
            notes.append(f"{where}: this clone does not hold its bytes; left out.")
            continue
        try:
            yield read_point(
                content, sha=one.sha, date=one.date, subject=one.subject, path=one.path
            )
        except NotMetrics as error:
            notes.append(f"{where}: {error}; left out.")


def _on_disk(
    places: Sequence[Path],
    repository: Repository | None,
    versions: Sequence[Version],
    notes: list[str],
) -> list[Point]:
    """The runs whose metrics.json is not committed as it is, in the order they were started."""
    files = list(dict.fromkeys(path.resolve() for place in places for path in _files(place)))
    known = {one.blob for one in versions}
    blobs: Sequence[str | None] = [None] * len(files)
    if repository is not None and files:
        blobs = repository.blobs_of(files)
    points, unknown = [], []
    for path, blob in zip(files, blobs, strict=True):
        if blob is not None and blob in known:
            continue
        try:
            data = path.read_bytes()
            started = _started(path.parent)
            shown = os.fsencode(path).decode("utf-8", "replace")
            date = started.isoformat(timespec="seconds") if started else ""
            points.append(read_point(data, sha=None, date=date, subject="", path=shown))
            unknown += [] if started else [points[-1].run_id]
        except NotMetrics as error:
            notes.append(f"{path}: {error}; left out.")
        except OSError as error:
            notes.append(f"{path}: cannot be read ({error.strerror}); left out.")
    if unknown:
        notes.append(
            f"No config.json says when {', '.join(sorted(unknown))} was started; what has no start "
            "stands last, in the order of run ids."
        )
    return sorted(points, key=lambda one: (not one.date, _moment(one.date), one.run_id))


def _merged(
    committed: Sequence[Point], runs: Sequence[Point], repository: Repository | None
) -> list[Point]:
    """Both in one order: a run follows the last commit whose run was started before it.

    A committed run whose folder is gone counts as started when it was committed.
    """
    times = [_begun(point, repository) for point in committed]
    merged: list[Point] = []
    done = 0
    for run in runs:
        earlier = [
            place + 1
            for place, time in enumerate(times)
            if not run.date or time <= _moment(run.date)
        ]
        end = max(done, *earlier[-1:], 0)
        merged += [*committed[done:end], run]
        done = end
    return [*merged, *committed[done:]]


def _begun(point: Point, repository: Repository | None) -> datetime.datetime:
    """When a committed run was started, as its folder says where it is still there."""
    folder = repository.top / Path(point.path).parent if repository else None
    if folder is not None and folder.name == point.run_id and (started := _started(folder)):
        return started
    return _moment(point.date)


def _files(place: Path) -> list[Path]:
    if _is_file(place):
        path = place if place.name == FILE else place / FILE
        return [path] if path.is_file() else []
    return sorted(place.glob(f"*/{FILE}"))


def _started(folder: Path) -> datetime.datetime | None:
    """When the run began, as its config.json says; None when it does not."""
    try:
        text = read_config(folder).started
        return _moment(text) if text else None
    except (StorageError, ValueError):
        return None


def _moment(text: str) -> datetime.datetime:
    """A time as it is written in config.json and by git; without a zone it is UTC."""
    if not text:
        return datetime.datetime.min.replace(tzinfo=datetime.UTC)
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
