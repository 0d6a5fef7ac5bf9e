"""Cuts the spans out of a file as it grows: JSON lines, a JSON document, values one behind another.

Only a window of the file is in memory: a document of any size is cut into its spans on the way.
After every cut stands the position from which a later look goes on, also within a document. What
is torn at the end waits for its rest; what is damaged is counted and skipped.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import orjson

from records.file_access import check_packing, open_plain
from records.lines import BOM, parse_json

CHUNK = 1 << 20

_PACKED = 1 << 16

LONG_LINE = 1 << 20
"""Bytes from which on a line is cut into its spans instead of being parsed whole."""

MOST_SPAN = 16 << 20
"""Bytes of one span; a larger one is counted and skipped."""

MOST_LEVELS = 1000
"""Brackets that may be open; beyond them a line is damaged. A file of brackets takes a minute a
hundred megabytes."""

LINES, DOCUMENT, LONG = "lines", "document", "long line"
"""Shapes of a file: a value a line; values over several lines; inside one long line."""

DAMAGED, TOO_LARGE = "damaged lines or spans", "spans larger than 16 MB"


class Position(NamedTuple):
    """Where reading goes on: the byte, the shape, and which lists of a document are open there."""

    offset: int = 0
    shape: str = ""
    stack: str = ""


class Cut(NamedTuple):
    """A JSON value that may contain spans: where it begins, its bytes, and where to go on after it.

    Without bytes it says only that reading goes on behind something that cannot be used.
    """

    offset: int
    data: bytes
    after: Position


_HOLDERS = frozenset(
    b"resourceSpans resource_spans scopeSpans scope_spans instrumentationLibrarySpans "
    b"data spans traces runs".split()
)
"""Keys under which exporters list their spans, or what holds lists of them."""

_STRING = rb'"((?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+)"(\s*+:)?|([{}\[\]])|(")'
_TOKEN = {
    DOCUMENT: re.compile(_STRING + rb"|(\n(?=\{))"),
    LONG: re.compile(_STRING + rb"|(\n)"),
}
"""Groups: the text of a string, the colon that makes it a key, a bracket, a string that does not
end, and where the value may have ended before its brackets were closed."""

_CONTROL = re.compile(rb"[\x00-\x1f]")
_NEXT_VALUE = {DOCUMENT: re.compile(rb"\n(?=[{\[])"), LONG: re.compile(rb"\n")}


class _Unpacked(io.RawIOBase):
    """What a gz file holds, as far as it goes: one that is still being written has no end yet."""

    def __init__(self, path: Path) -> None:
        self._path, self._packed = path, open_plain(path)
        self._rewind()

    def _rewind(self) -> None:
        self._packed.seek(0)
        self._begin_member()
        self._input, self._output, self._offset = b"", b"", 0

    def _begin_member(self) -> None:
        self._member, self._is_begun = zlib.decompressobj(wbits=31), False

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes. Raises OSError where the file is damaged."""
        while len(self._output) < size:
            if self._member.eof:
                self._begin_member()  # gz files may stand in a row, and have zeros behind them
            self._input = self._input or self._packed.read(_PACKED)
            if not self._input or not (self._is_begun or self._input.strip(b"\0")):
                break
            self._is_begun = True
            try:
                self._output += self._member.decompress(self._input, CHUNK)
            except zlib.error as error:
                raise OSError(0, f"damaged gz: {error}") from None
            self._input = self._member.unconsumed_tail or self._member.unused_data
            check_packing(self._path, self._packed.tell(), self._offset + len(self._output))
        data, self._output = self._output[:size], self._output[size:]
        self._offset += len(data)
        return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place by unpacking up to it, from the beginning where it lies behind."""
        if offset < self._offset:
            self._rewind()
        while self._offset < offset and self.read(min(CHUNK, offset - self._offset)):
            pass
        return self._offset

    def close(self) -> None:
        self._packed.close()
        super().close()


def open_spans(path: Path) -> IO[bytes]:
    """A file of spans, unpacked on the way when its name ends in ``.gz``."""
    return cast(IO[bytes], _Unpacked(path)) if path.suffix == ".gz" else open_plain(path)


def parse_value(data: bytes) -> Any:
    """A JSON value. Half characters and NaN, which other writers let through, are taken.

    Raises ValueError for what is no JSON, or nested too deeply.
    """
    try:
        return parse_json(data)
    except orjson.JSONDecodeError:
        if b"\\u" not in data and b"NaN" not in data and b"Infinity" not in data:
            raise
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def cuts(file: IO[bytes], position: Position, counts: Counter[str]) -> Iterator[Cut]:
    """The values of a file from a position on, as far as they are complete.

    ``counts`` takes what is damaged or too large. Raises OSError where the file cannot be read.
    """
    window = _Window(file, position)
    shape = position.shape or _shape(window)
    stack = position.stack
    while shape:
        if shape == LINES:
            yield from _lines(window)
            shape = LONG if window.rest() > LONG_LINE else ""
        else:
            yield from _Elements(window, shape, stack, counts)
            shape, stack = (LINES if shape == LONG and not window.ended else ""), ""


class _Window:
    """A part of a file: ``data`` begins at its byte ``start``; ``at`` is what was not read yet."""

    def __init__(self, file: IO[bytes], position: Position) -> None:
        file.seek(position.offset)
        self.data, self.start, self.at = b"", position.offset, 0
        self.ended = False
        self._file = file

    def more(self, keep: int) -> bool:
        """Take a further piece and let go of what lies before ``keep``; False at the file's end."""
        piece = self._file.read(CHUNK)
        if not piece:
            self.ended = True
            return False
        self.data = self.data[keep:] + piece
        self.start, self.at = self.start + keep, self.at - keep
        return True

    def rest(self) -> int:
        return len(self.data) - self.at


