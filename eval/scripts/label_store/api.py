"""A bot's API as a source of chunks: connected on the first call, in the fetching thread."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.bot_address import check_bot_address
from clients.headers import resolve_headers
from clients.profiles import Profile, load_profile
from clients.redact import public_url
from label_store.fetch import Fetcher
from label_store.sources import ApiChunks
from records.errors import StorageError
from records.results import TestResult

if TYPE_CHECKING:
    from clients.chat_api import ChatApi

SECONDS = 20.0
"""For one call, from connecting to the last byte: a person waits for it."""
MAX_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Api:
    """Which bot, how it is asked, and for how many passages."""

    url: str
    profile: str
    k: int
    profiles: Path
    cache: Path


class _Bot:
    """Asks the bot for passages alone; usable from several threads."""

    def __init__(self, url: str, api: Api, profile: Profile, cases: Mapping[str, Any]) -> None:
        headers, problems = resolve_headers(profile.headers, os.environ, f"profile {profile.name}")
        if problems:
            raise StorageError.from_problems(problems)
        self._url, self._api, self._profile, self._headers = url, api, profile, headers
        self._cases = cases
        self._client: ChatApi | None = None
        self._lock = threading.Lock()

    def ask(self, case_id: str, query: str, k: int | None) -> TestResult:
        """One call, tried twice. Failures are results of status ``error``."""
        from clients.chat_api import Question

        case = self._cases.get(case_id) or {}
        question = Question(
            case_id,
            query,
            k or self._api.k,
            vaults=tuple(case.get("vaults") or ()),
            folders=tuple(case.get("folders") or ()),
            user_roles=tuple(case.get("user_roles") or ()),
        )
        return self._connected().ask(question).result

    def _connected(self) -> ChatApi:
        from clients.chat_api import ChatApi
        from clients.retry import RetryPolicy

        with self._lock:
            if self._client is None:
                self._client = ChatApi(
                    self._url,
                    self._profile,
                    self._headers,
                    RetryPolicy(SECONDS, retries=1),
                    retrieval_only=True,
                    connections=2,
                    max_bytes=MAX_BYTES,
                )
            return self._client


@contextlib.contextmanager
def api_source(api: Api, cases: Mapping[str, Any]) -> Iterator[Fetcher]:
    """The bot as a `Source`; ``demo`` starts the embedded API and stops it at the end.

    Raises StorageError for a profile or an address that cannot be used. A bot that does not answer
    is no error: its arrivals say so, and chunks kept from an earlier session stand in.
    """
    check_bot_address(api.url)
    with contextlib.ExitStack() as stack:
        url = api.url
        if url == "demo":
            from runner.demo_server import demo_server

            url = stack.enter_context(demo_server((), quiet=True))
        profile = load_profile(api.profile, api.profiles)
        bot = _Bot(url, api, profile, cases)
        shown = "demo" if api.url == "demo" else public_url(api.url)
        scope = f"{shown}\0{profile.sha256}\0{api.k}"
        chunks = ApiChunks(bot.ask, api.cache, scope)
        described = lambda: chunks.offline or f"{shown}, k = {api.k}"  # noqa: E731
        source = Fetcher(chunks, described, kept=chunks.kept)
        stack.callback(source.close)
        yield source
