"""Earlier versions of a set and its labels: on disk, or in the history that git has of them."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from records.cases import TestCase
from records.errors import StorageError
from records.files import replace_bytes, sha256_file
from records.labels import LABEL_FILES, label_places, labels_sha256, read_cases

MOST_VERSIONS = 200
"""Commits that are looked at, the newest first."""


def _git(folder: Path, *words: str) -> bytes | None:
    """What git prints; None where it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def set_at(commit: str, eval_set: Path, labels_dir: Path, into: Path) -> Path | None:
    """Write a set and its labels, as a commit has them, into a folder; the set's path there.

    None where the commit does not have the set.
    """
    text = _git(eval_set.resolve().parent, "show", f"{commit}:./{eval_set.name}")
    if text is None:
        return None
    target = into / "set.jsonl"
    replace_bytes(target, text)
    (into / "labels").mkdir(exist_ok=True)
    for name in LABEL_FILES:
        for path in label_places(name, labels_dir, eval_set):
            if path.parent.is_dir() and path.resolve() != eval_set.resolve():
                labels = _git(path.parent.resolve(), "show", f"{commit}:./{path.name}")
                if labels is not None:
                    replace_bytes(into / "labels" / path.name, labels)
                    break
    return target


@contextlib.contextmanager
def set_of_reference(
    reference: str, eval_set: Path, labels_dir: Path
) -> Iterator[tuple[Path, Path]]:
    """A set and the folder of its labels as a git reference has them, while the block lasts.

    Raises StorageError where git does not have them.
    """
    with tempfile.TemporaryDirectory() as name:
        path = None
        if not reference.startswith("-"):
            path = set_at(reference, eval_set, labels_dir, Path(name))
        if path is None:
            raise StorageError(
                f"--labels-of {reference}: git does not have {eval_set} there; name a commit, tag "
                "or branch that has it."
            )
        yield path, path.parent / "labels"


@contextlib.contextmanager
def set_with(
    sha256: str | None, labels: str | None, places: Iterable[tuple[Path, Path]]
) -> Iterator[tuple[Path, Path] | None]:
    """Finds the version of a set with these hashes, and the folder of its labels.

    They exist while the block lasts; None where neither the disk nor git has them. ``places``: sets
    and their labels that may be it, or have been it.
    """
    with contextlib.ExitStack() as stack:
        yield next(_versions(sha256, labels, dict.fromkeys(places), stack), None)


def _versions(
    sha256: str | None,
    labels: str | None,
    places: Iterable[tuple[Path, Path]],
    stack: contextlib.ExitStack,
) -> Iterator[tuple[Path, Path]]:
    if sha256 is None:
        return

    def fits(path: Path, folder: Path) -> bool:
        return sha256_file(path) == sha256 and labels_sha256(folder, path) == labels

    for path, folder in places:
        if path.exists() and fits(path, folder):
            yield path, folder
    for path, folder in places:
        parent = path.resolve().parent
        beside = [str(parent / f"{name}.jsonl") for name in LABEL_FILES]
        watched = [str(parent / path.name), str(folder.resolve()), *beside]
        words = ("log", f"-{MOST_VERSIONS}", "--format=%H", "--", *watched)
        for commit in (_git(parent, *words) or b"").decode().split() if parent.is_dir() else ():
            text = _git(parent, "show", f"{commit}:./{path.name}")
            if text is None or hashlib.sha256(text).hexdigest() != sha256:
                continue
            own = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            older = set_at(commit, path, folder, own)
            if older is not None and fits(older, own / "labels"):
                yield older, own / "labels"


def cases_with(
    sha256: str | None, labels: str | None, places: Iterable[tuple[Path, Path]]
) -> list[TestCase] | None:
    """The cases of that version, with their labels; None where there is none."""
    with set_with(sha256, labels, places) as found:
        return None if found is None else read_cases(*found)
