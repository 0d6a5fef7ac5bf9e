"""The least that a client can do: ask N questions with C calls in flight, keep nothing.

    python bench/bare_client.py http://127.0.0.1:8000 --calls 1000 --concurrency 32
    python bench/bare_client.py http://127.0.0.1:8000 --library aiohttp
    python bench/bare_client.py http://127.0.0.1:8000 --library transport

``requests``: a session a thread. ``aiohttp``: one event loop and no threads. ``transport``: the
toolkit's own, in its loop.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "eval" / "scripts"))

PATH = "/api/v1/ask?debug=true"


def question(number: int) -> dict[str, object]:
    return {"question": f"Question {number}?", "k": 10}


def with_requests(url: str, calls: int, concurrency: int) -> list[str]:
    import requests

    own = threading.local()

    def ask(number: int) -> str:
        if not hasattr(own, "session"):
            own.session = requests.Session()
            own.session.trust_env = False
        reply = own.session.post(url + PATH, json=question(number), timeout=60)
        reply.raise_for_status()
        text: str = reply.json()["answer"]
        return text

    with ThreadPoolExecutor(concurrency) as pool:
        return list(pool.map(ask, range(calls)))


def with_aiohttp(url: str, calls: int, concurrency: int) -> list[str]:
    import aiohttp

    numbers = iter(range(calls))
    answers: list[str] = []

    async def ask(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            async with session.post(url + PATH, json=question(number)) as reply:
                reply.raise_for_status()
                answers.append((await reply.json())["answer"])

    async def ask_all() -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(*(ask(session) for _ in range(concurrency)))

    asyncio.run(ask_all())
    return answers


def with_transport(url: str, calls: int, concurrency: int) -> list[str]:
    from clients.http import ask_all
    from clients.transport import HttpTransport

    transport = HttpTransport(url)
    headers = {"Content-Type": "application/json"}

    async def ask(number: int) -> str:
        body = json.dumps(question(number)).encode()
        reply = await transport.send("POST", url + PATH, headers, body, 60)
        text: str = json.loads(reply.body)["answer"]
        return text

    answers = list(ask_all(range(calls), ask, concurrency, threading.Event()))
    transport.close()
    return answers


LIBRARIES = {"requests": with_requests, "aiohttp": with_aiohttp, "transport": with_transport}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--library", choices=LIBRARIES, default="requests")
    options = parser.parse_args()
    answers = LIBRARIES[options.library](options.url, options.calls, options.concurrency)
    if len(answers) != options.calls or not all(answers):
        raise SystemExit("an answer was empty")


if __name__ == "__main__":
    main()
