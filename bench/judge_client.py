"""Judge N tasks with C threads, against a server that always gives the same verdicts.

    python bench/judge_client.py http://127.0.0.1:8000/v1 --calls 1000 --concurrency 32

Prompts have 4,000 characters. ``--bare`` does the least that a client with requests can do: no
checks, nothing kept. Ends with an error unless every task has a verdict.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "eval" / "scripts"))

FIELDS = ("id", "quote", "verdict")
ITEM = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in FIELDS},
    "required": list(FIELDS),
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"verdicts": {"type": "array", "items": ITEM}},
    "required": ["verdicts"],
    "additionalProperties": False,
}


def messages(number: int) -> tuple[dict[str, str], ...]:
    text = f"Claims of case {number}. " + "words " * 660
    return ({"role": "system", "content": "You judge."}, {"role": "user", "content": text})


def bare(url: str, calls: int, concurrency: int) -> int:
    import requests

    own = threading.local()

    def ask(number: int) -> int:
        if not hasattr(own, "session"):
            own.session = requests.Session()
            own.session.trust_env = False
        body = {"model": "judge", "messages": messages(number), "max_tokens": 500}
        reply = own.session.post(f"{url}/chat/completions", json=body, timeout=60)
        reply.raise_for_status()
        content = reply.json()["choices"][0]["message"]["content"]
        return len(json.loads(content)["verdicts"])

    with ThreadPoolExecutor(concurrency) as pool:
        return sum(count == 5 for count in pool.map(ask, range(calls)))


def judge(
    url: str, calls: int, concurrency: int, cache: Path | None, rerun: bool, rpm: float | None
) -> int:
    from clients.http import ask_all
    from clients.limits import CallLimits
    from judging.cache import CachedJudge, VerdictCache
    from judging.cost import JudgingTotals
    from judging.protocols import ServerCapabilities
    from judging.server import HttpJudge
    from judging.types import JudgeTask, PromptId

    prompt = PromptId("bench", 1, "0" * 64)

    def complete(reply: Any) -> list[str]:
        wanted = [str(number) for number in range(1, 6)]
        return [] if [one["id"] for one in reply["verdicts"]] == wanted else ["every id once"]

    def task(number: int) -> JudgeTask:
        sent = messages(number)
        return JudgeTask("bench", prompt, sent, sent, SCHEMA, complete, {}, max_tokens=500)

    stop = threading.Event()
    limits = CallLimits(concurrency, rpm)
    client = HttpJudge(url, "judge-2024-08-06", stop=stop, limits=limits)
    client.identify()
    client.assume(ServerCapabilities("json_schema"))
    front = client if cache is None else CachedJudge(client, VerdictCache(cache))
    totals = JudgingTotals()
    for verdict in ask_all(map(task, range(calls)), front.ask, concurrency, stop):
        totals.add(verdict)
    if rerun and totals.cached != calls:
        raise SystemExit(f"only {totals.cached} of {calls} came from the cache")
    return totals.verdicts - totals.failures.total()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--bare", action="store_true", help="requests alone")
    parser.add_argument("--cache", type=Path, help="keep the verdicts in this file")
    parser.add_argument("--rpm", type=float, help="most requests a minute")
    parser.add_argument("--rerun", action="store_true", help="all must come from the cache")
    options = parser.parse_args()
    if options.bare:
        sound = bare(options.url, options.calls, options.concurrency)
    else:
        sound = judge(
            options.url,
            options.calls,
            options.concurrency,
            options.cache,
            options.rerun,
            options.rpm,
        )
    if sound != options.calls:
        raise SystemExit(f"{sound} sound verdicts of {options.calls}")


if __name__ == "__main__":
    main()
