"""The starter: hands ranges of a run's results to Dask, and takes the outcomes in their order."""

from __future__ import annotations

import contextlib
import logging
import pickle
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any

from extras.cluster.ranges import Key, ResultRange, Sources, ranges_of, score_range, sources_of
from records.errors import StorageError, Unreachable
from records.runs import find_run, results_file
from scorers.contract import ScoreOutcome
from scorers.loop import results_of

if TYPE_CHECKING:
    from distributed import Client, Future

    from records.cases import TestCase
    from records.results import TestResult
    from scorers.loop import ScoreAll

GUIDE = "see eval/extras/cluster/README.md"

CONNECT_S, NO_WORKER_S = 10, 30

_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?[^/\s]+:\d+")
"""Seconds to wait for the scheduler, and for a worker when there is none."""

RANGES_A_THREAD, LEAST_RANGE, MOST_RANGE = 16, 64 << 10, 4 << 20
"""Ranges that each thread of a worker gets at least, where they are not smaller than so many
bytes."""

MOST_LOST = 5
"""How often a range is handed in again that has ended all workers which the scheduler tried."""


def on_cluster(own: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a score script with which the workers of a scheduler score the run."""
    run = results_of(find_run(values["results_dir"], values["run"])).parent
    sources = sources_of(run, values["eval_set"], values["labels_dir"])
    return {"outcome_map": partial(_outcomes_by_workers, own["scheduler"], sources)}


def _outcomes_by_workers(
    address: str,
    sources: Sources,
    score_all: ScoreAll,
    cases: Sequence[TestCase],
    results: Sequence[TestResult],
) -> list[ScoreOutcome]:
    """The outcomes in order; what no worker has scored is scored here."""
    outcomes: dict[Key, ScoreOutcome] = {}
    with _connected(address) as client:
        for more in _outcomes(client, sources, score_all):
            outcomes |= more
    keys = [(result.test_case_id, result.repeat) for result in results]
    rest = [at for at, key in enumerate(keys) if key not in outcomes]
    own = iter(score_all([cases[at] for at in rest], [results[at] for at in rest]))
    return [outcomes[key] if key in outcomes else next(own) for key in keys]


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Client]:
    """A client of a scheduler; whatever says that it is gone is raised as Unreachable."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise StorageError(f"--scheduler needs the package distributed; {GUIDE}.") from None
    if not _ADDRESS.fullmatch(address):
        raise StorageError(f"--scheduler {address}: write it as tcp://HOST:PORT; {GUIDE}.")
    logging.disable()  # what is lost is said once, below
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise Unreachable(f"{address}: no scheduler of Dask answers ({reason}); {GUIDE}.") from None
    try:
        yield client
    except (ModuleNotFoundError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "deserializ" not in str(error):
            raise
        raise StorageError(
            f"the scheduler or a worker cannot load the toolkit; start them anew, {GUIDE}."
        ) from None
    except (CancelledError, OSError) as error:
        if client.status == "running" and isinstance(error, OSError):
            raise
        raise Unreachable(
            f"{address}: the scheduler was lost. Nothing was written: start it and its workers "
            "again, then the same command."
        ) from None
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=CONNECT_S)
        logging.disable(logging.NOTSET)


def _outcomes(
    client: Client, sources: Sources, score_all: ScoreAll
) -> Iterator[dict[Key, ScoreOutcome]]:
    """The outcomes of each range, in the order of the file."""
    path, task = results_file(sources.folder), pickle.dumps(score_all)
    threads = _threads(client)
    nothing = client.run(score_range, task, sources, ResultRange(0, 0, 0), on_error="return")
    for fault in nothing.values():  # what a worker lacks is said at once
        if isinstance(fault, StorageError):
            raise fault
        if "ModuleNotFoundError" in repr(fault):  # so Dask says what a worker cannot import
            raise ModuleNotFoundError
    size = path.stat().st_size // (threads * RANGES_A_THREAD)
    waiting: deque[tuple[Callable[[], Future], Future]] = deque()
    for part in ranges_of(path, max(LEAST_RANGE, min(MOST_RANGE, size))):
        submit = partial(client.submit, score_range, task, sources, part, pure=False)
        waiting.append((submit, submit()))
        if len(waiting) > 2 * threads + 2:
            yield _outcome(client, *waiting.popleft())
            threads = _threads(client)
    while waiting:
        yield _outcome(client, *waiting.popleft())


def _threads(client: Client) -> int:
    """Threads of all workers; waits for a worker where there is none."""
    with contextlib.suppress(TimeoutError):
        client.wait_for_workers(1, timeout=NO_WORKER_S)
    threads: int = sum(client.nthreads().values())
    if not threads:
        raise Unreachable(
            f"{client.scheduler.address}: the scheduler has no worker. Nothing was written: start "
            f"workers, then the same command; {GUIDE}."
        )
    return threads


def _outcome(
    client: Client, submit: Callable[[], Future], future: Future
) -> dict[Key, ScoreOutcome]:
    """What a worker made of a range; one that was killed with its worker is scored again."""
    from distributed import KilledWorker

    for _ in range(MOST_LOST):
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    return dict(pickle.loads(future.result(timeout=NO_WORKER_S)))
                _threads(client)
        except KilledWorker:
            future = submit()
    raise Unreachable(
        "a part of the results has ended every worker that scored it, perhaps for lack of memory. "
        f"Nothing was written; {GUIDE}."
    )
