"""Checks whether a bot and the labels name files the same way, and finds a cut that makes it so.

A bot may write ``kb://docs/advanced/a.md#top`` or ``a.md`` where the labels say ``advanced/a.md``.
Then no gold is ever matched, and every retrieval metric is 0 without a fault of the retriever.
``examine_paths`` counts what is seen as written, and finds the cut with which most gold is seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from ragmetrics.matching import normalise_path

LEAST_BOT_PATHS, LEAST_GOLD_FILES = 5, 3
"""Distinct paths needed on either side before the lack of a common one means two name spaces."""

MOST_PASSAGES = 2_000
"""Passages that are looked at: more tell nothing new."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")
_SUFFIX = re.compile(r"\.(?:html?|mdx?|markdown|rst|txt|adoc)$", re.IGNORECASE)

_FILE_LIKE = re.compile(
    r"(?:\w+://)?[^\s]*[\w)]\.[A-Za-z][A-Za-z0-9]{0,5}(?:#\S*)?|[^\s/]*(?:/[^\s/]+)+/?"
)

HEADER_LEVEL = re.compile(r"(?:header|heading|h)[ _-]?([1-6])", re.IGNORECASE)
"""Keys of one level of a heading, such as the ``Header 1`` of Markdown splitters."""


def looks_like_path(text: object) -> bool:
    """Whether a name has the form of a path or a file, such as a/b, a.md or kb://a.md#b."""
    if not isinstance(text, str) or text.split(None, 1) != [text]:
        return False  # with a blank in it the pattern would try each of its parts anew
    return _FILE_LIKE.fullmatch(text) is not None


STEPS = {
    "anchor": "without what follows #",
    "query": "without what follows ?",
    "scheme": "without the scheme",
    "host": "without scheme and host",
    "decode": "with %20 and the like decoded",
    "case": "without upper and lower case",
    "suffix": "without the file type",
    "name": "by their last part",
}
"""The steps of a cut, in their order, and the words for each."""

_FILE_STEPS = frozenset(("case", "suffix", "name"))
"""Steps that lose a part of the label's own spelling: the file is then known by its key alone."""

_FORMS = tuple(
    (*form, *decode)
    for decode in ((), ("decode",))
    for form in (
        (),
        ("anchor",),
        ("anchor", "query"),
        ("anchor", "query", "scheme"),
        ("anchor", "query", "host"),
    )
)
_KEYS: tuple[tuple[str, ...], ...] = (
    (),
    ("case",),
    ("suffix",),
    ("case", "suffix"),
    ("name",),
    ("case", "name"),
    ("suffix", "name"),
    ("case", "suffix", "name"),
)


@lru_cache(maxsize=65_536)
def _step(name: str, path: str) -> str:
    if name == "anchor":
        return path.partition("#")[0]
    if name == "query":
        return path.partition("?")[0]
    if name in ("scheme", "host"):
        scheme = _SCHEME.match(path)
        if scheme is None:
            return path
        rest = path[scheme.end() :]
        return (rest.partition("/")[2] if name == "host" else rest).lstrip("/")
    if name == "decode":
        return normalise_path(unquote(path))
    if name == "case":
        return path.casefold()
    if name == "suffix":
        return _SUFFIX.sub("", path)
    return path.rstrip("/").rpartition("/")[2]


