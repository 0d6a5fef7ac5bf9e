"""A Flask service that streams its answer as server-sent events and remembers each session.

A session's earlier question is searched along with the next one, as chat memories do. What is
missing in a request it says one field at a time. ``python -m tests.bots.event_stream 9000``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from tests.bots.handbook import Section, search
from tests.bots.serving import Answer, BotServer, run

PAUSE = 0.002
"""Seconds between two words."""


def event(data: Any, name: str = "") -> str:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"


def words(hits: list[tuple[float, Section]]) -> Iterator[str]:
    documents = [
        {
            "doc": part.file,
            "breadcrumb": " » ".join(("Shop handbook", *part.headings)),
            "passage": part.text,
            "relevance": score,
        }
        for score, part in hits
    ]
    yield event({"documents": documents}, "sources")
    text = hits[0][1].text if hits else "Sorry, the handbook does not say."
    for word in text.split(" "):
        time.sleep(PAUSE)
        yield event({"type": "token", "delta": f"{word} "})
    facts = {"timing": {"search_ms": 1.5, "total_ms": 8.25}, "cost_usd": 0.0004}
    yield event({"type": "done", "refused": not hits, **facts})


def make(port: int = 0) -> BotServer:
    memory: dict[str, str] = {}

    def stream(body: Any, headers: Mapping[str, str]) -> Answer:
        for name in ("message", "session_id"):
            if not isinstance(body, dict) or not body.get(name):
                return Answer({"error": f"the field '{name}' is required"}, 400)
        query = f"{memory.get(body['session_id'], '')} {body['message']}"
        memory[body["session_id"]] = query
        return Answer(words(search(query)), 200, {"Content-Type": "text/event-stream"})

    return BotServer({("POST", "/assistant/stream"): stream}, port)


if __name__ == "__main__":
    run(make, int(sys.argv[1]))
