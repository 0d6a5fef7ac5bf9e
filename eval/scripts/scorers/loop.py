"""The loop that every score_* script shares: load, score each case, summarise, save."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from array import array
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

import msgspec

from decisions.case_lines import update_case_lines
from ragmetrics.stats.arrays import NDArray, np
from ragmetrics.stats.counted import CountedValues
from ragmetrics.stats.tally import Slices, Tally
from records.asked import asked_cases, asked_counts
from records.cases import Labels, ignore, iter_cases
from records.clusters import MOST_CLUSTERS, cluster_number, clustered_by
from records.errors import Problem, StorageError, Unreachable
from records.file_access import allow_addresses, allowed_addresses
from records.files import kept_folder, scratch_folder, sha256_file
from records.joining import Absent, OutOfOrderError, Work, join_stream, split
from records.labels import labels_sha256, read_labels, unknown_labels
from records.metrics import update_metrics
from records.profiles import maps_passages
from records.results import UNREADABLE, RunConfig
from records.runs import CONFIG, SCORES, VERDICTS, known_config, results_file
from records.scores import ScoreLine, read_own_scores
from records.shards import changed_at, size_of
from scorers.contract import Aggregator, DamagedRange, FailureScorer, RangeScorer, Scorer
from scorers.ranges import ScoredRange, score_range
from scorers.variation import stability, turn_loss
from scorers.workers import code_versions, how_it_ended, opened, sealed, sent, worker_pool

if TYPE_CHECKING:
    from concurrent.futures import Executor


POOL_FROM = 200 * 1024 * 1024
"""Bytes of results from which a second process pays for its own start and for the joining."""

MOST_JOBS = 4

_RANGE = 32 * 1024 * 1024
"""Bytes of results of a range that goes to a cluster: a task costs 10 ms there."""

_POOL_RANGE = 256 * 1024 * 1024
"""The same of one that goes to a process of this machine: its memory grows with its results."""

COPIED = 1 << 20

_SCRATCH, _KEPT = ".scores.", ".ranges."


def results_of(folder: Path) -> Path:
    """results.jsonl of a run. Raises StorageError when the run is not finished."""
    results = results_file(folder)
    if not results.exists():
        raise StorageError(f"{results}: no such file; finish the run (run_eval --resume).")
    return results


def score_run(
    folder: Path,
    eval_set: Path,
    scorer: Scorer,
    *,
    labels_dir: Path | None = None,
    seed: int = 0,
    jobs: int | None = None,
    executor: Executor | None = None,
    case_lines: bool = True,
) -> dict[str, Any]:
    """Score every result of a run; write scores/<section>.jsonl and the section of metrics.json.

    ``jobs``: ranges that the results are cut into, None for as many as pay. ``executor``: where
    they are scored, such as a cluster's that sees the same folders; None: this process, or worker
    processes of its own for several ranges. What an executor scored before it was lost is taken up
    by the next call. ``case_lines``: as of a ScoringJob. Returns the section. Raises StorageError,
    with nothing written, when the run is incomplete or any line of the set, the labels or the
    results has a problem.
    """
    results = results_of(folder)
    problems: list[Problem] = []
    labels, label_places = read_labels(labels_dir, problems.append, eval_set)
    whole = Work(results, eval_set)
    scores = folder / SCORES
    config = known_config(folder)
    set_sha256 = sha256_file(eval_set)
    absent: Absent | None = None
    if isinstance(scorer, FailureScorer):
        asked_of_run = asked_cases(config, set_sha256, lambda: iter_cases(eval_set, ignore, labels))
        absent = asked_of_run.absent if asked_of_run else None
    labels_hash = labels_sha256(labels_dir, eval_set)
    processes = _processes(jobs, whole)
    works = _works(whole, processes, executor)
    with (
        scratch_folder(folder, _SCRATCH)
        if executor is None
        else kept_folder(
            folder,
            f"{_KEPT}{scorer.section}.",
            _key(folder, works, scorer, set_sha256, labels_hash),
        )
    ) as temporary:
        task = _RangeTask(
            scorer,
            labels,
            absent,
            executor is not None,
            allowed_addresses(),
            not maps_passages(config),
        )
        parts = _score_parts(works, whole, task, temporary, processes, executor)
        for part in parts:
            problems.extend(part.problems)
        if labels and not problems:
            asked = set().union(*(part.ids for part in parts))
            problems.extend(unknown_labels(labels, label_places, eval_set, asked))
        if problems:
            raise StorageError.from_problems(problems)
        section = _section(parts, scorer, seed)
        if isinstance(scorer, RangeScorer) and parts[0].stored:
            scorer.gather([part.rows.with_suffix(_MORE) for part in parts])
        header = _header(folder, config, set_sha256, labels_hash, parts)
        parts[0].rows.with_suffix(_DONE).unlink(missing_ok=True)  # its rows become the file
        _join_files([part.rows for part in parts], scores / f"{scorer.section}.jsonl")
    if max(sum((part.results for part in parts), Counter()), default=1) > 1:
        section["stability"] = stability(folder, scorer.section, scorer.metrics)
    update_metrics(folder, scorer.section, section, header, case_lines=case_lines)
    if case_lines:
        update_case_lines(folder, eval_set)
    return section


def _section(parts: Sequence[ScoredRange], scorer: Scorer, seed: int) -> dict[str, Any]:
    if parts[0].stored:
        portions = _counted_portions(parts)
        tally = Tally.merged([part.tally for part in parts], portions)
    else:
        tally = parts[0].tally
        for part in parts[1:]:
            tally.merge(part.tally)
    section = {"options": scorer.options | {"seed": seed}} | tally.summary(scorer.metrics)
    section["clustered_by"] = clustered_by(tally.shared_clusters())
    if any(part.has_turns for part in parts):
        section["turn_loss"] = turn_loss(_score_lines(parts), scorer.metrics)
    if isinstance(scorer, Aggregator):
        return scorer.aggregate(section, _score_lines(parts), seed)
    return section


def _score_lines(parts: Sequence[ScoredRange]) -> Iterator[ScoreLine]:
    """The score lines in order, each with the numbers of its case's cluster and conversation."""
    for part in parts:
        numbers = zip_longest(*_numbers_of(part), range(part.lines), fillvalue=0)
        for line, (conversation, turn, _) in zip(read_own_scores(part.rows), numbers, strict=True):
            line.cluster_number = cluster_number(line.cluster)
            line.conversation, line.turn = conversation, turn
            yield line


