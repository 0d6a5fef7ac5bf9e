"""Run folders: finding one, writing one, its configuration and what counts in its hash."""

from __future__ import annotations

import hashlib
import os
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import orjson

from records.errors import Problem, StorageError, did_you_mean
from records.file_access import check_folder, open_plain
from records.files import JsonlWriter, cut_torn_tail, parses, read_json, replace_bytes, replace_json
from records.home import CACHE_DIR as CACHE_DIR
from records.home import EVAL_SET as EVAL_SET
from records.home import HOME as HOME
from records.home import INIT_FOLDER as INIT_FOLDER
from records.home import JUDGES as JUDGES
from records.home import LABELS_DIR as LABELS_DIR
from records.home import PROFILES as PROFILES
from records.home import RESULTS_DIR as RESULTS_DIR
from records.home import ROOT as ROOT
from records.home import SHIPPED_PROFILES as SHIPPED_PROFILES
from records.home import own_file as own_file
from records.lines import lines_from
from records.results import SCHEMA, RunConfig, TestResult, result_of
from records.syncing import make_folder, move_into_place

VERSION = "0.1.0"
RESULTS, PARTIAL = "results.jsonl", "results.partial.jsonl"
SAFETY_RESULTS, SAFETY_PARTIAL = "safety_results.jsonl", "safety_results.partial.jsonl"
"""Answers to the labelled prompts of safety_labels.jsonl, which are no cases of the set."""
CONFIG = "config.json"
METRICS = "metrics.json"
SLICES = "slices.json"
"""The file with the parts that metrics.json leaves out, for people who look at one run: means by
slice and the like."""
SCORES = "scores"
"""The folder of score lines, a file for each section: see ``scores_file``."""
VERDICTS = "verdicts.jsonl"
GATE = "gate.json"
SUITE = "suite"
"""The report of the suite: ``.json`` and ``.md`` behind it."""
REPORT = "report"
"""The report of a run: ``.html``, ``.md`` and ``.json`` behind it."""
JUDGE_CACHE = "judge_cache.jsonl"
"""The cache of verdicts, in ``CACHE_DIR``."""
SAMPLE, UNIFORM, ENRICHED = "sample", "uniform", "enriched"
"""In ``run`` of the configuration of a run that was drawn from traces: how it was drawn."""
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def results_file(folder: Path) -> Path:
    """The path of the results of a finished run, whether or not it exists."""
    return folder / RESULTS


def scores_file(folder: Path, section: str) -> Path:
    """Where a run keeps the score lines of a section."""
    return folder / SCORES / f"{section}.jsonl"


def halfway_mark(folder: Path, section: str) -> Path:
    """The file that is there while the score lines of a section and metrics.json may differ."""
    return folder / SCORES / f".{section}.halfway"


def half_scored(folder: Path, section: str) -> Problem | None:
    """The problem that scoring of a section ended between its score lines and metrics.json."""
    if not halfway_mark(folder, section).exists():
        return None
    message = (
        f"{section} is scored halfway, so its lines and metrics.json differ; score the run again "
        f"(eval_suite.py --run {folder.name})"
    )
    return Problem(str(scores_file(folder, section)), None, "", message)


def scored_sections(folder: Path) -> list[str]:
    """Sections for which the run has score lines, sorted."""
    return sorted(path.stem for path in (folder / SCORES).glob("*.jsonl"))


def check_run_id(run_id: str) -> str:
    """A run id is a plain folder name. Raises StorageError for anything else."""
    if not RUN_ID.fullmatch(run_id):
        raise StorageError(
            f"run id {run_id!r}: use letters, digits, '.', '_' and '-', beginning with a letter "
            "or digit, at most 100 characters."
        )
    return run_id


def latest_run(results_dir: Path) -> Path | None:
    """The folder of the run with the newest complete results; None when there is none."""
    done = [path for path in results_dir.glob(f"*/{RESULTS}") if path.is_file()]
    newest = max(done, key=lambda path: (path.stat().st_mtime_ns, path.parent.name), default=None)
    return newest and newest.parent


