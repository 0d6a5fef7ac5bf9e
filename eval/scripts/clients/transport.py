"""HTTP over ``requests``, with what it lacks: a deadline for the whole call and a size limit.

The one interface is ``HttpTransport.send``; a cheaper transport can take its place.
"""

from __future__ import annotations

import codecs
import ipaddress
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from clients.deadline import CHUNK, Deadline, deadline_adapter
from clients.errors import RETRIED_STATUS, CallError, NotConnected
from clients.redact import Redactor
from clients.retry import retry_after_seconds

if TYPE_CHECKING:
    import requests

MAX_REDIRECTS = 5
KEEPS_METHOD = frozenset({307, 308})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MOST_SHOWN = 200
"""Characters of an error page that a message shows."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer with a 2xx status. ``seconds``: from sending to the last byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float


class HttpTransport:
    """Sends requests from many threads over one pool of kept-open connections.

    Cookies are not kept, so that no question can see the session of another one; ``.netrc`` is not
    read. Proxies and certificates come from the environment, proxies never for loopback.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int = 1,
        max_bytes: int = 64 * 2**20,
        timeout: float = 60.0,
        retried: frozenset[int] = RETRIED_STATUS,
        redactor: Redactor | None = None,
    ) -> None:
        """``timeout``: seconds of a try as the user set them, for messages; ``send`` may get less,
        when waits have used up some of a call's time. ``retried``: statuses worth another try.
        ``redactor``: takes secrets out of what a message shows, before that is shortened."""
        import requests

        self.max_bytes = max_bytes
        self._retried = retried
        self._redactor = redactor or Redactor()
        self._timeout = timeout
        self._clock = Deadline()
        self._adapter = deadline_adapter(connections, self._clock)
        with requests.Session() as session:
            settings: Any = session.merge_environment_settings(url, {}, True, None, None)
        settings["stream"] = True
        if _is_loopback(urlsplit(url).hostname or ""):
            settings["proxies"] = {}
        self._settings = settings
        self._templates: dict[tuple[str, str], requests.PreparedRequest] = {}

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Reply:
        """One try. Raises CallError; 429, 5xx, timeouts and broken connections are retryable."""
        start = time.perf_counter()
        self._clock.start(timeout)
        for _ in range(MAX_REDIRECTS + 1):
            target = self._send_once(method, url, headers, body)
            if isinstance(target, Reply):
                return Reply(
                    target.status, target.headers, target.body, time.perf_counter() - start
                )
            url = target
        raise CallError("redirect", f"more than {MAX_REDIRECTS} redirects")

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._adapter.close()

    def _send_once(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply | str:
        """The answer, or the URL that a permitted redirect leads to."""
        import requests
        import urllib3

        response = None
        try:
            request = self._prepared(method, url, headers, body)
            # The adapter, not the session: that would add cookies, redirects and hooks, at a cost.
            response = self._adapter.send(request, timeout=self._clock.left(), **self._settings)
            return self._read(response, method, url)
        except requests.ConnectTimeout:
            raise NotConnected(f"could not connect within {self._timeout:g} s") from None
        except (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError):
            message = f"no complete answer within {self._timeout:g} s"
            raise CallError("timeout", message, retryable=True) from None
        except urllib3.exceptions.DecodeError:
            raise CallError("malformed", "the body is not compressed as it says") from None
        except (urllib3.exceptions.HTTPError, HTTPException, OSError) as error:
            # requests' own exceptions are OSErrors
            raise connection_error(error, self._redactor) from None
        finally:
            if response is not None:
                response.close()

    def _prepared(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> requests.PreparedRequest:
        """A copy of the request made once for this URL: making one anew costs a third of a call."""
        import requests

        template = self._templates.get((method, url))
        if template is None:
            template = requests.Request(method, url, headers=dict(headers)).prepare()
            if len(self._templates) < 64:
                self._templates[method, url] = template
        request = template.copy()
        if body is not None:
            request.body = body
            request.headers["Content-Length"] = str(len(body))
        return request

    def _read(self, response: requests.Response, method: str, url: str) -> Reply | str:
        status = response.status_code
        if status in REDIRECTS:
            return _redirect_target(response, method, url)
        announced = response.headers.get("Content-Length", "")
        if 200 <= status < 300 and announced.isascii() and announced.isdigit():
            size = int(announced[:19])  # int() refuses thousands of digits
            if size > self.max_bytes:
                raise _too_large(self.max_bytes, f"the server announced {size:,} bytes")
        body = self._body(response, self.max_bytes if 200 <= status < 300 else CHUNK)
        if 200 <= status < 300:
            return Reply(status, response.headers, body, 0.0)
        wait = response.headers.get("Retry-After")
        # a character that the end of the piece cuts in two is left out
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(body)
        excerpt = self._redactor.excerpt(text, MOST_SHOWN)
        raise _status_error(status, body, excerpt, wait, status in self._retried)

    def _body(self, response: requests.Response, limit: int) -> bytes:
        """The whole body; at most a first piece of an error page, which only fills a message."""
        pieces: list[bytes] = []
        size = 0
        while piece := response.raw.read(CHUNK, decode_content=True):
            size += len(piece)
            if size > limit:
                if limit == self.max_bytes:
                    raise _too_large(limit, f"reading stopped after {size:,} bytes")
                break
            pieces.append(piece)
        return b"".join(pieces)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _redirect_target(response: requests.Response, method: str, url: str) -> str:
    """Where a redirect leads, if it keeps host and method. Raises CallError otherwise."""
    status = response.status_code
    location = response.headers.get("Location")
    if not location:
        raise CallError("redirect", f"HTTP {status} without a Location")
    old = urlsplit(url)
    try:
        target = urljoin(url, location)
        new = urlsplit(target)
        upgrade = (old.scheme, old.port, new.scheme, new.port) == ("http", None, "https", None)
    except ValueError:  # half an IPv6 address, a port that is none
        raise CallError("redirect", f"HTTP {status} to an address that is none") from None
    same = (old.scheme, old.port) == (new.scheme, new.port) or upgrade
    if new.hostname != old.hostname or not same:
        host = new.hostname or "nowhere"
        raise CallError("redirect", f"HTTP {status} to another place ({host}); not followed")
    if status not in KEEPS_METHOD and method != "GET":
        raise CallError(
            "redirect", f"HTTP {status} to {new.path} would turn {method} into GET; not followed"
        )
    return target


def _status_error(
    status: int, body: bytes, excerpt: str, retry_after: str | None, retryable: bool
) -> CallError:
    message = f"HTTP {status}: {excerpt}" if excerpt else f"HTTP {status}"
    if status == 429:
        kind = "rate_limited"
    elif status >= 500:
        kind = "server_error"
    else:
        kind = "client_error"
    wait = retry_after_seconds(retry_after) if retryable else None
    return CallError(kind, message, retryable=retryable, retry_after=wait, status=status, body=body)


def _too_large(limit: int, detail: str) -> CallError:
    return CallError("too_large", f"the body is larger than {limit:,} bytes; {detail}")


def connection_error(error: BaseException, redactor: Redactor) -> CallError:
    """The innermost reason in a few words: library messages repeat the URL with its query."""
    import requests
    from urllib3 import exceptions

    never = (
        *(exceptions.NewConnectionError, exceptions.SSLError, exceptions.ProxyError),
        # an address or a proxy by which nobody is reached; UnicodeError: a host name that is none
        *(exceptions.LocationValueError, requests.exceptions.InvalidURL, UnicodeError),
        requests.exceptions.InvalidSchema,
    )
    connected = True
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        innermost = following
        seen.add(id(innermost))
        plain = type(innermost) is OSError and innermost.errno is None
        connected = connected and not plain and not isinstance(innermost, never)
        reason = getattr(innermost, "reason", None)
        deeper = innermost.__cause__ or innermost.__context__
        following = reason if isinstance(reason, BaseException) else deeper
    name = type(innermost).__name__
    message = getattr(innermost, "strerror", None) or _PLAIN.get(name) or name
    if plain or isinstance(innermost, requests.exceptions.InvalidSchema):
        message = (
            redactor.excerpt(str(innermost), MOST_SHOWN) or name
        )  # no CA file there, a proxy that refuses, no SOCKS
    if "CERTIFICATE_VERIFY_FAILED" in message:
        message += "; REQUESTS_CA_BUNDLE=FILE names certificates to trust"
    return CallError("connection", message, retryable=True) if connected else NotConnected(message)


_PLAIN = {
    "RemoteDisconnected": "the server closed the connection without an answer",
    "IncompleteRead": "the connection was closed before the end of the answer",
    "InvalidChunkLength": "the connection was closed before the end of the answer",
    "BadStatusLine": "the server does not speak HTTP",
    "LocationParseError": "the URL has no valid host",
    "InvalidURL": "the URL is not valid",
    "UnicodeError": "the URL has no valid host",
    "HTTPException": "the server sends too many headers",
    "LineTooLong": "the server sends a header that is too long",
    "InvalidHeader": "the server sends headers that contradict each other",
    "ValueError": "the server sends a body that is not framed as it says",
}
