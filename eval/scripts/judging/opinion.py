"""One opinion of a judge: asked, completed, and its quotes checked.

A judge leaves items out and invents quotes. Items that are missing are asked again, alone; so is
every verdict that needs a quote and has none. What remains open after that is a failure of the
opinion (missing) or the verdict ``quote_unverified`` (no quote), never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from judging.kinds import Material, ids_of, make_task
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
    """Ask about all items of the material. Never raises for what a judge does.

    A judge that is made of several has an ``opinion`` of its own.
    """
    if (own := getattr(judge, "opinion", None)) is not None:
        made: Opinion = await own(kind, material, salt, repeat)
        return made
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
