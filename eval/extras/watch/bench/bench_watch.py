"""What watching traces costs: a first look, a second one, one after more came, and looks killed -9.

    python eval/extras/watch/bench/bench_watch.py --mb 1000 --kills 40

Made data: answers of a bot as OpenInference's instrumentation of LlamaIndex writes them, four spans
each with five passages of about 600 characters, ten answers in a line of OTLP JSON. Each look is a
process of its own, as cron starts it; ``cheap`` looks at no text but answers (--check-share 0).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "bench"))

from measuring import ENVIRONMENT, Measured, measure, print_table, say

_WORDS = (
    "retriever index passage chunk answer question document search vector model window token score "
    "rank section heading vault note page option setting value number limit result query prompt "
    "user timeout retry cache file folder path name table column row key list tree node edge cost "
    "time memory disk network server client request response the a of to in is for with by from"
)
WORDS = _WORDS.split()
START = 1_772_323_200_000_000_000
"""2026-03-01 in nanoseconds."""

ANSWERS_A_LINE = 10
BETWEEN = 20_000_000_000
SAMPLE = 3000
"""Different answers; after these their texts come again, under other ids and times.
More than one step of a look reads, which looks at each text once."""


def text(rng: random.Random, sentences: int) -> str:
    return " ".join(" ".join(rng.choices(WORDS, k=13)).capitalize() + "." for _ in range(sentences))


def typed(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def spans(rng: random.Random) -> list[tuple[str, str, int, int, dict[str, Any]]]:
    """Name, parent, start and length in milliseconds, attributes of the spans of one answer."""
    question = "How does the " + text(rng, 1)[:60].lower() + "?"
    refuses = rng.random() < 0.05
    answer = "I could not find this in the documents." if refuses else text(rng, 4)
    passages = [text(rng, 8) for _ in range(5)]
    documents: dict[str, Any] = {}
    for number, passage in enumerate(passages):
        place = f"retrieval.documents.{number}.document"
        documents[f"{place}.id"] = f"{rng.getrandbits(64):016x}"
        documents[f"{place}.content"] = passage
        documents[f"{place}.score"] = rng.random()
        documents[f"{place}.metadata"] = json.dumps({"file_path": f"docs/page-{number}.md"})
    prompt = "Context information is below.\n" + "\n".join(passages) + f"\nQuestion: {question}"
    asked = {"input.value": question, "input.mime_type": "text/plain"}
    chain = {"openinference.span.kind": "CHAIN", **asked, "output.value": answer}
    llm = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "model-1",
        "input.value": json.dumps({"prompt": prompt}),
        "input.mime_type": "application/json",
        "llm.prompts.0": prompt,
        "output.value": answer,
        "llm.token_count.prompt": 900,
        "llm.token_count.completion": 80,
    }
    retriever = {"openinference.span.kind": "RETRIEVER", **asked, **documents}
    took = 1000 + int(rng.expovariate(1 / 300))
    return [
        ("retrieve", "query", 1, 40, retriever),
        ("llm", "synthesize", 60, 900, llm),
        ("synthesize", "query", 50, 930, chain),
        ("query", "", 0, took, chain),
    ]


def lines(first: int, seed: int = 0) -> Iterator[bytes]:
    """Lines of traces without end, from the trace of a number on."""
    rng = random.Random(seed)
    answers = [spans(rng) for _ in range(SAMPLE)]
    ready = [
        [
            (n, p, at, took, json.dumps([{"key": k, "value": typed(v)} for k, v in a.items()]))
            for n, p, at, took, a in answer
        ]
        for answer in answers
    ]
    number = first
    while True:
        written = []
        for _ in range(ANSWERS_A_LINE):
            trace = hashlib.md5(str(number).encode()).hexdigest()
            begin = START + number * BETWEEN
            for name, parent, at, took, attributes in ready[number % SAMPLE]:
                start = begin + at * 1_000_000
                parent_id = f"{trace[:12]}{parent[:4]:_<4}" if parent else ""
                written.append(
                    f'{{"traceId":"{trace}","spanId":"{trace[:12]}{name[:4]:_<4}","parentSpanId":'
                    f'"{parent_id}","name":"{name}","kind":1,"startTimeUnixNano":"{start}",'
                    f'"endTimeUnixNano":"{start + took * 1_000_000}","attributes":{attributes},'
                    f'"status":{{"code":1}}}}'
                )
            number += 1
        yield (
            '{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"scope":{},"spans":['
            + ",".join(written)
            + "]}]}]}\n"
        ).encode()


def append(path: Path, megabytes: float, first: int) -> int:
    """Add so much to a file; returns the number of the next trace."""
    size = 0
    with open(path, "ab") as file:
        for line in lines(first):
            file.write(line)
            size += len(line)
            first += ANSWERS_A_LINE
            if size >= megabytes * 1e6:
                return first
    return first


def command(folder: Path, index: Path, *words: str) -> list[str]:
    script = str(Path(__file__).resolve().parents[1] / "watch_traces.py")
    return [sys.executable, script, str(folder), "--index", str(index), "--json", *words]


def contents(index: Path) -> list[Any]:
    """All that figures are made of."""
    with sqlite3.connect(index) as database:
        return [
            database.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall()
            for table, columns in (
                ("traces", "key, day, session, applies, bad, latency, length"),
                ("spans", "key, span, offset"),
                ("counts", "*"),
            )
        ]


def kill_loop(folder: Path, index: Path, kills: int, seconds: float) -> tuple[int, bool]:
    """How many looks were killed at a random moment, and whether the end is as without."""
    rng, done = random.Random(1), 0
    for _ in range(kills):
        process = subprocess.Popen(
            command(folder, index, "--check-share", "0"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        time.sleep(rng.uniform(0.2, seconds))
        process.send_signal(signal.SIGKILL)
        done += process.wait() == -signal.SIGKILL
    measure(command(folder, index, "--check-share", "0"))
    whole = index.with_name("whole.sqlite")
    measure(command(folder, whole, "--check-share", "0"))
    return done, contents(index) == contents(whole)


def row(name: str, look: Measured) -> list[str]:
    read = json.loads(look.output)["read"]
    rate = read["bytes"] / 1e6 / look.cpu
    return [
        name,
        f"{read['bytes'] / 1e6:,.1f}",
        f"{read['traces']:,}",
        f"{look.cpu:.1f}",
        f"{rate:.0f}",
        f"{look.peak_mb:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=float, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="100 MB and five kills")
    parser.add_argument("--tiny", action="store_true", help="a few traces, to see that it runs")
    options = parser.parse_args()
    size, kills = (100.0, 5) if options.quick else (options.mb, options.kills)
    size, kills = (1.0, 1) if options.tiny else (size, kills)
    with tempfile.TemporaryDirectory() as name:
        folder, index = Path(name, "traces"), Path(name, "index.sqlite")
        folder.mkdir()
        say(f"writing {size:,.0f} MB of spans")
        following = append(folder / "spans.jsonl", size, 0)
        cheap = ("--check-share", "0")
        rows = [row("first look, cheap figures", measure(command(folder, index, *cheap)))]
        rows.append(row("second look", measure(command(folder, index, *cheap))))
        append(folder / "spans.jsonl", size / 100, following)
        rows.append(row("after 1 % more", measure(command(folder, index, *cheap))))
        checked = measure(command(folder, Path(name, "checked.sqlite")))
        rows.append(row("first look, 5 % checked", checked))
        print_table(["look", "MB read", "traces", "CPU s", "MB / CPU s", "peak MB"], rows)
        seconds = max(1.0, 1.5 * json.loads(checked.output)["read"]["bytes"] / 5e7)
        done, same = kill_loop(folder, Path(name, "killed.sqlite"), kills, seconds)
        print(f"{done} looks killed -9; then the index is {'the same' if same else 'ANOTHER'}.")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
