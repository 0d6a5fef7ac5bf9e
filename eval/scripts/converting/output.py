"""Where an import goes: an eval set, label files beside it and run folders, all or nothing.

Everything is written into a hidden folder on the same disk first and moved when it is complete, so
that a fault in the last line leaves no trace.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import msgspec
import orjson

import storage
from converting.human import verdicts
from converting.item import Answer, Item
from converting.notes import Notes
from storage import RunConfig, StorageError, TestResult, case_from_dict

SPANS = "human_spans.jsonl"
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
"""Which label file a field goes to; fields without one stand in the eval set."""
_DUMP = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


class Output:
    """Takes items one at a time; ``finish`` moves what was made to its place."""

    def __init__(
        self,
        target: Path,
        scratch: Path,
        notes: Notes,
        *,
        one_file: bool,
        run_id: str | None,
        source: Mapping[str, Any],
    ) -> None:
        """``source``: format and files, for config.json of the runs."""
        self._target = target
        self._made = scratch / "made"
        self._notes = notes
        self._one_file = one_file
        self._run_id = run_id
        self._source = dict(source)
        self._files: dict[str, IO[bytes]] = {}
        self._open = ExitStack()
        self._lines: dict[str, int] = {}
        self._ids: dict[str, int | None] = {}
        self._runs: dict[str, str] = {}
        self._asked = 0
        self._answered_unasked: Counter[str] = Counter()
        (self._made / "labels" / "verdicts").mkdir(parents=True)

    def add(self, item: Item) -> None:
        """Check a case and write it with its answers. What is wrong with it becomes a problem."""
        identity = item.case.get("id")
        _, findings = case_from_dict(item.case)
        for field, message in findings:
            self._notes.problem(item.path, item.line, field, message)
        if isinstance(identity, str):
            if identity in self._ids:
                known = self._ids[identity]
                place = "an earlier row" if known is None else f"line {known}"
                message = f"{identity!r} is also the id of {place}; give it another"
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
        for answer in item.answers:
            self._add_answer(answer)

    def _parted(self, case: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        if self._one_file:
            return case, {}
        labels = {
            name: found
            for name, fields in LABEL_FILE.items()
            if (found := {field: case[field] for field in fields if field in case})
        }
        taken = {field for found in labels.values() for field in found}
        return {name: value for name, value in case.items() if name not in taken}, labels

    def _add_answer(self, answer: Answer) -> None:
        run = self._runs.get(answer.run) or self._new_run(answer.run)
        line = answer.result if answer.told else msgspec.to_builtins(answer.result)
        if isinstance(line, dict):
            del line["retrieved"]
        self._write(f"results/{run}/{storage.RESULTS}", line)
        if answer.spans is not None:
            key = {"case_id": answer.result.test_case_id, "repeat": answer.result.repeat}
            self._write(f"results/{run}/{SPANS}", key | {"spans": answer.spans})
            annotator = f"people-{run}"
            for verdict in verdicts(answer, annotator):
                self._write(f"labels/verdicts/{annotator}.jsonl", verdict)

    def _new_run(self, name: str) -> str:
        """The folder of a run: its name, as far as a run id can be like that."""
        wanted = self._run_id or name
        if self._run_id is not None:
            storage.check_run_id(wanted)
            if self._runs:
                names = ", ".join([*self._runs, name][:5])
                raise StorageError(f"--run-id names one run, but there are several: {names}.")
        run = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).lstrip("._-")[:90] or "run"
        if run != wanted:
            self._notes.changed[f"run {wanted[:60]!r}: named {run!r}"] += 1
        if run in self._runs.values():
            message = f"two runs would be named {run!r}; import them one by one with --run-id."
            raise StorageError(message)
        self._runs[name] = run
        (self._made / "results" / run).mkdir(parents=True)
        return run

    def _write(self, name: str, record: Any) -> None:
        if name not in self._files:
            file = open(self._made / name, "wb", buffering=1 << 16)  # noqa: SIM115
            self._files[name] = self._open.enter_context(file)
        if isinstance(record, TestResult):
            self._files[name].write(msgspec.json.encode(record) + b"\n")
        else:
            self._files[name].write(orjson.dumps(record, option=_DUMP))
        self._lines[name] = self._lines.get(name, 0) + 1

    def finish(self, extra: Mapping[str, Path], *, force: bool) -> list[Path]:
        """Move all that was made into the target; returns the eval set and the run folders.

        ``extra``: files to put beside the set, by name. Raises StorageError with nothing moved
        when there were problems, or when a file would be lost and ``force`` is not set.
        """
        self._notes.check()
        if not self._ids:
            why = "; ".join(f"{what}: {n}" for what, n in sorted(self._notes.left_out.items()) if n)
            told = f" (left out: {why})" if why else ""
            raise StorageError(f"The source holds no case{told}; nothing was written.")
        self._open.close()
        for name, run in self._runs.items():
            self._write_config(run, self._asked + self._answered_unasked[name])
        for folder in (self._made / "labels" / "verdicts", self._made / "labels"):
            if not any(folder.iterdir()):
                folder.rmdir()
        for name, path in extra.items():
            shutil.copyfile(path, self._made / name)
        self._notes.written.update(self._lines)
        runs = [Path("results") / run for run in self._runs.values()]
        move(self._made, self._target, runs, force=force)
        return [self._target / "eval_set.jsonl", *(self._target / run for run in runs)]

    def _write_config(self, run: str, asked: int) -> None:
        eval_set = self._made / "eval_set.jsonl"
        results = self._made / "results" / run / storage.RESULTS
        config = RunConfig(
            run_id=run,
            tool_version=storage.VERSION,
            dataset={
                "path": "eval_set.jsonl",
                "sha256": storage.sha256_file(eval_set),
                "git_commit": None,
                "labels_sha256": storage.labels_sha256(self._made / "labels"),
                "cases": len(self._ids),
            },
            answerer={"imported_sha256": storage.sha256_file(results)},
            run={"store_full_text": True, "imported": self._source, "selected": asked},
        )
        config.config_hash = storage.config_hash(config)
        storage.replace_json(results.with_name("config.json"), msgspec.to_builtins(config))


def move(made: Path, target: Path, whole: list[Path], *, force: bool) -> None:
    """Put the files of a finished folder at their places below ``target``.

    ``whole``: folders below it that are replaced as one. A file that is there already with the
    same bytes is no conflict. Raises StorageError, nothing moved, when something else is there and
    ``force`` is not set.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            os.replace(made, target)
            return
        single = [path for path in _files(made) if not any(path.is_relative_to(w) for w in whole)]
        taken = [target / path for path in single if _differs(made / path, target / path)]
        taken += [target / path for path in whole if (target / path).exists()]
        if taken and not force:
            shown = "\n".join(f"{path}: is there already" for path in taken[:20])
            raise StorageError(
                f"{shown}\nNothing was written; choose another --output, or --force."
            )
        for path in single + whole:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            if path in whole and (target / path).exists():
                os.replace(target / path, made.with_name(f"old-{path.name}"))
            os.replace(made / path, target / path)
    except OSError as error:
        raise StorageError(f"{target}: cannot be written ({error.strerror}).") from None


def _files(folder: Path) -> Iterator[Path]:
    return (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())


def _differs(made: Path, there: Path) -> bool:
    if not there.exists():
        return False
    return not there.is_file() or storage.sha256_file(made) != storage.sha256_file(there)
