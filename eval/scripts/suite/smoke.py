"""The smoke suite's cases: few, of every kind, always the same ones."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

import storage
from runner.prompts import FILE as SAFETY_ANSWERS
from storage import TestCase

CASES = 24


def smoke_ids(cases: Iterable[TestCase], count: int = CASES) -> list[str]:
    """Ids of at most ``count`` cases, in turn from each stratum (category x answerable).

    Within a stratum the order is that of the ids' hashes: the choice does not depend on the order
    of the file, and a new case changes it little. Returned in the order of ``cases``.
    """
    strata: dict[tuple[str, str], list[str]] = {}
    order: list[str] = []
    for case in cases:
        strata.setdefault((case.category or "", str(case.answerable)), []).append(case.id)
        order.append(case.id)
    queues = [sorted(ids, key=_hash, reverse=True) for _, ids in sorted(strata.items())]
    kept: set[str] = set()
    while any(queues) and len(kept) < count:
        for queue in queues:
            if queue and len(kept) < count:
                kept.add(queue.pop())
    return [case_id for case_id in order if case_id in kept]


def _hash(case_id: str) -> bytes:
    return hashlib.sha256(case_id.encode("utf-8", "surrogatepass")).digest()


def copy_of(folder: Path, ids: Iterable[str], parent: Path) -> Path:
    """A run folder in ``parent`` that holds only the results of these cases.

    The real run's scores and metrics.json are of the whole run: a part of it must not write there.
    Raises StorageError when the run has none of the cases.
    """
    wanted = set(ids)
    target = parent / folder.name
    target.mkdir()
    if (folder / SAFETY_ANSWERS).exists():
        shutil.copyfile(folder / SAFETY_ANSWERS, target / SAFETY_ANSWERS)
    if (folder / "config.json").exists():
        config = _config_of_part(storage.read_config(folder), len(wanted))
        storage.replace_json(target / "config.json", msgspec.to_builtins(config))
    kept = 0
    with open(target / storage.RESULTS, "wb") as file:
        for result in storage.iter_results(folder / storage.RESULTS):
            if result.test_case_id in wanted:
                file.write(msgspec.json.encode(result) + b"\n")
                kept += 1
    if not kept:
        raise storage.StorageError(
            f"{folder}: has no result of the smoke suite's cases; use --suite full."
        )
    return target


def _config_of_part(config: storage.RunConfig, cases: int) -> storage.RunConfig:
    """The configuration of a copy that holds the results of so many cases of the set.

    Of a run that was asked its whole set they were all asked. Of another nobody knows how many.
    """
    asked = storage.asked_of(config)
    whole = asked is not None and asked.cases == config.dataset.get("cases")
    run = {name: value for name, value in config.run.items() if name != "imported"}
    return msgspec.structs.replace(config, run=run | {"selected": cases if whole else None})