@dataclass(frozen=True)
class PathCut:
    """The way a bot's path is cut before it is compared. ``root``: a folder that is taken off."""

    steps: tuple[str, ...] = ()
    root: str = ""

    @property
    def by_key(self) -> bool:
        """True when the cut path is no path of the labels, so that the file must be looked up."""
        return bool(_FILE_STEPS & set(self.steps))

    def applied(self, path: str) -> str:
        """The bot's path without scheme, anchor, root and the like."""
        path = self._form(path)
        root = normalise_path(self.root).rstrip("/")
        return path.removeprefix(f"{root}/") if self.root else path

    def key(self, path: str) -> str:
        """Return the key that identifies a bot's path."""
        return self._end(self.applied(path))

    def gold_key(self, path: str) -> str:
        """Return the key that identifies a label's path, which has no root to remove."""
        return self._end(self._form(path) if self.by_key else normalise_path(path))

    def words(self) -> str:
        """Describe as the end of a sentence how this cut identifies files."""
        parts = [STEPS[name] for name in self.steps]
        parts += [f"without the folder {self.root}"] if self.root else []
        return " and ".join(parts) or "as written"

    def _form(self, path: str) -> str:
        path = normalise_path(path)
        for name in self.steps:
            if name not in _FILE_STEPS:
                path = _step(name, path)
        return path

    def _end(self, path: str) -> str:
        for name in self.steps:
            if name in _FILE_STEPS:
                path = _step(name, path)
        return path


AS_WRITTEN = PathCut()


class PathVerdict(NamedTuple):
    """Gold files by question: how many were seen as written, and with the best ``cut``.

    ``example``: a label's path and the bot's for it. ``same_space``: some path of the bot is a file
    of the labels under some cut. ``bot_paths``, ``gold_files``: distinct ones.
    """

    gold: int = 0
    seen: int = 0
    seen_cut: int = 0
    cut: PathCut = AS_WRITTEN
    example: tuple[str, str] | None = None
    same_space: bool = False
    bot_paths: int = 0
    gold_files: int = 0

    @property
    def two_name_spaces(self) -> bool:
        """True when bot and labels have no file in common, and both have enough files to say so."""
        enough = self.bot_paths >= LEAST_BOT_PATHS and self.gold_files >= LEAST_GOLD_FILES
        return enough and not self.same_space

    def sentence(self) -> str:
        """The counts as one sentence."""
        counts = f"gold files seen {self.seen} of {self.gold}"
        if self.seen_cut > self.seen:
            better = f"{self.seen_cut} of {self.gold} {self.cut.words()}"
            return f"{counts}; {better}{self._shown()}."
        if self.example:
            return f"{counts}: the bot names none of the labels' files{self._shown()}."
        return f"{counts} (same name space)." if self.same_space and not self.seen else f"{counts}."

    def _shown(self) -> str:
        if self.example is None:
            return ""
        return f": the labels say {self.example[0]}, the bot {self.example[1]}"


Asked = tuple[Sequence[str], Sequence[str]]
"""Of one question: the paths of its gold files, and those of the bot's passages."""


def shared_folder(paths: Iterable[str]) -> PathCut:
    """Return the server folder shared by absolute paths, when no label shows where it ends.

    Nothing is cut for fewer than three files, or where some path is not absolute.
    """
    files = {normalise_path(path) for path in paths if path}
    steps = ("scheme",) if files and all(path.startswith("file://") for path in files) else ()
    cut = PathCut(steps)
    forms = [cut.applied(path) for path in files]
    absolute = steps or all(_ABSOLUTE.match(path) for path in files)
    if len(files) < LEAST_GOLD_FILES or not absolute:
        return AS_WRITTEN
    shared = [path.split("/")[:-1] for path in forms]
    depth = next(
        (level for level, names in enumerate(zip(*shared, strict=False)) if len(set(names)) > 1),
        min(map(len, shared)),
    )
    root = "/".join(shared[0][:depth])
    return PathCut(steps, root) if root.strip("/") else AS_WRITTEN


