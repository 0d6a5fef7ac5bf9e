"""One request at a time, by ``requests``: for servers that are not the bot, such as a judge's."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from clients.policy import CHUNK, CONNECT_SHARE, Exchange, PolicyTransport, address_of

if TYPE_CHECKING:
    from requests.adapters import HTTPAdapter


class SingleTransport(PolicyTransport):
    """Sends requests one after the other, each in a thread that its deadline leaves behind.

    The time-out of ``requests`` is for a piece of an answer: a server that drips bytes outlasts it.
    Its session is left out, because it reads a redirect's body though it follows none.
    """

    def __init__(self, url: str, **rules: Any) -> None:
        super().__init__(url, **rules)
        self._adapters: dict[str, HTTPAdapter] = {}

    async def exchange(self, call: Exchange) -> None:
        """Send one request and read its answer, as much as ``call`` takes."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[BaseException | None] = loop.create_future()

        def settle(error: BaseException | None) -> None:
            if not done.done():
                done.set_result(error)

        def work() -> None:
            error: BaseException | None = None
            try:
                self._exchange(call)
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the loop is closed already
                loop.call_soon_threadsafe(settle, error)

        threading.Thread(target=work, daemon=True).start()
        if (error := await done) is not None:
            raise error

    def _exchange(self, call: Exchange) -> None:
        """The same, in a thread, which ends soon after the deadline."""
        from requests import Request

        url = address_of(call.url)
        end = time.monotonic() + call.timeout
        headers = {name: value.encode() for name, value in call.headers.items()}
        response = self._adapter(url.scheme).send(
            Request(call.method, str(url), headers, data=call.body).prepare(),
            stream=True,
            timeout=(call.timeout * CONNECT_SHARE, call.timeout),
            proxies={"all": self.proxy} if self.proxy else {},
        )
        with response:
            if call.begin(response.status_code, response.headers):
                while piece := response.raw.read1(CHUNK, decode_content=True):
                    if time.monotonic() > end:
                        raise self.out_of_time()
                    if not call.take(piece):
                        break

    def _adapter(self, scheme: str) -> HTTPAdapter:
        from requests.adapters import HTTPAdapter

        class Adapter(HTTPAdapter):
            """Trusts the certificates of its context, and no others beside them."""

            def init_poolmanager(self, *args: Any, **more: Any) -> None:
                super().init_poolmanager(*args, **more, ssl_context=context)

            def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
                more |= {"ssl_context": context, "proxy_ssl_context": context}
                return super().proxy_manager_for(proxy, **more)

            def cert_verify(self, *_: Any) -> None:
                """Nothing to add to the context."""

        if scheme not in self._adapters:
            needed = scheme == "https" or (self.proxy or "").startswith("https:")
            context = self.certificates if needed else None
            self._adapters[scheme] = Adapter()
        return self._adapters[scheme]

    def close(self) -> None:
        """Close all connections."""
        for adapter in self._adapters.values():
            adapter.close()
        self._adapters.clear()
