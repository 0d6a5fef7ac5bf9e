"""label_eval.py --serve: the same app in a browser, for pages of its own alone."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.scripts.labelling.conftest import Tool

Record = dict[str, Any]


async def browse(port: int) -> None:
    """What a browser does: show the screen, flag the case, leave."""
    import aiohttp

    seen = b""
    async with aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{port}/ws?width=80&height=24"
        async with client.ws_connect(url) as socket_:
            for wanted, key in ((b"Where is A?", "f"), (b"flagged", "q")):
                while wanted not in seen:
                    message = await socket_.receive()
                    assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT)
                    if message.type == aiohttp.WSMsgType.BINARY:
                        seen += message.data
                await socket_.send_json(["stdin", key])
            ends = {aiohttp.WSMsgType[name] for name in ("CLOSE", "CLOSED", "CLOSING")}
            while (await socket_.receive()).type not in ends:
                pass


async def knock(port: int) -> None:
    """The page and its WebSocket are refused to other names and to pages of other addresses."""
    import aiohttp

    url, here = f"http://127.0.0.1:{port}", f"127.0.0.1:{port}"
    headers = [
        ({"Host": f"rebound.example:{port}"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": here, "Origin": "http://other.example"}, 403),
        ({"Host": here, "Origin": "null"}, 403),
        ({"Host": here, "Origin": f"https://{here}"}, 403),
        ({"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}, 200),
        ({"Host": f"[::1]:{port}"}, 200),
    ]
    async with aiohttp.ClientSession() as client:
        for given, code in headers:
            async with client.get(url, headers=given) as reply:
                assert reply.status == code, given
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(f"{url}/ws", headers={"Origin": "http://other.example"})
        assert refused.value.status == 403


def test_a_browser_on_this_machine_gets_the_same_app(tool: Tool) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words, pipe = tool.words("--serve", "--port", str(port)), subprocess.PIPE
    child = subprocess.Popen(words, stdout=pipe, stderr=subprocess.STDOUT, env=tool.env)
    try:
        page = b""
        while not page:
            assert child.poll() is None, child.communicate()[0]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as reply:
                    page, headers = reply.read(), reply.headers
            except OSError:
                time.sleep(0.05)
        assert b"<html" in page.lower()
        assert not re.findall(rb"(?:src|href)=.?(?:https?:)?//", page), "nothing from elsewhere"
        assert b"focusTerminal" in page, "keys need no click"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY"
        for path in re.findall(rb"(?:src|href)=.(/static/[^\"]+)", page):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path.decode()}") as reply:
                assert reply.read(1)
        asyncio.run(knock(port))
        asyncio.run(browse(port))
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    assert child.returncode == 130
    judged = (tool.folder / "labels" / "judgements" / "gold.jsonl").read_text()
    assert json.loads(judged)["flag"] is True
