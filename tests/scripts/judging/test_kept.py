"""What stands in verdicts.jsonl is asked again only when something of it has changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.processes import refused

CASES = [{"id": "one", "reference_answer": "The fee is 15 euros."}, {"id": "two"}]


def answers(run: Any, text: str = "The fee is 15 euros.", **fields: Any) -> list[Any]:
    return [run.result("one", text, **fields), run.result("two", "The fee is 15 euros a head.")]


def judged(server: Any, run: Any, *words: str) -> int:
    """Judgements that were asked for by one more run; the cache is taken away first."""
    shutil.rmtree(run.finished.folder / "cache", ignore_errors=True)
    before = server.judgements
    run.judge(*server.words(*words))
    return int(server.judgements - before)


def test_without_its_cache_a_run_still_asks_for_nothing_twice(run: Any, server: Any) -> None:
    run.write(CASES, answers(run))
    assert judged(server, run) == 2
    kept, lines = run.finished.bytes_of("judged"), run.lines()
    assert judged(server, run) == 0
    assert (run.finished.bytes_of("judged"), run.lines()) == (kept, lines)
    assert judged(server, run, "--repeats", "3") == 4, "two more opinions on two answers"
    done = run.call(*server.words("--repeats", "3"))
    assert "6 that existed already" in done.stderr
    done = run.call(*server.words("--repeats", "3", "--dry-run", "--json"))
    assert json.loads(done.stdout)["tasks"] == 0
    assert "Nothing is left to ask" in done.stderr


def test_another_judge_or_other_texts_are_asked(run: Any, server: Any) -> None:
    run.write(CASES, answers(run))
    assert judged(server, run) == 2
    for words, asked in (
        (("--k", "2"), 0),  # there are two
        (("--set", "concurrency=1"), 0),
        (("--repeats", "1:0.5"), 0),
        (("--set", "temperature=0.5"), 2),
        (("--seed", "7"), 2),
        (("--set", "revision=r2"), 2),
        (("--k", "1"), 2),
    ):
        assert judged(server, run, *words) == asked, words


def test_a_changed_answer_is_judged_anew_and_the_other_is_not(run: Any, server: Any) -> None:
    run.write(CASES, answers(run))
    assert judged(server, run) == 2

    def change(**fields: Any) -> None:
        path = run.finished.run / "results.jsonl"
        first, *rest = path.read_text("utf-8").splitlines()
        lines = [json.dumps(json.loads(first) | fields), *rest]
        path.write_text("\n".join(lines) + "\n", "utf-8")

    change(answer="The fee is 15 euros. Dogs are free.")
    assert judged(server, run) == 1
    change(abstained=True)
    assert judged(server, run) == 0, "an abstention has no claims"
    assert run.lines()[-1]["status"] == "not_applicable"


def test_facts_that_were_corrected_by_hand_are_asked_about(run: Any) -> None:
    run.write(CASES, answers(run))
    assert run.judge("--metrics", "correctness")["mean"]["correctness"] == 5.0
    count = len(run.lines())
    run.judge("--metrics", "correctness")
    assert len(run.lines()) == count
    path = run.finished.folder / "cache" / "reference_facts.jsonl"
    line = json.loads(path.read_text("utf-8").splitlines()[-1])
    line["facts"] = ["The fee is 15 euros", "The harbour freezes in January"]
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    assert run.judge("--metrics", "correctness")["mean"]["correctness"] == 2.5
    assert len(run.lines()) == count + 1


def lose(path: Path, key: str) -> None:
    """What a power cut can leave of the line with this key: its length."""
    lines = path.read_bytes().splitlines(keepends=True)
    (number,) = [number for number, line in enumerate(lines) if key.encode() in line]
    lines[number] = bytes(len(lines[number]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize(("files", "asked"), [(("verdicts",), 0), (("verdicts", "cache"), 1)])
@pytest.mark.parametrize("dry_run", [False, True])
def test_verdicts_that_a_power_cut_took_are_judged_again(
    run: Any, server: Any, files: tuple[str, ...], asked: int, dry_run: bool
) -> None:
    run.write(CASES, answers(run))
    run.judge(*server.words())
    paths = {
        "verdicts": run.finished.run / "verdicts.jsonl",
        "cache": run.finished.folder / "cache" / "judge_cache.jsonl",
    }
    key, before = run.lines()[0]["key"], server.judgements
    for name in files:
        lose(paths[name], key)
    assert "judge again; this asks for the lost verdicts" in refused(run.call("--rescore"))
    done = run.call(*server.words(*(["--dry-run", "--json"] if dry_run else [])))
    assert done.exit_code == 0, done.stderr
    assert "verdicts.jsonl: 1 line could not be read" in " ".join(done.stderr.split())
    if dry_run:
        assert json.loads(done.stdout)["calls"] == asked
        done = run.call(*server.words())
        assert "could not be read" not in done.stderr
    assert server.judgements - before == asked
    assert sorted(line["case_id"] for line in run.lines()) == ["one", "two"]


def test_a_line_that_is_json_and_no_verdict_stops_judging(run: Any, server: Any) -> None:
    run.write(CASES, answers(run))
    run.judge(*server.words())
    path = run.finished.run / "verdicts.jsonl"
    path.write_bytes(path.read_bytes() + b'{"case_id": 3}\n')
    before = path.read_bytes(), server.judgements
    assert "delete the line and judge again" in refused(run.call(*server.words()))
    assert (path.read_bytes(), server.judgements) == before


def test_a_hole_in_the_lists_of_facts_is_passed_over(run: Any) -> None:
    run.write(CASES, answers(run))
    run.judge("--metrics", "correctness")
    path = run.finished.folder / "cache" / "reference_facts.jsonl"
    whole = path.read_bytes()
    path.write_bytes(bytes(len(whole) - 1) + b"\n")
    assert run.judge("--metrics", "correctness")["mean"]["correctness"] == 5.0
    assert path.read_bytes().endswith(b"\n" + whole)
