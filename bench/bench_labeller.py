"""What a key costs in the labelling tool: CPU, bytes and frames, on the real script in a real pty.

In: nothing; it makes a set of 10,000 questions and a run with 20 chunks of 2,000 characters for the
first of them, in a temporary folder. Out: a table, or JSON with --json.

    python bench/bench_labeller.py
    python bench/bench_labeller.py --json

The budgets are CPU milliseconds on a machine where the smallest Textual app needs 171 ms CPU to its
first frame. On a slower one (or one crowded by others) they are stretched by that app's time, which
is measured and printed; on a faster one they stay.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pseudo_terminal import Cost, PseudoTerminal

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "eval" / "scripts" / "label_eval.py"
QUESTIONS, WITH_CHUNKS, CHUNKS, CHARACTERS = 10_000, 60, 20, 2_000
MINIMAL_START_MS = 171.0
MINIMAL_APP = """
from textual.app import App
from textual.widgets import Static
class Smallest(App):
    def compose(self):
        yield Static("ready")
Smallest().run()
"""
BUDGETS = {
    "move": 5.0,
    "move_with_text": 15.0,
    "mark": 5.0,
    "digit": 5.0,
    "next_question": 25.0,
    "confirm": 25.0,
    "start": 450.0,
}
MAX_FRAMES, MAX_BYTES, MAX_RSS_MB = 2, 12_000, 80.0
KEYS = 30
# Common words first, as in real text: a question's words are a small part of a passage.
WORDS = (  # noqa: SIM905
    "the of and a to in is for on that with as by it are this be from at or an which can if all "
    "not you will when each but one use may only has also other set time their than there after "
    "account region report member invoice window backup schedule quota signing token rotation "
    "replica operator console retention tenant billing export import policy workspace project "
    "storage limit request response header timeout retry queue worker cluster index snapshot "
    "restore archive cellar folder document permission role owner group audit event filter alert"
).split()


def make_data(folder: Path, count: int) -> None:
    """Write eval_set.jsonl and one run with full chunk texts."""
    draw = random.Random(7)

    def text(length: int) -> str:
        words: list[str] = []
        size = 0
        while size < length:
            word = WORDS[min(int(draw.expovariate(1 / 30)), len(WORDS) - 1)]
            if not words or words[-1].endswith("."):
                word = word.capitalize()
            if draw.random() < 0.08:
                word += "."
            words.append(word)
            size += len(word) + 1
        return " ".join(words)[:length]

    ids = [f"q-{number:05d}" for number in range(count)]
    questions = {case_id: f"How is {text(60)} kept for item {case_id}?" for case_id in ids}
    with (folder / "eval_set.jsonl").open("w", encoding="utf-8") as file:
        for case_id, question in questions.items():
            case = {"id": case_id, "question": question, "category": "factual"}
            file.write(json.dumps(case) + "\n")
    run = folder / "results" / "20250101-000000-bench"
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"schema": 1, "run_id": run.name}))
    with (run / "results.jsonl").open("w", encoding="utf-8") as file:
        for case_id in ids[:WITH_CHUNKS]:
            chunks = [
                {
                    "chunk_id": f"{case_id}-{rank}",
                    "rel_path": f"guide/part{rank}.md",
                    "heading_path": f"Part {rank} > Section",
                    "score_final": 1 / rank,
                    "text": text(CHARACTERS),
                    "rank": rank,
                }
                for rank in range(1, CHUNKS + 1)
            ]
            result = {"schema": 1, "test_case_id": case_id, "question": questions[case_id]}
            file.write(json.dumps({**result, "status": "ok", "retrieved": chunks}) + "\n")


def start_ms(argv: list[str], shown: bytes) -> float:
    """CPU of starting a program until it has shown something."""
    with PseudoTerminal(argv) as terminal:
        terminal.wait_for(shown)
        return terminal.cpu_ms()


def command(folder: Path) -> list[str]:
    """The script on the made data."""
    argv = [sys.executable, str(SCRIPT), "--eval-set", str(folder / "eval_set.jsonl")]
    argv += ["--results-dir", str(folder / "results"), "--labels-dir", str(folder / "labels")]
    return [*argv, "--from-run", "latest", "--seed", "1"]


def measure(folder: Path, columns: int, rows: int, presses: int) -> dict[str, Any]:
    """Start the script once, press keys, and return medians: ms, bytes and frames a key."""
    argv = command(folder)
    found: dict[str, Any] = {}
    env = {"RAG_EVAL_CONFIG": None, "EDITOR": "true"}
    with PseudoTerminal(argv, columns=columns, rows=rows, env=env, cwd=folder) as terminal:
        terminal.wait_for(b"lines 1-")
        start = terminal.cpu_ms()
        terminal.read(0.5)
        found["start"] = {"cpu_ms": start, "size": 0, "frames": 0}
        # Every chunk of one question is read first: a first visit also notes that it was seen.
        first = [terminal.press(key) for key in [b"j"] * (presses // 2) + [b"k"] * (presses // 2)]
        found["move_with_text"] = _medians(first)
        found["mark"] = _medians(terminal.press(b" ") for _ in range(presses))
        found["digit"] = _medians(terminal.press(b"3") for _ in range(presses))
        found["next_question"] = _medians(
            terminal.press(b"l") for _ in range(min(presses, WITH_CHUNKS - 2))
        )
        confirmed = []
        for _ in range(min(presses, 20)):
            terminal.press(b"2")
            confirmed.append(terminal.press(b"\r"))
        found["confirm"] = _medians(confirmed)
        terminal.press(b"\t")
        terminal.press(b"\t")
        found["move"] = _medians(terminal.press(b"j") for _ in range(presses))
        found["rss_mb"] = terminal.rss_mb()
        terminal.write(b"q")
        found["exit_code"] = terminal.wait()
    return found


def _medians(costs: Iterable[Cost]) -> dict[str, float]:
    seen = list(costs)
    return {
        "cpu_ms": statistics.median(cost.cpu_ms for cost in seen),
        "size": statistics.median(cost.size for cost in seen),
        "frames": statistics.median(cost.frames for cost in seen),
    }


def main() -> int:
    """Measure at 160x48 and print; exit 1 when a budget does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--questions", type=int, default=QUESTIONS, help="at least 70 (%(default)s)"
    )
    parser.add_argument("--presses", type=int, default=KEYS, help="of each key (%(default)s)")
    parser.add_argument("--starts", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        make_data(Path(name), given.questions)
        # In turn, so that a busy spell of the machine meets both alike.
        smallest, starts = [], []
        for _ in range(given.starts):
            smallest.append(start_ms([sys.executable, "-c", MINIMAL_APP], b"ready"))
            starts.append(start_ms(command(Path(name)), b"lines 1-"))
        slower = max(1.0, statistics.median(smallest) / MINIMAL_START_MS)
        found = measure(Path(name), 160, 48, given.presses)
        found["start"]["cpu_ms"] = statistics.median(starts)
    found["slower"] = slower
    over = []
    for key, budget in BUDGETS.items():
        if found[key]["cpu_ms"] > budget * slower:
            over.append(f"{key}: {found[key]['cpu_ms']:.1f} ms CPU, budget {budget:.0f}")
    for key, cost in found.items():
        if isinstance(cost, dict):
            if cost["size"] > MAX_BYTES:
                over.append(f"{key}: {cost['size']:.0f} bytes, budget {MAX_BYTES}")
            if cost["frames"] > MAX_FRAMES:
                over.append(f"{key}: {cost['frames']:.0f} frames, budget {MAX_FRAMES}")
    if found["rss_mb"] > MAX_RSS_MB:
        over.append(f"RSS {found['rss_mb']:.0f} MB, budget {MAX_RSS_MB:.0f}")
    found["over"] = over
    if given.json:
        print(json.dumps(found))
        return 1 if over else 0
    print(f"machine: {slower:.2f} times the CPU of the one that the budgets were set on")
    for key, cost in found.items():
        if isinstance(cost, dict):
            print(
                f"{key:16} {cost['cpu_ms']:8.1f} ms CPU {cost['size']:8.0f} bytes "
                f"{cost['frames']:4.1f} frames   budget {BUDGETS.get(key, 0):.0f} ms"
            )
    print(f"RSS {found['rss_mb']:.0f} MB, exit code {found['exit_code']}")
    print("\n".join(over) or "every budget holds")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
