"""Committed metrics.json files, read from git's own store: nothing is checked out or changed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from storage import StorageError

QUIET = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_PAGER": "cat"}
"""No pager, no lock, no fetching of what a partial clone left out, messages in English."""
FORMAT = "--format=commit %H %cI %s"
FILES = {"100644", "100755"}
_WILD = re.compile(r"([*?\[\]\\])")


@dataclass(frozen=True, slots=True)
class Version:
    """A file as one commit left it. ``blob`` names its bytes in git's store."""

    sha: str
    date: str
    subject: str
    path: str
    blob: str


@dataclass
class Repository:
    """The repository that holds ``top``. ``notes`` collects what a reader must know."""

    top: Path
    shallow: bool
    notes: list[str] = field(default_factory=list)

    def run(self, *words: str, given: bytes | None = None) -> bytes:
        """A git command's output. Raises StorageError with git's own words."""
        done = _git(self.top, *words, given=given)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise StorageError(f"{self.top}: git {words[0]} failed ({said[-1] if said else '?'}).")
        return done.stdout

    def commit(self, text: str) -> str | None:
        """The full id of the commit that ``text`` (a hash, tag, branch, HEAD~3) names, or None."""
        if text.startswith("-"):
            return None
        done = _git(self.top, "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}")
        return done.stdout.decode().strip() or None if done.returncode == 0 else None

    def versions(self, path: Path, *, follow: bool, first_parent: bool = False) -> list[Version]:
        """Every version of a file that HEAD's history holds, oldest first.

        ``follow``: ``path`` is one file, traced through its renames; else it is a folder, and all
        ``*/metrics.json`` in it count. A rename without a change is no version, nor is a deletion.
        """
        if _git(self.top, "rev-parse", "--verify", "--quiet", "HEAD").returncode != 0:
            return []
        place = _within(path, self.top)
        spec = f":(top,literal){place}"
        if not follow:
            folder = _WILD.sub(r"\\\1", place)
            spec = f":(top,glob){'' if place == '.' else folder + '/'}*/metrics.json"
        words = ["log", "-z", "--raw", "--no-abbrev", "--date-order", "-M", FORMAT]
        words += ["--encoding=UTF-8", "--no-show-signature", "--no-ext-diff", "--no-textconv"]
        if first_parent:
            words += ["--first-parent", "--diff-merges=first-parent"]
        else:
            words.append("--diff-merges=combined")
        words += ["--follow"] if follow else []
        newest_first = _versions(self.run(*words, "--", spec))
        # Turned round here: git's --reverse loses most of the history with --follow.
        commits = [list(group) for _, group in groupby(newest_first, key=lambda one: one.sha)]
        return [one for commit in reversed(commits) for one in commit]

    def order(self, *, first_parent: bool = False) -> dict[str, int]:
        """The place of each commit of HEAD's history, oldest first, parents before children."""
        words = ["rev-list", "--date-order", *["--first-parent"] * first_parent, "HEAD"]
        newest_first = self.run(*words).decode().split()
        return {sha: place for place, sha in enumerate(reversed(newest_first))}

    def read(self, blobs: Sequence[str]) -> Iterator[bytes | None]:
        """The bytes of each blob, in order; None for one that this clone does not hold."""
        process = subprocess.Popen(
            ["git", "-C", str(self.top), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | QUIET,
        )
        assert process.stdin
        assert process.stdout
        with process:
            for blob in blobs:
                process.stdin.write(blob.encode() + b"\n")
                process.stdin.flush()
                head = process.stdout.readline().split()
                if len(head) != 3:
                    yield None
                    continue
                data = process.stdout.read(int(head[2]))
                process.stdout.read(1)
                yield data
            process.stdin.close()

    def blobs_of(self, paths: Sequence[Path]) -> list[str]:
        """What each file on disk would be called in git's store."""
        given = "".join(f"{path.resolve()}\n" for path in paths).encode("utf-8", "surrogateescape")
        return self.run("hash-object", "--stdin-paths", given=given).decode().split()


def find_repository(place: Path) -> Repository | None:
    """The repository around a path, which itself need not exist; None outside git."""
    folder = place.resolve()
    while not folder.is_dir():
        folder = folder.parent
    done = _git(folder, "rev-parse", "--show-toplevel", "--is-shallow-repository")
    if done.returncode != 0:
        return None
    top, shallow = os.fsdecode(done.stdout).rstrip("\n").rsplit("\n", 1)
    found = Repository(Path(top), shallow == "true")
    if found.shallow:
        found.notes.append(
            "This clone is shallow: the history before its oldest commit is missing, and that "
            "commit is named for all it holds. Fetch the rest with `git fetch --unshallow` "
            "(GitHub Actions: fetch-depth: 0)."
        )
    return found


def _git(
    folder: Path, *words: str, given: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", str(folder), "-c", "core.quotePath=off", *words],
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            env=os.environ | QUIET,
        )
    except FileNotFoundError:
        raise StorageError("git is not installed; give --source runs to do without.") from None


def _within(path: Path, top: Path) -> str:
    return Path(os.path.relpath(path.resolve(), top.resolve())).as_posix()


def _versions(output: bytes) -> Iterator[Version]:
    """Parse ``git log -z --raw``: a header a commit, then an entry and its paths a file."""
    tokens = iter(output.split(b"\0"))
    sha = date = subject = ""
    for token in tokens:
        token = token.lstrip(b"\n")
        if token.startswith(b"commit "):
            words = token.decode("utf-8", "replace").split(" ", 3)
            sha, date, subject = words[1], words[2], words[3] if len(words) > 3 else ""
        elif token.startswith(b":"):
            parents = len(token) - len(token.lstrip(b":"))
            fields = token.decode().lstrip(":").split(" ")
            mode, status = fields[parents], fields[-1]
            before, blob = fields[parents + 1], fields[2 * parents + 1]
            path = next(tokens)
            if parents == 1 and status[0] in "RC":
                path = next(tokens)
                if before == blob:
                    continue
            if mode in FILES:
                yield Version(sha, date, subject, path.decode("utf-8", "replace"), blob)
