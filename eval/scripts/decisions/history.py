"""The history: committed versions in the order of the commits, and the runs that are not committed
between them by the time they were started. The time of a file says nothing: a copy has another."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import msgspec
import orjson

from records.asked import stopped
from records.errors import StorageError
from records.file_access import read_whole
from records.metric_lines import PRIMARY
from records.metrics import PRIMARY_METRICS, SCHEMA, parse_metrics
from records.results import RunConfig
from records.runs import METRICS, read_config, results_file

Source = Literal["both", "git", "runs"]


@dataclass
class MetricHistory:
    """``points``, oldest first; ``notes``: what was left out or is uncertain, in sentences."""

    points: list[HistoryPoint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    repository: _Repository | None = None

    def folder_of(self, point: HistoryPoint) -> Path:
        """Where the run of a point is, or was, on disk."""
        top = self.repository.top if self.repository and point.sha else Path()
        return (top / point.path).parent

    def place_of(self, name: str) -> int:
        """Which point a commit (hash, tag, HEAD~3), a run id or a date names: its last one.

        Raises StorageError when there is none, with the labels that there are.
        """
        sha = self.repository.commit(name) if self.repository else None
        for position in reversed(range(len(self.points))):
            point = self.points[position]
            if name == point.run_id or (sha is not None and point.sha == sha):
                return position
        newest = ", ".join(point.label for point in self.points[-5:]) or "none"
        raise StorageError(
            f"{name!r}: no point of this history; the newest are: {newest}. Give a commit that "
            "changed a metrics.json, or the id of a run."
        )


def of_present_set(points: Sequence[HistoryPoint]) -> list[HistoryPoint]:
    """The points whose set is that of the newest one, or shares half of its cases with it."""
    newest = points[-1]

    def belongs(point: HistoryPoint) -> bool:
        if None in (point.eval_set, newest.eval_set) or point.eval_set == newest.eval_set:
            return True
        ids = point.case_scores.keys(), newest.case_scores.keys()
        return 2 * len(ids[0] & ids[1]) >= max(1, min(map(len, ids)))

    return [point for point in points if belongs(point)]


def point_of(folder: Path) -> HistoryPoint | None:
    """The point that a run on disk makes; None for one that makes none."""
    path = folder / METRICS
    try:
        return _read_point(read_whole(path), sha=None, date="", subject="", path=str(path))
    except (NotMetrics, OSError):
        return None


def read_history(paths: Sequence[Path], source: Source = "both") -> MetricHistory:
    """Read the history of metrics.json files, run folders, or folders of runs.

    Raises StorageError when a place holds none, when git is asked for outside a repository, or
    when the places lie in different repositories.
    """
    history = MetricHistory()
    repository = _find_repository(paths[0]) if source != "runs" else None
    if source == "git" and repository is None:
        raise StorageError(f"{paths[0]}: lies in no git repository; give --set source=runs.")
    history.repository = repository
    versions: list[Version] = []
    if source == "both" and repository is None:
        history.notes.append(f"{paths[0]} lies in no git repository; only runs on disk count.")
    if repository is not None:
        for path in paths:
            other = _find_repository(path)
            if other is None or other.top != repository.top:
                raise StorageError(f"{path}: lies in another repository than {paths[0]}.")
            file = _is_file(path)
            path = path / METRICS if file and path.name != METRICS else path
            versions += repository.versions(path, follow=file)
        if len(paths) > 1:
            order = repository.order()
            once = {(version.sha, version.path): version for version in versions}
            versions = sorted(once.values(), key=lambda version: order[version.sha])
        history.points += _committed(repository, versions, history.notes)
        history.notes += repository.notes
    if source != "git":
        runs = _on_disk(paths, repository, versions, history.notes)
        history.points = _merged(history.points, runs, repository)
    if not history.points:
        where = ", ".join(str(place) for place in paths)
        raise StorageError(
            f"{where}: no metrics.json, neither committed nor on disk; score a run first, and "
            "commit its metrics.json." + ("".join(f"\n{note}" for note in history.notes))
        )
    return history


def _is_file(path: Path) -> bool:
    """Whether a place is one metrics.json, or the folder of one run."""
    if path.name == METRICS or (path / METRICS).is_file():
        return True
    if path.is_file():
        raise StorageError(f"{path}: is no metrics.json; give one, a run folder or its parent.")
    return results_file(path).exists()


def _committed(
    repository: _Repository, versions: Sequence[Version], notes: list[str]
) -> list[HistoryPoint]:
    """A point for each version; those of one commit by their run ids, since nothing orders them."""
    points: list[HistoryPoint] = []
    for sha, group in groupby(_points(repository, versions, notes), key=lambda point: point.sha):
        together = sorted(group, key=lambda point: (point.run_id, point.path))
        points += together
        if sha and len(together) > 1:
            notes.append(
                f"{sha[:9]} holds {len(together)} metrics.json files; they are in the order of "
                "their run ids."
            )
    return points


def _points(
    repository: _Repository, versions: Sequence[Version], notes: list[str]
) -> Iterator[HistoryPoint]:
    data = repository.read([version.blob for version in versions])
    for version, content in zip(versions, data, strict=True):
        where = f"{version.path} at {version.sha[:9]}"
        if content is None:
            notes.append(f"{where}: this clone does not hold its bytes; left out.")
            continue
        try:
            yield _read_point(
                content,
                sha=version.sha,
                date=version.date,
                subject=version.subject,
                path=version.path,
            )
        except NotMetrics as error:
            notes.append(f"{where}: {error}; left out.")


def _on_disk(
    paths: Sequence[Path],
    repository: _Repository | None,
    versions: Sequence[Version],
    notes: list[str],
) -> list[HistoryPoint]:
    """The runs whose present metrics.json is not committed, in the order they were started."""
    files = list(dict.fromkeys(path.resolve() for folder in paths for path in _files(folder)))
    blob_ids = {version.blob for version in versions}
    blobs: Sequence[str | None] = [None] * len(files)
    if repository is not None and files:
        blobs = repository.blobs_of(files)
    points, unknown, unfinished = [], [], []
    for path, blob in zip(files, blobs, strict=True):
        if blob is not None and blob in blob_ids:
            continue
        if _is_stopped(path.parent):
            unfinished.append(path.parent.name)
            continue
        try:
            data = read_whole(path)
            started = _started(path.parent)
            shown = os.fsencode(path).decode("utf-8", "replace")
            date = started.isoformat(timespec="seconds") if started else ""
            points.append(_read_point(data, sha=None, date=date, subject="", path=shown))
            unknown += [] if started else [points[-1].run_id]
        except NotMetrics as error:
            notes.append(f"{path}: {error}; left out.")
        except OSError as error:
            notes.append(f"{path}: cannot be read ({error.strerror}); left out.")
    if unknown:
        notes.append(
            f"No config.json says when {', '.join(sorted(unknown))} was started; runs without a "
            "start come last, in the order of run ids."
        )
    if unfinished:
        notes.append(
            f"{', '.join(sorted(unfinished))}: stopped or still running, so not shown; finish with "
            "run_eval.py --resume, and score again."
        )
    return sorted(points, key=lambda point: (not point.date, _moment(point.date), point.run_id))


def _merged(
    committed: Sequence[HistoryPoint], runs: Sequence[HistoryPoint], repository: _Repository | None
) -> list[HistoryPoint]:
    """Both in one order: a run follows the last commit whose run was started before it.

    A committed run whose folder is gone counts as started when it was committed.
    """
    times = [_begun(point, repository) for point in committed]
    merged: list[HistoryPoint] = []
    done = 0
    for run in runs:
        earlier = [
            position + 1
            for position, time in enumerate(times)
            if not run.date or time <= _moment(run.date)
        ]
        end = max(done, *earlier[-1:], 0)
        merged += [*committed[done:end], run]
        done = end
    return [*merged, *committed[done:]]


def _begun(point: HistoryPoint, repository: _Repository | None) -> datetime.datetime:
    """When a committed run was started, as its folder says where it is still there."""
    folder = repository.top / Path(point.path).parent if repository else None
    if folder is not None and folder.name == point.run_id and (started := _started(folder)):
        return started
    return _moment(point.date)


def _files(path: Path) -> list[Path]:
    if _is_file(path):
        path = path if path.name == METRICS else path / METRICS
        return [path] if path.is_file() else []
    return sorted(path.glob(f"*/{METRICS}"))


def _is_stopped(folder: Path) -> bool:
    """Whether some of the run's questions are still to be asked, whatever was scored before."""
    try:
        config = read_config(folder)
    except StorageError:
        config = RunConfig(folder.name)
    return bool(stopped(folder, config))


