"""A bot on 127.0.0.1 that answers every question alike, each after the same time.

    python bench/slow_server.py --latency 50
    python bench/slow_server.py --latency 50 --judge     # a judge that says all are supported
    python bench/slow_server.py --most 300 --window 60   # refuses the 301st of any 60 s
    python bench/slow_server.py --most 300 --headers     # and says what is left

Prints its port, then serves until its stdin closes; then, where it refuses any, a line of JSON: of
each question the seconds since the first and whether it was taken. Answers have 10 chunks of 600
characters; a judge's reply has verdicts on 5 claims.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import deque
from typing import Any


def verdicts() -> dict[str, Any]:
    """A chat completion."""
    items = [{"id": str(n), "quote": "words " * 12, "verdict": "supported"} for n in range(1, 6)]
    message = {"role": "assistant", "content": json.dumps({"verdicts": items})}
    usage = {"prompt_tokens": 1200, "completion_tokens": 180, "total_tokens": 1380}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"model": "judge-2024-08-06", "choices": [choice], "usage": usage}


def answer() -> dict[str, Any]:
    """What the embedded bot would say."""
    chunks = [
        {
            "chunk_id": f"c{rank}",
            "doc_id": "a.md",
            "rel_path": "notes/a.md",
            "heading_path": "Guide > Part",
            "score_vector": 0.5,
            "score_lexical": 2.0,
            "score_final": 0.75,
            "text": "words " * 100,
            "rank": rank,
        }
        for rank in range(1, 11)
    ]
    return {
        "answer": "The lease ends at noon [1].",
        "references": [{"index": 1, "chunk_id": "c1", "rel_path": "notes/a.md"}],
        "retrieved": chunks,
        "abstained": False,
        "confidence": 0.9,
        "latency_ms": {"total": 50.0},
    }


def response(body: dict[str, Any], status: str = "200 OK", headers: str = "") -> bytes:
    """The bytes of a whole HTTP answer."""
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


class Allowance:
    """At most ``most`` questions in any ``window`` seconds; 0: as many as come."""

    def __init__(self, most: int, window: float, headers: bool) -> None:
        self.most, self.window, self.headers = most, window, headers
        self.taken: deque[float] = deque()
        self.log: list[tuple[float, bool]] = []

    def refusal(self) -> bytes | None:
        """The answer to a question that comes now and is too many."""
        if not self.most:
            return None
        now = time.monotonic()
        self._forget(now)
        taken = len(self.taken) < self.most
        self.log.append((now, taken))
        if taken:
            self.taken.append(now)
            return None
        wait = int(self.taken[0] + self.window - now) + 1
        body = {"error": {"message": "too many requests"}}
        return response(body, "429 Too Many Requests", f"Retry-After: {wait}\r\n")

    def _forget(self, now: float) -> None:
        while self.taken and self.taken[0] <= now - self.window:
            self.taken.popleft()

    def left(self) -> str:
        """What the headers of an answer say."""
        if not self.headers:
            return ""
        now = time.monotonic()
        self._forget(now)
        remaining = self.most - len(self.taken)
        reset = self.taken[0] + self.window - now if self.taken else 0.0
        return (
            f"x-ratelimit-limit-requests: {self.most}\r\n"
            f"x-ratelimit-remaining-requests: {remaining}\r\n"
            f"x-ratelimit-reset-requests: {reset:.3f}s\r\n"
        )

    def told(self) -> str:
        start = self.log[0][0] if self.log else 0.0
        return json.dumps([[round(moment - start, 4), taken] for moment, taken in self.log])


async def serve(latency: float, body: dict[str, Any], allowance: Allowance) -> None:
    whole = response(body)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = 0
                for line in head.split(b"\r\n"):
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                await reader.readexactly(length)
                # what a judge's client asks about the server itself is no question
                refused = allowance.refusal() if head.startswith(b"POST") else None
                if refused is None:
                    await asyncio.sleep(latency)
                    headers = allowance.left()
                    writer.write(response(body, headers=headers) if headers else whole)
                else:
                    writer.write(refused)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()
    if allowance.most:
        print(allowance.told(), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--latency", type=float, default=50.0, help="milliseconds")
    parser.add_argument("--judge", action="store_true", help="answer as a judge does")
    parser.add_argument("--most", type=int, default=0, help="questions taken in a window; 0: all")
    parser.add_argument("--window", type=float, default=60.0, help="seconds")
    parser.add_argument("--headers", action="store_true", help="say what is left")
    options = parser.parse_args()
    allowance = Allowance(options.most, options.window, options.headers)
    answered = verdicts() if options.judge else answer()
    asyncio.run(serve(options.latency / 1000, answered, allowance))
