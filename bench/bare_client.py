"""The least that a client with requests can do: ask N questions with C threads, keep nothing.

python bench/bare_client.py http://127.0.0.1:8000 --calls 1000 --concurrency 32
"""

from __future__ import annotations

import argparse
import threading
from concurrent.futures import ThreadPoolExecutor

import requests


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    options = parser.parse_args()
    own = threading.local()

    def ask(number: int) -> str:
        if not hasattr(own, "session"):
            own.session = requests.Session()
            own.session.trust_env = False
        question = {"question": f"Question {number}?", "k": 10}
        url = f"{options.url}/api/v1/ask?debug=true"
        reply = own.session.post(url, json=question, timeout=60)
        reply.raise_for_status()
        text: str = reply.json()["answer"]
        return text

    with ThreadPoolExecutor(options.concurrency) as pool:
        answers = list(pool.map(ask, range(options.calls)))
    if not all(answers):
        raise SystemExit("an answer was empty")


if __name__ == "__main__":
    main()