def _shape(window: _Window) -> str:
    """What the first line says of the shape; "" while it is not whole."""
    while True:
        text = window.data.removeprefix(BOM).lstrip()
        line, newline, _ = text.partition(b"\n")
        blank = len(window.data) - len(text)
        if newline or len(text) > LONG_LINE or not window.more(blank):
            break
    if not text:
        return ""
    window.at = len(window.data) - len(text)
    if len(line) > LONG_LINE:
        return LONG
    return DOCUMENT if newline and line.rstrip()[-1:] in b"{[,:" else LINES


def _lines(window: _Window) -> Iterator[Cut]:
    """Whole lines, up to a long one or the end of the file."""
    while True:
        data, at, start = window.data, window.at, window.start
        while (end := data.find(b"\n", at)) >= 0 and end - at <= LONG_LINE:
            line, offset = data[at:end].strip(), start + at
            window.at = at = end + 1
            if line:
                yield Cut(offset, line, Position(start + at, LINES))
        if window.rest() > LONG_LINE:
            return
        if not window.more(window.at):
            yield from _last_line(window)
            window.at = len(window.data)
            return


def _last_line(window: _Window) -> Iterator[Cut]:
    """A last line without its end, when it is a whole value already."""
    line = window.data[window.at :].strip()
    if line[-1:] not in (b"}", b"]"):
        return
    try:
        parse_value(line)
    except ValueError:
        return
    after = Position(window.start + len(window.data), LINES)
    yield Cut(window.start + window.at, line, after)


