"""Which transport sends: ``requests``, or ``aiohttp`` where many calls are in flight at once."""

from __future__ import annotations

from typing import Any

from clients.http import Transport
from clients.http_requests import HttpTransport, environment_settings

MOST_WITH_REQUESTS = 32
"""Calls in flight up to which ``requests`` keeps pace with a server that takes 50 ms for each."""


def open_transport(url: str, *, connections: int, **options: Any) -> Transport:
    """The transport for so many calls in flight; ``options``: those that both take.

    ``requests`` up to 32 of them, and wherever the environment names a proxy; else ``aiohttp``.
    """
    if connections > MOST_WITH_REQUESTS and not _has_proxy(url):
        from clients.http_aiohttp import AiohttpTransport

        return AiohttpTransport(url, **options)
    return HttpTransport(url, connections=connections, **options)


def _has_proxy(url: str) -> bool:
    from requests.utils import select_proxy

    return select_proxy(url, environment_settings(url)["proxies"]) is not None
