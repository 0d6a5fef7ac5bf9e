"""A client of the scripted bot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.bot import ChatApi
from clients.http import RetryPolicy
from clients.profile import load_profile

PROFILES = Path(__file__).parents[2] / "eval" / "profiles"
QUICK = RetryPolicy(timeout=60, retries=2, backoff=0.001)
MakeApi = Callable[..., ChatApi]


@pytest.fixture
def api(fake_bot: Any) -> Iterator[MakeApi]:
    made: list[ChatApi] = []

    def make(
        profile: str = "default", policy: RetryPolicy = QUICK, url: str = "", **more: Any
    ) -> ChatApi:
        client = ChatApi(
            url or fake_bot.url, load_profile(profile, PROFILES), policy=policy, **more
        )
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()
