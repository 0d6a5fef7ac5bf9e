"""One import or export from the sources to the files at their place."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Protocol

import msgspec
import orjson

from formats.shared.item import ImportedCase, ImportOptions, Notes, SystemAnswer
from formats.shared.rows import place_of
from formats.shared.stored import Stored
from ragmetrics.paths import MOST_PASSAGES, examine_paths
from records.cases import case_from_dict
from records.conversations import TurnOrder
from records.errors import StorageError
from records.files import replace_json, sha256_file
from records.labels import labels_sha256
from records.results import RunConfig, TestResult
from records.runs import (
    CONFIG,
    RESULTS,
    SAMPLE,
    VERSION,
    check_run_id,
    config_hash,
    find_run,
    latest_run,
)


class _ImportFormat(Protocol):
    """A format that is read: a module of ``formats``, or what acts as one."""

    NAME: str

    def read(
        self, sources: Sequence[Path], options: ImportOptions, notes: Notes, /
    ) -> Iterator[ImportedCase]: ...


def import_data(
    module: _ImportFormat,
    sources: Sequence[Path],
    target: Path,
    options: dict[str, Any],
    notes: Notes,
    *,
    one_file: bool,
    force: bool,
    sample: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Read other tools' files into an eval set with runs; return a summary.

    ``options``: the fields of ImportOptions that the user set. ``sample``: how the cases were
    drawn, for config.json of the runs. Raises StorageError with every
    problem, nothing written.
    """
    for source in sources:
        if not source.exists():
            raise StorageError(f"{source}: no such file or folder.")
    with _scratch(target) as folder, ExitStack() as files:
        scratch = Path(folder)
        output = _ConversionOutput(
            target,
            scratch,
            files,
            notes,
            one_file=one_file,
            run_id=options.get("run_id"),
            source={"format": module.NAME, "files": [source.name for source in sources]},
            sample=sample,
        )
        try:
            for item in module.read(sources, ImportOptions(**options, scratch=scratch), notes):
                output.add(item)
            return output.finish(force=force)
        except StorageError as error:
            message = error.message
            for source in sources:  # of a packed file, name the one that the user knows
                message = message.replace(str(place_of(source, scratch)), str(source))
            raise StorageError(message, error.problems) from None


def export_data(
    module: ModuleType, stored: Stored, target: Path, notes: Notes, *, force: bool
) -> list[Path]:
    """Write our cases and results as another tool's files; return a summary.

    Raises StorageError with every problem, nothing written.
    """
    single = bool(getattr(module, "ONE_FILE", False))
    with _scratch(target) as folder:
        output = Path(folder) / "made"
        output.mkdir()
        try:
            module.write(stored, output / target.name if single else output, notes)
        except StorageError as error:  # name the file or folder that the user knows
            shown = str(output / target.name if single else output)
            raise StorageError(error.message.replace(shown, str(target)), error.problems) from None
        notes.check()
        if not single:
            names = sorted(path.relative_to(output) for path in output.rglob("*") if path.is_file())
            _move(output, target, [], force=force)
            return [target / name for name in names]
        if target.exists() and not force:
            raise StorageError(
                f"{target}: exists already; choose another --output, or --force. Nothing was "
                "written."
            )
        try:
            os.replace(output / target.name, target)
        except OSError as error:
            raise StorageError(f"{target}: cannot be written ({error.strerror}).") from None
        return [target]


def run_of(results_dir: Path, run: str, *, asked: bool) -> Path | None:
    """The run to export; None when the user named none and there is none."""
    return find_run(results_dir, run) if asked or latest_run(results_dir) else None


def _scratch(target: Path) -> tempfile.TemporaryDirectory[str]:
    """A hidden folder on the disk of the target, so that moving is one step.

    Its name tells machine and process: what a killed conversion left behind is removed here.
    """
    parent = target.resolve().parent
    ours = _hidden_prefix()
    try:
        parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(parent).free == 0:
            raise StorageError(f"{parent}: the disk is full.")
        for stale in parent.glob(f"{ours}*"):
            if _left_behind(stale, stale.name.removeprefix(ours)):
                shutil.rmtree(stale, ignore_errors=True)
        return tempfile.TemporaryDirectory(prefix=f"{ours}{os.getpid()}.", dir=parent)
    except OSError as error:
        raise StorageError(f"{target}: cannot be written ({error.strerror}).") from None


def _hidden_prefix() -> str:
    """How the hidden folders of this machine begin; the process stands behind it."""
    return f".converting.{re.sub('[^A-Za-z0-9-]', '-', platform.node())}."


