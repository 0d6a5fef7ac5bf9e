"""The rules of every HTTP request, whichever library sends it.

Certificates, proxies, redirects, limits of time and size, and words for what went wrong.
``clients.transport`` sends many requests at once, by aiohttp; ``clients.single`` sends one at a
time, by requests.
"""

from __future__ import annotations

import asyncio
import codecs
import ipaddress
import os
import re
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from clients.http import RETRIED_STATUS, CallError, NotConnected, Reply
from clients.secrets import Redactor

if TYPE_CHECKING:
    from yarl import URL

CHUNK = 65_536
"""Bytes of one reading, and of an error page that is looked at."""

CONNECT_SHARE = 0.8
"""Share of a request's time after which a missing connection is reported as such."""

MAX_REDIRECTS = 5

KEEPS_METHOD = frozenset({307, 308})

REDIRECTS = frozenset({301, 302, 303, 307, 308})

MOST_SHOWN = 200
"""Characters of an error page that a message shows."""

BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""Environment variables with a file or a folder of certificates to trust; the first one counts."""

_HELD_UP = 0.05
"""Seconds that a loop may be late for a deadline before that counts as its own fault."""

_HOST = re.compile(r"[\w.-]+|[0-9A-Fa-f:.]+(%[\w.-]+)?", re.ASCII)
"""A name or a number that can be looked up."""

_KEPT = "!#$%&'()*+,/:;=?@[]~"
"""Characters of a path and a query that stay unchanged."""

_BREAKS = re.compile(r"[\r\n\0]")
"""Characters with which a header could begin another one."""


class PolicyTransport(ABC):
    """Sends requests by the rules of this module; the library does a single exchange.

    Cookies are not kept, so that no question can see the session of another one; ``.netrc`` is not
    read. Proxies and certificates come from the environment, proxies never for loopback.
    """

    def __init__(
        self,
        url: str,
        *,
        max_bytes: int = 64 * 2**20,
        timeout: float = 60.0,
        retried: frozenset[int] = RETRIED_STATUS,
        redactor: Redactor | None = None,
    ) -> None:
        """``timeout``: seconds of a try as the user set them, for messages; ``send`` may get less,
        when waits have used up some of a call's time. ``retried``: statuses worth another try.
        ``redactor``: takes secrets out of what a message shows, before that is shortened."""
        self.max_bytes, self.timeout, self.retried = max_bytes, timeout, retried
        self.redactor = redactor or Redactor()
        self.proxy = proxy_for(url)
        self._context: ssl.SSLContext | None = None

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Reply:
        """One try. Raises CallError; 429, 5xx, timeouts and broken connections are retryable."""
        if _BREAKS.search("".join(headers.values())):
            raise NotConnected("a header of the request has a line break")
        if self.proxy is not None and not self.proxy.startswith(("http://", "https://")):
            raise NotConnected("a SOCKS proxy is set; only HTTP proxies can be used")
        loop, start = asyncio.get_running_loop(), time.perf_counter()
        due = loop.time() + timeout
        try:
            async with asyncio.timeout(None) as deadline:
                timer = loop.call_at(due, _expire, deadline, due)
                try:
                    for _ in range(MAX_REDIRECTS + 1):
                        call = Exchange(self, method, url, headers, body, timeout, start)
                        await self.exchange(call)
                        if call.redirected_to is None:
                            return call.reply()
                        url = call.redirected_to
                finally:
                    timer.cancel()
            raise CallError("redirect", f"more than {MAX_REDIRECTS} redirects")
        except CallError:
            raise
        except Exception as error:
            if deadline.expired():
                raise self.out_of_time() from None
            if (failure := failure_of(error, self)) is None:
                raise  # an error of ours
            raise failure from None

    def out_of_time(self) -> CallError:
        """The error of an answer that is not complete when its time is over."""
        message = f"no complete answer within {self.timeout:g} s"
        return CallError("timeout", message, retryable=True)

    @abstractmethod
    async def exchange(self, call: Exchange) -> None:
        """Send one request and read its answer, as much as ``call`` takes."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections, in the thread that has sent."""

    @property
    def certificates(self) -> ssl.SSLContext:
        """The trusted certificates: those that ``BUNDLES`` name, else Mozilla's list.

        Raises NotConnected when there are none at that place.
        """
        if self._context is None:
            bundle = next(filter(None, map(os.environ.get, BUNDLES)), None)
            if not bundle:
                import certifi

                bundle = certifi.where()
            path = Path(bundle)
            if not path.exists():
                raise NotConnected(f"there is no file or folder of certificates at {path}")
            file, folder = (None, path) if path.is_dir() else (path, None)
            self._context = ssl.create_default_context(cafile=file, capath=folder)
        return self._context


