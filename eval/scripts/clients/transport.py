"""How a bot is asked: many requests at once in the loop that calls, by a session of ``aiohttp``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from clients.http import finish
from clients.policy import CHUNK, CONNECT_SHARE, Exchange, PolicyTransport, address_of

if TYPE_CHECKING:
    import aiohttp


class HttpTransport(PolicyTransport):
    """Sends the requests of one loop over connections that stay open, each for one at a time."""

    _session: aiohttp.ClientSession | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def exchange(self, call: Exchange) -> None:
        """Send one request and read its answer, as much as ``call`` takes."""
        url = address_of(call.url)
        response = await self._of_loop().request(
            call.method,
            url,
            data=call.body,
            headers=call.headers,
            allow_redirects=False,
            proxy=self.proxy,
            ssl=self.certificates if url.scheme == "https" else True,
            middlewares=() if call.method == "POST" else (_only_once,),
        )
        try:
            if call.begin(response.status, _readable(response)):
                content = response.content
                while not content.at_eof() and call.take(await content.readany()):
                    pass
        finally:
            response.close()  # of a connection only that has more to say

    def _of_loop(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            import aiohttp

            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self.timeout * CONNECT_SHARE
                ),
                max_line_size=CHUNK,
                max_field_size=CHUNK,
            )
        return self._session

    def close(self) -> None:
        """Close all connections, in the thread that has sent."""
        session, self._session = self._session, None
        if session is not None:
            finish(session.close())


async def _only_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep the session from sending all but a POST again when the connection breaks."""
    import aiohttp

    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientError from error


def _readable(response: aiohttp.ClientResponse) -> Mapping[str, str]:
    """The headers of an answer; bytes beyond ASCII as Latin-1, for half a character is no text."""
    if all(map(str.isascii, response.headers.values())):
        return response.headers
    from multidict import CIMultiDict

    pairs = response.raw_headers
    return CIMultiDict((name.decode("latin-1"), text.decode("latin-1")) for name, text in pairs)
