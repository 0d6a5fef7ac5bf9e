"""Damaged files through the real scripts: how many end in a traceback.

    python bench/fuzz_files.py                  # 20,000 files over all readers: half an hour of CPU
    python bench/fuzz_files.py --files 500 --seed 7 --only trec --keep crashes

A small set is asked, scored, judged and exported first; its files and one for each other format are
the seeds. A damaged copy (bytes, tokens, lines, values of a JSON tree) goes through the main
function of each script that reads it. Every end but exit codes 0 to 3 is counted and printed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import SCRIPTS, print_table

ROOT = SCRIPTS.parents[1]
CASES = 6
HEAD = ("reader", "files", "exit 0", "exit 1", "exit 2", "exit 3", "tracebacks")

TOKENS = [
    *(
        b"",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\n\n",
        b"null",
        b"NaN",
        b"1e999",
        b"-1",
    ),
    *(b"9" * 30, b"{", b"}", b"[", b"]", b'"', b"\\ud800", b",", b":", b"=", b"\t", b"'", b"&a *a"),
    *(
        b"[" * 2_000,
        b'{"a":' * 300,
        b"true",
        b"[]",
        b"{}",
        b'""',
        b"0",
        b"\\",
        b"%",
        b"$(x)",
        b"\xe9",
    ),
]
VALUES: list[Any] = [
    *(None, True, 0, -1, 10**30, 1e308, 0.5, "", "x", "\u0000", "2024-13-45", [], {}, [[]], [None]),
    *(
        {"": None},
        [1, "a"],
        "a" * 5_000,
        {"id": {}},
        "../../etc",
        "1" * 400,
        "nan",
        "[1, 2",
        "{'a': 1}",
    ),
]

SPAN = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "t1",
                            "spanId": "s1",
                            "name": "chain",
                            "startTimeUnixNano": "1",
                            "endTimeUnixNano": "9",
                            "attributes": [
                                {
                                    "key": "openinference.span.kind",
                                    "value": {"stringValue": "CHAIN"},
                                },
                                {"key": "input.value", "value": {"stringValue": "Why?"}},
                                {"key": "output.value", "value": {"stringValue": "So."}},
                            ],
                        },
                        {
                            "traceId": "t1",
                            "spanId": "s2",
                            "parentSpanId": "s1",
                            "name": "retrieve",
                            "attributes": [
                                {
                                    "key": "openinference.span.kind",
                                    "value": {"stringValue": "RETRIEVER"},
                                },
                                {
                                    "key": "retrieval.documents.0.document.content",
                                    "value": {"stringValue": "A."},
                                },
                            ],
                        },
                    ]
                }
            ]
        }
    ]
}
SEEDS: dict[str, tuple[str, str]] = {
    "otel": ("spans.json", json.dumps(SPAN)),
    "langfuse": (
        "lf.json",
        json.dumps(
            [
                {
                    "id": "t1",
                    "input": {"question": "Why?"},
                    "output": "So.",
                    "observations": [
                        {"id": "o1", "type": "SPAN", "name": "retrieve", "output": ["A."]}
                    ],
                }
            ]
        ),
    ),
    "langsmith": (
        "ls.jsonl",
        json.dumps(
            {
                "id": "r1",
                "run_type": "chain",
                "inputs": {"question": "Why?"},
                "outputs": {
                    "answer": "So.",
                    "documents": [{"page_content": "A.", "metadata": {"source": "a"}}],
                },
            }
        ),
    ),
    "openai": (
        "chats.jsonl",
        json.dumps(
            {
                "messages": [
                    {"role": "user", "content": "Why?"},
                    {"role": "assistant", "content": "So."},
                    {"role": "user", "content": "And?"},
                ]
            }
        ),
    ),
    "ragtruth": (
        "response.jsonl",
        json.dumps(
            {
                "id": "1",
                "source_id": "7",
                "model": "m",
                "response": "So it is.",
                "labels": [{"start": 0, "end": 2, "text": "So", "label_type": "Evident Conflict"}],
                "split": "test",
            }
        ),
    ),
    "json": (
        "rows.yaml",
        "- id: q1\n  question: Why?\n  reference_answer: So.\n  answer: So.\n"
        "  contexts: [A., B.]\n",
    ),
    "ragas": (
        "rows.csv",
        "user_input,response,retrieved_contexts,reference\nWhy?,So.,\"['A.', 'B.']\",So.\n",
    ),
    "promptfoo": (
        "config.yaml",
        "prompts: [p]\nproviders: [x]\ntests:\n  - vars: {query: Why?}\n"
        "    assert:\n      - {type: contains, value: So}\n",
    ),
}
EXPORTS = {
    "trec": "trec",
    "json": "rows.jsonl",
}


@dataclass(frozen=True)
class Reader:
    """A file that is damaged, what else must be there, and the script that reads it."""

    name: str
    path: str
    """Of the file below the folder of the seeds."""
    folder: str
    """What is copied with it, below the same."""
    words: tuple[str, ...]
    """Script and arguments; ``{}`` is the damaged file, ``{folder}`` where the copy is."""


def call(words: Sequence[str]) -> tuple[int, str]:
    """The exit code of a script in this process and "", or -1 and the traceback."""
    main = importlib.import_module(words[0]).main
    with contextlib.ExitStack() as stack:
        null = stack.enter_context(open(os.devnull, "w"))
        stack.enter_context(contextlib.redirect_stdout(null))
        stack.enter_context(contextlib.redirect_stderr(null))
        try:
            main(list(words[1:]), prog_name=f"{words[0]}.py")
        except SystemExit as end:
            return int(end.code or 0), ""
        except BaseException:
            return -1, traceback.format_exc()
    return 0, ""


def leave_out_missing_formats() -> None:
    """The formats of an extra that this copy lacks."""
    there = importlib.import_module("formats").all_formats()
    for of_format in (SEEDS, EXPORTS):
        for name in of_format.keys() - there.keys():
            del of_format[name]


def prepare(seeds: Path) -> None:
    """A run with all its files, and a file of each format."""
    lines = (ROOT / "eval_set.jsonl").read_bytes().splitlines(keepends=True)
    (seeds / "eval_set.jsonl").write_bytes(b"".join(lines[:CASES]))
    results = ("--results-dir", str(seeds / "results"))
    of_set = ("--eval-set", str(seeds / "eval_set.jsonl"))
    for run in ("base", "new"):
        must(
            [
                "run_eval",
                "--api-url",
                "demo",
                "--set=lexical_only=true",
                "--store-full-text",
                "--run-id",
                run,
                *results,
                *of_set,
            ]
        )
        must(["eval_suite", "--run", run, *results, *of_set])
    must(
        [
            "judge_answers",
            "--run",
            "new",
            "--judge",
            "local",
            "--metrics",
            "groundedness",
            "--cache-dir",
            str(seeds / "cache"),
            *results,
            *of_set,
        ]
    )
    for name, target in EXPORTS.items():
        output = str(seeds / "exports" / target)
        must(
            ["convert_data", "export", name, "--run", "new", "--output", output, *results, *of_set]
        )
    for name, (file, text) in SEEDS.items():
        (seeds / name).mkdir()
        (seeds / name / file).write_text(text)
    settings = seeds / "settings"
    settings.mkdir()
    for path in (
        ROOT / "eval/gates.toml",
        ROOT / "eval/targets.toml",
        ROOT / "eval/profiles/default.toml",
    ):
        shutil.copy(path, settings)
    answer = {"answer": "So.", "sources": [{"title": "a.md", "text": "A."}], "id": 7}
    (settings / "answer.json").write_text(json.dumps(answer))
    (settings / "answer.txt").write_text(
        'data: {"answer": "So"}\n\ndata: {"answer": "."}\n\ndata: [DONE]\n\n'
    )
    (settings / "curl.txt").write_text(
        'curl http://h/ask -H \'X-A: b\' -d \'{"q": "Why?", "n": 3}\''
    )


def must(words: list[str]) -> None:
    code, fault = call(words)
    if code not in (0, 1):
        sys.exit(f"{' '.join(words)} ended with {code}\n{fault}")


def readers(seeds: Path) -> list[Reader]:
    """All readers with their seeds."""
    found: list[Reader] = []
    no_bot = ("--api-url", "http://127.0.0.1:9")

    def add(name: str, path: str, folder: str, *words: str) -> None:
        found.append(Reader(name, path, folder, words))

    for name, (file, _) in SEEDS.items():
        add(
            f"import {name} {file}",
            f"{name}/{file}",
            name,
            "convert_data",
            "import",
            name,
            "{}",
            "--output",
            "{folder}/out",
        )
    for name, target in EXPORTS.items():
        whole = seeds / "exports" / target
        for path in sorted(whole.rglob("*")) if whole.is_dir() else [whole]:
            if path.is_file():
                inner = str(path.relative_to(seeds))
                source = {
                    "trec": [
                        f"{{folder}}/exports/trec/{n}"
                        for n in ("qrels.txt", "run.txt", "topics.tsv")
                    ],
                }.get(name, ["{}"])
                folder = f"exports/{name}" if whole.is_dir() else inner
                add(
                    f"import {name} {path.name}",
                    inner,
                    folder,
                    "convert_data",
                    "import",
                    name,
                    *source,
                    "--output",
                    "{folder}/out",
                )
    add(
        "map",
        "json/rows.yaml",
        "json",
        "convert_data",
        "import",
        "json",
        "{}",
        "--map",
        "question=question",
        "--map",
        "answer=join(' ', contexts)",
        "--output",
        "{folder}/out",
    )
    add("set", "eval_set.jsonl", "eval_set.jsonl", "label_eval", "--validate", "--eval-set", "{}")
    add(
        "set, asked",
        "eval_set.jsonl",
        "eval_set.jsonl",
        "run_eval",
        *no_bot,
        "--eval-set",
        "{}",
        "--results-dir",
        "{folder}/results",
    )
    add(
        "answers",
        "results/new/results.jsonl",
        "",
        "run_eval",
        "--from-jsonl",
        "{}",
        "--run-id",
        "own",
        "--eval-set",
        "{folder}/eval_set.jsonl",
        "--results-dir",
        "{folder}/results",
    )
    rest = ("--results-dir", "{folder}/results", "--eval-set", "{folder}/eval_set.jsonl")
    scripts: dict[str, list[tuple[str, ...]]] = {
        "results.jsonl": [
            ("score_retrieval", "--run", "new"),
            ("score_pipeline", "--run", "new"),
            ("report_run", "--run", "new", "--format", "html"),
        ],
        "config.json": [
            ("score_retrieval", "--run", "new"),
            ("compare_runs", "base", "new"),
            ("gate_run", "--run", "new", "--baseline", "base"),
        ],
        "metrics.json": [
            ("compare_runs", "base", "new"),
            ("gate_run", "--run", "new"),
            ("gate_run", "--run", "new", "--baseline", "base"),
        ],
        "scores/retrieval.jsonl": [("compare_runs", "base", "new"), ("report_run", "--run", "new")],
        "scores/groundedness.jsonl": [("report_run", "--run", "new", "--format", "md")],
        "scores/judged.jsonl": [("compare_runs", "base", "new")],
        "verdicts.jsonl": [
            (
                "judge_answers",
                "--run",
                "new",
                "--judge",
                "local",
                "--metrics",
                "groundedness",
                "--cache-dir",
                "{folder}/cache",
            ),
            ("report_run", "--run", "new"),
        ],
    }
    for file, calls in scripts.items():
        for words in calls:
            own = rest[:2] if words[0] in ("gate_run",) else rest
            add(f"{file}: {words[0]}", f"results/new/{file}", "", *words, *own)
    add("metrics.json: track", "results/new/metrics.json", "", "track_metrics", "{}", *rest[:2])
    for path in sorted((seeds / "cache").glob("*.jsonl")):
        offline = ("judge_answers", "--run", "new", "--offline", "--cache-dir", "{folder}/cache")
        add(f"cache {path.name}", f"cache/{path.name}", "cache", *offline, *rest)
    add(
        "gates.toml",
        "settings/gates.toml",
        "",
        "gate_run",
        "--run",
        "new",
        "--gates",
        "{}",
        *rest[:2],
    )
    add(
        "targets.toml",
        "settings/targets.toml",
        "",
        "eval_suite",
        "--run",
        "new",
        "--targets",
        "{}",
        *rest,
    )
    add(
        "profile",
        "settings/default.toml",
        "settings",
        "run_eval",
        *no_bot,
        "--profile",
        "{}",
        "--limit",
        "1",
        "--results-dir",
        "{folder}/results",
    )
    for file in ("answer.json", "answer.txt"):
        add(
            file,
            f"settings/{file}",
            "settings",
            "connect_bot",
            "http://h/ask",
            "--from-response",
            "{}",
            "--dry-run",
        )
    add(
        "curl",
        "settings/curl.txt",
        "settings",
        "connect_bot",
        "--curl",
        "@{}",
        "--from-response",
        "{folder}/settings/answer.json",
        "--dry-run",
    )
    return found


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A copy with one to four damages."""
    for _ in range(rng.randrange(1, 5)):
        data = rng.choice(DAMAGES)(data, rng)
    return data