@dataclass(slots=True)
class Exchange:
    """One request, and its answer while it is read: its status, and its body up to the limit."""

    rules: PolicyTransport
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    timeout: float
    start: float
    redirected_to: str | None = None
    """Where a redirect leads that may be followed."""
    _status: int = 0
    _received: Mapping[str, str] = field(default_factory=dict)
    _pieces: list[bytes] = field(default_factory=list)
    _arrivals: list[tuple[int, float]] = field(default_factory=list)
    """How many bytes were there after how many seconds."""

    def begin(self, status: int, headers: Mapping[str, str]) -> bool:
        """Note the head; whether the body has to be read. Raises CallError."""
        self._status, self._received = status, headers
        if status in REDIRECTS:
            self.redirected_to = redirect_target(status, headers, self.method, self.url)
            return False
        announced = headers.get("Content-Length", "")
        if self._good and announced.isascii() and announced.isdigit():
            size = int(announced[:19])  # int() refuses thousands of digits
            self._check_size(size, f"the server announced {size:,} bytes")
        return True

    @property
    def _good(self) -> bool:
        return 200 <= self._status < 300

    def _check_size(self, size: int, detail: str) -> None:
        if size > (limit := self.rules.max_bytes):
            raise CallError("too_large", f"the body is larger than {limit:,} bytes; {detail}")

    def take(self, piece: bytes) -> bool:
        """Keep a piece of the body; whether more is needed. Raises CallError for too many bytes.

        Of an error page only the first piece is kept, since it only fills a message.
        """
        size = len(piece) + (self._arrivals[-1][0] if self._arrivals else 0)
        self._pieces.append(piece)
        self._arrivals.append((size, time.perf_counter() - self.start))
        if self._good:
            self._check_size(size, f"reading stopped after {size:,} bytes")
        return self._good or size < CHUNK

    def reply(self) -> Reply:
        """The whole answer. Raises CallError when its status is no success."""
        body = b"".join(self._pieces)
        if not self._good:
            raise _status_error(self._status, self._received, body[:CHUNK], self.rules)
        seconds = time.perf_counter() - self.start
        return Reply(self._status, self._received, body, seconds, tuple(self._arrivals))


def _expire(deadline: asyncio.Timeout, due: float) -> None:
    """End a call now. A loop that was held up by work of ours, such as a huge answer, gives that
    time back once: what has arrived meanwhile is read first."""
    now = asyncio.get_running_loop().time()
    late = now - due
    deadline.reschedule(now + late if late > _HELD_UP else now)


@lru_cache(maxsize=64)
def address_of(url: str) -> URL:
    """An address in the form in which it is sent, without a login. Raises NotConnected."""
    from yarl import URL

    try:
        parts = urlsplit(url)
        origin = URL(f"{parts.scheme}://{parts.netloc}").with_user(None)
        if not _HOST.fullmatch(origin.raw_host or ""):
            raise ValueError
    except ValueError:
        raise NotConnected("the URL has no valid host") from None
    path = quote(parts.path or "/", _KEPT) + (
        f"?{quote(parts.query, _KEPT)}" if parts.query else ""
    )
    return URL(f"{origin}{path}", encoded=True)


def proxy_for(url: str) -> str | None:
    """The proxy that the environment sets for an address; None for loopback and ``no_proxy``."""
    if not getproxies():
        return None
    from requests.utils import get_environ_proxies, select_proxy

    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if is_loopback(host) or proxy_bypass(f"{host}:{parts.port}"):
            return None
        proxy: str | None = select_proxy(url, get_environ_proxies(url))
    except ValueError:  # reported when it is asked
        return None
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself, by its name or its number."""
    try:
        number = ipaddress.ip_address(host)
        return number.is_loopback or number.is_unspecified
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def redirect_target(status: int, headers: Mapping[str, str], method: str, url: str) -> str:
    """Where a redirect leads, if it keeps host and method. Raises CallError otherwise."""
    location = headers.get("Location")
    if not location:
        raise CallError("redirect", f"HTTP {status} without a Location")
    old = urlsplit(url)
    try:
        target = urljoin(url, location)
        new = urlsplit(target)
        upgrade = (old.scheme, old.port, new.scheme, new.port) == ("http", None, "https", None)
    except ValueError:  # half an IPv6 address, a port that is none
        raise CallError("redirect", f"HTTP {status} to an invalid address") from None
    same = (old.scheme, old.port) == (new.scheme, new.port) or upgrade
    if new.hostname != old.hostname or not same:
        host = new.hostname or "nowhere"
        raise CallError("redirect", f"HTTP {status} to another host ({host}); not followed")
    if status not in KEEPS_METHOD and method != "GET":
        raise CallError(
            "redirect", f"HTTP {status} to {new.path} would turn {method} into GET; not followed"
        )
    return target


def _status_error(
    status: int, headers: Mapping[str, str], body: bytes, rules: PolicyTransport
) -> CallError:
    """The error that a status without success makes. ``body``: the page, or its beginning."""
    # a character that the end of the piece cuts in two is left out
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(body)
    excerpt = rules.redactor.excerpt(text, MOST_SHOWN)
    message = f"HTTP {status}: {excerpt}" if excerpt else f"HTTP {status}"
    other = "server_error" if status >= 500 else "client_error"
    kind = "rate_limited" if status == 429 else other
    retryable = status in rules.retried
    wait = retry_after_seconds(headers.get("Retry-After")) if retryable else None
    return CallError(
        kind,
        message,
        retryable=retryable,
        retry_after=wait,
        status=status,
        body=body,
        headers=headers,
    )


def retry_after_seconds(value: str | None, now: datetime | None = None) -> float | None:
    """A Retry-After header in seconds from now: whole seconds or an HTTP date; None if neither.

    A date in the past is 0. Source: RFC 9110, section 10.2.3.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) < 16 else float("inf")
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


