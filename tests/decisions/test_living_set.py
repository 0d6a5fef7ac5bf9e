"""A set grows and its labels are corrected; the same bot stays the same, and thirteen planted
failures are found, by everyone who compares.

The expected numbers are counted from the lists of cases in this file, by no code of the project.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import compare_runs
import eval_suite
import gate_run
import score_abstention
import score_pipeline
import score_retrieval
from records.files import sha256_file
from records.fingerprints import asked_digests
from records.labels import read_cases
from records.results import Reference, RetrievedChunk, RunConfig, TestResult
from storage import ResultsWriter

CASES = 140
UNANSWERABLE = range(120, 140)
BASE_FAILS = range(0, 120, 6)
"""The twenty questions whose evidence the bot does not find."""

BROKEN = range(1, 79, 6)
"""The thirteen whose evidence the other bot loses."""

Rows = list[dict[str, Any]]


def first_set() -> Rows:
    return [case(number) for number in range(CASES)]


def case(number: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": f"q{number}", "question": f"What is {number}?"}
    if number in UNANSWERABLE:
        return row | {"answerable": False}
    return row | {
        "answerable": True,
        "gold_supports": [{"rel_path": f"d{number}.md", "heading_path": "H", "snippets": []}],
        "expected_outcome": "success",
    }


def grown(rows: Rows) -> Rows:
    """28 new cases, of which the bot fails none."""
    more = [case(number) for number in range(200, 228)]
    return [*more[:14], *rows, *more[14:]]


def relabelled(rows: Rows) -> Rows:
    """The gold of twelve questions that the bot failed is what it found."""
    for number in BASE_FAILS[:12]:
        rows[number]["gold_supports"][0]["rel_path"] = "other-1.md"
    return rows


def shrunk(rows: Rows) -> Rows:
    return [row for row in rows if row["id"] not in ("q2", "q60", "q130")]


def reworded(rows: Rows) -> Rows:
    for number in (3, 40, 77, 100, 125):
        rows[number]["question"] = f"Tell me of {number}."
    return rows


def reordered(rows: Rows) -> Rows:
    return rows[::-1]


STATES: dict[str, Callable[[Rows], Rows]] = {
    "grown": grown,
    "relabelled": relabelled,
    "shrunk": shrunk,
    "reworded": reworded,
    "reordered": reordered,
}


def write_set(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def answer_of(number: int, lost: range | tuple[int, ...] = ()) -> dict[str, Any]:
    """Five passages, of which the first is the evidence where the bot finds it."""
    gold = f"d{number}.md"
    if number in BASE_FAILS or number in lost:
        gold = "other-1.md"
    paths = [gold, *(f"other-{n}.md" for n in range(2, 6))]
    chunks = [
        RetrievedChunk(f"c{n}", rel_path=path, heading_path="H", rank=n)
        for n, path in enumerate(paths, 1)
    ]
    return {
        "answer": "I do not know." if number in UNANSWERABLE else f"It is {number}.",
        "abstained": number in UNANSWERABLE,
        "references": [Reference(1, rel_path=gold)],
        "retrieved": list(chunks),
    }


def make_run(
    folder: Path, run: str, eval_set: Path, lost: range | tuple[int, ...] = (), k: int = 10
) -> None:
    cases = read_cases(eval_set, None)
    asked = asked_digests(cases)
    writer = ResultsWriter(folder / "results", run)
    dataset: dict[str, Any] = {"path": eval_set.name, "sha256": sha256_file(eval_set)}
    dataset["cases"] = len(cases)
    config = RunConfig(run, dataset=dataset, run={"selected": len(cases)}, retriever={"k": k})
    writer.write_config(config)
    for own in cases:
        number = int(own.id[1:])
        writer.write_result(
            TestResult(own.id, own.question, asked=asked[own.id], **answer_of(number, lost))
        )
    writer.finish(own.id for own in cases)
    for script in (score_retrieval, score_abstention, score_pipeline):
        done = call(script, folder, "--run", run, "--eval-set", eval_set)
        assert done.exit_code == 0, done.output


def call(script: object, folder: Path, *words: object) -> Result:
    words = (*words, "--results-dir", folder / "results")
    return CliRunner().invoke(script.main, [str(word) for word in words])  # type: ignore[attr-defined]


def compared(folder: Path, *words: object) -> dict[str, Any]:
    done = call(compare_runs, folder, "base", "new", "--json", *words)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)["comparisons"][0]
    return found


def row_of(found: dict[str, Any], name: str) -> dict[str, Any]:
    parts = name.split(".")
    row: dict[str, Any] = next(r for r in found["rows"] if [r["section"], r["metric"]] == parts)
    return row


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("living")
    make_run(folder, "base", write_set(folder / "set.jsonl", first_set()))
    return folder


RECALL = "retrieval.evidence_recall@5"

COMPARED = {
    "grown": ("", range(120)),
    "relabelled": ("", range(120)),
    "shrunk": ("3 gone", [n for n in range(120) if n not in (2, 60)]),
    "reworded": ("5 reworded", [n for n in range(120) if n not in (3, 40, 77, 100)]),
    "reordered": ("", range(120)),
}
"""What is said of the others, and the answerable cases that count."""

SAID = COMPARED | {"grown": ("28 new", range(120))}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("lost", [(), BROKEN], ids=["same bot", "thirteen lost"])
def test_a_verdict_on_what_did_not_change(
    base: Path, tmp_path: Path, state: str, lost: range | tuple[int, ...]
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "base").symlink_to(base / "results/base")
    write_set(tmp_path / "set.jsonl", STATES[state](copy.deepcopy(first_set())))
    make_run(tmp_path, "new", tmp_path / "set.jsonl", lost)

    others, answerable = SAID[state]
    corrected = set(BASE_FAILS[:12]) if state == "relabelled" else set()
    before = [n not in BASE_FAILS or n in corrected for n in answerable]
    now = [good and n not in lost for good, n in zip(before, answerable, strict=True)]

    found = compared(tmp_path)
    recall = row_of(found, RECALL)
    assert recall["n"] == len(answerable)
    assert recall["base"] == pytest.approx(sum(before) / len(before))
    assert recall["new"] == pytest.approx(sum(now) / len(now))
    assert found["headline"] == ("WORSE" if lost else "NO CLEAR DIFFERENCE")
    unchanged = {"shrunk": 137, "reworded": 135}.get(state, 140)
    first = found["says"][0]
    if state != "reordered":
        words = f"on the {unchanged} cases that did not change"
        assert words + (f" ({others})" if others else "") in first
    again = [said for said in found["says"] if "was scored again" in said]
    assert len(again) == (state == "relabelled")

    gate = call(gate_run, tmp_path, "--run", "new", "--baseline", "base")
    assert gate.exit_code == (1 if lost else 0), gate.output
    assert first in " ".join(gate.stdout.split())
    suite = call(
        eval_suite, tmp_path, "--run", "new", "--baseline", "base", "--json", "--sections",
        "retrieval,abstention,pipeline", "--eval-set", tmp_path / "set.jsonl",
    )  # fmt: skip
    told = json.loads(suite.stdout)
    assert (told["headline"], told["says"][0]) == (found["headline"], first)
    assert suite.exit_code == (1 if lost else 0), suite.stdout
