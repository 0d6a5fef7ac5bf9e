"""The embedded bot, started while it is asked and stopped at the end."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from records.errors import StorageError, Unreachable

SCRIPT = Path(__file__).resolve().parents[1] / "demo_api.py"

LISTENING = re.compile(r"listening on (http://\S+)")

STOP_SECONDS = 5.0

ENDS_WITH_STDIN = "RAG_EVAL_DEMO_ENDS_WITH_STDIN"
"""Environment variable that makes the child end when its stdin closes."""


@contextlib.contextmanager
def demo_server(settings: Sequence[str], *, quiet: bool = False) -> Iterator[str]:
    """Start demo_api.py on a free port and yield its URL; stop it at the end.

    ``settings``: of the bot, as KEY=VALUE (``demo/settings.py``).
    The child has a session of its own, so that Ctrl-C reaches only this process, which then stops
    it; when this process is killed, the child ends because its stdin does. Its stderr is ours: the
    first start takes a while, and says so unless ``quiet``. Raises StorageError when it refuses its
    options, Unreachable when it ends before it listens.
    """
    words = [word for pair in settings for word in ("--set", pair)]
    talk = ["--quiet"] if quiet else []
    child = subprocess.Popen(
        [sys.executable, str(SCRIPT), "--port", "0", *talk, *words],
        env=os.environ | {ENDS_WITH_STDIN: "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield _address(child)
    finally:
        if child.stdin:
            child.stdin.close()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout:
            child.stdout.close()


def _address(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    for line in child.stdout:
        if address := LISTENING.search(line):
            # a full pipe would stop the server
            threading.Thread(target=_drain, args=(child.stdout,), daemon=True).start()
            return address[1].rstrip("/")
    code = child.wait()
    if code == 2:
        raise StorageError("the embedded API refused its settings; see demo_api.py --help.")
    raise Unreachable(f"the embedded API (demo_api.py) ended with code {code} before it listened.")


def _drain(stream: object) -> None:
    with contextlib.suppress(ValueError, OSError):
        for _ in stream:  # type: ignore[attr-defined]
            pass
