"""The history: committed versions in the order of the commits, then the runs not committed."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
            versions = _in_order(versions)
        history.points += _committed(repository, versions, history.notes)
        history.notes += [*repository.notes, *_bulk(versions)]
    if source != "git":
        history.points += _on_disk(places, repository, versions, history.notes)
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


def _in_order(versions: list[Version]) -> list[Version]:
    """Versions of several places by date, once each; commits of one second keep their order."""
    once = {(one.sha, one.path): one for one in versions}
    return sorted(once.values(), key=lambda one: datetime.datetime.fromisoformat(one.date))


def _bulk(versions: Sequence[Version]) -> Iterator[str]:
    """A sentence for each commit that brings several files, whose order nobody knows."""
    for sha, count in Counter(one.sha for one in versions).items():
        if count > 1:
            yield f"{sha[:9]} holds {count} metrics.json files; they are in the order of paths."


def _committed(
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
    points = []
    for path, blob in zip(files, blobs, strict=True):
        if blob is not None and blob in known:
            continue
        try:
            data = path.read_bytes()
            started = _started(path)
            shown = os.fsencode(path).decode("utf-8", "replace")
            points.append(read_point(data, sha=None, date=started, subject="", path=shown))
        except NotMetrics as error:
            notes.append(f"{path}: {error}; left out.")
        except OSError as error:
            notes.append(f"{path}: cannot be read ({error.strerror}); left out.")
    return sorted(points, key=lambda one: (datetime.datetime.fromisoformat(one.date), one.run_id))


def _files(place: Path) -> list[Path]:
    if _is_file(place):
        path = place if place.name == FILE else place / FILE
        return [path] if path.is_file() else []
    return sorted(place.glob(f"*/{FILE}"))


def _started(path: Path) -> str:
    """When the run began, as config.json says; else when its metrics.json was written."""
    try:
        text = read_config(path.parent).started
        moment = datetime.datetime.fromisoformat(text) if text else None
    except (StorageError, ValueError):
        moment = None
    if moment is None:
        moment = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.isoformat(timespec="seconds")