def _bytes(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(2) :]


def _token(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at + rng.choice((0, 1, 5)) :]


def _span(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    end = min(end, start + 200)
    return data[:start] + data[start:end] * rng.choice((0, 2)) + data[end:]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
    return b"".join(lines + [rng.choice(lines)] * rng.randrange(2))


def _value(data: bytes, rng: random.Random) -> bytes:
    """Another value, or another key, somewhere in a line of JSON or in the document."""
    lines = data.splitlines(keepends=True) or [b""]
    at = rng.randrange(len(lines))
    for text, start, end in ((lines[at], at, at + 1), (data, 0, len(lines))):
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            continue
        holder = [tree]
        places: list[tuple[Any, Any]] = [(holder, 0)]
        for box, key in places:
            inner = box[key]
            if isinstance(inner, dict | list):
                keys = inner if isinstance(inner, dict) else range(len(inner))
                places += [(inner, each) for each in keys]
        box, key = rng.choice(places)
        if isinstance(box, dict) and rng.random() < 0.3:
            box[rng.choice(("", "id", "text", str(key) + "x"))] = box.pop(key)
        else:
            box[key] = rng.choice(VALUES)
        return (
            b"".join(lines[:start]) + json.dumps(holder[0]).encode() + b"\n" + b"".join(lines[end:])
        )
    return _token(data, rng)


DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [
    _bytes,
    _token,
    _span,
    _cut,
    _lines,
    _value,
    _value,
    _value,
]


def fuzz(reader: Reader, seeds: Path, rng: random.Random) -> tuple[int, str, bytes]:
    """One damaged file through its script: exit code, traceback, the file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = seeds / reader.folder
        if source.is_dir():
            shutil.copytree(
                source,
                folder / reader.folder,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("*.lock"),
            )
        else:
            (folder / reader.folder).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / reader.folder)
        path = folder / reader.path
        data = damaged(path.read_bytes(), rng)
        path.write_bytes(data)
        words = [w.replace("{folder}", name).replace("{}", str(path)) for w in reader.words]
        return *call(words), data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so many")
    parser.add_argument("--only", default="", help="readers whose name has this in it")
    parser.add_argument("--keep", type=Path, help="a folder for the files that end in a traceback")
    options = parser.parse_args()
    sys.path.insert(0, str(SCRIPTS))
    os.environ["RAG_EVAL_CONFIG"] = os.devnull
    leave_out_missing_formats()
    end = time.monotonic() + 60 * options.minutes
    counts: dict[str, Counter[int]] = {}
    faults: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        seeds = Path(name)
        prepare(seeds)
        chosen = [reader for reader in readers(seeds) if options.only in reader.name]
        if not chosen:
            parser.error(f"--only {options.only}: no reader of this copy has this in its name")
        for number in range(options.files):
            if time.monotonic() > end:
                break
            reader = chosen[number % len(chosen)]
            rng = random.Random(f"{options.seed} {number}")
            code, fault, data = fuzz(reader, seeds, rng)
            counts.setdefault(reader.name, Counter())[code if 0 <= code <= 3 else -1] += 1
            if not 0 <= code <= 3:
                last = [line for line in fault.splitlines() if line.startswith("  File")][-1:]
                place = f"{reader.name}: {''.join(last).strip()}: {fault.splitlines()[-1:]}"
                if not faults[place] and options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (
                        options.keep / f"{options.seed}-{number}-{Path(reader.path).name}"
                    ).write_bytes(data)
                    (options.keep / f"{options.seed}-{number}.txt").write_text(f"{reader}\n{fault}")
                faults[place] += 1
    rows = [
        (name, str(count.total()), *(str(count[code]) for code in (0, 1, 2, 3, -1)))
        for name, count in counts.items()
    ]
    total = sum(counts.values(), Counter())
    rows.append(("all", str(total.total()), *(str(total[code]) for code in (0, 1, 2, 3, -1))))
    print_table(HEAD, rows)
    for place, count in faults.most_common():
        print(f"{count} × {place}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
