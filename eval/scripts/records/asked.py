"""Which cases a run was asked, how many, and which of them have no result.

Everybody who tells of missing results asks here: the scorers, the gate, the report, the browser.
A call that failed has a result, its error; missing is what has no line in results.jsonl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from os.path import isfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from records.cases import TestCase, ignore, iter_cases
from records.conversations import conversations_of
from records.errors import StorageError
from records.file_access import open_plain
from records.files import sha256_file
from records.results import UNREADABLE, ErrorInfo, RunConfig, TestResult
from records.runs import CONFIG, EVAL_SET, HOME, PARTIAL, ROOT, known_config

ASKED = "asked"
"""Key of config.json's ``run`` under which a run of a part of a set lists its cases."""

MOST_LISTED = 2000

MISSING = "missing"
"""The kind of error that replaces a missing result."""

FILTERS = ("id", "category", "difficulty", "tag", "answerable", "query_type")
"""The properties by which cases can be selected."""

Patterns = Mapping[str, Collection[str]]
"""Patterns by the name of a filter; a case must match one of each."""


class Asked(NamedTuple):
    """A number of cases, each asked ``repeats`` times."""

    cases: int
    repeats: int = 1

    def missing(self, results: Mapping[int, int]) -> int:
        """Asked cases that lack a result (with repeats: any of theirs).

        ``results``: how many cases have n results, by n.
        """
        complete = sum(cases for n, cases in results.items() if n >= self.repeats)
        return max(0, self.cases - complete)


def asked_of(config: RunConfig) -> Asked | None:
    """The questions of a run; None when its configuration does not name them.

    run_eval.py records how many cases it selected, convert_data.py how many a run should answer;
    an import that does not say so should answer every case of its set.
    """
    cases = _count(config.run.get("selected"))
    if cases is None and "imported" in config.run:
        cases = _count(config.dataset.get("cases"))
    if cases is None:
        return None
    return Asked(cases, _count(config.run.get("repeat")) or 1)


def asked_list(selected: Sequence[str], cases: int) -> dict[str, list[str]]:
    """The ids of a run of a part of a set, for its config.json; nothing for a whole or large one.

    ``cases``: of the whole set.
    """
    return {ASKED: list(selected)} if len(selected) < min(cases, MOST_LISTED + 1) else {}


def asked_ids(config: RunConfig, eval_set: Path | None = None) -> list[str] | None:
    """The ids of the cases that a run was asked, in eval-set order; None when it is not known.

    A run of a part of a set lists them. A run of the whole set, or of its beginning, was asked
    those cases of ``eval_set``, as long as that is still the set that it was asked.
    """
    listed = config.run.get(ASKED)
    if isinstance(listed, list):
        return [str(case_id) for case_id in listed]
    asked = asked_of(config)
    if asked is None or eval_set is None:
        return None
    if asked.cases != config.dataset.get("cases") and config.run.get("filter") != []:
        return None
    if not eval_set.exists() or sha256_file(eval_set) != config.dataset.get("sha256"):
        return None
    ids = (case.id for case in iter_cases(eval_set, ignore))
    return list(islice(ids, asked.cases))


def asked_set(folder: Path) -> Path:
    """The set that a run was asked with, which its config.json names; the usual one where it names
    none.

    The path is relative to the repository; of a set elsewhere it is the name alone, which is looked
    for in the current folder and in those above the run. Of several such files the one with the
    hash of the config.json is taken. The file may have changed, or be gone.

    A config.json from another person can name any path: of one that leads elsewhere the name alone
    counts, and a file in another repository must have the hash.
    """
    dataset = known_config(folder).dataset
    named = dataset.get("path")
    if not isinstance(named, str) or not named:
        return EVAL_SET
    relative = Path(named) if is_relative(named) else Path(Path(named).name)
    is_name = len(relative.parts) < 2
    own = [HOME, ROOT, Path.cwd()]
    # Below the root of the file system there are files without an end.
    bases = [base for base in (*own, *folder.resolve().parents) if is_name or base.name]
    # os.path: a name that no file system takes is no file, instead of an error.
    paths = [path for path in dict.fromkeys(base / relative for base in bases) if isfile(path)]
    for path in paths:
        if sha256_file(path) == dataset.get("sha256"):
            return path
    changed = paths if is_name else [path for path in paths if path in {b / relative for b in own}]
    return next(iter(changed), relative if is_name else HOME / relative)


def is_relative(named: str) -> bool:
    """Whether a path that a file names leads down from where it is looked for, and nowhere else."""
    path = Path(named)
    return not path.is_absolute() and ".." not in path.parts


def set_elsewhere(folder: Path) -> str:
    """A remark on a config.json that names its set by a path elsewhere; "" for any other."""
    named = known_config(folder).dataset.get("path")
    if not isinstance(named, str) or not named or is_relative(named):
        return ""
    return (
        f"{folder / CONFIG} names its set as {named}. A run may not name a path outside of this "
        f"project, so only a file called {Path(named).name} was looked for; name the set with "
        "--eval-set."
    )


def stopped(folder: Path, config: RunConfig) -> str:
    """Why a run was not asked all of its cases, in words; "" for one that was finished."""
    if (folder / PARTIAL).exists():
        return f"the run is not finished: {PARTIAL} is in its folder"
    reason = config.run.get("stopped")
    if not reason:
        return ""
    return f"the run was stopped ({reason})" if isinstance(reason, str) else "the run was stopped"


