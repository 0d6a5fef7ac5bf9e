"""The labelling screen in a browser on this machine (--serve).

Each tab is a session of its own; one of them may write.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from aiohttp import web
from textual_serve.server import Server

LOOPBACK = ("127.0.0.1", "::1", "localhost")

TEMPLATES = Path(__file__).with_name("templates")
"""A page of our own: that of textual_serve loads a font from another host, and waits for a click
before it takes keys."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self' ws:; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
}
"""Nothing is loaded from elsewhere, and no other page shows this one in a frame: a click there
could label."""


def own_hosts(host: str, port: int) -> frozenset[str]:
    """The accepted values of ``Host`` for a server on ``host:port``, in lower case."""
    names = {bracketed(name) for name in (host.lower(), *LOOPBACK)}
    hosts = {f"{name}:{port}" for name in names}
    return frozenset(hosts | names if port == 80 else hosts)  # browsers leave 80 out


def is_own(hosts: frozenset[str], host: str | None, origin: str | None) -> bool:
    """Whether a request with these two headers is answered; None where it has no such header.

    A browser sends any page's requests to any address. ``Origin`` names the page that asked;
    ``Host`` shows a foreign name that points here (DNS rebinding). A program need not send any.
    """
    return (host is None or host.lower() in hosts) and (
        origin is None or origin in {f"http://{own}" for own in hosts}
    )


def bracketed(name: str) -> str:
    """An address in the form of a URL, with IPv6 in brackets."""
    return f"[{name}]" if ":" in name else name


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _OwnPagesServer(Server):  # type: ignore[misc]  # textual_serve is not typed
    """Answers 403 to requests that another web page, or a name made to point here, caused."""

    def __init__(self, command: str, host: str, port: int, title: str) -> None:
        self.own = own_hosts(host, port)
        address = f"http://{bracketed(host)}:{port}"
        super().__init__(
            command,
            host=host,
            port=port,
            title=title,
            public_url=address,
            templates_path=TEMPLATES,
        )

    async def _make_app(self) -> web.Application:
        app: web.Application = await super()._make_app()
        app.middlewares.append(self._refuse_strangers)
        app.on_response_prepare.append(_guard)
        return app

    @web.middleware
    async def _refuse_strangers(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_own(self.own, request.host, request.headers.get("Origin")):
            raise web.HTTPForbidden(text="Open the address that label_eval.py printed.")
        return await handler(request)


async def _guard(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def serve(
    script: Path, words: Sequence[str], host: str, port: int, talk: Callable[[str], None]
) -> None:
    """Serve `script` with the arguments `words` until a signal ends it; each tab runs it anew."""
    if host not in LOOPBACK:
        talk(f"Warning: {host} can be reached by others, and there is no password.")
    talk(f"http://{host}:{port} (Ctrl+C stops it)")
    command = shlex.join([sys.executable, str(script), *words])
    _OwnPagesServer(command, host, port, script.stem).serve()