def _started(folder: Path) -> datetime.datetime | None:
    """When the run began, as its config.json says; None when it does not."""
    try:
        text = read_config(folder).started
        return _moment(text) if text else None
    except (StorageError, ValueError):
        return None


def _moment(text: str) -> datetime.datetime:
    """A time in the form of config.json and of git; without a zone it is UTC."""
    if not text:
        return datetime.datetime.min.replace(tzinfo=datetime.UTC)
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


Key = tuple[str, str]
"""Section and metric."""

CaseScores = Mapping[str, Sequence[float | None]]
"""By case id, a score for each primary metric; None where a case has none."""


class _Section(msgspec.Struct):
    """The members of a section that make a point."""

    mean: Mapping[str, float | None] = {}
    ci95: Mapping[str, tuple[float, float] | None] = {}
    n: Mapping[str, int] = {}
    not_applicable: Mapping[str, int] = {}
    failed: Mapping[str, int] = {}
    definitions: Mapping[str, str] = {}
    options: Any = None


class _Metrics(msgspec.Struct):
    """The members of metrics.json that make a point."""

    sections: Mapping[str, _Section]
    stopped: Any = None
    run_id: str | None = None
    eval_set_sha256: str | None = None
    labels_sha256: str | msgspec.UnsetType | None = msgspec.UNSET
    asked: int | None = None
    cases: int | None = None
    missing: int | None = None
    errors: int | None = None
    unreadable: int = 0
    primary_metrics: list[str] | None = None
    primary: CaseScores | None = None
    case_fingerprints: Mapping[str, str] | None = None