def find_run(results_dir: Path, run: str) -> Path:
    """The folder of a run given by id, by path, by its metrics.json, or as ``latest`` (newest
    complete results).

    Raises StorageError for a run that is not there, or that has a link out of its folder.
    """
    if run == "latest":
        latest = latest_run(results_dir)
        if latest is None:
            raise StorageError(f"{results_dir}: has no complete run; make one with run_eval.py.")
        check_folder(latest)
        return latest
    path = Path(run)
    own = path.parent if path.name == METRICS and path.is_file() else path
    for folder in (results_dir / run, own):
        if folder.is_dir():
            check_folder(folder)
            return folder
    if path.is_file():
        raise StorageError(f"{run}: is a file; name the run, or its folder.")
    if path.suffix == ".json":
        raise StorageError(f"{run}: no such file.")
    names = sorted(path.name for path in results_dir.glob("*") if path.is_dir())
    shown = ", ".join(names[-5:]) or "none"
    raise StorageError(
        f"run {run!r}: no such folder in {results_dir}; the newest are: {shown}."
        + did_you_mean(run, ["latest", *names])
    )


def config_hash(config: RunConfig) -> str:
    """SHA-256 over everything that can change a result, and nothing else.

    Dataset, index, retriever, answerer, judge, seed and the profile count; run id, times, the
    bot's address, concurrency and where the files lie do not.
    """
    counted = {
        "dataset": config.dataset.get("sha256"),
        "index": config.index,
        "retriever": config.retriever,
        "answerer": config.answerer,
        "judge": config.judge,
        "seed": config.seed,
        "profile": config.api.get("profile_sha256") or config.api.get("profile"),
    }
    return hashlib.sha256(orjson.dumps(counted, option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_config(folder: Path) -> RunConfig:
    """The configuration of a run. Raises StorageError when absent, damaged, or another schema."""
    path = folder / CONFIG
    raw = read_json(path, SCHEMA)
    try:
        config = msgspec.convert({"run_id": folder.name} | raw, RunConfig)
        msgspec.convert(config.api.get("mapped"), list[str] | None)
    except msgspec.ValidationError as error:
        raise StorageError(f"{path}: {error}.") from None
    return config


def known_config(folder: Path) -> RunConfig:
    """The same of a run that may have no configuration: then no more than its id is known."""
    return read_config(folder) if (folder / CONFIG).exists() else RunConfig(folder.name)


class ResultsWriter:
    """Writes one run: config.json at once, results as they come, results.jsonl when complete.

    While the run goes on its lines stand in results.partial.jsonl, flushed one by one, so that a
    kill loses the calls in flight and nothing else, and a power cut the last five seconds.
    ``finish`` puts them in order and renames. ``damaged_lines``: those that ``reopen`` took out.
    """

    def __init__(
        self,
        output_dir: Path | str,
        run_id: str,
        *,
        store_full_text: bool = False,
        resume: bool = False,
    ) -> None:
        """Open a run folder. Raises StorageError when it exists already, unless ``resume``."""
        self.folder = Path(output_dir) / check_run_id(run_id)
        self.run_id = run_id
        self.store_full_text = store_full_text
        if not resume and (self.folder / CONFIG).exists():
            raise StorageError(
                f"{self.folder}: this run exists already; choose another id or --resume it."
            )
        try:
            make_folder(self.folder)
        except OSError as error:
            raise StorageError(f"{self.folder}: cannot be made ({error.strerror}).") from error
        check_folder(self.folder)
        self.damaged_lines = 0
        self._partial = self.folder / PARTIAL
        self._lines: JsonlWriter | None = None
        self._finished: list[int] = []  # offsets of the lines that a run brought with it

    def write_config(self, config: RunConfig, eval_set_commit_hash: str | None = None) -> None:
        """Replace config.json; its ``config_hash`` is computed here, as is an absent ``run_id``.

        ``eval_set_commit_hash`` becomes ``git_commit`` of ``config.dataset``.
        """
        config.run_id = config.run_id or self.run_id
        if eval_set_commit_hash is not None:
            config.dataset = config.dataset | {"git_commit": eval_set_commit_hash}
        config.config_hash = config_hash(config)
        replace_json(self.folder / CONFIG, msgspec.to_builtins(config))

    def reopen(self, keep: Callable[[TestResult], bool]) -> set[tuple[str, int]]:
        """Continue a run: (case id, repeat) of the results kept so far.

        A finished run whose results are all kept stays finished until another result is written
        (it may have lost lines); otherwise its kept lines become the partial file, and what
        ``keep`` refuses will be asked again, as will what stood in lines that are no JSON. Raises
        StorageError, with nothing changed, at other lines that are no result of this version.
        """
        cut_torn_tail(self._partial)
        source = self._partial if self._partial.exists() else results_file(self.folder)
        if not source.exists():
            return set()
        offsets: dict[tuple[str, int], int] = {}
        dropped = False
        with open_plain(source) as lines:
            offset = 0
            for number, line in enumerate(lines, 1):
                result = result_of(source, number, line, "delete the line: its case is asked again")
                if isinstance(result, Problem):
                    if parses(line):
                        raise StorageError.from_problems([result])
                    self.damaged_lines += 1
                    offset += len(line)
                    continue
                key = (result.test_case_id, result.repeat)
                if keep(result):
                    offsets[key] = offset
                else:
                    dropped = True
                    offsets.pop(key, None)
                offset += len(line)
        self._finished = [*offsets.values()]
        if source == self._partial or dropped or self.damaged_lines:
            _copy_lines(source, offsets.values(), self._partial)
            self._remove_finished()
        return set(offsets)

    def _remove_finished(self) -> None:
        """The partial file holds all that counts by now."""
        (self.folder / RESULTS).unlink(missing_ok=True)

    def write_result(self, result: TestResult, store_full_text: bool | None = None) -> None:
        """Append one result; chunk texts are cut to 200 characters unless full text is stored."""
        self.write_together((result,), store_full_text)

    def write_together(
        self, results: Sequence[TestResult], store_full_text: bool | None = None
    ) -> None:
        """Append results in one step, so that a kill leaves all of them or none."""
        if self._lines is None:
            if self._finished and not self._partial.exists():  # a finished run lost lines
                _copy_lines(results_file(self.folder), self._finished, self._partial)
                self._remove_finished()
            self._lines = JsonlWriter(self._partial)
        full = self.store_full_text if store_full_text is None else store_full_text
        self._lines.write_together(result.to_dict(store_full_text=full) for result in results)

    def finish(self, order: Iterable[str]) -> Path:
        """Put the results in the order of ``order`` (case ids), repeats together; rename.

        Of several lines for one case and repeat the last one counts. Returns the path of
        results.jsonl. Memory: one offset a line.
        """
        self.close()
        if not self._partial.exists():
            target = results_file(self.folder)
            if not target.exists():
                replace_bytes(target, b"")
            return target
        places: dict[str, int] = {}
        for case_id in order:
            places.setdefault(case_id, len(places))
        offsets: dict[int, array[int]] = {}  # by repeat; -1: none
        with open(self._partial, "rb") as source:
            offset = 0
            for line in source:
                key = _decode_key(line)
                place = places.get(key.test_case_id)
                if place is not None:
                    if key.repeat not in offsets:
                        offsets[key.repeat] = array("q", [-1]) * len(places)
                    offsets[key.repeat][place] = offset
                offset += len(line)
        columns = [column for _, column in sorted(offsets.items())]
        in_order = (offset for row in zip(*columns, strict=True) for offset in row if offset >= 0)
        target = self.folder / RESULTS
        _copy_lines(self._partial, in_order, target)
        self._partial.unlink()
        return target

    def close(self) -> None:
        """Flush the written lines onto the disk; the partial file stays for ``--resume``."""
        if self._lines is not None:
            self._lines.sync()
            self._lines.close()
            self._lines = None


class _Key(msgspec.Struct):
    test_case_id: str
    repeat: int = 0


_decode_key = msgspec.json.Decoder(_Key).decode


def _copy_lines(source: Path, offsets: Iterable[int], target: Path) -> None:
    """Make ``target`` of the lines of ``source`` that begin at ``offsets``, in that order."""
    temporary = target.with_name(f".{target.name}.tmp")
    with open(temporary, "wb") as file:
        file.writelines(line.rstrip(b"\n") + b"\n" for _, line in lines_from(source, offsets))
        file.flush()
        os.fsync(file.fileno())
    move_into_place(temporary, target)
