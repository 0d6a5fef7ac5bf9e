"""How a judge's server gives JSON: found out with one small request, before the real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from clients.errors import CallError
from clients.judge_bodies import HELD, MODES, Found, Said
from clients.judge_channel import check_reachable
from clients.judge_replies import BadReply
from clients.judge_servers import JudgeError, JudgeUnreachable
from clients.judge_types import JudgeTask, PromptId
from clients.retry import CallFailed

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
Attempt = Callable[[JudgeTask, Found], tuple[Said, Found]]


def probe(attempt: Attempt, mode: str | None, hint: Found | None) -> tuple[Found, Said]:
    """The first way in which the server fills a two-field form, and what it said.

    Where the schema is said to hold, the prompt leads away from it: a way that does not hold the
    model is passed over.

    ``mode``: the only way to try. ``hint``: what worked before, tried first. Raises JudgeError when
    none works, JudgeUnreachable when the server fails.
    """
    if mode is not None and mode not in MODES:
        raise JudgeError(f"unknown way to ask for JSON: {mode!r}; there are {', '.join(MODES)}.")
    known = hint if hint is not None and mode in (None, hint.mode) else None
    modes = [mode] if mode else [*([known.mode] if known else []), *MODES]
    dropped = known.dropped if known else ()
    faults: dict[str, str] = {}
    errors: list[CallError] = []
    for one in dict.fromkeys(modes):
        try:
            said, found = attempt(MISLED if one in HELD else CANARY, Found(one, dropped))
            return found, said
        except CallFailed as failed:
            check_reachable(failed.error)
            errors.append(failed.error)
            faults[one] = failed.error.message
        except (CallError, BadReply) as bad:
            faults[one] = ", ".join(bad.message.splitlines())
    if len(errors) == len(faults) and all(error.status == 404 for error in errors):
        raise JudgeError(
            f"the judge's server has no such model or address ({errors[0].message}); the address "
            "ends in /v1 for most servers."
        )
    if len(errors) == len(faults) and all(error.kind == "server_error" for error in errors):
        raise JudgeUnreachable(f"the judge's server fails: {errors[-1].message}.")
    listed = "; ".join(f"{name}: {fault}" for name, fault in faults.items())
    raise JudgeError(f"the judge could not fill a form of two fields in any way ({listed}).")
