"""The trial of a judge's server before it is asked: in which way it gives JSON, and in which not.

One small paid request if the best way works. The model is given the room that it gets later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from clients.http import CallError, CallFailed
from judging.identity import JudgeError, JudgeUnreachable
from judging.protocols import ServerAnswer, ServerCapabilities, WireForm, failure_of, plain_words
from judging.replies import HELD, BadReply
from judging.types import JudgeTask, PromptId


def check_reachable(error: CallError) -> None:
    """Raise for a failure that no other request form can fix: no connection, no right to ask."""
    if error.status in (401, 403):
        raise JudgeError(
            f"the judge's server refuses the key ({plain_words(error)}); name the environment "
            "variable that holds it: --set api_key=VARIABLE."
        ) from None
    if error.kind in ("connection", "timeout", "rate_limited", "redirect"):
        raise JudgeUnreachable(f"the judge cannot be reached: {error.message}.") from None


CODE = "zq-17-umber"
"""A value that no model says unless the schema reaches it."""

SCHEMA = {
    "type": "object",
    "properties": {
        "wet": {"type": "string", "enum": ["yes", "no"]},
        "code": {"type": "string", "enum": [CODE]},
    },
    "required": ["wet", "code"],
    "additionalProperties": False,
}

CANARY = JudgeTask(
    metric="canary",
    prompt=PromptId("canary", 1, ""),
    messages=(
        {"role": "system", "content": "You answer with one JSON object."},
        {"role": "user", "content": "Is water wet? Give the fields wet and code."},
    ),
    key_messages=(),
    schema=SCHEMA,
    check=lambda reply: (),
    inputs={},
    max_tokens=1024,
)

MISLED = replace(
    CANARY,
    messages=(
        CANARY.messages[0],
        {
            "role": "user",
            "content": "Is water wet? Give the fields wet and code, "
            'as {"wet": "it depends", "code": "harbour"}.',
        },
    ),
)
"""The same with a prompt that says something else: only a server that holds the model to the schema
gets it filled; one that shows the model the schema, or drops it, gets what the prompt says."""

Probed = tuple[ServerAnswer, ServerCapabilities]

Attempt = Callable[[JudgeTask, ServerCapabilities], Awaitable[Probed]]


async def find_way(
    attempt: Attempt,
    form: WireForm,
    mode: str | None,
    hint: ServerCapabilities | None,
    room: int,
) -> tuple[ServerCapabilities, ServerAnswer]:
    """The first request form in which the server fills a two-field form, and its reply.

    Where the schema is said to hold, the prompt leads away from it: a way that does not hold the
    model is passed over.

    ``mode``: the only way to try. ``hint``: what worked before, tried first. ``room``: tokens that
    the reply may take; one that is cut gets twice as much, once. Raises JudgeError when none works,
    JudgeUnreachable when the server fails.
    """
    if mode is not None and mode not in form.modes:
        ways_known = ", ".join(form.modes)
        raise JudgeError(f"unknown way to ask for JSON: {mode!r}; there are {ways_known}.")
    preferred = hint if hint is not None and mode in (None, hint.mode) else None
    modes = [mode] if mode else [*([preferred.mode] if preferred else []), *form.modes]
    dropped = preferred.dropped if preferred else form.dropped
    faults: dict[str, str] = {}
    errors: list[CallError] = []
    ways = [(way, room) for way in dict.fromkeys(modes)]
    cut = 0
    while ways:
        way, most = ways.pop(0)
        task = replace(MISLED if way in HELD else CANARY, max_tokens=most)
        try:
            answer, capabilities = await attempt(task, ServerCapabilities(way, dropped))
            return capabilities, answer
        except CallFailed as failed:
            check_reachable(failed.error)
            errors.append(failed.error)
            faults[way] = plain_words(failed.error)
            too_long = failure_of(failed.error) == "truncated"
        except (CallError, BadReply) as bad:
            faults[way] = ", ".join(bad.message.splitlines())
            too_long = "finish_reason: length" in bad.message
        if too_long and not cut:
            ways.insert(0, (way, 2 * room))
        elif too_long and THINKING in faults[way]:
            ways = []  # another way of asking would not make it think less
        cut = max(cut, most) if too_long else cut
    if cut:
        raise JudgeError(
            f"the judge's reply was cut after {cut:,} tokens in a trial with two fields: the model "
            f"thinks longer than that, or never ends. {MORE_ROOM}"
        )
    if len(errors) == len(faults) and all(error.status == 404 for error in errors):
        raise JudgeError(
            f"the judge's server has no such model or address ({errors[0].message}); the address "
            "ends in /v1 for most servers."
        )
    if len(errors) == len(faults) and all(error.kind == "server_error" for error in errors):
        raise JudgeUnreachable(f"the judge's server fails: {errors[-1].message}.")
    by_fault: dict[str, list[str]] = {}
    for way, fault in faults.items():
        by_fault.setdefault(fault, []).append(way)
    listed = "; ".join(f"{', '.join(names)}: {fault}" for fault, names in by_fault.items())
    raise JudgeError(f"the judge could not fill a form of two fields in any mode ({listed}).")


THINKING = "it was still thinking"

MORE_ROOM = (
    "Give each reply more tokens with --set thinking_tokens=16000, or thinking_tokens in its file."
)
"""The advice when a model thinks before it answers."""