def _left_behind(folder: Path, name: str) -> bool:
    """Whether the process of a hidden folder is dead and the folder holds nothing of the user's.

    A run that --force was replacing when the process died (old-…) stays for the user to take back.
    """
    process = name.partition(".")[0]
    if os.name != "posix" or not process.isdigit() or next(folder.glob("old-*"), None):
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


LABEL_FILE = {
    "retrieval_labels": (
        "relevant_docs",
        "relevance_grades",
        "relevant_chunks",
        "chunk_relevance_grades",
        "gold_contexts",
    ),
    "context_labels": ("gold_facts", "expected_chunks"),
    "groundedness_labels": ("expected_claims", "expected_citations", "forbidden_claims"),
    "pipeline_labels": (
        "expected_outcome",
        "required_flags",
        "forbidden_flags",
        "min_citations",
        "latency_budget_ms",
    ),
}
"""The label file of a field; fields without one are in the eval set."""

_DUMP = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


class _ConversionOutput:
    """Takes items one at a time; ``finish`` moves what was made to its place."""

    def __init__(
        self,
        target: Path,
        scratch: Path,
        files: ExitStack,
        notes: Notes,
        *,
        one_file: bool,
        run_id: str | None,
        source: Mapping[str, Any],
        sample: Mapping[str, Any] | None,
    ) -> None:
        """``files`` closes what is written. ``source``: format and files, ``sample``: how drawn,
        for config.json of the runs."""
        self._target = target
        self._output = scratch / "made"
        self._notes = notes
        self._one_file = one_file
        self._run_id = run_id
        self._about: dict[str, Any] = {"imported": dict(source)}
        if sample is not None:
            self._about[SAMPLE] = dict(sample)
        self._files: dict[str, IO[bytes]] = {}
        self._open = files
        self._lines: dict[str, int] = {}
        self._ids: dict[str, int | None] = {}
        self._turns = TurnOrder()
        self._runs: dict[str, str] = {}
        self._asked = 0
        self._answered_unasked: Counter[str] = Counter()
        self._paths: list[tuple[list[str], list[str]]] = []
        self._known: set[str] = set()

    def add(self, item: ImportedCase) -> None:
        """Check a case and write it with its answers. What is wrong with it becomes a problem."""
        identity = item.case.get("id")
        _, findings = case_from_dict(item.case)
        self._turns.add(*(item.case.get(name) for name in ("conversation", "turn", "group")))
        findings += self._turns.problems
        self._turns.problems.clear()
        for field, message in findings:
            self._notes.problem(item.path, item.line, field, message)
        if isinstance(identity, str):
            if identity in self._ids:
                line = self._ids[identity]
                earlier = "an earlier row" if line is None else f"line {line}"
                message = f"{identity!r} is also the id of {earlier}; give it another"
                self._notes.problem(item.path, item.line, "id", message)
                return
            self._ids[identity] = item.line
        if findings:
            return
        case, labels = self._parted(item.case)
        self._write("eval_set.jsonl", case)
        for name, fields in labels.items():
            self._write(f"labels/{name}.jsonl", {"case_id": identity} | fields)
        self._asked += item.asked
        if not item.asked:
            self._answered_unasked.update({answer.run for answer in item.answers})
        gold = [support["rel_path"] for support in item.case.get("gold_supports") or ()]
        self._known.update(gold)
        for answer in item.answers:
            self._add_answer(answer)
            if gold and len(self._paths) < MOST_PASSAGES:
                paths = [chunk.rel_path or "" for chunk in answer.result.chunks()]
                self._paths.append((gold, paths))

    def _parted(self, case: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        if self._one_file:
            return case, {}
        labels = {
            name: part
            for name, fields in LABEL_FILE.items()
            if (part := {field: case[field] for field in fields if field in case})
        }
        taken = {field for part in labels.values() for field in part}
        return {name: value for name, value in case.items() if name not in taken}, labels

    def _add_answer(self, answer: SystemAnswer) -> None:
        run = self._runs.get(answer.run) or self._new_run(answer.run)
        line: Any = answer.result
        if not answer.has_retrieved:
            line = line.to_dict(store_full_text=True)
            del line["retrieved"]
        self._write(f"results/{run}/{RESULTS}", line)
        for name, record in answer.beside(run) if answer.beside else ():
            self._write(name, record)

    def _new_run(self, name: str) -> str:
        """The folder of a run: its name, as far as a run id can be like that."""
        wished = self._run_id or name
        if self._run_id is not None:
            check_run_id(wished)
            if self._runs:
                names = ", ".join([*self._runs, name][:5])
                raise StorageError(f"--run-id names one run, but there are several: {names}.")
        run = re.sub(r"[^A-Za-z0-9._-]+", "-", wished).lstrip("._-")[:90] or "run"
        if run != wished:
            self._notes.changed[f"run {wished[:60]!r}: named {run!r}"] += 1
        if run in self._runs.values():
            message = f"two runs would be named {run!r}; import them one by one with --run-id."
            raise StorageError(message)
        self._runs[name] = run
        return run

    def _write(self, name: str, record: Any) -> None:
        if name not in self._files:
            path = self._output / name
            path.parent.mkdir(parents=True, exist_ok=True)
            file = open(path, "wb", buffering=1 << 16)  # noqa: SIM115
            self._files[name] = self._open.enter_context(file)
        if isinstance(record, TestResult):
            line = msgspec.json.encode(record.to_dict(store_full_text=True))
            self._files[name].write(line + b"\n")
        else:
            self._files[name].write(orjson.dumps(record, option=_DUMP))
        self._lines[name] = self._lines.get(name, 0) + 1

    def finish(self, *, force: bool) -> list[Path]:
        """Move all that was made into the target; returns the eval set and the run folders.

        Raises StorageError with nothing moved when there were problems, or when a file would be
        lost and ``force`` is not set.
        """
        self._notes.check()
        if not self._ids:
            why = "; ".join(
                f"{reason}: {n}" for reason, n in sorted(self._notes.left_out.items()) if n
            )
            left_out = f" (left out: {why})" if why else ""
            remarks = "".join(f" {remark}" for remark in self._notes.remarks)
            raise StorageError(f"The source has no case{left_out}; nothing was written.{remarks}")
        self._open.close()
        verdict = examine_paths(self._paths, self._known)
        if verdict.seen_cut > verdict.seen or verdict.two_name_spaces:
            self._notes.remarks.append(
                f"The answers and the labels name files differently: {verdict.sentence()}"
            )
        for name, run in self._runs.items():
            self._write_config(run, self._asked + self._answered_unasked[name])
        self._notes.written.update(self._lines)
        runs = [Path("results") / run for run in self._runs.values()]
        _move(self._output, self._target, runs, force=force)
        return [self._target / "eval_set.jsonl", *(self._target / run for run in runs)]

    def _write_config(self, run: str, asked: int) -> None:
        eval_set = self._output / "eval_set.jsonl"
        results = self._output / "results" / run / RESULTS
        config = RunConfig(
            run_id=run,
            tool_version=VERSION,
            dataset={
                "path": "eval_set.jsonl",
                "sha256": sha256_file(eval_set),
                "git_commit": None,
                "labels_sha256": labels_sha256(self._output / "labels", eval_set),
                "cases": len(self._ids),
            },
            answerer={"imported_sha256": sha256_file(results)},
            run={"store_full_text": True, **self._about, "selected": asked},
        )
        config.config_hash = config_hash(config)
        replace_json(results.with_name(CONFIG), msgspec.to_builtins(config))


def _move(output: Path, target: Path, whole: list[Path], *, force: bool) -> None:
    """Put the files of a finished folder at their places below ``target``.

    ``whole``: folders below it that are replaced as one. A file that is there already with the
    same bytes is no conflict. Raises StorageError, nothing moved, when something else is there and
    ``force`` is not set.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            os.replace(output, target)
            return
        single = [path for path in _files(output) if not any(path.is_relative_to(w) for w in whole)]
        taken = [target / path for path in single if _differs(output / path, target / path)]
        taken += [target / path for path in whole if (target / path).exists()]
        if taken and not force:
            shown = "\n".join(f"{path}: is there already" for path in taken[:20])
            raise StorageError(
                f"{shown}\nNothing was written; choose another --output, or --force."
            )
        for path in single + whole:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            if path in whole and (target / path).exists():
                os.replace(target / path, output.with_name(f"old-{path.name}"))
            os.replace(output / path, target / path)
    except OSError as error:
        raise StorageError(f"{target}: cannot be written ({error.strerror}).") from None


def _files(folder: Path) -> Iterator[Path]:
    return (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())


def _differs(source: Path, there: Path) -> bool:
    if not there.exists():
        return False
    return not there.is_file() or sha256_file(source) != sha256_file(there)
