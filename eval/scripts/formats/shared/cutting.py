"""A run, and its set with it, cut into parts for scoring on many machines, and put together."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import orjson

from records.cases import canonical
from records.cutting import join_parts, write_parts
from records.errors import Problem, StorageError
from records.lines import parse_json
from records.runs import RESULT_PARTS, RESULTS, results_file
from records.shards import is_sharded, open_lines, size_of


@dataclass(frozen=True)
class CutRequest:
    """``run``: a run folder, None for the set alone. ``output``: where the set's parts go, or the
    joined set; None leaves the set unchanged. ``address``: where the bytes of all parts go instead
    of this disk."""

    run: Path | None
    eval_set: Path
    output: Path | None
    shards: int = 1
    address: str = ""
    force: bool = False


def cut(request: CutRequest) -> list[Path]:
    """Cut a run's results, and its set alike, into parts. Returns what was made.

    Each part of the set holds the cases of the results in the part of the same number, so that one
    machine needs one part of each; no case and no conversation stands in two. results.jsonl goes
    when its parts are there. Raises StorageError when there is nothing to cut, when it is cut
    already, or when something would be overwritten.
    """
    made: list[Path] = []
    begins: list[str] | None = None
    _check_output(request)
    if request.run is not None:
        source, target = request.run / RESULTS, request.run / RESULT_PARTS
        if not source.exists():
            cut_already = f"{target}: is split already; join it first (convert_data.py join)."
            missing = f"{source}: no such file; finish the run (run_eval --resume)."
            raise StorageError(cut_already if target.is_dir() else missing)
        address = f"{request.address.rstrip('/')}/{RESULT_PARTS}" if request.address else ""
        begins = write_parts(
            target,
            _results(source),
            size_of(source),
            request.shards,
            address,
            later=_later_turns(request.eval_set),
        )
        made.append(target)
    if request.output is not None:
        if is_sharded(request.eval_set):
            raise StorageError(f"{request.eval_set}: is split already; join it first.")
        address = f"{request.address.rstrip('/')}/eval_set" if request.address else ""
        lines = _cases(request.eval_set)
        starts = None if begins is None else frozenset(begins[1:])
        cut_alike = None if starts is None else starts.__contains__
        parts = write_parts(
            request.output,
            lines,
            size_of(request.eval_set),
            request.shards,
            address,
            cut_alike,
            _later_turns(request.eval_set),
        )
        if begins is not None and len(parts) != len(begins):
            for folder in (request.output, *made):
                shutil.rmtree(folder)
            raise StorageError(
                f"{request.eval_set}: lacks cases of the run, or has them in another order; name "
                "the set that it was asked with. Nothing was split."
            )
        made.append(request.output)
    if request.run is not None:
        (request.run / RESULTS).unlink()
    return made


def join(request: CutRequest) -> list[Path]:
    """Put the parts of a run's results, and of a set, together. Returns what was made.

    The parts of the results go when the file is there; those of the set stay. Raises StorageError
    when there are no parts, or something would be overwritten.
    """
    made: list[Path] = []
    _check_output(request)
    if request.run is not None:
        source, target = results_file(request.run), request.run / RESULTS
        if not is_sharded(source):
            raise StorageError(f"{request.run / RESULT_PARTS}: no such folder; it is not split.")
        join_parts(source, target)
        shutil.rmtree(source)
        made.append(target)
    if request.output is not None:
        if not is_sharded(request.eval_set):
            raise StorageError(f"{request.eval_set}: is not a folder of parts.")
        join_parts(request.eval_set, request.output)
        made.append(request.output)
    return made


def _check_output(request: CutRequest) -> None:
    if request.run is None and request.output is None:
        raise StorageError("nothing to do: name a run (--run) or an output for the set (--output).")
    output = request.output
    if output is not None and output.exists() and not request.force:
        raise StorageError(f"{output}: exists already; choose another, or --force.")


class _TurnOfCase(msgspec.Struct):
    id: str | None = None
    turn: int | None = None


def _later_turns(eval_set: Path) -> frozenset[str]:
    """The cases that go on with a conversation, which is not cut; none without the set."""
    if not eval_set.exists():
        return frozenset()
    decode = msgspec.json.Decoder(_TurnOfCase).decode
    later: set[str] = set()
    with open_lines(eval_set) as file:
        for line in file:
            with contextlib.suppress(msgspec.MsgspecError):  # told when the set is cut or scored
                case = decode(line) if b'"turn"' in line else _TurnOfCase()
                later |= {case.id} if case.id and (case.turn or 0) > 1 else set()
    return frozenset(later)


class _CaseOfResult(msgspec.Struct):
    test_case_id: str


def _results(path: Path) -> Iterator[tuple[bytes, str]]:
    decode = msgspec.json.Decoder(_CaseOfResult).decode
    for number, line in _numbered(path):
        try:
            yield line, decode(line).test_case_id
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            problem = Problem(
                str(path), number, "", f"is not a result line ({error}); run it again"
            )
            raise StorageError.from_problems([problem]) from None


def _cases(path: Path) -> Iterator[tuple[bytes, str]]:
    for number, line in _numbered(path):
        try:
            raw = parse_json(line) if line.strip() else {}
        except orjson.JSONDecodeError as error:
            problem = Problem(str(path), number, "", f"is not JSON ({error}); correct the line")
            raise StorageError.from_problems([problem]) from None
        yield line, str(canonical(raw).get("id", "")) if isinstance(raw, dict) else ""


def _numbered(path: Path) -> Iterable[tuple[int, bytes]]:
    with open_lines(path) as file:
        for number, line in enumerate(file, 1):
            yield number, line if line.endswith(b"\n") else line + b"\n"
