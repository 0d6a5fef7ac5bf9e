"""Is the model that answered the one that was asked for? Decided by names alone, without a server.

A server may put another model behind a name, and says so in its replies at most. Names are compared
without provider prefix, folders, ``.gguf``, ``:latest`` and case; a date counts as the same in any
of its spellings (``2024-08-06``, ``20240806``).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection
from dataclasses import dataclass, replace

from clients.judge_types import JudgeIdentity

DATED = re.compile(r"20\d\d-?[01]\d-?[0-3]\d|[-_@](?:[0-2]\d[01]\d|[01]\d[0-3]\d)(?!\d)|[-_]00\d$")
"""A snapshot in a name: 2024-08-06, 20241022, 0613, 2411, 002."""
VOUCHED = frozenset({"digest", "build", "code"})
"""Strengths of an identity that rest on more than names."""
UNNAMED = "The judge's server does not say which model answers."

Alias = tuple[str, str]
"""A model that is asked for, and the name under which another server may answer for it."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What a reply's name means for the judge.

    ``fault``: why it is another model, in a clause; None: it is taken for the judge. ``note``: what
    a reader of the verdicts should know. ``revision``: what belongs into the identity's revision.
    """

    fault: str | None = None
    note: str | None = None
    revision: str | None = None


class ReplyNames:
    """The names in the replies of one run of judging. Safe to use from several threads.

    ``accepted``: those taken for the judge. ``notes``: what a reader should know, each once.
    ``fault``: why a reply came from another model; set once, it stays.
    """

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.notes: list[str] = []
        self.fault: str | None = None
        self._other: str | None = None
        self._lock = threading.Lock()

    def take(
        self,
        identity: JudgeIdentity,
        answered: str | None,
        *,
        floating: bool = False,
        aliases: Collection[Alias] = (),
    ) -> Naming:
        """Decide on a reply's name, by itself and beside those before it, and note it."""
        with self._lock:
            naming = decide(identity, answered, floating=floating, aliases=aliases)
            if naming.fault is None and answered is not None and identity.strength not in VOUCHED:
                before = [one for one in sorted(self.accepted) if not compatible(one, answered)]
                if before:
                    fault = f"the judge's server answered as {before[0]} and then as {answered}"
                    naming = replace(naming, fault=fault)
            if naming.fault is not None:
                if self.fault is None:
                    self.fault, self._other = naming.fault, answered
                return naming
            if answered is not None:
                self.accepted.add(answered)
            if naming.note is not None and naming.note not in self.notes:
                self.notes.append(naming.note)
            return naming

    def changed(self) -> str | None:
        """That replies came from several models or from another one, in a clause; else None."""
        if self.fault is None or self._other is None or not self.accepted:
            return self.fault
        names = ", ".join(sorted({*self.accepted, self._other}))
        return f"the judge's server answered with different models: {names}"


def decide(
    identity: JudgeIdentity,
    answered: str | None,
    *,
    floating: bool = False,
    aliases: Collection[Alias] = (),
) -> Naming:
    """What the name in a reply says of the judge that was asked.

    ``answered``: None when the reply has no name. ``floating``: the model asked for is an allowed
    name that may move, and no reply has said yet what it stands for. ``aliases``: pairs that the
    user accepts. Leave both out for a judge that is settled.
    """
    asked, revision = identity.model, identity.revision
    vouched = identity.strength in VOUCHED
    if answered is None:
        return Naming(note=None if vouched else UNNAMED, revision=revision)
    floating = floating and revision is None and not vouched
    shown = "".join(char if char.isprintable() else " " for char in answered)
    own = answered if floating and answered != asked else revision
    if same_name(asked, answered):
        return Naming(revision=own)
    if any(same_name(asked, a) and same_name(answered, b) for a, b in aliases):
        return Naming(revision=revision if vouched else _joined(revision, answered))
    if vouched:
        return Naming(
            note=f"Asked for {asked}, the judge's server answers as {shown}; what it has is "
            f"known by its {identity.strength}.",
            revision=revision,
        )
    loose = f"Asked for {asked}, the judge's server answers as {shown}: taken for the same."
    if floating:
        exact = _undated(asked) == _undated(answered)
        return Naming(note=None if exact else loose, revision=own)
    if revision is not None and _declares(revision, answered):
        return Naming(revision=revision)
    undated = _undated(asked) == _plain(answered)
    if undated or (revision is None and compatible(asked, answered)):
        return Naming(note=loose, revision=revision)
    stands = f" ({revision})" if revision is not None else ""
    return Naming(fault=f"asked for {asked}{stands}, the judge's server answers as {shown}")


def compatible(one: str, other: str) -> bool:
    """May both be names of one model: no other date, and one begins with the other?"""
    dates, others = _dates(one), _dates(other)
    if dates and others and dates != others:
        return False
    return _is_start(one, other) or _is_start(other, one)


def same_name(one: str, other: str) -> bool:
    """Are they one name in two spellings?"""
    return _plain(one) == _plain(other)


def file_name(model: str) -> str:
    """A model that is named by the path of its file, without the folders."""
    return re.split(r"[/\\]", model)[-1] if model.endswith(".gguf") else model


def _plain(name: str) -> str:
    """A name as it is compared: ``Org/Gpt-4o-2024-08-06`` is ``gpt-4o-20240806``."""
    last = re.split(r"[/\\]", name.strip().rstrip("/\\"))[-1].casefold()
    last = last.removesuffix(":latest").removesuffix(".gguf")
    compact = DATED.sub(lambda found: f"-{_digits(found[0])}", last)
    return re.sub(r"[-_@\s]+", "-", compact)


def _undated(name: str) -> str:
    return re.sub(r"[-_@\s]+", "-", DATED.sub("", _plain(name))).strip("-")


def _dates(name: str) -> frozenset[str]:
    return frozenset(_digits(found) for found in DATED.findall(_plain(name)))


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


def _is_start(short: str, long: str) -> bool:
    """Does a name begin with another, up to a mark? ``gpt-4`` does not begin ``gpt-4o``."""
    start, whole = _plain(short), _plain(long)
    rest = whole[len(start) :]
    return bool(start) and whole.startswith(start) and not rest[:1].isalnum()


def _declares(revision: str, answered: str) -> bool:
    """Is the name the one that stands in the revision, or does it hold the revision?"""
    names = (revision, revision.rpartition(" ")[2])
    within = revision.casefold() in answered.casefold()
    return within or any(same_name(name, answered) for name in names)


def _joined(revision: str | None, answered: str) -> str:
    """A revision with the name of the model that answers."""
    return answered if revision is None else f"{revision} {answered}"
