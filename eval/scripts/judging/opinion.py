"""One opinion of a judge: asked, completed, and its quotes checked.

A judge leaves items out and invents quotes. Items that are missing are asked again, alone; so is
every verdict that needs a quote and has none. What remains open after that is a failure of the
opinion (missing) or the verdict ``quote_unverified`` (no quote), never a guess.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from judging.kinds import Material, ids_of, make_task
from judging.panel import vote, vote_of
from judging.prompt_files import neutral
from judging.types import Judge, JudgeTask, JudgeVerdict, Usage
from ragmetrics.text.quotes import quoted
from records.verdicts import QUOTE_UNVERIFIED, CallKind

Entry = dict[str, Any]


class Opinion(msgspec.Struct):
    """The result of one task and its follow-ups.

    ``entries``: a verdict for each item asked about, in their order; empty when ``failure`` is set.
    ``reply``: the first reply. ``dropped``: verdicts on ids that the judge was not asked about.
    ``more_calls``: what was asked again and why. ``votes``: of a panel, by item, what each member
    says in its order, None for nothing. ``missing_votes``: failures of members, by judge.
    """

    task: JudgeTask
    first: JudgeVerdict
    entries: list[Entry] = []
    failure: str | None = None
    message: str = ""
    dropped: int = 0
    more_calls: list[dict[str, Any]] = []
    calls: list[JudgeVerdict] = []
    votes: dict[str, list[str | None]] = {}
    missing_votes: dict[str, str] = {}

    @property
    def reply(self) -> Mapping[str, Any]:
        return self.first.data or {}

    @property
    def manipulation(self) -> bool:
        """The judge saw an attempt to steer it, in any of its replies."""
        return any(bool((call.data or {}).get("manipulation")) for call in self.calls)

    def failed(self, verdict: JudgeVerdict) -> Opinion:
        """This opinion with a failure in place of verdicts."""
        self.failure, self.message = verdict.failure or "incomplete", verdict.message
        self.entries = []
        return self


async def ask(
    judge: Judge, kind: CallKind, material: Material, *, salt: bytes, repeat: int = 0
) -> Opinion:
    """Ask about all items of the material, of a panel each member. Never raises for what a judge
    does."""
    members: Sequence[Judge] = getattr(judge, "members", ())
    if not members:
        return await _ask_alone(judge, kind, material, salt, repeat)
    opinions = [await _ask_alone(member, kind, material, salt, repeat) for member in members]
    return _joined(kind, ids_of(kind, material), [str(one.identity) for one in members], opinions)


def _joined(
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
    joined = Opinion(
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
        joined.failure, joined.message = why.failure, why.message
        return joined
    open_items = [name for name, flag in flags.items() if flag is None]
    for place, name in enumerate(asked):
        of_item = [None if o.failure else o.entries[place] for o in opinions]
        votes = [None if e is None else vote_of(kind, e["verdict"]) for e in of_item]
        joined.votes[name] = votes
        if (word := vote(votes, kind.scale)) is None:
            open_items.append(name)
            continue
        same = [e for e, said in zip(of_item, votes, strict=True) if e is not None and said == word]
        joined.entries.append(
            next((e for e in same if e["verdict"] == word), same[0]) | {"verdict": word}
        )
    if open_items:
        lost = "".join(f"; no vote of {who} ({why})" for who, why in joined.missing_votes.items())
        joined.failure, joined.entries = "no_majority", []
        joined.message = f"no verdict has a majority on {', '.join(open_items)}{lost}"
    return joined


async def _ask_alone(
    judge: Judge, kind: CallKind, material: Material, salt: bytes, repeat: int
) -> Opinion:
    """What one judge says of all items."""
    task = make_task(kind, material, salt=salt, repeat=repeat)
    first = await judge.ask(task)
    opinion = Opinion(task, first, calls=[first])
    if not first.ok:
        return opinion.failed(first)
    if not kind.verdicts:
        return opinion
    asked = ids_of(kind, material)
    entries = _entries(opinion, first, asked)
    if missing := [name for name in asked if name not in entries]:
        again = await _ask_again(opinion, judge, kind, material, missing, "missing", salt)
        if not again.ok:
            return opinion.failed(again)
        entries |= _entries(opinion, again, missing)
        if absent := [name for name in missing if name not in entries]:
            return opinion.failed(_incomplete(again, absent))
    failure = await _check_quotes(opinion, judge, kind, material, entries, salt)
    if failure is not None:
        return opinion.failed(failure)
    opinion.entries = [entries[name] for name in asked]
    return opinion


def _incomplete(verdict: JudgeVerdict, absent: Sequence[str]) -> JudgeVerdict:
    """A stored follow-up may be of a time when less was asked of it."""
    message = f"there is no verdict for the id {', '.join(absent)}"
    return replace(verdict, data=None, failure="incomplete", message=message)


def _entries(opinion: Opinion, verdict: JudgeVerdict, asked: Sequence[str]) -> dict[str, Entry]:
    """The entries by id; ids that the judge was not asked about are dropped and counted."""
    entries: dict[str, Entry] = {}
    for entry in (verdict.data or {})["verdicts"]:
        if entry["id"] in asked:
            entries.setdefault(entry["id"], dict(entry))
        else:
            opinion.dropped += 1
    return entries


async def _ask_again(
    opinion: Opinion,
    judge: Judge,
    kind: CallKind,
    material: Material,
    ids: Sequence[str],
    why: str,
    salt: bytes,
) -> JudgeVerdict:
    task = make_task(
        kind,
        material.only(kind, ids),
        salt=salt,
        repeat=opinion.task.repeat,
        hint=why == "quote",
        strict=True,
    )
    verdict = await judge.ask(task)
    opinion.calls.append(verdict)
    opinion.more_calls.append(
        {"why": why, "ids": list(ids), "key": verdict.key, "raw": verdict.raw}
    )
    return verdict


async def _check_quotes(
    opinion: Opinion,
    judge: Judge,
    kind: CallKind,
    material: Material,
    entries: dict[str, Entry],
    salt: bytes,
) -> JudgeVerdict | None:
    """Ask once more where a verdict lacks its quote; the failure of that call, if any."""
    bad = [name for name, entry in entries.items() if not _holds(kind, material, entry)]
    if not bad:
        return None
    again = await _ask_again(opinion, judge, kind, material, bad, "quote", salt)
    if not again.ok:
        return again
    entries |= _entries(opinion, again, bad)
    for name in bad:
        if not _holds(kind, material, entries[name]):
            verdict = entries[name]["verdict"]
            entries[name] |= {"verdict": QUOTE_UNVERIFIED, "said": verdict}
    return None


def _holds(kind: CallKind, material: Material, entry: Entry) -> bool:
    """False for a verdict that needs a quote which stands in none of the material's texts.

    The block that the entry names is tried first; ``context`` becomes the one that has the quote.
    """
    if entry["verdict"] not in kind.quoted:
        return True
    texts = [text for source in kind.sources for text in material.texts(source)]
    named = entry.get("context")
    for item in sorted(texts, key=lambda item: item["id"] != named):
        text = item["text"]
        if quoted(entry["quote"], neutral(text)) or quoted(entry["quote"], text):
            if kind.cites:
                entry["context"] = item["id"]
            return True
    return False


def usage_of(calls: Sequence[JudgeVerdict]) -> dict[str, int | None]:
    """Tokens of all calls together; None where no call says."""
    total: dict[str, int | None] = {}
    for name in Usage.__struct_fields__:
        counts = [count for call in calls if (count := getattr(call.usage, name)) is not None]
        total[name] = sum(counts) if counts else None
    return total


def sum_of(values: Sequence[float | None]) -> float | None:
    """The sum of the values that are not None; None when all are."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None
