"""gate_run.py: what it writes and prints, accepted failures, bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

BASELINE = ("--baseline", "base")


def test_accepted_trade_offs_are_recorded_and_shown(gate: Any) -> None:
    gate.rules('[retrieval]\n"recall@5" = ">= 0.9"\nscope_miss = "<= 0.5"\n')
    words = ("--accept", "recall@5=k was lowered", "--accept", "scope_miss=not so")
    done = gate.run(*words, "--junit", "g.xml", "--markdown", "g.md", "--github", "--verbose")
    assert done.returncode == 0, done.stderr
    found = json.loads((gate.new.folder / "gate.json").read_text())
    assert found["counts"] == {"accepted": 1, "failed": 0, "passed": 2, "skipped": 2}
    assert found["accepts"] == [
        {"name": "recall@5", "needed": True, "reason": "k was lowered"},
        {"name": "scope_miss", "needed": False, "reason": "not so"},
    ]
    assert "Accepted: k was lowered" in done.stdout
    assert "--accept scope_miss was not needed" in " ".join(done.stdout.split())
    assert "::warning file=gates.toml,line=2,title=Gate failed%2C accepted" in done.stdout
    assert "Accepted: `k was lowered`" in (gate.folder / "g.md").read_text()
    skipped = next(ET.parse(gate.folder / "g.xml").getroot().iter("skipped"))
    assert "accepted: k was lowered" in (skipped.get("message") or "")
    unknown = gate.run("--accept", "mmr=typo")
    assert unknown.returncode == 2
    assert "no gate checks that" in " ".join(unknown.stderr.split())


def test_the_same_verdict_gives_the_same_bytes(gate: Any) -> None:
    gate.rules('[gates.baseline]\n"*" = "margin 0.05"\n')
    kept = []
    for _ in range(2):
        assert gate.run(*BASELINE, "--junit", "g.xml").returncode == 0
        kept.append(
            (gate.new.folder / "gate.json").read_bytes() + Path(gate.folder / "g.xml").read_bytes()
        )
    assert kept[0] == kept[1]
    done = gate.run(*BASELINE, "--json")
    assert done.stdout.encode() == (gate.new.folder / "gate.json").read_bytes()


def test_the_table_can_hold_no_workflow_command(gate: Any) -> None:
    """A case id that is a command: GitHub is told to look for none until an unguessable word."""
    gate.rules(
        '[[gates.must_pass]]\nmetric = "retrieval.recall@5"\ncases = ["::set-env::x\\n::y"]\n'
    )
    done = gate.run("--github")
    first, *lines = done.stdout.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert len(token) == 32
    after = lines[lines.index(f"::{token}::") + 1 :]
    assert all(line.startswith(("::error ", "::notice ")) for line in after)
    assert not any(line.startswith("::y") for line in after)


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ('[retreival]\n"recall@5" = "> 0"\n', (), "[retreival]: no such section"),
        ('[gates.baseline]\n"retreival.x" = "none"\n', BASELINE, "no such section"),
        ('[retrieval]\n"recall@5" = "0.5"\n', (), 'gates.toml:2: retrieval."recall@5"'),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--baseline", "new"), "is its own baseline"),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--baseline", "old"), "no such folder"),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--baseline", "gates.toml"), "not JSON"),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--accept", "x"), "metric=reason"),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--json", "--github"), "both write to stdout"),
    ],
)
def test_bad_input_ends_with_2_and_writes_nothing(
    gate: Any, text: str, words: tuple[str, ...], says: str
) -> None:
    gate.rules(text)
    done = gate.run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (gate.new.folder / "gate.json").exists()


def test_a_run_that_is_not_scored(gate: Any) -> None:
    gate.rules('[retrieval]\n"recall@5" = "> 0"\n')
    (gate.new.folder / "metrics.json").unlink()
    done = gate.run()
    assert done.returncode == 2
    assert "is not scored" in " ".join(done.stderr.split())


def test_a_terminal_that_knows_no_marks_gets_the_reasons(gate: Any) -> None:
    gate.rules('[retrieval]\n"recall@5" = ">= 0.9"\n')
    done = gate.run(PYTHONIOENCODING="ascii")
    assert done.returncode == 1, done.stderr
    row = next(line for line in done.stdout.splitlines() if "retrieval.recall@5" in line)
    assert row.split()[1:5] == ["retrieval.recall@5", ">=", "0.9", "0.800"]
