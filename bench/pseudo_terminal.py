"""A process in a pseudo-terminal: keys in, bytes out, with the CPU it used for them.

The CPU is read from the kernel's clock of that process (all its threads), so other programs on the
machine do not count, though a crowded machine makes every instruction slower.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SYNC_ASKED = b"\x1b[?2026$p"
SYNC_ANSWER = b"\x1b[?2026;2$y"
FRAME = b"\x1b[?2026h"
QUIET_SECONDS = 0.08
IDLE_MS = 0.5


@dataclass(frozen=True)
class Cost:
    """What one key cost: CPU milliseconds, bytes written, repaints."""

    cpu_ms: float
    size: int
    frames: int


class PseudoTerminal:
    """Runs `argv` in a terminal that answers the query for synchronised output."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 160,
        rows: int = 48,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.output = bytearray()
        self._status: int | None = None
        child_env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        child_env.pop("NO_COLOR", None)
        for name, value in (env or {}).items():
            if value is None:
                child_env.pop(name, None)
            else:
                child_env[name] = value
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                if cwd is not None:
                    os.chdir(cwd)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execvpe(argv[0], list(argv), child_env)
            finally:
                os._exit(127)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._status is None:
            self.kill(signal.SIGKILL)
            self.wait()
        os.close(self._fd)

    def cpu_ms(self) -> float:
        """CPU used since the start, in milliseconds: user and system, all threads."""
        return time.clock_gettime((~self.pid << 3) | 2) * 1000

    def rss_mb(self) -> float:
        """Resident memory now, in megabytes."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def read(self, quiet: float = QUIET_SECONDS) -> bytes:
        """Everything until nothing has come for `quiet` seconds."""
        new = bytearray()
        while select.select([self._fd], [], [], quiet)[0]:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:  # the child has ended
                break
            if not data:
                break
            if SYNC_ASKED in data:
                os.write(self._fd, SYNC_ANSWER)
            new += data
        self.output += new
        return bytes(new)

    def wait_for(self, text: bytes, seconds: float = 120.0) -> bytes:
        """Read until `text` has been written (since this call). Raises TimeoutError."""
        seen = bytearray()
        end = time.monotonic() + seconds
        while text not in seen:
            if time.monotonic() > end:
                raise TimeoutError(f"{text!r} did not come; the end was {bytes(seen[-2000:])!r}")
            seen += self.read(0.05)
        return bytes(seen)

    def write(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._fd, keys)

    def press(self, keys: bytes) -> Cost:
        """Press keys, wait until the repaint is over, and say what it cost."""
        before = used = self.cpu_ms()
        self.write(keys)
        shown = b""
        while True:
            shown += self.read()
            now = self.cpu_ms()
            if now - used < IDLE_MS:
                return Cost(now - before, len(shown), shown.count(FRAME))
            used = now

    def resize(self, columns: int, rows: int) -> None:
        """Change the window's size, as a terminal does."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def kill(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def wait(self, seconds: float = 120.0) -> int:
        """The exit code (negative: the signal that ended it), once it has ended."""
        end = time.monotonic() + seconds
        while self._status is None:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise TimeoutError("the program has not ended")
        return self._status
