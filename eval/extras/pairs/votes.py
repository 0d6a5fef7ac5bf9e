"""Several judges as one: each is asked the same, and what counts is their vote.

Whoever asks an opinion (``judging.opinion.ask``) asks every member and gets what they say together.
A list that is made once (claims, facts) is made by the first member that can. A member keeps its
own key in the cache, so what it has said alone is not paid again in a panel.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import orjson
from msgspec.structs import replace

from judging.connect import CountedJudge
from judging.cost import JudgingTotals, merged
from judging.kinds import Material, ids_of
from judging.opinion import Opinion, ask
from judging.types import JudgeTask, JudgeVerdict
from records.verdicts import QUOTE_UNVERIFIED, CallKind, JudgeIdentity

PANEL = "panel"
"""The provider of an identity that several judges share."""

Word = TypeVar("Word", bound=Hashable)

_WEAKEST_FIRST = ("name only", "revision", "build", "digest")


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

    async def opinion(
        self, kind: CallKind, material: Material, salt: bytes, repeat: int
    ) -> Opinion:
        """What all members say of a material, joined by their votes."""
        opinions = [
            await ask(member, kind, material, salt=salt, repeat=repeat) for member in self.members
        ]
        judges = [str(member.identity) for member in self.members]
        return joined(kind, ids_of(kind, material), judges, opinions)


def joined(
    kind: CallKind, asked: Sequence[str], judges: Sequence[str], opinions: Sequence[Opinion]
) -> Opinion:
    """The opinion of a panel: the vote on every item, with the words of the first who says so."""
    sound = [opinion for opinion in opinions if not opinion.failure]
    first = (sound or opinions)[0]
    keys = "\0".join(opinion.first.key for opinion in opinions)
    flags = {
        name: vote([None if o.failure else bool(o.reply.get(name)) for o in opinions])
        for name in kind.extra
    }
    for opinion in sound[::-1] if flags else ():  # texts of a member that the panel agrees with
        if all(opinion.reply.get(name) == flag for name, flag in flags.items()):
            first = opinion
    data = None if first.first.data is None else {**first.first.data, **flags}
    whole = Opinion(
        first.task,
        replace(first.first, data=data, key=hashlib.sha256(keys.encode()).hexdigest()),
        dropped=sum(opinion.dropped for opinion in opinions),
        more_calls=[again for opinion in opinions for again in opinion.more_calls],
        calls=[call for opinion in opinions for call in opinion.calls],
        missing_votes={
            f"{number}: {judge}": f"{opinion.failure}: {opinion.message}"
            for number, (judge, opinion) in enumerate(zip(judges, opinions, strict=True), 1)
            if opinion.failure
        },
    )
    unpaid = [opinion for opinion in opinions if opinion.failure == "budget"]
    if unpaid or not sound:  # what was not asked for money is asked later, and no vote is missing
        why = (unpaid or opinions)[0]
        whole.failure, whole.message = why.failure, why.message
        return whole
    open_items = [name for name, flag in flags.items() if flag is None]
    for place, name in enumerate(asked):
        of_item = [None if o.failure else o.entries[place] for o in opinions]
        votes = [None if e is None else vote_of(kind, e["verdict"]) for e in of_item]
        whole.votes[name] = votes
        if (word := vote(votes, kind.scale)) is None:
            open_items.append(name)
            continue
        same = [e for e, said in zip(of_item, votes, strict=True) if e is not None and said == word]
        whole.entries.append(
            next((e for e in same if e["verdict"] == word), same[0]) | {"verdict": word}
        )
    if open_items:
        lost = "".join(f"; no vote of {who} ({why})" for who, why in whole.missing_votes.items())
        whole.failure, whole.entries = "no_majority", []
        whole.message = f"no verdict has a majority on {', '.join(open_items)}{lost}"
    return whole


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
