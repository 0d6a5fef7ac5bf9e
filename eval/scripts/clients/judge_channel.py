"""The way to a judge's server: requests with retries, and no secret in what comes back."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson

from clients.errors import RETRIED_STATUS, CallError
from clients.headers import Headers, resolve_headers
from clients.judge_servers import JudgeError, JudgeUnreachable, addresses
from clients.redact import Redactor, split_login, url_secrets
from clients.retry import CallFailed, RetryPolicy, call_with_retries
from clients.transport import HttpTransport, Reply

MAX_BYTES = 8 * 2**20
NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
"""Names in capitals only: a key that was given by mistake must not be taken for one, and shown."""
LOADING = 503
RETRIED = RETRIED_STATUS | {408, 409, 425}


class Channel:
    """Requests below a server's root and below its OpenAI-compatible base, from many threads.

    The values of ``headers`` and a login in the address are kept out of answers and messages.
    """

    def __init__(
        self,
        url: str,
        headers: Headers,
        policy: RetryPolicy,
        stop: threading.Event,
        connections: int,
    ) -> None:
        hidden = url_secrets(url)
        bare, login = split_login(url)
        self._root, self._base = addresses(bare)
        self.host = urlsplit(self._base).hostname or ""
        self._headers = {
            "User-Agent": "rag-eval-toolkit",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "Content-Type": "application/json",
            **login,
            **headers.values,
        }
        self._redactor = Redactor([*headers.secrets, *login.values(), *hidden])
        self._policy = policy
        self._stop = stop
        self._transport = HttpTransport(
            self._base,
            connections=connections,
            max_bytes=MAX_BYTES,
            timeout=policy.timeout,
            retried=RETRIED,
            redactor=self._redactor,
        )

    def complete(self, body: Any) -> tuple[Reply, int]:
        """A chat completion and the number of tries. Raises CallFailed and Interrupted."""
        return self._request("POST", f"{self._base}/chat/completions", body, self._stop)

    def fetch(self, path: str, body: Any = None) -> Any:
        """The JSON at a path below the root (POST with a body, else GET); None without any there.

        Works after ``stop``, too: whether the judge is still the same is asked at the very end.
        Raises JudgeError when the key is refused, JudgeUnreachable without a connection and while
        the server loads its model (503): its kind would be guessed wrongly then, and verdicts kept
        under another name.
        """
        try:
            method = "GET" if body is None else "POST"
            reply, _ = self._request(method, self._root + path, body, threading.Event())
            return self.parse(reply)
        except CallFailed as failed:
            check_reachable(failed.error)
            if failed.error.status == LOADING:
                raise JudgeUnreachable(
                    f"the judge's server is not ready ({failed.error.message}); try again later."
                ) from None
            return None
        except CallError:
            return None

    def parse(self, reply: Reply) -> Any:
        """The JSON of an answer, without secrets. Raises CallError of kind ``malformed``."""
        try:
            return self._redactor.data(orjson.loads(reply.body))
        except orjson.JSONDecodeError as error:
            raise CallError("malformed", f"the answer is no valid JSON: {error}") from None

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def _request(
        self, method: str, url: str, body: Any, stop: threading.Event
    ) -> tuple[Reply, int]:
        data = None if body is None else orjson.dumps(body)

        def once(timeout: float) -> Reply:
            return self._transport.send(method, url, self._headers, data, timeout)

        try:
            return call_with_retries(once, self._policy, stop)
        except CallFailed as failed:
            failed.error.message = self._redactor.text(failed.error.message)
            raise CallFailed(failed.error, failed.attempts) from None


def key_headers(variable: str | None, environ: Mapping[str, str]) -> Headers:
    """The header that carries the key in an environment variable; none without a variable.

    Raises JudgeError when there is no usable key. No message shows what may be a key.
    """
    if variable is None:
        return Headers()
    if not NAME.fullmatch(variable):
        raise JudgeError(
            "--api-key takes the name of an environment variable, such as OPENAI_API_KEY, "
            "not the key itself."
        )
    headers, problems = resolve_headers(
        {"Authorization": f"Bearer ${{{variable}}}"}, environ, "--api-key"
    )
    if problems:
        raise JudgeError(f"--api-key: {problems[0].message}.")
    return headers


def check_reachable(error: CallError) -> None:
    """Raise for what no other way of asking can mend: no connection, no right to ask."""
    if error.status in (401, 403):
        raise JudgeError(
            f"the judge's server refuses the key ({error.message}); name the environment variable "
            "that holds it with --api-key."
        ) from None
    if error.kind in ("connection", "timeout", "rate_limited", "redirect"):
        raise JudgeUnreachable(f"the judge cannot be reached: {error.message}.") from None