class NotMetrics(Exception):
    """The bytes are no metrics.json that this version reads; the message says why."""


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One metric at one point. ``definition`` is the id of what was measured."""

    mean: float
    ci95: tuple[float, float] | None
    n: int
    not_applicable: int
    failed: int
    definition: str


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """``sha`` is None for a run that is not committed; then ``date`` is when the run started, ""
    when its config.json does not say so.

    ``settings``: a hash of each section's options, which may change what its numbers mean.
    ``labels``: their SHA-256, "" for none; None when the file does not tell. ``case_scores``: of
    the metrics ``scored``, as section.metric; empty where metrics.json does not hold them.
    """

    sha: str | None
    date: str
    subject: str
    path: str
    run_id: str
    eval_set: str | None
    cases: int | None
    errors: int | None
    values: Mapping[Key, MetricValue]
    settings: Mapping[str, str] = field(default_factory=dict)
    labels: str | None = None
    scored: tuple[str, ...] = ()
    case_scores: CaseScores = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """By case id, see ``fingerprints.short``; empty in files of older versions."""
    missing: int = 0
    asked: int = 0
    unreadable: int = 0

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


def _read_point(
    data: bytes, *, sha: str | None, date: str, subject: str, path: str
) -> HistoryPoint:
    """The point that a metrics.json makes. Metrics without a mean are left out.

    Raises NotMetrics for what is damaged, of another schema, or of a run that was stopped.
    """
    try:
        read = parse_metrics(data)
        if isinstance(read, dict) and read.get("schema") != SCHEMA:
            raise NotMetrics(f"schema {read.get('schema')!r}; this version reads {SCHEMA}")
        raw = msgspec.convert(read, _Metrics)
    except orjson.JSONDecodeError as error:
        raise NotMetrics(f"not JSON ({error.msg})") from None
    except ValueError as error:  # also of msgspec
        raise NotMetrics(f"no metrics.json that can be read: {error}") from None
    if raw.stopped:
        raise NotMetrics("of a run that was stopped, so no point")
    scored = tuple(raw.primary_metrics or ())
    if any(len(row) != len(scored) for row in (raw.primary or {}).values()):
        raise NotMetrics(f"{PRIMARY}: a case has not a score for each of {PRIMARY_METRICS}")
    values: dict[Key, MetricValue] = {}
    settings = {}
    for name, part in raw.sections.items():
        options = orjson.dumps(part.options, option=orjson.OPT_SORT_KEYS)
        settings[name] = sha256(options).hexdigest()
        for metric, mean in part.mean.items():
            if mean is not None:
                values[name, metric] = MetricValue(
                    mean,
                    part.ci95.get(metric),
                    part.n.get(metric, 0),
                    part.not_applicable.get(metric, 0),
                    part.failed.get(metric, 0),
                    part.definitions.get(metric, ""),
                )
    return HistoryPoint(
        sha=sha,
        date=date,
        subject=subject,
        path=path,
        run_id=raw.run_id or path,
        eval_set=raw.eval_set_sha256 or None,
        cases=raw.cases,
        errors=raw.errors,
        values=values,
        settings=settings,
        labels=None if raw.labels_sha256 is msgspec.UNSET else raw.labels_sha256 or "",
        scored=scored,
        case_scores=raw.primary or {},
        fingerprints=raw.case_fingerprints or {},
        missing=raw.missing or 0,
        asked=raw.asked or 0,
        unreadable=raw.unreadable,
    )


QUIET = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_PAGER": "cat"}
"""Settings of git: no pager, no lock, no fetching for a partial clone, messages in English."""

FORMAT = "--format=commit %H %cI %s"

FILES = {"100644", "100755"}

_WILD = re.compile(r"([*?\[\]\\])")


@dataclass(frozen=True, slots=True)
class Version:
    """A file as one commit left it. ``blob`` names its bytes in git's store."""

    sha: str
    date: str
    subject: str
    path: str
    blob: str