def _header(
    folder: Path,
    config: RunConfig,
    set_sha256: str,
    labels_hash: str | None,
    parts: Sequence[ScoredRange],
) -> dict[str, Any]:
    results = sum((part.results for part in parts), Counter())
    stopped = config.run.get("stopped")
    return {
        **({"stopped": stopped} if stopped else {}),
        "run_id": folder.resolve().name,
        "config_hash": config.config_hash,
        "eval_set_sha256": set_sha256,
        "labels_sha256": labels_hash,
        **asked_counts(config, results),
        "cases": results.total(),
        "errors": sum(part.errors for part in parts),
        UNREADABLE: sum(part.unreadable for part in parts),
    }


def _join_files(parts: Sequence[Path], target: Path) -> None:
    """Put the parts one behind the other at ``target``, which appears whole or not at all."""
    try:
        target.parent.mkdir(exist_ok=True)
        with open(parts[0], "ab") as file:
            for part in parts[1:]:
                with open(part, "rb") as more:
                    shutil.copyfileobj(more, file, COPIED)
                part.unlink()  # the disk need not have room for all lines twice
        os.replace(parts[0], target)
    except OSError as error:
        raise StorageError(f"{target}: cannot be written ({error.strerror}).") from None


def _processes(jobs: int | None, whole: Work) -> int:
    """One process for small runs."""
    if jobs is not None:
        return jobs
    return 1 if size_of(whole.results) < POOL_FROM else min(MOST_JOBS, os.cpu_count() or 1)


