"""What a server that takes 300 requests a minute refuses, and how much of the 300 is used.

    python bench/bench_limits.py                # 3 ways, bot and judge side by side: 8 minutes
    python bench/bench_limits.py --seconds 70 --ways rpm

The server takes 300 in any 60 seconds and refuses the rest with 429 and Retry-After. ``rpm``: the
client is told with ``--rpm 300``. ``headers``: it is told nothing, and the server says what is
left. ``refusals``: nobody says anything. ``run_eval.py`` asks the bot as a whole process; the
judge's client stands for ``judge_answers.py``. Counted is what the server saw: refused in the first
ten seconds and after them, and the share of the allowance that was used from then on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from measuring import SCRIPTS, print_table

HERE = Path(__file__).resolve().parent
HEAD = ("client", "way", "asked", "refused at first", "refused later", "allowance used")
WAYS = ("rpm", "headers", "refusals")
CONCURRENCY = 16


@dataclass(frozen=True)
class Size:
    """A server's allowance, how long it is asked, and the seconds that are left out."""

    most: int
    window: float
    seconds: float
    first: float

    @property
    def rpm(self) -> float:
        return self.most * 60 / self.window


def server_words(way: str, judge: bool, size: Size) -> list[str]:
    words = [sys.executable, str(HERE / "slow_server.py"), "--latency", "200"]
    words += ["--most", str(size.most), "--window", str(size.window)]
    return [*words, *(["--judge"] if judge else []), *(["--headers"] if way == "headers" else [])]


def bot_words(url: str, folder: Path, calls: int, rpm: list[str]) -> list[str]:
    eval_set = folder / "set.jsonl"
    rows = ({"id": f"q{n:06d}", "question": f"Question {n}?"} for n in range(calls))
    eval_set.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [sys.executable, str(SCRIPTS / "run_eval.py"), "--api-url", url, "--quiet"]
    words += ["--eval-set", str(eval_set), "--results-dir", str(folder), "--run-id", "run"]
    return [*words, "--set", f"concurrency={CONCURRENCY}", "--set", "retries=9", *rpm]


def judge_words(url: str, calls: int, rpm: list[str]) -> list[str]:
    words = [sys.executable, str(HERE / "judge_client.py"), f"{url}/v1", "--calls", str(calls)]
    return [*words, "--concurrency", str(CONCURRENCY), *rpm]


def measure(judge: bool, way: str, size: Size) -> list[str]:
    """A row: ask for so many seconds, then stop the client and ask the server what it saw."""
    calls = int(size.rpm / 60 * size.seconds * 2) + size.most
    rpm = (
        (["--rpm", str(size.rpm)] if judge else ["--set", f"rpm={size.rpm}"])
        if way == "rpm"
        else []
    )
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryDirectory() as name,
        subprocess.Popen(
            server_words(way, judge, size),
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as server,
    ):
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        words = judge_words(url, calls, rpm) if judge else bot_words(url, Path(name), calls, rpm)
        client = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        threading.Event().wait(size.seconds + 4)  # 4: starting, which the server does not see
        client.kill()
        client.wait()
        log = json.loads(server.communicate("")[0])
    return row_of("judge" if judge else "run_eval", way, log, size)


def row_of(client: str, way: str, log: list[tuple[float, bool]], size: Size) -> list[str]:
    end = size.seconds
    early = sum(not taken for moment, taken in log if moment < size.first)
    late = sum(not taken for moment, taken in log if size.first <= moment < end)
    used = sum(taken for moment, taken in log if size.first <= moment < end)
    share = used / (size.most * (end - size.first) / size.window)
    asked = sum(moment < end for moment, _ in log)
    return [client, way, str(asked), str(early), str(late), f"{share:.1%}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=130.0, help="of a way (%(default)s)")
    parser.add_argument("--ways", default=",".join(WAYS), help="(%(default)s)")
    parser.add_argument("--tiny", action="store_true", help="40 in 2 s, for 3 s")
    options = parser.parse_args()
    size = Size(40, 2.0, 3.0, 1.0) if options.tiny else Size(300, 60.0, options.seconds, 10.0)
    rows = []
    for way in options.ways.split(","):
        with ThreadPoolExecutor(2) as pool:
            rows += list(pool.map(lambda judge, way=way: measure(judge, way, size), (False, True)))
    print(f"## A server that takes {size.most} requests in any {size.window:g} s")
    print_table(HEAD, rows)


if __name__ == "__main__":
    main()
