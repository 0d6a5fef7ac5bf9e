"""Asking from several threads, one consumer: answers come in the order in which they are ready."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from clients.retry import Interrupted

Job = TypeVar("Job")
Answer = TypeVar("Answer")
END = object()


def ask_all(
    jobs: Iterable[Job],
    ask: Callable[[Job], Answer],
    workers: int,
    stop: threading.Event,
) -> Generator[Answer]:
    """The answers of all jobs. Closing the iterator early sets ``stop`` and waits for nobody.

    The threads are daemons: a call that hangs cannot hold up the end of the process. An exception
    of ``ask`` is raised here. When all jobs are done ``stop`` is as it was.
    """
    source = iter(jobs)
    turn = threading.Lock()
    ready: queue.SimpleQueue[object] = queue.SimpleQueue()

    def work() -> None:
        try:
            while not stop.is_set():
                with turn:
                    job = next(source, END)
                if job is END:
                    break
                ready.put((ask(job),))  # type: ignore[arg-type]
        except Interrupted:
            pass
        except BaseException as error:
            ready.put(error)
        ready.put(END)

    for number in range(workers):
        threading.Thread(target=work, name=f"ask-{number}", daemon=True).start()
    left = workers
    try:
        while left:
            item = ready.get()
            if item is END:
                left -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item[0]  # type: ignore[index]
    except BaseException:
        stop.set()
        raise
