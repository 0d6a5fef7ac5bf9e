"""The standard streams of a script: one that the caller closed, one whose reader leaves early, and
one whose encoding lacks a character."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


def prepare() -> None:
    """Make stdin, stdout and stderr such that no script ends because of them."""
    _open_closed()
    _print_what_can_be_shown()
    _outlive_readers()


def drop_unwritable() -> None:
    """Point the streams of a terminal that is gone at the null device.

    Python ends with 120 when it cannot write the rest of a stream.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            lead_nowhere(stream.fileno())


def lead_nowhere(descriptor: int) -> None:
    """Point a descriptor at the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def _open_closed() -> None:
    """A standard stream that the caller closed (``>&-``) leads to nowhere, as /dev/null does.

    Python has None in its place, and the next file that is opened would take its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _print_what_can_be_shown() -> None:
    """A character that stdout's encoding lacks becomes ``?``: no script ends for a ✗.

    What Python lets through by itself (any bytes of a path, in the C locale) stays so.
    """
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and (out.errors == "strict" or out.encoding != "utf-8"):
        out.reconfigure(errors="replace")


class _Output(io.FileIO):
    """A standard stream whose reader may leave before the end, as ``head`` does.

    What is written from then on goes nowhere, so that the script does all its work and ends with
    the exit code of its verdict.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            lead_nowhere(self.fileno())
            return super().write(data)


def _outlive_readers() -> None:
    """Let no script fail, or pass, because the reader of stdout or stderr has left."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper and stream is getattr(sys, f"__{name}__"):
            stream.flush()
            output: Any = _Output(stream.fileno(), "w", closefd=False)
            if not isinstance(stream.buffer, io.RawIOBase):  # which PYTHONUNBUFFERED makes it
                output = io.BufferedWriter(output)
            outlasting = io.TextIOWrapper(
                output,
                stream.encoding,
                stream.errors,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, outlasting)
