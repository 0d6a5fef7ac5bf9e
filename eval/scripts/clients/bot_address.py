"""Whether ``--api-url`` names a bot at all."""

from __future__ import annotations

from urllib.parse import urlsplit

from clients.redact import url_in_message
from records.errors import StorageError

DEMO = "demo"
"""Stands for the embedded bot where an address could stand."""


def check_bot_address(url: str) -> None:
    """Raise StorageError for what is neither an HTTP address nor ``demo``; no login is repeated."""
    if url != DEMO and not _is_address(url):
        raise StorageError(f"--api-url {url_in_message(url)!r}: write http://HOST[:PORT], or demo.")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, or half an IPv6 address
        return False
