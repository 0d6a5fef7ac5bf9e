"""From the command line to a client that can ask: address, headers, profile."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

from clients.chat_api import ChatApi
from clients.headers import Headers, resolve_headers
from clients.profiles import Profile
from clients.retry import RetryPolicy
from runner.demo_server import demo_server
from runner.plan import Plan
from storage import VERSION, StorageError

VARIABLE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*", re.IGNORECASE)


@contextlib.contextmanager
def connected(plan: Plan, profile: Profile, headers: Headers) -> Iterator[ChatApi]:
    """The client, with the embedded API started before and stopped after where it is asked for."""
    with contextlib.ExitStack() as stack:
        url = plan.api_url or ""
        if plan.demo:
            url = stack.enter_context(demo_server(plan.demo_arg, quiet=plan.quiet))
        api = ChatApi(
            url,
            profile,
            headers,
            RetryPolicy(plan.timeout, plan.retries, plan.backoff),
            retrieval_only=plan.retrieval_only,
            connections=plan.concurrency,
            max_bytes=plan.max_bytes,
            user_agent=f"rag-eval-toolkit/{VERSION}",
        )
        stack.callback(api.close)
        yield api


def resolved_headers(plan: Plan, profile: Profile) -> Headers:
    """The profile's headers and those of --header. No message shows a value."""
    headers, problems = resolve_headers(profile.headers, os.environ, f"profile {profile.name}")
    given = {}
    for text in plan.header:
        name, equals, variable = text.partition("=")
        if not equals or not VARIABLE_NAME.fullmatch(variable):
            raise StorageError(
                f"--header {name.split(':')[0].strip()[:40]}: write NAME=VARIABLE, where VARIABLE "
                "is the name of an environment variable that holds the value."
            )
        given[name.strip()] = "${" + variable + "}"
    more, faults = resolve_headers(given, os.environ, "--header")
    if problems or faults:
        raise StorageError.from_problems([*problems, *faults])
    return Headers(
        {**headers.values, **more.values}, headers.secrets + more.secrets, headers.literal
    )


def check_uses(plan: Plan, profile: Profile) -> None:
    """An option that the request has no place for would change nothing: say so."""
    for name in ("k", "folder_mode"):
        if name in plan.given and name not in profile.uses:
            option = name.replace("_", "-")
            raise StorageError(
                f"--{option}: profile {profile.name} has no {{{name}}} in its request, so it would "
                "change nothing; add the placeholder to the profile."
            )
