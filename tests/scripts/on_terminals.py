"""Runs scripts below a pseudo-terminal: ``python on_terminals.py < calls.json > outputs.json``.

A call is a list: columns, lines, the script's name, its words. Each call runs in a fork of the
process, which is warm before the first where there are many, so it costs no start. Of its output, a
tuple: all that the terminal got, and the exit code.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len

Call = tuple[int, int, str, list[str]]
"""Columns, lines, the script's name, its words."""

FEW = 8
"""Calls that cost less than it costs to load all modules before."""

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def run(columns: int, lines: int, name: str, words: list[str]) -> tuple[str, int]:
    """What a script of this process writes to a terminal of that size, and its exit code."""
    child, ours = pty.fork()
    if not child:
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        sys.argv = [f"{name}.py", *words]
        for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
            stream.flush()
            assert stream.fileno() == number
        code = 70
        try:
            importlib.import_module(name).main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    _, status = os.waitpid(child, 0)
    text = CONTROLS.sub("", b"".join(parts).decode().replace("\r\n", "\n"))
    return text, os.waitstatus_to_exitcode(status)


def outputs(calls: Sequence[Call], *folders: Path) -> list[tuple[str, int]]:
    """What a terminal got of each call, and its exit code. ``folders``: where the modules
    are, first that of the scripts."""
    kept = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    done = subprocess.run(
        [sys.executable, __file__, *map(str, folders)],
        input=json.dumps(calls),
        env=kept | {"TERM": "xterm-256color", "RAG_EVAL_CONFIG": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    return [(text, code) for text, code in json.loads(done.stdout)]


def too_wide(text: str, columns: int) -> list[str]:
    """The lines of several words that are wider than the terminal."""
    lines = [line.rpartition("\r")[2] for line in text.rstrip("\n").split("\n")]
    return [line for line in lines if cell_len(line) > columns and " " in line.strip()]


if __name__ == "__main__":
    sys.path[:0] = [*sys.argv[1:], str(Path(__file__).parents[2])]
    calls = json.load(sys.stdin)
    if len(calls) > FEW:
        from tests.hostile_runs import warm_up

        warm_up({call[2] for call in calls}, len(calls))
    json.dump([run(*call) for call in calls], sys.stdout)
