"""The types of questions to a judge and of its replies: the records that judges of every kind
share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from records.verdicts import JudgeIdentity

Check = Callable[[Mapping[str, Any]], Sequence[str]]
"""Function from a parsed reply to sentences about its faults; none when it is usable."""

FAILURES = {
    "transport": "the server was not reached, or answered with an error, on every try",
    "rejected": "the server refused the request (HTTP 4xx)",
    "refused": "the model declined to judge",
    "truncated": "the reply stopped before its end (finish_reason is not stop)",
    "malformed": "the reply was not a single JSON object, after all re-asks",
    "schema": "the reply did not fit the schema, after all re-asks",
    "incomplete": "the reply was incomplete or contradictory, after all re-asks",
    "other_model": "another model answered than the requested one",
    "prompt_truncated": "the server cut the prompt: it counted far fewer tokens than were sent",
    "budget": "not asked: the cost limit was reached",
    "no_majority": "no verdict of the panel has a majority of its judges",
    "not_cached": "not asked: --offline, and the verdict is not in the cache",
}
"""Every kind that ``Verdict.failure`` can have, with its meaning. None of them is a score."""


class PromptId(msgspec.Struct, frozen=True):
    """Which prompt: its name, its version, and the sha256 of its file."""

    name: str
    version: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class JudgeTask(msgspec.Struct, frozen=True):
    """One question to the judge.

    ``messages``: what is sent. ``key_messages``: the same with placeholders for whatever is random
    in it (delimiters), for the cache key. ``schema``: JSON schema of the reply. ``check``: what the
    schema cannot say (every id once, …). ``inputs``: the same as plain data, for a judge that reads
    no prompt. ``repeat``: 0 for the first opinion; another repeat is another opinion. ``advice``: a
    check whose complaints are worth one re-ask, and no failure: the reply is then taken unchanged.
    """

    metric: str
    prompt: PromptId
    messages: tuple[Mapping[str, str], ...]
    key_messages: tuple[Mapping[str, str], ...]
    schema: Mapping[str, Any]
    check: Check
    inputs: Mapping[str, Any]
    repeat: int = 0
    max_tokens: int = 2048
    advice: Check | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens of a call and all its re-asks; None where the server does not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


NO_USAGE = Usage()


class JudgeVerdict(msgspec.Struct, frozen=True):
    """The result of a task. ``data`` is the checked reply, None when it failed.

    ``raw``: the assistant's last reply, unchanged. ``key``: the cache key. ``mode``: how the schema
    was asked for (see ``judge_bodies``; ``local``: by no server). ``cached``: nothing was paid.
    ``attempts`` counts transport tries, ``asks`` the replies that were judged (1 + re-asks).
    ``cost_usd``: None without a price table. ``sent``: the parameters that were really sent.
    ``answered_as``: the model that the reply names, None when it names none. ``judging_run``: the
    run of judging that asked, None when no judge was asked or the entry is older than such ids."""

    key: str
    data: Mapping[str, Any] | None
    failure: str | None = None
    message: str = ""
    raw: str = ""
    mode: str = ""
    cached: bool = False
    repaired: bool = False
    attempts: int = 0
    asks: int = 0
    usage: Usage = NO_USAGE
    cost_usd: float | None = None
    seconds: float | None = None
    sent: Mapping[str, Any] = {}
    answered_as: str | None = None
    judging_run: str | None = None

    @property
    def ok(self) -> bool:
        return self.data is not None


class Judge(Protocol):
    """Anything that answers tasks: a server, the cache in front of it, or the local judge."""

    @property
    def identity(self) -> JudgeIdentity: ...

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        """Ask the judge. Never raises for failures of server or model: these are verdicts."""
