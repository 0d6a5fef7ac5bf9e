"""Why a call can fail: one closed list, used in results.jsonl and in tables."""

from __future__ import annotations

KINDS = {
    "connection": "no connection, or it broke before the whole answer had come",
    "timeout": "the answer was not complete when the time of the call was over",
    "rate_limited": "HTTP 429 on every try, or a Retry-After longer than the time left",
    "server_error": "HTTP 5xx on every try (501, 505 and other lasting ones: asked once)",
    "client_error": "HTTP 4xx or another status that is no success; asked once",
    "redirect": "a redirect to another host, to another method, or in a circle; not followed",
    "malformed": "the body is no JSON: truncated, HTML, empty, NaN, not UTF-8; asked once",
    "too_large": "the body is larger than the limit; reading was stopped",
    "mapping": "JSON that does not fit the profile: a field is missing or has a wrong type",
    "bot_error": "the bot answered with an error of its own (the profile's `error` field)",
    "imported": "an answer that was produced elsewhere, and failed there without a known kind",
}
"""Every kind that ``error.kind`` of a result can have, with its meaning."""

LASTING = frozenset({501, 505, 506, 508, 510, 511})
"""Server errors that say "never": not implemented, no such version, a login page in between."""
RETRIED_STATUS = frozenset({429, *range(500, 600)}) - LASTING
"""Also what proxies and model servers use beyond the standard: 520 to 530, 598, 599."""


class CallError(Exception):
    """One failed try. ``retry_after``: seconds that the server asked to wait, if it did.

    ``status`` and ``body``: of an answer that is no success, else None and nothing.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        body: bytes = b"",
    ) -> None:
        super().__init__(message)
        if kind not in KINDS:
            raise ValueError(f"unknown error kind {kind!r}")
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
        self.body = body


class NotConnected(CallError):
    """There was no connection at all: nobody listens, no such host, no valid certificate."""

    def __init__(self, message: str) -> None:
        super().__init__("connection", message, retryable=True)
