"""What browse_runs.py costs on a run of 10,000 cases: first frame, keys, memory, in a real pty.

In: nothing; it makes a set, a run with ten cut chunks a case, and three score files in a temporary
folder (about 80 MB for 10,000 cases). Out: a table, or JSON with --json; exit 1 when a budget
does not hold.

    python bench/bench_browse.py
    python bench/bench_browse.py --cases 100000 --json

Budgets are CPU milliseconds of the process (all threads), so that other work on the machine does
not count, on one where the smallest Textual app needs 171 ms to its first frame; on a slower or
crowded one they are stretched by that app's time. Wall times are printed beside them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_labeller import MINIMAL_APP, MINIMAL_START_MS, start_ms
from pseudo_terminal import PseudoTerminal

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "eval" / "scripts" / "browse_runs.py"
CHUNKS, CHARACTERS, KEYS = 10, 200, 30
LEAVE = b"\x11"  # Ctrl-Q: from whatever screen a crowded machine has left open
FIRST_FRAME_MS, KEY_MS, RSS_MB = 880.0, 9.0, 150.0
CATEGORIES = ("factual", "reasoning", "multi_hop", "general")
TEXT = "Audit events are kept for thirty days, and the owner of a tenant can extend this once. "


def make_data(folder: Path, cases: int) -> None:
    """Write eval_set.jsonl and one scored run."""
    run = folder / "results" / "bench"
    (run / "scores").mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"schema": 1, "run_id": "bench"}))
    chunks = json.dumps(
        [
            {
                "chunk_id": f"c{rank}",
                "doc_id": f"guide/part{rank}.md",
                "rel_path": f"guide/part{rank}.md",
                "heading_path": f"Part {rank} > Section",
                "score_vector": 1 / rank,
                "score_lexical": 9 / rank,
                "score_final": 1 / rank,
                "text": (TEXT * 3)[:CHARACTERS],
                "text_length": 1200,
                "rank": rank,
            }
            for rank in range(1, CHUNKS + 1)
        ]
    )
    claims = json.dumps(
        [{"text": TEXT, "span": [0, 87], "supported": True, "score": 0.9, "chunk_id": "c1"}] * 4
    )
    names = [
        f"{name}@{k}" for name in ("recall", "precision", "ndcg", "map") for k in (1, 3, 5, 10)
    ]
    with (
        open(folder / "eval_set.jsonl", "w") as eval_set,
        open(run / "results.jsonl", "w") as results,
        open(run / "scores" / "retrieval.jsonl", "w") as retrieval,
        open(run / "scores" / "groundedness.jsonl", "w") as groundedness,
        open(run / "scores" / "pipeline.jsonl", "w") as pipeline,
    ):
        for number in range(cases):
            case_id = f"q-{number:06d}"
            question = f"How long are audit logs of tenant {number} kept, and who can extend it?"
            case = {"id": case_id, "question": question, "category": CATEGORIES[number % 4]}
            eval_set.write(json.dumps({**case, "tags": [f"t{number % 7}"]}) + "\n")
            results.write(
                f'{{"schema":1,"test_case_id":"{case_id}","question":"{question}","status":"ok",'
                f'"answer":"{TEXT * 4}","retrieved":{chunks},"abstained":false,"repeat":0,'
                f'"latency_ms":{{"retrieve":3.5,"total":{number % 997}.5}}}}\n'
            )
            head = f'{{"case_id":"{case_id}","repeat":0,"status":"scored","scores":'
            scores = dict.fromkeys(names, number * 7 % 11 / 10) | {"mrr": number % 10 / 10}
            evidence = '"evidence":{"match":"anchor","found":[1],"hits":[1,2,3]}'
            retrieval.write(f"{head}{json.dumps(scores)},{evidence}}}\n")
            scores = {"claim_support_rate": number % 5 / 4, "numeric_fabrications": 0.0}
            groundedness.write(f'{head}{json.dumps(scores)},"evidence":{{"claims":{claims}}}}}\n')
            pipeline.write(f'{head}{{"pass":{float(number % 3 > 0)}}}}}\n')


def command(folder: Path) -> list[str]:
    """The script on the made data."""
    argv = [sys.executable, str(SCRIPT), "bench", "--eval-set", str(folder / "eval_set.jsonl")]
    return [*argv, "--results-dir", str(folder / "results")]


def first_frames(folder: Path, rounds: int) -> dict[str, float]:
    """Medians to the first frame with cases in it: wall and CPU milliseconds."""
    walls, cpus = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        with PseudoTerminal(command(folder), columns=160, rows=48, cwd=folder) as terminal:
            terminal.wait_for(b"q-000010")
            walls.append((time.perf_counter() - begin) * 1000)
            cpus.append(terminal.cpu_ms())
    return {"wall_ms": statistics.median(walls), "cpu_ms": statistics.median(cpus)}


def measure(folder: Path, cases: int, presses: int) -> dict[str, Any]:
    """Open the run once and press each key `presses` times: median and worst CPU ms a key."""
    found: dict[str, Any] = {}
    few = max(1, presses // 6)
    with PseudoTerminal(command(folder), columns=160, rows=48, cwd=folder) as terminal:
        terminal.wait_for(f"{cases:,} cases,".encode(), 120)
        while terminal.press(b"").cpu_ms > 20:
            pass  # the start goes on
        for name, keys in (
            ("down", [b"j"] * presses),
            ("up", [b"k"] * presses),
            ("page", [b"\x1b[6~"] * presses),
            ("last, first", [b"G", b"\x1b[H"] * few),
            ("next failing", [b"}"] * presses),
            ("case and back", [b"\r", b"q"] * few),  # not Esc: it waits for the rest of a sequence
            ("failing only, all", [b"F"] * 2 * few),
        ):
            costs = [terminal.press(key).cpu_ms for key in keys]
            found[name] = {"median_ms": statistics.median(costs), "worst_ms": max(costs)}
        found["rss_mb"] = terminal.rss_mb()
        terminal.write(LEAVE)
        found["exit_code"] = terminal.wait()
    return found


MOVES = ("down", "up", "page", "last, first", "next failing")


def over_budget(found: dict[str, Any]) -> list[str]:
    """Sentences for what took too long or too much."""
    slower = found["slower"]
    over = []
    if found["first_frame"]["cpu_ms"] > FIRST_FRAME_MS * slower:
        over.append(f"first frame {found['first_frame']['cpu_ms']:.0f} ms CPU")
    over += [
        f"{name}: {found[name]['median_ms']:.1f} ms CPU a key"
        for name in MOVES
        if found[name]["median_ms"] > KEY_MS * slower
    ]
    if found["rss_mb"] > RSS_MB:
        over.append(f"RSS {found['rss_mb']:.0f} MB, budget {RSS_MB:.0f}")
    return over


def main() -> int:
    """Measure at 160x48 and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--presses", type=int, default=KEYS, help="of each key (%(default)s)")
    parser.add_argument("--starts", type=int, default=5, help="of the smallest app (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_data(folder, given.cases)
        smallest = [
            start_ms([sys.executable, "-c", MINIMAL_APP], b"ready") for _ in range(given.starts)
        ]
        found = measure(folder, given.cases, given.presses)
        found["first_frame"] = first_frames(folder, given.rounds)
        found["results_mb"] = (folder / "results/bench/results.jsonl").stat().st_size / 1e6
    found["slower"] = max(1.0, statistics.median(smallest) / MINIMAL_START_MS)
    found["over"] = over_budget(found)
    if given.json:
        print(json.dumps(found))
        return 1 if found["over"] else 0
    frame = found["first_frame"]
    print(f"machine: {found['slower']:.2f} times the CPU of the one that the budgets were set on")
    print(f"{given.cases} cases, results.jsonl {found['results_mb']:.0f} MB")
    print("\n| what | median | worst | budget |\n|---|--:|--:|--:|")
    print(f"| first frame, CPU ms | {frame['cpu_ms']:.0f} | | {FIRST_FRAME_MS:.0f} |")
    print(f"| first frame, wall ms | {frame['wall_ms']:.0f} | | |")
    for name, cost in found.items():
        if isinstance(cost, dict) and "worst_ms" in cost:
            budget = f"{KEY_MS:.0f}" if name in MOVES else ""
            print(
                f"| {name}, CPU ms | {cost['median_ms']:.1f} | {cost['worst_ms']:.1f} | {budget} |"
            )
    print(f"| RSS, MB | {found['rss_mb']:.0f} | | {RSS_MB:.0f} |\n")
    print("\n".join(found["over"]) or "every budget holds")
    return 1 if found["over"] else 0


if __name__ == "__main__":
    sys.exit(main())
