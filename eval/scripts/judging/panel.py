"""Several judges as one: each is asked the same, and what counts is their vote.

Whoever asks an opinion (``opinion.ask``) asks every member and joins what they say; a list that is
made once (claims, facts) is made by the first member that can. A member keeps its own key in the
cache, so what it has said alone is not paid again in a panel.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, TypeVar

import orjson

from judging.cost import JudgingTotals, merged
from judging.types import Judge, JudgeTask, JudgeVerdict
from records.verdicts import QUOTE_UNVERIFIED, CallKind, JudgeIdentity

PANEL = "panel"
"""The provider of an identity that several judges share."""

Word = TypeVar("Word", bound=Hashable)

_WEAKEST_FIRST = ("name only", "revision", "build", "digest")


class CountedJudge(Judge, Protocol):
    """A judge whose verdicts are counted."""

    @property
    def totals(self) -> JudgingTotals: ...


class Panel:
    """The members of a panel in order. ``cannot`` is empty: the embedded rules are no member."""

    cannot: Mapping[str, str] = {}

    def __init__(self, members: Sequence[CountedJudge]) -> None:
        self.members = members

    @property
    def identity(self) -> JudgeIdentity:
        """Another member, or another order, makes another judge; it is pinned as its weakest."""
        identities = [member.identity for member in self.members]
        told = orjson.dumps([i.to_dict() for i in identities], option=orjson.OPT_SORT_KEYS)
        return JudgeIdentity(
            PANEL,
            "+".join(identity.model for identity in identities),
            f"sha256:{hashlib.sha256(told).hexdigest()}",
            strength=min((i.strength for i in identities), key=_WEAKEST_FIRST.index),
        )

    @property
    def totals(self) -> JudgingTotals:
        """The total cost of all members."""
        return merged(member.totals for member in self.members)

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        """The verdict of the first member that gives one, else the failure of the first."""
        verdicts: list[JudgeVerdict] = []
        for member in self.members:
            verdicts.append(await member.ask(task))
            if verdicts[-1].ok or verdicts[-1].failure == "budget":
                return verdicts[-1]
        return verdicts[0]


def vote(votes: Sequence[Word | None], scale: Sequence[Word] = ()) -> Word | None:
    """The label of more than half of the requested votes; None where no label has so many.

    ``votes``: one a member, None where it gave none. ``scale``: words from least to most, of which
    the middle counts, of two the lower; it needs a vote from more than half of the members.
    """
    given = [word for word in votes if word is not None]
    if 2 * len(given) <= len(votes):
        return None
    if scale:
        return sorted(given, key=scale.index)[(len(given) - 1) // 2]
    word, times = Counter(given).most_common(1)[0]
    return word if 2 * times > len(votes) else None


def vote_of(kind: CallKind, verdict: str) -> str | None:
    """A member's verdict as it votes: one whose quote was found nowhere says that nothing is there;
    by a rubric it is no vote."""
    if verdict != QUOTE_UNVERIFIED:
        return verdict
    return kind.verdicts[-1] if kind.positive else None
