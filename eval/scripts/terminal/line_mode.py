"""Line mode: a session for screen readers, dumb terminals, pipes and scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from terminal.safe_text import display


class LineTerminal:
    """Reads lines and prints harmless ones. ``prompt``: where a person sits at the other end."""

    def __init__(self, stdin: TextIO, stdout: TextIO, prompt: str = "") -> None:
        self._in, self._out, self._prompt = stdin, stdout, prompt

    def say(self, text: str) -> None:
        """Print own or foreign text, made safe, at once."""
        self._out.write(display(text) + "\n")
        self._out.flush()

    def lines(self) -> Iterator[str]:
        """The lines that are typed, without blanks around them, until ``q`` or the end."""
        while True:
            if self._prompt:
                self._out.write(f"{self._prompt}> ")
                self._out.flush()
            line = self._in.readline()
            if not line or line.strip() in ("q", "quit"):
                return
            yield line.strip()
