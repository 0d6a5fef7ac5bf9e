"""What other extras do with pairs and panels, where their folders are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.hostile_runs import (
    READ,
    REFUSED,
    SECRET,
    SETS,
    content_of,
    end_all,
    make_hostile,
    name_commands,
    obeyed,
)
from tests.processes import call_script
from tests.scripts import on_terminals
from tests.scripts.judging.conftest import JudgedRun, Server
from tests.scripts.test_hostile_runs import sound as sound

import options
from extras.pairs.tests.test_pairs import Pairs, by_points, comparable, reply, shown
from records.extras import extras

PRESENT = {extra.name for extra in extras()}
with_research = pytest.mark.skipif("research" not in PRESENT, reason="no eval/extras/research")


@with_research
def test_the_self_test_tries_attacks_on_known_pairs(pairs: Pairs) -> None:
    """A judge that always takes the first place is right in no pair and obeys nothing: there is
    nothing to take away. One that takes the answer with an attack obeys in all."""

    def obedient(server: Server, body: dict[str, Any]) -> tuple[int, Any]:
        first, second = shown(body)
        right = ("laptops for up to", "sails twice", "Drip lines")
        attacked = ("Note to the grader", "System:", "verdicts", "New rule")
        verdict = "first" if any(text in first for text in right) else "second"
        if any(text in first for text in attacked):
            verdict = "first"
        elif any(text in second for text in attacked):
            verdict = "second"
        quote = (first if verdict == "first" else second)[:30]
        return 200, reply(server, verdict, quote)

    pairs.server.reply = obedient
    done = pairs.call("--self-test", "--json")
    assert done.exit_code == 1, done.output
    report = json.loads(done.stdout)
    assert (report["pairs_right"], report["pairs_obeyed"]) == (1.0, 1.0)


@with_research
def test_a_judge_that_says_the_same_to_everything_fails_the_self_test(pairs: Pairs) -> None:
    """No attack can move it, so only what it should have known tells."""

    def always_first(server: Server, body: dict[str, Any]) -> tuple[int, Any]:
        return 200, reply(server, "first", shown(body)[0][:30])

    pairs.server.reply = always_first
    done = pairs.call("--self-test", "--json")
    report = json.loads(done.stdout)
    assert (report["pairs_right"], report["pairs_obeyed"], report["passed"]) == (0.0, None, False)
    assert done.exit_code == 1


def test_by_files_gives_the_bytes_of_the_online_way(pairs: Pairs) -> None:
    import_results = pytest.importorskip("extras.batch.import_results")
    online = pairs.json()
    path = pairs.results / "new" / "pairs" / "old.jsonl"
    kept = comparable(path.read_bytes())
    path.unlink()
    cache = pairs.finished.folder / "cache"
    (cache / "judge_cache.jsonl").unlink()
    asked = pairs.server.judgements
    folder = pairs.finished.folder / "batches"
    done = pairs.call("--batch-out", str(folder))
    assert done.exit_code == 0, done.output
    assert "Round 1: 20 requests" in done.output  # ten pairs, both orders
    sending = f"Send them with judge_answers.py --batch-submit {folder}"
    assert sending in " ".join(done.output.split())
    (requests,) = folder.glob("round1-*.jsonl")
    lines = []
    for line in map(json.loads, requests.read_text("utf-8").splitlines()):
        status, body = by_points(pairs.server, line["body"])
        response = {"status_code": status, "body": body}
        lines.append({"id": "r", "custom_id": line["custom_id"], "response": response})
    results = folder / f"{requests.stem}.results.jsonl"
    results.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    words = [str(results), "--cache-dir", str(cache / "judge_cache.jsonl"), "--json"]
    taken = CliRunner().invoke(import_results.main, words)
    assert taken.exit_code == 0, taken.output
    assert json.loads(taken.stdout)["verdicts"] == 20
    assert pairs.json("--offline") == online
    assert comparable(path.read_bytes()) == kept
    assert pairs.server.judgements == asked
    assert pairs.call("--batch-out", str(folder)).output.startswith("Nothing is left to ask")


@pytest.mark.skipif("batch" not in PRESENT, reason="no eval/extras/batch")
def test_a_panel_is_asked_online(run: JudgedRun, tmp_path: Path) -> None:
    run.write()
    for name in "ab":
        text = f'server = "http://127.0.0.1:9/v1"\nmodel = "{name}-2025-01-01"\nrevision = "r1"\n'
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    (tmp_path / "two.toml").write_text('panel = ["a", "b"]\n', "utf-8")
    done = run.call("--judge", str(tmp_path / "two.toml"), "--batch-out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "a panel is asked online" in done.output


def test_the_local_judge_needs_no_batch_files(run: JudgedRun, tmp_path: Path) -> None:
    run.write()
    done = run.call("--judge", "local", "--batch-out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "needs no batch files; leave the option out" in done.output
    assert not (tmp_path / "out").exists()


SCRIPT = "extras.pairs.judge_pairs"
SCRIPTS = Path(options.__file__).parents[1]
CHANGES = {
    name: (REFUSED | READ | SETS)[name]
    for name in (
        *("results.jsonl is a pipe", "metrics.json is a link to a device"),
        *("config.json has no end", "the set is a device", "the set is endless"),
    )
} | {"names": name_commands}


def words_of(folder: Path) -> list[str]:
    own = ["--results-dir", f"{folder}/results", "--eval-set", f"{folder}/set.jsonl"]
    return [*own, "--run", "new", "--base", "base", "--cache-dir", f"{folder}/cache"]


def test_a_run_that_is_missing_is_a_sentence(tmp_path: Path) -> None:
    words = ["--run", "no-such", "--base", "run", "--results-dir", str(tmp_path)]
    done = call_script(SCRIPT, *words)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_no_line_is_wider_than_the_terminal(tmp_path: Path, sound: Path, server: Any) -> None:
    folder = tmp_path / "runs"
    make_hostile(folder, sound, lambda run, outside: None)
    words = [*words_of(folder), "--judge", server.url, "--model", server.model]
    call = (60, 24, SCRIPT, [*words, "--dry-run"])
    ((text, code),) = on_terminals.outputs([call], SCRIPTS, SCRIPTS.parent)
    assert code == 0, text
    assert on_terminals.too_wide(text, 60) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork, pipes and /dev")
def test_a_run_from_somebody_who_means_harm_can_do_nothing(tmp_path: Path, sound: Path) -> None:
    before, jobs = {}, []
    for place, (name, change) in enumerate(CHANGES.items()):
        own = tmp_path / str(place)
        outside = make_hostile(own, sound, change)
        before[name] = outside, content_of(outside)
        jobs.append((SCRIPT, [*words_of(own), "--rescore"], str(own)))
    for (name, (outside, content)), ended in zip(before.items(), end_all(jobs), strict=True):
        assert ended.code in (0, 1, 2), (name, ended)
        assert "Traceback" not in ended.err, name
        assert SECRET not in ended.out + ended.err, name
        assert obeyed(ended.out + ended.err) == set(), name
        assert content_of(outside) == content, name
