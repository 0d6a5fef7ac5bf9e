"""What a disk may hold after a kill or a power cut: traced system calls, replayed on a model.

A kill loses nothing that a call has handed over. A power cut keeps what an fsync of the file has
forced, and of later writes all, none, their length without their bytes, half of the last one, or
all but the first. Names are kept when their folder was forced; else all of them, none, or all but
any one. File systems promise more than that; which of it, depends on their options.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

TRACED = (
    *("open", "openat", "creat", "lseek", "truncate", "ftruncate"),
    *("write", "pwrite64", "writev", "pwritev", "sendfile", "copy_file_range"),
    *("mkdir", "mkdirat", "rename", "renameat", "renameat2", "link", "linkat"),
    *("unlink", "unlinkat", "rmdir", "fsync", "fdatasync"),
)
LONGEST_WRITE = 1 << 24

Tree = dict[str, bytes | None]
"""The files below a folder by their paths, and its folders, which are None."""


class Step(NamedTuple):
    """One call that changed something, or wrote to stdout, and when it was done."""

    at: float
    kind: str
    path: str
    data: bytes = b""
    number: int = -1
    """The offset or the new size; of an open file its descriptor."""
    to: str = ""
    append: bool = False


def trace(command: Sequence[str], log: Path, env: dict[str, str], said: bytes = b"") -> None:
    """Run a command under strace; SystemExit when it fails. ``said``: its stdin."""
    words = ["strace", "-f", "-y", "-ttt", "-xx", "-s", str(LONGEST_WRITE)]
    words += ["-e", f"trace={','.join(TRACED)}", "-o", str(log), *command]
    done = subprocess.run(words, input=said, env=env, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{command[1]} ended with {done.returncode}: {done.stderr[-500:]!r}")


_CALL = re.compile(r"(\d+)\s+([\d.]+) (\w+)\((.*)\)\s+= (\d+)(?:<([^>]*)>)?")
_BEGUN = re.compile(r"(\d+)\s+[\d.]+ (.*) <unfinished \.\.\.>$")
_ENDED = re.compile(r"(\d+)\s+([\d.]+) <\.\.\. \w+ resumed>(.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_DESCRIPTOR = re.compile(r"(\d+|AT_FDCWD)<([^>]*)>")


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _path(text: str) -> str:
    """Of a descriptor, which strace writes as it writes texts."""
    return _bytes(text).decode() if text.startswith("\\x") else text


def read_trace(log: Path, root: Path) -> Iterator[Step]:
    """The calls that concern what is below ``root``, in the order in which they ended."""
    begun: dict[str, str] = {}
    with open(log, encoding="ascii", errors="replace") as file:
        for line in file:
            if match := _BEGUN.match(line.rstrip("\n")):
                begun[match[1]] = match[2]
                continue
            if (match := _ENDED.match(line)) and match[1] in begun:
                line = f"{match[1]} {match[2]} {begun.pop(match[1])}{match[3]}"
            if match := _CALL.match(line):
                at, call, words, result = float(match[2]), match[3], match[4], int(match[5])
                yield from _steps(at, call, words, result, match[6] or "", f"{root}/")


def _steps(at: float, call: str, words: str, result: int, opened: str, root: str) -> Iterator[Step]:
    descriptors = [(number, _path(path)) for number, path in _DESCRIPTOR.findall(words)]
    texts = [_bytes(text) for text in _TEXT.findall(words)]
    number, path = descriptors[0] if descriptors else ("", "")

    def below(place: str) -> bool:
        return f"{place}/".startswith(root)

    def named(index: int) -> str:
        folder = descriptors[min(index, len(descriptors) - 1)][1] if descriptors else "/"
        return os.path.normpath(os.path.join(folder, texts[index].decode()))

    if call in ("open", "openat", "creat"):
        flags = words[words.rfind('"') :]
        place = _path(opened)
        if not below(place) or not re.search(
            "O_WRONLY|O_RDWR", flags + "O_WRONLY" * (call == "creat")
        ):
            return
        yield Step(at, "open", place, number=result, append="O_APPEND" in flags)
        if "O_TRUNC" in flags or call == "creat":
            yield Step(at, "resize", place, number=0)
    elif call in ("write", "writev"):
        data = b"".join(texts)[:result]
        if below(path):
            yield Step(at, "write", path, data, int(number))
        elif number == "1":
            yield Step(at, "said", "", data)
    elif call in ("pwrite64", "pwritev") and below(path):
        yield Step(at, "put", path, b"".join(texts)[:result], int(words.rpartition(", ")[2]))
    elif call in ("sendfile", "copy_file_range"):
        target, source = descriptors if call == "sendfile" else descriptors[::-1]
        if below(target[1]):
            yield Step(at, "copy", target[1], number=result, to=source[1])
    elif call == "lseek" and below(path):
        yield Step(at, "seek", path, str(result).encode(), int(number))
    elif call == "ftruncate" and below(path):
        yield Step(at, "resize", path, number=int(words.rpartition(", ")[2]))
    elif call == "truncate" and below(named(0)):
        yield Step(at, "resize", named(0), number=int(words.rpartition(", ")[2]))
    elif call in ("fsync", "fdatasync") and below(path):
        yield Step(at, "sync", path)
    elif call.startswith(("rename", "link")) and below(named(1)):
        yield Step(at, "rename" if call.startswith("rename") else "link", named(0), to=named(1))
    elif call.startswith("mkdir") and below(named(0)):
        yield Step(at, "folder", named(0))
    elif call.startswith(("unlink", "rmdir")) and below(named(0)):
        yield Step(at, "remove", named(0))


class _Node:
    """A file with what the disk surely has of it, or a folder, whose ``data`` is None."""

    def __init__(self, data: bytes | None = b"") -> None:
        self.data = self.stored = data
        self.pending: list[tuple[int, bytes | None]] = []
        """Writes since the last sync: their offset and bytes; a new size has None."""

    def change(self, offset: int, data: bytes | None) -> None:
        self.data = _changed(self.data or b"", offset, data)
        self.pending.append((offset, data))

    def sync(self) -> None:
        self.stored, self.pending = self.data, []

    def after(self, way: str) -> bytes | None:
        """What is left after a power cut, of all the ways in which it may go."""
        if not self.pending or way == "all":
            return self.data
        if way == "none":
            return self.stored
        data, last = self.stored or b"", len(self.pending) - 1
        for place, (offset, written) in enumerate(self.pending):
            if written is not None:
                if way == "zeros" or (way == "hole" and place == 0):
                    written = bytes(len(written))
                elif way == "torn" and place == last:
                    written = written[: len(written) // 2]
            data = _changed(data, offset, written)
        return data


WAYS = ("none", "zeros", "torn", "hole")


def _changed(data: bytes, offset: int, written: bytes | None) -> bytes:
    data = data.ljust(offset, b"\0")
    return (
        data[:offset]
        if written is None
        else data[:offset] + written + data[offset + len(written) :]
    )


class _Naming(NamedTuple):
    """A change of names: ``node`` gets the name ``path``, and ``gone`` is no name any more."""

    node: _Node | None
    path: str
    gone: str = ""

    def on(self, names: dict[str, _Node]) -> None:
        if self.gone:
            names.pop(self.gone, None)
            for name in [name for name in names if name.startswith(f"{self.gone}/")]:
                names[self.path + name[len(self.gone) :]] = names.pop(name)
        if self.node is None:
            names.pop(self.path, None)
        else:
            names[self.path] = self.node


class Disk:
    """Everything below a folder, as the processes see it and as the disk has it."""

    def __init__(self, root: Path, start: Tree) -> None:
        self._root = str(root)
        self._names = {f"{root}/{name}": _Node(data) for name, data in start.items()}
        self._stored = dict(self._names)
        self._pending: list[_Naming] = []
        self._at: dict[tuple[str, int], int | None] = {}

    def _name(self, naming: _Naming) -> None:
        naming.on(self._names)
        self._pending.append(naming)

    def _node(self, path: str) -> _Node:
        if path not in self._names:
            self._name(_Naming(_Node(), path))
        return self._names[path]

    def apply(self, step: Step) -> None:
        """Take in what a call has done."""
        kind, path, number = step.kind, step.path, step.number
        if kind == "open":
            self._node(path)
            self._at[path, number] = None if step.append else 0
        elif kind == "seek":
            if self._at.get((path, number)) is not None:
                self._at[path, number] = int(step.data)
        elif kind == "write":
            node, at = self._node(path), self._at.get((path, number))
            node.change(len(node.data or b"") if at is None else at, step.data)
            if at is not None:
                self._at[path, number] = at + len(step.data)
        elif kind == "put":
            self._node(path).change(number, step.data)
        elif kind == "copy":
            source = self._names.get(step.to)
            data = source.data if source else Path(step.to).read_bytes()
            self._node(path).change(len(self._node(path).data or b""), (data or b"")[:number])
        elif kind == "resize":
            node = self._node(path)
            if len(node.data or b"") < number:
                node.change(number, b"")
            elif len(node.data or b"") > number:
                node.change(number, None)
        elif kind == "folder":
            self._name(_Naming(_Node(None), path))
        elif kind in ("rename", "link"):
            if path in self._names:
                gone = path if kind == "rename" else ""
                self._name(_Naming(self._names[path], step.to, gone))
        elif kind == "remove":
            self._name(_Naming(None, path))
        elif kind == "sync":
            self._sync(path)

    def _sync(self, path: str) -> None:
        node = self._names.get(path)
        if node is not None and node.data is not None:
            node.sync()
            return
        remaining = []
        for naming in self._pending:
            if os.path.dirname(naming.path) == path:
                naming.on(self._stored)
            else:
                remaining.append(naming)
        self._pending = remaining

    def states(self) -> Iterator[tuple[str, Tree]]:
        """What may be there if the process is killed now, and if the power goes now."""
        yield "kill", self._tree(self._names, "all")
        for way in WAYS:
            yield f"names kept, data {way}", self._tree(self._names, way)
        if self._pending:
            yield "names lost", self._tree(self._stored, "all")
            yield "names lost, data none", self._tree(self._stored, "none")
        if len(self._pending) > 1:
            for missing in range(len(self._pending)):
                names = dict(self._stored)
                for place, naming in enumerate(self._pending):
                    if place != missing:
                        naming.on(names)
                yield "one name lost", self._tree(names, "all")

    def _tree(self, names: dict[str, _Node], way: str) -> Tree:
        tree: Tree = {}
        for path in sorted(names):  # a folder stands before what is in it
            above, name = os.path.dirname(path), path[len(self._root) + 1 :]
            if above == self._root or os.path.relpath(above, self._root) in tree:
                tree[name] = names[path].after(way)
        return tree


def read_tree(root: Path) -> Tree:
    """What is below a folder now."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in sorted(root.rglob("*"))
    }


def write_tree(tree: Tree, root: Path, age_s: float) -> None:
    """Make a new folder of what may be there, last changed ``age_s`` seconds ago."""
    root.mkdir(parents=True)
    for name, data in sorted(tree.items()):
        if data is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(data)
    for name in sorted(tree, reverse=True):  # a folder changes with what is in it
        then = (root / name).stat().st_mtime - age_s
        os.utime(root / name, (then, then))


def digest(tree: Tree) -> bytes:
    """The same for the same files."""
    total = hashlib.sha256()
    for name, data in tree.items():
        total.update(f"{name}\0{'' if data is None else len(data)}\0".encode() + (data or b""))
    return total.digest()


def replay(steps: Iterable[Step], root: Path, start: Tree) -> Iterator[tuple[int, str, Tree]]:
    """Every state after each step, with the step's number; the steps that say something, too."""
    disk = Disk(root, start)
    for number, step in enumerate(steps):
        disk.apply(step)
        if step.kind not in ("open", "seek"):
            for kind, tree in disk.states():
                yield number, kind, tree