@dataclass
class _Repository:
    """The repository that holds ``top``. ``notes`` collects what a reader must know."""

    top: Path
    shallow: bool
    notes: list[str] = field(default_factory=list)

    def run(self, *words: str, stdin: bytes | None = None) -> bytes:
        """A git command's output. Raises StorageError with git's own words."""
        done = _git(self.top, *words, stdin=stdin)
        if done.returncode != 0:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise StorageError(
                f"{self.top}: git {words[0]} failed ({lines[-1] if lines else '?'})."
            )
        return done.stdout

    def commit(self, text: str) -> str | None:
        """The full id of the commit that ``text`` (a hash, tag, branch, HEAD~3) names, or None."""
        if text.startswith("-"):
            return None
        done = _git(self.top, "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}")
        return done.stdout.decode().strip() or None if done.returncode == 0 else None

    def versions(self, path: Path, *, follow: bool) -> list[Version]:
        """Every version of a file that HEAD's history holds, oldest first.

        ``follow``: ``path`` is one file, traced through its renames; else it is a folder, and all
        ``*/metrics.json`` in it count. A rename without a change is no version, nor is a deletion.
        """
        if _git(self.top, "rev-parse", "--verify", "--quiet", "HEAD").returncode != 0:
            return []
        pathspec = Path(os.path.relpath(path.resolve(), self.top.resolve())).as_posix()
        spec = f":(top,literal){pathspec}"
        if not follow:
            folder = _WILD.sub(r"\\\1", pathspec)
            spec = f":(top,glob){'' if pathspec == '.' else folder + '/'}*/{METRICS}"
        words = ["log", "-z", "--raw", "--no-abbrev", "--date-order", "-M", FORMAT]
        words += ["--encoding=UTF-8", "--no-show-signature", "--no-ext-diff", "--no-textconv"]
        words.append("--diff-merges=combined")
        words += ["--follow"] if follow else []
        newest_first = _versions(self.run(*words, "--", spec))
        # Turned round here: git's --reverse loses most of the history with --follow.
        commits = [
            list(group) for _, group in groupby(newest_first, key=lambda version: version.sha)
        ]
        return [version for commit in reversed(commits) for version in commit]

    def order(self) -> dict[str, int]:
        """The place of each commit of HEAD's history, oldest first, parents before children."""
        newest_first = self.run("rev-list", "--date-order", "HEAD").decode().split()
        return {sha: position for position, sha in enumerate(reversed(newest_first))}

    def read(self, blobs: Sequence[str]) -> Iterator[bytes | None]:
        """The bytes of each blob, in order; None for one that this clone does not hold."""
        process = subprocess.Popen(
            ["git", "-C", str(self.top), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | QUIET,
        )
        assert process.stdin
        assert process.stdout
        with process:
            for blob in blobs:
                process.stdin.write(blob.encode() + b"\n")
                process.stdin.flush()
                head = process.stdout.readline().split()
                if len(head) != 3:
                    yield None
                    continue
                data = process.stdout.read(int(head[2]))
                process.stdout.read(1)
                yield data
            process.stdin.close()

    def blobs_of(self, paths: Sequence[Path]) -> list[str]:
        """What each file on disk would be called in git's store."""
        listed = "".join(f"{path.resolve()}\n" for path in paths).encode("utf-8", "surrogateescape")
        return self.run("hash-object", "--stdin-paths", stdin=listed).decode().split()


def _find_repository(path: Path) -> _Repository | None:
    """The repository around a path, which itself need not exist; None outside git."""
    folder = path.resolve()
    while not folder.is_dir():
        folder = folder.parent
    done = _git(folder, "rev-parse", "--show-toplevel", "--is-shallow-repository")
    if done.returncode != 0:
        return None
    top, shallow = os.fsdecode(done.stdout).rstrip("\n").rsplit("\n", 1)
    repository = _Repository(Path(top), shallow == "true")
    if repository.shallow:
        repository.notes.append(
            "This clone is shallow: older history is missing, and its oldest commit is named for "
            "everything in it. Fetch the rest with `git fetch --unshallow` "
            "(GitHub Actions: fetch-depth: 0)."
        )
    return repository


def _git(
    folder: Path, *words: str, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", str(folder), "-c", "core.quotePath=off", *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env=os.environ | QUIET,
        )
    except FileNotFoundError:
        raise StorageError("git is not installed; give --set source=runs to do without.") from None


def _versions(output: bytes) -> Iterator[Version]:
    """Parse ``git log -z --raw``: a header a commit, then an entry and its paths a file."""
    tokens = iter(output.split(b"\0"))
    sha = date = subject = ""
    for token in tokens:
        token = token.lstrip(b"\n")
        if token.startswith(b"commit "):
            words = token.decode("utf-8", "replace").split(" ", 3)
            sha, date, subject = words[1], words[2], words[3] if len(words) > 3 else ""
        elif token.startswith(b":"):
            parents = len(token) - len(token.lstrip(b":"))
            fields = token.decode().lstrip(":").split(" ")
            mode, status = fields[parents], fields[-1]
            before, blob = fields[parents + 1], fields[2 * parents + 1]
            path = next(tokens)
            copied = parents == 1 and status[0] == "C"
            if copied or (parents == 1 and status[0] == "R"):
                path = next(tokens)
                if before == blob and not copied:
                    continue
            if mode in FILES:
                yield Version(sha, date, subject, path.decode("utf-8", "replace"), blob)
            if copied:  # the file begins here: --follow goes on with another run that is like it
                return
