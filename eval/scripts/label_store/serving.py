"""The web server of --serve: Textual's own, open only to pages that it served itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web
from textual_serve.server import Server

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OwnPagesServer(Server):  # type: ignore[misc]  # textual_serve is not typed
    """Answers 403 to requests that another web page, or a name made to point here, caused."""

    def __init__(self, command: str, host: str, port: int, title: str) -> None:
        names = [_bracketed(name) for name in (host.lower(), "localhost", "127.0.0.1", "::1")]
        self.own = {f"{name}:{port}" for name in names}
        if port == 80:  # which browsers leave out
            self.own |= set(names)
        address = f"http://{_bracketed(host)}:{port}"
        super().__init__(command, host=host, port=port, title=title, public_url=address)

    async def _make_app(self) -> web.Application:
        app: web.Application = await super()._make_app()
        app.middlewares.append(self._refuse_strangers)
        return app

    @web.middleware
    async def _refuse_strangers(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        known = {None, *(f"http://{name}" for name in self.own)}
        if request.host.lower() not in self.own or origin not in known:
            raise web.HTTPForbidden(text="Open the address that label_eval.py printed.")
        return await handler(request)


def _bracketed(name: str) -> str:
    """An address as it stands in a URL."""
    return f"[{name}]" if ":" in name else name
