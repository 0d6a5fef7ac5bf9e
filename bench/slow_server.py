"""A bot on 127.0.0.1 that answers every question alike, each after the same time.

    python bench/slow_server.py --latency 50
    python bench/slow_server.py --latency 50 --judge     # a judge that says all are supported

Prints its port, then serves until its stdin closes. Answers have 10 chunks of 600 characters;
a judge's reply has verdicts on 5 claims.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
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


def response(body: dict[str, Any]) -> bytes:
    """The bytes of a whole HTTP answer."""
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def serve(latency: float, reply: bytes) -> None:
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
                await asyncio.sleep(latency)
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--latency", type=float, default=50.0, help="milliseconds")
    parser.add_argument("--judge", action="store_true", help="answer as a judge does")
    options = parser.parse_args()
    body = verdicts() if options.judge else answer()
    asyncio.run(serve(options.latency / 1000, response(body)))