def examine_paths(asked: Iterable[Asked], known: Iterable[str] = ()) -> PathVerdict:
    """Count the gold files seen, as written and with the cut that makes most of them match.

    ``known``: paths of all labels, also of questions that were not asked. A cut counts only where
    it is unique: a key that two files of either side share matches nothing. Of cuts that are
    equally good the weakest is taken.
    """
    pairs: list[tuple[frozenset[str], tuple[str, ...]]] = []
    passages = 0
    for gold, bot in asked:
        pairs.append((frozenset(map(normalise_path, filter(None, gold))), tuple(filter(None, bot))))
        passages += len(bot)
        if passages > MOST_PASSAGES:
            break
    files = {normalise_path(path) for path in known if path}.union(*(gold for gold, _ in pairs))
    paths = list(dict.fromkeys(path for _, bot in pairs for path in bot))
    total = sum(len(gold) for gold, _ in pairs)
    best, most = AS_WRITTEN, -1
    seen = 0
    if files and paths:
        for cut in _cuts(paths, files):
            table = _unique(cut, paths, files)
            count = sum(
                len(gold & {table[path] for path in bot if path in table}) for gold, bot in pairs
            )
            if cut == AS_WRITTEN:
                seen = count
            if count > most:
                best, most = cut, count
            if most == total:
                break
    table = _unique(best, paths, files)
    changed = ((file, path) for path, file in table.items() if normalise_path(path) != file)
    verdict = PathVerdict(
        gold=total,
        seen=seen,
        seen_cut=max(most, seen),
        cut=best if most > seen else AS_WRITTEN,
        example=next(changed, None) if most > seen else None,
        same_space=bool(table) or any(_unique(cut, paths, files) for cut in _cuts(paths, files)),
        bot_paths=len({PathCut(("anchor", "query")).applied(path) for path in paths}),
        gold_files=len(files),
    )
    return verdict._replace(example=(min(files), paths[0])) if verdict.two_name_spaces else verdict


def _cuts(paths: Sequence[str], files: set[str]) -> Iterable[PathCut]:
    """All cuts that do something to these paths, the weakest first."""
    told = set()
    for key in _KEYS:
        for form in _FORMS:
            steps = _needed((*form, *key), paths, files)
            for root in ("", _root(PathCut(steps), paths, files)):
                cut = PathCut(steps, root)
                if cut not in told:
                    told.add(cut)
                    yield cut


def _needed(steps: tuple[str, ...], paths: Sequence[str], files: set[str]) -> tuple[str, ...]:
    """The steps without those that change no path of either side."""
    every = [*map(normalise_path, paths), *files]
    needed = []
    for name in steps:
        cut = [_step(name, path) for path in every]
        if cut != every:
            needed.append(name)
            every = cut
    return tuple(needed)


def _root(cut: PathCut, paths: Sequence[str], files: set[str]) -> str:
    """The folder that most paths of the bot begin with and those of the labels do not."""
    if "name" in cut.steps:
        return ""
    by_name: dict[str, list[str]] = {}
    for file in files:
        key = cut.gold_key(file)
        by_name.setdefault(_step("name", key), []).append(key)
    roots: Counter[str] = Counter()
    for path in paths:
        key, form = cut.key(path), cut.applied(path)
        ends = by_name.get(_step("name", key), ())
        if tails := [end for end in ends if key.endswith(f"/{end}")]:
            roots[form[: len(key) - len(max(tails, key=len)) - 1]] += 1
    return roots.most_common(1)[0][0] if roots else ""


def _unique(cut: PathCut, paths: Sequence[str], files: set[str]) -> dict[str, str]:
    """The label's file for each path of the bot that has exactly one under this cut."""
    by_key: dict[str, list[str]] = {}
    for file in files:
        by_key.setdefault(cut.gold_key(file), []).append(file)
    forms: dict[str, set[str]] = {}
    for path in paths:
        forms.setdefault(cut.key(path), set()).add(cut.applied(path))
    # Where a folder and its file are the labels' own, another folder is another file.
    folders = any("/" in form and form in files for each in forms.values() for form in each)
    table = {}
    for path in paths:
        key, form = cut.key(path), cut.applied(path)
        if form in files and (not cut.by_key or "/" in form):
            table[path] = form
        elif "name" in cut.steps and folders and "/" in form:
            continue
        elif len(by_key.get(key, ())) == 1 and len(forms[key]) == 1:
            table[path] = by_key[key][0]
    return table
