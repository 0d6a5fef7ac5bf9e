"""kill -9 at random moments: what was acknowledged is there, and the set is never damaged."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.labeller.screen.conftest import SCRIPT, write_data

import storage

CASES = 6
Record = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of six cases, and a run with the passages for each."""
    cases = [
        {"id": f"q{n}", "question": f"What does part {n} say?", "x": {"kept": n}}
        for n in range(CASES)
    ]
    write_data(tmp_path, cases, [f"Part {n} says so." for n in range(4)])
    return tmp_path


def command(folder: Path) -> list[str]:
    return [
        *(sys.executable, str(SCRIPT), "--plain", "--from-run", "latest"),
        *("--eval-set", str(folder / "eval_set.jsonl")),
        *("--results-dir", str(folder / "results")),
        *("--labels-dir", str(folder / "labels")),
    ]


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=os.environ | {"RAG_EVAL_CONFIG": os.devnull},
    )


def gold(folder: Path) -> dict[str, Record]:
    """The set as it lies on the disk; every line must parse."""
    lines = (folder / "eval_set.jsonl").read_text().splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


def notes(folder: Path) -> dict[str, str]:
    path = folder / "labels" / "judgements" / "gold.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {item["case_id"]: item.get("note", "") for item in map(json.loads, lines)}


@pytest.mark.slow
@pytest.mark.parametrize("kills", [10, pytest.param(40, marks=pytest.mark.thorough)])
def test_kills_lose_no_acknowledged_label(folder: Path, kills: int) -> None:
    rng = random.Random(11)
    expected: dict[str, set[str]] = {}
    acknowledged = 0
    for kill in range(kills):
        child = start(folder)
        assert child.stdin is not None
        assert child.stdout is not None
        sent = []
        with contextlib.suppress(BrokenPipeError):
            for step in range(30):
                case = f"q{rng.randrange(CASES)}"
                text = f"note {kill}.{step}"
                sent.append((case, text))
                child.stdin.write(f"go {case}\nnote {text}\n" + ("save\n" if step % 3 else ""))
        # Acknowledgements read so far count; the kill comes after a random number of them, at a
        # random moment of what follows: during a journal line, a save, a backup or the next start.
        wanted, seen = rng.randrange(0, 12), 0
        for line in child.stdout if wanted else ():
            if line.rstrip().endswith("note kept"):
                case, text = sent[seen]
                assert line.startswith(f"{case}: ")
                expected[case] = {text}
                seen += 1
                if seen == wanted:
                    break
        time.sleep(rng.random() * (0.02 if wanted else 0.5))
        child.send_signal(signal.SIGKILL)
        # From the same reader as above: communicate() would pass over what that one has read ahead.
        rest = child.stdout.read()
        with contextlib.suppress(BrokenPipeError):
            child.communicate()
        for line in rest.splitlines():
            if line.endswith("note kept"):
                case, text = sent[seen]
                expected[case] = {text}
                seen += 1
        acknowledged += seen
        for case, text in sent[seen : seen + 1]:
            # In flight when the kill came: it may be in the journal without having been said.
            expected.setdefault(case, {""}).add(text)
        assert set(gold(folder)) == {f"q{n}" for n in range(CASES)}
        if 2 * (kill + 1) % kills == 0:
            check(folder, expected)
    assert acknowledged > kills, "the kills came before anything was said"


def check(folder: Path, expected: dict[str, set[str]]) -> None:
    """A session that ends well has the last acknowledged note of each case, or a later one."""
    done = subprocess.run(
        command(folder), input="save\nq\n", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found = notes(folder)
    for case, texts in expected.items():
        assert found.get(case, "") in texts, case
        expected[case] = {found.get(case, "")}
    storage.read_cases(folder / "eval_set.jsonl")


def test_an_acknowledged_label_is_brought_back_and_said(folder: Path) -> None:
    child = start(folder)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("1 3 4'2\n\n")
    for line in child.stdout:
        if line.startswith("q0: Saved as answerable"):
            break
    child.kill()
    child.communicate()
    assert "gold_supports" not in gold(folder)["q0"]
    done = subprocess.run(command(folder), input="q\n", capture_output=True, text=True, timeout=60)
    assert "brought back from the journal" in done.stdout
    case = gold(folder)["q0"]
    assert len(case["gold_supports"]) == 3
    assert case["required_support_groups"] == [[0, 2], [1, 2]]  # (1 or 3) and 4
    assert case["x"] == {"kept": 0}


SAVER = """
import os
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from labeller import edits
from labeller.store import LabelStore
from labeller.session import Session
folder = Path(sys.argv[1])
store = LabelStore(folder / "eval_set.jsonl", folder / "labels", now=lambda: 0.0)
session = Session(store.records, store.judgements, **store.session_options())
store.attach(session.ledger)
print("ready", flush=True)
n = 0
while True:
    n += 1
    session.queue.goto(f"q{n % 6}")
    session.revise(edits.edit, {"reference_answer": f"{os.getpid()}.{n} " * 20_000})
    store.save()
"""


@pytest.mark.slow
@pytest.mark.parametrize("kills", [5, pytest.param(15, marks=pytest.mark.thorough)])
def test_a_kill_during_a_save_leaves_the_old_set_or_the_new_one(folder: Path, kills: int) -> None:
    rng = random.Random(3)
    for _ in range(kills):
        child = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(folder), str(SCRIPT.parent)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(rng.random() * 0.05)
        child.kill()
        child.communicate()
        for case in gold(folder).values():
            answer = case.get("reference_answer", "").split()
            assert len(set(answer)) <= 1, "half of one state and half of another"
            assert len(answer) in (0, 20_000)
    subprocess.run(command(folder), input=b"q\n", capture_output=True, timeout=60)
    assert not list(folder.rglob(".*.jsonl.*")), "half-written copies are cleared away"