_NO_CONNECTION = re.compile(
    r"^(Client(Connector|Proxy|SSL|HttpProxy)\w*|NewConnection\w+|NameResolution\w+|ProxyError"
    r"|SSL\w*Error): ",
    re.MULTILINE,
)
"""Errors of aiohttp, requests and urllib3 that say that there was no connection."""

_MESSAGE = r"^\w+: (400, message:\s*)?"

_BROKEN = (
    (r"^LineTooLong: ", "the server sends a header that is too long"),
    (r"^(BadStatusLine|UnknownProtocol): ", "the server does not speak HTTP"),
    (f"{_MESSAGE}(Too many|got more than 100) headers", "the server sends too many headers"),
    (
        f"{_MESSAGE}Invalid character in chunk|^ValueError: .* with base 16",
        "the server's body does not match its framing headers",
    ),
    (
        f"{_MESSAGE}(Duplicate |Invalid character in )?(Content-Length|Transfer-Encoding)",
        "the server sends headers that contradict each other",
    ),
    (r"^HttpProcessingError: ", "the server sends malformed headers"),
    (r"Disconnected(Error)?: ", "the server closed the connection without an answer"),
    (
        r"^(ClientPayloadError|IncompleteRead): ",
        "the connection was closed before the end of the answer",
    ),
)
"""The meaning of errors by their class and their first words, of both libraries. Nothing of them is
repeated: most have the address with its query, or what the server sent."""


def failure_of(error: Exception, rules: PolicyTransport) -> CallError | None:
    """The meaning of an error of a library in words; None if it is none of a call."""
    library = type(error).__module__.partition(".")[0] in ("aiohttp", "requests", "urllib3")
    if not library and not isinstance(error, (OSError, UnicodeError)):
        return None
    chain = list(_causes(error))
    lines = "\n".join(f"{type(cause).__name__}: {' '.join(str(cause).split())}" for cause in chain)
    if re.search(r"^(ContentEncoding|Decode)Error: ", lines, re.MULTILINE):
        return CallError("malformed", "the body's compression does not match its header")
    if re.search(r"^(ConnectTimeout|ConnectionTimeoutError): ", lines, re.MULTILINE):
        return NotConnected(f"could not connect within {rules.timeout:g} s")
    if re.search(r"^ReadTimeoutError: ", lines, re.MULTILINE):
        return rules.out_of_time()
    if re.search(r"^(Invalid\w*URL|LocationParseError|UnicodeError): ", lines, re.MULTILINE):
        return NotConnected("the URL has no valid host")
    if _NO_CONNECTION.search(lines):
        return NotConnected(rules.redactor.excerpt(_no_connection(chain), MOST_SHOWN))
    words = (text for pattern, text in _BROKEN if re.search(pattern, lines, re.MULTILINE))
    of_system = (cause.strerror for cause in chain if isinstance(cause, OSError) and cause.strerror)
    reason = next(words, None) or next(of_system, type(error).__name__)
    return CallError("connection", reason, retryable=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error with all that led to it; urllib3 has them in its arguments and as a reason."""
    found: list[object] = [error]
    for cause in found:
        if isinstance(cause, BaseException):
            yield cause
            reason = getattr(cause, "reason", None)
            more = (cause.__cause__, cause.__context__, reason, *cause.args)
            found += [item for item in more if all(item is not old for old in found)]


def _no_connection(chain: list[BaseException]) -> str:
    """The reason that the system, TLS or a proxy gives."""
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            trust = "REQUESTS_CA_BUNDLE=FILE names certificates to trust"
            return f"{cause.strerror or 'CERTIFICATE_VERIFY_FAILED'}; {trust}"
        if type(cause).__name__ == "ClientHttpProxyError":
            status, message = getattr(cause, "status", ""), getattr(cause, "message", "")
            return f"Tunnel connection failed: {status} {message}"
        if isinstance(cause, OSError) and str(cause).startswith("Tunnel "):
            return str(cause)
    for cause in reversed(chain):
        if isinstance(cause, ssl.SSLError) and cause.strerror:
            return cause.strerror
        if isinstance(cause, OSError) and cause.errno is not None:
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
    return str(chain[-1])