def _works(whole: Work, processes: int, executor: Executor | None) -> list[Work]:
    """The ranges that the whole is scored in."""
    if executor is not None:
        return split(whole, max(processes, -(-size_of(whole.results) // _RANGE)))
    if processes == 1:
        return [whole]
    return split(whole, max(processes, -(-size_of(whole.results) // _POOL_RANGE)))


def _key(
    folder: Path,
    works: Sequence[Work],
    scorer: Scorer,
    set_sha256: str,
    labels_hash: str | None,
) -> str:
    """Another one where anything is another on which the ranges' scores depend."""
    files = [changed_at(works[0].results)]
    for name in (CONFIG, VERDICTS):
        files += [changed_at(folder / name)] if (folder / name).exists() else [(0, 0)]
    parts: list[Any] = [code_versions(), scorer.options, set_sha256, labels_hash, files]
    parts += [[work.start, work.end, work.cases_start, work.cases_end] for work in works]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _share_ids(parts: Sequence[ScoredRange]) -> bool:
    """True when two ranges have a case id in common, which none of them could see.

    Looks at a portion of all hashes at a time, to save memory.
    """
    files = [part.rows.with_suffix(_IDS) for part in parts]
    files = [path for path in files if path.stat().st_size]
    total = sum(path.stat().st_size // 8 for path in files)
    portions = 1 + total // _PORTION
    edges = np.linspace(-(2.0**63), 2.0**63, portions + 1)[1:-1].astype(np.int64)
    places = []
    for path in files:
        column = np.memmap(path, dtype=np.int64, mode="r")
        places.append([0, *np.searchsorted(column, edges).tolist(), len(column)])
        del column
    for portion in range(portions):
        hashes = np.concatenate(
            [
                np.fromfile(path, np.int64, of[portion + 1] - of[portion], offset=8 * of[portion])
                for path, of in zip(files, places, strict=True)
            ]
            or [np.zeros(0, np.int64)]
        )
        if len(np.unique(hashes)) < len(hashes):
            return True
    return False


_PORTION = 1 << 18
"""Entries of the files of all ranges that are looked at together."""


def _score_parts(
    works: Sequence[Work],
    whole: Work,
    task: _RangeTask,
    folder: Path,
    processes: int,
    executor: Executor | None,
) -> list[ScoredRange]:
    """Score the whole in one range here, or in several elsewhere, in order.

    Whatever is unusual (a problem, another order) is done again in one process, which gives every
    message with its line number.
    """
    if len(works) > 1 or executor is not None:
        import numpy  # noqa: F401 - every process needs it; those that are forked have it then

        width, sealed_task = len(task.scorer.metrics), sealed(task)
        numbers = range(len(works))
        waiting = [n for n in numbers if _left_in(folder, n, width) is None]
        try:
            if executor is None:
                _score_in_pool(folder, works, sealed_task, processes, width)
            else:
                shared = [sent(executor, sealed_task)] * len(waiting)
                tasks = waiting, [works[n] for n in waiting], shared
                deque(executor.map(partial(_score_task, folder), *tasks), maxlen=0)
            parts = [_scored_range(folder, n, width) for n in numbers]
            if not any(part.faulty for part in parts) and not _share_ids(parts):
                return parts
        except OutOfOrderError:
            pass
    score = partial(
        score_range,
        scorer=task.scorer,
        labels=task.labels,
        folder=folder,
        absent=task.absent,
        unmapped=task.unmapped,
    )
    try:
        return [score(whole)]
    except OutOfOrderError:
        return [score(whole, ordered=False)]


def _score_in_pool(
    folder: Path, works: Sequence[Work], task: bytes, processes: int, width: int
) -> None:
    """Score ranges in processes of this machine.

    When one is killed, usually since memory ran out, the ranges without a result are scored once
    more, one at a time, by one fresh process. This process does not: it would be killed, too.
    Raises Unreachable when that one dies as well.
    """
    from concurrent.futures import BrokenExecutor  # slow to load

    score = partial(_score_task, folder)
    with (
        suppress(BrokenExecutor, MemoryError),
        worker_pool(min(len(works), processes), task) as pool,
    ):
        deque(pool.map(score, range(len(works)), works), maxlen=0)
        return
    from multiprocessing import active_children

    number, others, worker = 0, active_children(), None
    try:
        with worker_pool(1, task) as pool:
            for number, work in enumerate(works):
                if _left_in(folder, number, width) is None:
                    scored = pool.submit(score, number, work)
                    mine = [child for child in active_children() if child not in others]
                    worker = mine[0] if mine else worker
                    scored.result()
    except (BrokenExecutor, MemoryError) as error:
        why = "ran out of memory"
        if isinstance(error, BrokenExecutor):
            why = how_it_ended(worker.exitcode if worker else None)
        work = works[number]
        raise Unreachable(
            f"{work.results}: range {number + 1} of {len(works)} (bytes {work.start} to "
            f"{work.end}) was tried twice in a worker process, which {why}. Nothing was written: "
            "free memory, or score with --jobs 1."
        ) from None


class _RangeTask(msgspec.Struct, frozen=True):
    """What all ranges of a run need. ``resident``: the workers go on when the run is scored."""

    scorer: Scorer
    labels: Labels
    absent: Absent | None
    resident: bool
    addresses: frozenset[str]
    """Below which parts may be opened."""
    unmapped: bool


_ROWS, _DONE, _IDS = ".jsonl", ".part", ".ids"
_NUMBERS = (".conversations", ".turns")
_COUNTED, _MORE = ".counted", ".more"
"""Files of a range: its score lines, the rest of what it gave, the hashes of the ids of its cases,
the turns of its lines, what was counted, and what its scorer leaves for the run."""


def _file_of(folder: Path, number: int, kind: str) -> Path:
    return folder / f"{number}{kind}"


class _RangeSums(msgspec.Struct):
    """The file that says that a range is done: what it gave besides its other files, and the bytes
    of these. It is read as data of these types, from a folder that anybody may have made."""

    table: bytes
    slices: list[Slices]
    results: dict[int, int]
    errors: int
    unreadable: int
    ids: set[str]
    has_turns: bool
    lines: int
    faulty: bool
    """There are problems; one process tells them all."""
    sizes: dict[str, int]


def _left_in(folder: Path, number: int, width: int) -> _RangeSums | None:
    """What a range of ``width`` metrics left; None when it is not done, or a file is damaged."""
    try:
        content = _file_of(folder, number, _DONE).read_bytes()
        sums = msgspec.msgpack.decode(content, type=_RangeSums)
        sizes = {kind: _file_of(folder, number, kind).lstat() for kind in sums.sizes}
    except (OSError, ValueError):
        return None
    sound = (
        sums.sizes.keys() >= {_ROWS, *_WIDTH_OF}
        and all(S_ISREG(stat.st_mode) for stat in sizes.values())
        and all(sums.sizes[kind] == stat.st_size for kind, stat in sizes.items())
        and not any(sums.sizes[kind] % entry for kind, entry in _WIDTH_OF.items())
        and all(sums.sizes[kind] in (0, 8 * sums.lines) for kind in _NUMBERS)
        and len(sums.table) % (8 * width) == 0
    )
    return sums if sound else None


def _scored_range(folder: Path, number: int, width: int) -> ScoredRange:
    sums = _left_in(folder, number, width)
    if sums is None:
        raise DamagedRange(_file_of(folder, number, _DONE))
    table = np.frombuffer(sums.table, "<f8").reshape(-1, width)
    return ScoredRange(
        Tally.restored(table, sums.slices),
        _file_of(folder, number, _ROWS),
        Counter(sums.results),
        sums.errors,
        sums.unreadable,
        sums.ids,
        has_turns=sums.has_turns,
        stored=True,
        faulty=sums.faulty,
        lines=sums.lines,
    )


def _score_task(folder: Path, number: int, work: Work, shared: bytes | None = None) -> None:
    """In a worker: score one range. Its files appear whole, the one that says it is done last; who
    does it a second time, since a worker seemed to be lost, writes the same."""
    task: _RangeTask = opened(shared)
    allow_addresses(task.addresses)
    if not folder.is_dir():
        raise StorageError(
            f"{folder.parent}: cannot be read on worker {platform.node()}; all machines must see "
            "the run under the same path."
        )
    own = folder / f"{number}-{os.urandom(16).hex()}"
    scorer, joined = task.scorer, partial(join_stream, work, task.labels, ignore)
    if isinstance(scorer, RangeScorer):
        pairs = (pair for cases, results in joined() for pair in zip(cases, results, strict=True))
        scorer = scorer.for_range(pairs)
    part = score_range(
        work,
        scorer=scorer,
        labels=task.labels,
        folder=folder,
        absent=task.absent,
        unmapped=task.unmapped,
        rows=own.with_suffix(_ROWS),
        resident=task.resident,
    )
    np.sort(np.frombuffer(part.hashes, np.int64)).tofile(own.with_suffix(_IDS))
    for column, kind in zip((part.conversations, part.turns), _NUMBERS, strict=True):
        own.with_suffix(kind).write_bytes(column)
    _write_counted(own.with_suffix(_COUNTED), part.tally.release())
    if isinstance(scorer, RangeScorer):
        own.with_suffix(_MORE).write_bytes(scorer.partial_result())
    written = [path for path in map(own.with_suffix, (_ROWS, *_WIDTH_OF, _MORE)) if path.exists()]
    table, slices = part.tally.rows_and_slices()
    sums = _RangeSums(
        table.astype("<f8").tobytes(),
        slices,
        part.results,
        part.errors,
        part.unreadable,
        part.ids,
        part.has_turns,
        part.lines,
        bool(part.problems),
        {path.suffix: path.stat().st_size for path in written},
    )
    own.with_suffix(_DONE).write_bytes(msgspec.msgpack.encode(sums))
    for path in (*written, own.with_suffix(_DONE)):
        os.replace(path, _file_of(folder, number, path.suffix))


_WIDTHS = (("clusters", 8), ("slices", 4), ("rows", 4), ("times", 4))
"""The columns of a file of what was counted, one behind the other, and the bytes of an entry."""
_WIDTH = sum(width for _, width in _WIDTHS)
_WIDTH_OF = {_IDS: 8, **dict.fromkeys(_NUMBERS, 8), _COUNTED: _WIDTH}
"""Bytes of an entry in the files that are always there."""


def _write_counted(path: Path, counted: CountedValues) -> None:
    with open(path, "wb") as file:
        for name, width in _WIDTHS:
            file.write(getattr(counted, name).astype(f"<i{width}").tobytes())


def _counted_portions(parts: Sequence[ScoredRange]) -> Iterator[list[CountedValues]]:
    """What each range counted, for one portion of all clusters after the other."""
    paths = [part.rows.with_suffix(_COUNTED) for part in parts]
    bounds = [[len(column) for column in part.tally.rows_and_slices()] for part in parts]
    sizes = [path.stat().st_size // _WIDTH for path in paths]
    portions = 1 + sum(sizes) // _PORTION
    edges = np.linspace(0, MOST_CLUSTERS, portions + 1)[1:-1].astype(np.int64)
    places = []
    for path, size in zip(paths, sizes, strict=True):
        clusters = np.memmap(path, "<i8", "r", shape=(size,)) if size else np.zeros(0, np.int64)
        places.append([0, *np.searchsorted(clusters, edges).tolist(), size])
        del clusters
    for portion in range(portions):
        counted = [
            _read_counted(path, size, of[portion], of[portion + 1])
            for path, size, of in zip(paths, sizes, places, strict=True)
        ]
        for path, entries, (rows, slices) in zip(paths, counted, bounds, strict=True):
            if not (_below(entries.rows, rows) and _below(entries.slices, slices)):
                raise DamagedRange(path)
        yield counted


def _below(numbers: NDArray[Any], end: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < end)


def _read_counted(path: Path, size: int, start: int, end: int) -> CountedValues:
    columns, offset = {}, 0
    for name, width in _WIDTHS:
        begin = offset + start * width
        columns[name] = np.fromfile(path, f"<i{width}", end - start, offset=begin)
        offset += size * width
    return CountedValues(**columns)


def _numbers_of(part: ScoredRange) -> list[array[int]]:
    """The numbers of each line's conversation and turn."""
    if not part.stored:
        return [part.conversations, part.turns]
    return [array("q", part.rows.with_suffix(kind).read_bytes()) for kind in _NUMBERS]