def _count(value: object) -> int | None:
    """A count as a file holds it; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def asked_counts(config: RunConfig, results: Mapping[int, int]) -> dict[str, int | None]:
    """``asked`` and ``missing`` for the head of metrics.json; both None when it is not known.

    ``results``: how many cases have n results, by n.
    """
    asked = asked_of(config)
    if asked is None:
        return {"asked": None, "missing": None}
    return {"asked": asked.cases, "missing": asked.missing(results)}


class _CaseOf(msgspec.Struct):
    test_case_id: str


def count_results(path: Path) -> Counter[int]:
    """How many cases have n results, by n. Lines that are no results do not count.

    No file, no results.
    """
    decode = msgspec.json.Decoder(_CaseOf).decode
    of_case: Counter[str] = Counter()
    if path.exists():
        with open_plain(path) as lines:
            for line in lines:
                try:
                    of_case[decode(line).test_case_id] += 1
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    continue
    return Counter(of_case.values())


def missing_remark(header: Mapping[str, Any], repeats: int = 1) -> str:
    """``11 of 90 asked cases have no result``; "" when none is missing, or nothing is known.

    ``header``: the head of metrics.json, or a report's. ``repeats``: how often each was asked.
    """
    asked, missing = header.get("asked"), header.get("missing")
    if not asked or not missing:
        return ""
    verb = "has" if missing == 1 else "have"
    text = f"{missing:,} of {asked:,} asked cases {verb} no result"
    return text if repeats == 1 else f"{text}, or fewer than the {repeats} asked for"


def unreadable_remark(header: Mapping[str, Any]) -> str:
    """``3 answers could not be read and count in no score``; "" when all could be read.

    ``header``: the head of metrics.json, or a report's.
    """
    count = header.get(UNREADABLE) or 0
    if not count:
        return ""
    return (
        "1 answer could not be read and counts in no score"
        if count == 1
        else f"{count:,} answers could not be read and count in no score"
    )


def patterns_of(filters: Iterable[str]) -> dict[str, list[str]]:
    """Filters ``name=pattern`` by name. Raises StorageError for a name that does not exist."""
    patterns: dict[str, list[str]] = {}
    for text in filters:
        name, equals, pattern = text.partition("=")
        if not equals or name not in FILTERS:
            names = ", ".join(FILTERS)
            raise StorageError(f"--filter {text!r}: write NAME=VALUE; the names are: {names}.")
        patterns.setdefault(name, []).append(pattern)
    return patterns


def passes(case: TestCase, patterns: Patterns) -> bool:
    """True when a case matches a pattern of every name, with ``*`` and ``?``."""
    return all(
        any(fnmatchcase(value, pattern) for value in filter_values(case, name) for pattern in some)
        for name, some in patterns.items()
    )


def selected_of(
    cases: Iterable[TestCase], patterns: Patterns, limit: int | None = None
) -> Iterator[TestCase]:
    """The first ``limit`` cases that match, in their order. A conversation is selected whole when a
    turn matches, and is never cut by the limit."""
    number = 0
    for turns in conversations_of(cases):
        if limit is not None and number >= limit:
            return
        if any(passes(case, patterns) for case in turns):
            number += len(turns)
            yield from turns


def filter_values(case: TestCase, name: str) -> list[str]:
    """The values of a case for the name of a filter."""
    if name == "tag":
        return case.tags
    if name == "answerable":
        return ["unknown" if case.answerable is None else str(case.answerable).lower()]
    value = getattr(case, name)
    return [] if value is None else [value]


class AskedSelection(msgspec.Struct, frozen=True):
    """Which cases a run was asked, each ``repeats`` times. ``ids`` None: every case of its set."""

    ids: frozenset[str] | None = None
    repeats: int = 1

    def absent(self, case: TestCase, repeats: Collection[int]) -> list[TestResult]:
        """An error of the kind ``missing`` for each repeat that has no result."""
        if self.ids is not None and case.id not in self.ids:
            return []
        if len(repeats) >= self.repeats:
            return []
        error = ErrorInfo(MISSING, "asked, but the run has no result")
        return [
            TestResult(case.id, case.question, "error", error=error, repeat=repeat)
            for repeat in range(self.repeats)
            if repeat not in repeats
        ]


def is_missing(result: TestResult) -> bool:
    """True for the placeholder of a result that should exist."""
    return result.error is not None and result.error.kind == MISSING


def asked_cases(
    config: RunConfig, set_sha256: str, read: Callable[[], Iterable[TestCase]]
) -> AskedSelection | None:
    """The cases that the run asked. None when its configuration does not name them, or when the set
    has changed since (another hash).

    ``read``: the cases of the set, read only when the run was asked a part of it. Of an import that
    does not say otherwise every case was asked.
    """
    asked, listed = asked_of(config), config.run.get(ASKED)
    if asked is None:
        return None
    if isinstance(listed, list):
        return AskedSelection(frozenset(map(str, listed)), asked.repeats)
    if config.dataset.get("sha256") not in (None, set_sha256):
        return None
    filters, limit = config.run.get("filter") or (), config.run.get("limit")
    if not filters and limit is None:
        whole = asked.cases == _count(config.dataset.get("cases"))
        return AskedSelection(None, asked.repeats) if whole else None
    try:
        patterns = patterns_of(filters)
    except StorageError:  # of a later version
        return None
    ids = frozenset(case.id for case in selected_of(read(), patterns, limit))
    return AskedSelection(ids, asked.repeats) if len(ids) == asked.cases else None