class _Elements:
    """The spans of a document, cut at their brackets: objects that hold none of the known lists.

    ``stack`` has a bracket for each list and each holder of lists that is open.
    """

    def __init__(self, window: _Window, shape: str, stack: str, counts: Counter[str]) -> None:
        self._window, self._shape, self._counts = window, shape, counts
        self._tokens = _TOKEN[shape]
        self._restart(stack)

    def _restart(self, stack: str = "") -> None:
        self._stack = stack
        self._inner = bytearray()  # open brackets within the object that is being read
        self._begin = -1  # where that object begins in the window; -1: in none
        self._is_large = False
        self._key = b""

    def __iter__(self) -> Iterator[Cut]:
        window = self._window
        while (token := self._next()) is not None:
            if token[1] is not None:
                if token[2] is not None and not self._inner:
                    self._key = token[1]
            elif token[3] is not None and len(self._stack) + len(self._inner) < MOST_LEVELS:
                yield from self._bracket(token[3], token.start())
            elif token[4] is not None or token[3] is not None or self._is_torn(token.start()):
                if not self._skip_damage(token.start()):
                    return
                yield Cut(window.start + window.at, b"", self._position())
                if self._shape == LONG:
                    return
            elif self._shape == LONG:
                return

    def _position(self) -> Position:
        return Position(self._window.start + self._window.at, self._shape, self._stack)

    def _next(self) -> re.Match[bytes] | None:
        """The next token that is whole; None at the end of the file."""
        window = self._window
        while True:
            token = self._tokens.search(window.data, window.at)
            unread = token.start() if token else len(window.data) - window.data.endswith(b"\n")
            if token is not None:
                whole = token[3] is not None or token.end() < len(window.data)
                if token[4] is not None:  # the string goes on, unless no string can
                    whole = _CONTROL.search(window.data, token.end()) is not None
                    whole = whole or len(window.data) - unread > MOST_SPAN
                if whole:
                    window.at = token.end()
                    return token
            if self._begin >= 0 and len(window.data) - self._begin > MOST_SPAN:
                self._is_large = True
            keep = self._begin if self._begin >= 0 and not self._is_large else unread
            window.at = unread
            if not window.more(keep):
                return None
            self._begin = 0 if self._begin >= 0 else -1

    def _bracket(self, bracket: bytes, start: int) -> Iterator[Cut]:
        """Open or close an object or a list; an object that closes is a cut."""
        window, within = self._window, self._stack[-1:]
        if bracket in b"{[":
            is_holder = within == "{" and bracket == b"[" and self._key in _HOLDERS
            if self._inner or ((within == bracket.decode() or within == "{") and not is_holder):
                self._inner += bracket
            elif bracket == b"{":
                self._begin, self._stack = start, self._stack + "{"
            else:  # the object is a holder: what it lists is cut, not the object
                self._begin, self._is_large, self._stack = -1, False, self._stack + "["
            self._key = b""
        elif self._inner:
            self._inner.pop()
        elif self._stack:
            self._stack = self._stack[:-1]
            begin, self._begin = self._begin, -1
            if self._is_large:
                self._counts[TOO_LARGE] += 1
                self._is_large = False
                yield Cut(window.start + window.at, b"", self._position())
            elif bracket == b"}" and begin >= 0:
                data = window.data[begin : window.at]
                yield Cut(window.start + begin, data, self._position())

    def _is_torn(self, newline: int) -> bool:
        """Whether a value that is open ends at a line end, as after a writer that was killed."""
        if not self._stack:
            return False
        if self._shape == LONG:
            return True
        before = self._window.data[max(0, newline - 64) : newline].rstrip()[-1:]
        innermost = self._inner[-1:] or self._stack[-1:].encode()
        return before not in ((b"", b":") if innermost == b"{" else (b"", b",", b"["))

    def _skip_damage(self, start: int) -> bool:
        """Go to the next line that begins a value; False, and nothing counted, when none is there.

        What is damaged at the end of a file may be a value that is still being written.
        """
        window = self._window
        window.at = start
        while (begins := _NEXT_VALUE[self._shape].search(window.data, window.at)) is None:
            window.at = max(start, len(window.data) - 1)
            if not window.more(window.at):
                return False
            start = 0
        window.at = begins.start() + 1
        self._restart()
        self._counts[DAMAGED] += 1
        return True
