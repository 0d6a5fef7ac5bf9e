"""run_eval.py stopped and resumed, as processes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
from typing import Any

import pytest
from tests.clients.run.conftest import Desk
from tests.fake_bot import FakeBot


def test_too_many_errors_end_the_run_with_3_and_keep_what_came(desk: Desk) -> None:
    for number in range(3, 7):
        desk.bot.script(f"question {number}", lambda e: e.reply({}, 400), desk.bot.reply_properly)
    words = ("--run-id", "r", "--set", "concurrency=1", "--max-error-rate", "0.1")
    done = desk.run(*words, cases=20, ends=3)
    assert "--max-error-rate" in done.stderr
    assert "The last: client_error: HTTP 400" in done.stderr
    folder = desk.folder / "results" / "r"
    assert not (folder / "results.jsonl").exists()
    # 2 of 20 are allowed; the third error stops the run
    statuses = [line["status"] for line in desk.read(folder, "results.partial.jsonl")]
    assert statuses == ["ok"] * 3 + ["error"] * 3

    done = desk.run("--run-id", "r", "--resume", "--retry-errors", "--max-error-rate", "0.1")
    assert [line["test_case_id"] for line in desk.read(folder)] == [f"q{n}" for n in range(20)]
    asked = desk.bot.asked
    assert all(asked[f"question {n}"] == 1 for n in range(3))
    assert all(asked[f"question {n}"] == 2 for n in range(3, 6))


@pytest.mark.parametrize("way", ["kill", "interrupt"])
def test_stopped_in_the_middle_and_resumed(desk: Desk, way: str) -> None:
    """500 cases against a slow server; each is asked at most once more, and all are there."""
    desk.bot.delay = 0.02
    in_flight = 16
    folder = desk.folder / "results" / "r"
    words = ("--run-id", "r", "--set", f"concurrency={in_flight}")
    process = subprocess.Popen(
        desk.command(*words, cases=500), stderr=subprocess.PIPE, text=True, env=desk.environment
    )
    partial = folder / "results.partial.jsonl"
    while process.poll() is None and sum(desk.bot.asked.values()) < 150:
        threading.Event().wait(0.01)
    process.send_signal(signal.SIGKILL if way == "kill" else signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    if way == "interrupt":
        assert process.returncode == 130
        assert "--resume --run-id r" in stderr
        assert "Traceback" not in stderr
    first = -1
    while first != sum(desk.bot.asked.values()):  # the bot may still count what was sent
        first = sum(desk.bot.asked.values())
        threading.Event().wait(1)
    kept = partial.read_bytes().count(b"\n")
    assert 0 < kept < 500
    assert not (folder / "results.jsonl").exists()

    # what a crash of the machine could leave: a line without its end
    with open(partial, "ab") as file:
        file.write(b'{"test_case_id": "q4')
    desk.run(*words, "--resume")
    results = desk.read(folder)
    assert [line["test_case_id"] for line in results] == [f"q{n}" for n in range(500)]
    assert all(line["status"] == "ok" for line in results)
    assert max(desk.bot.asked.values()) <= 2
    assert sum(desk.bot.asked.values()) == first + 500 - kept
    # lost: calls in flight, and answers that waited to be written (at most as many again)
    assert first - kept <= 2 * in_flight + 1
    before = (folder / "results.jsonl").stat().st_mtime_ns
    desk.run(*words, "--resume")  # nothing left to do, nothing touched
    assert (folder / "results.jsonl").stat().st_mtime_ns == before


def test_ctrl_c_does_not_wait_for_calls_that_hang(desk: Desk) -> None:
    desk.bot.default = lambda e: e.hang()
    desk.bot.script("question 0", desk.bot.reply_properly)
    process = subprocess.Popen(
        desk.command("--run-id", "r", "--set", "timeout=600"),
        stderr=subprocess.DEVNULL,
        env=desk.environment,
    )
    while process.poll() is None and sum(desk.bot.asked.values()) < 5:
        threading.Event().wait(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130  # far from the 600 s of one call
    partial = desk.results("r", "results.partial.jsonl")
    assert [line["test_case_id"] for line in partial] == ["q0"]


def test_resume_refuses_another_set_or_configuration(desk: Desk) -> None:
    words = ("--run-id", "r", "--set", "concurrency=1", "--max-error-rate", "0.1", "--resume")
    desk.bot.script("question 2", lambda e: e.reply({}, 400))
    desk.invoke(*words[:-1], ends=3)
    folder = desk.folder / "results" / "r"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}

    def refused(*more: str) -> str:
        done = desk.invoke(*words, *more, ends=2)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
        return done.stderr

    assert "retriever.requested.k: was 10, is 4" in refused("--k", "4")
    assert "run.repeat: was 1, is 2" in refused("--repeat", "2")
    assert "seed: was 0, is 5" in refused("--seed", "5")
    assert "api.profile_sha256" in refused("--profile", "documents")
    eval_set = desk.folder / "set.jsonl"
    old = eval_set.read_bytes()
    eval_set.write_bytes(old.replace(b"question 4", b"question four"))
    assert "dataset.sha256" in refused()
    eval_set.write_bytes(old)

    # the bot itself has changed: it says so with the first answer
    changed = desk.bot.answer("x", index={"corpus_hash": "new"})
    for number in range(5):
        desk.bot.script(f"question {number}", lambda e: e.reply(changed))
    assert "index.corpus_hash: was absent, is new" in refused("--max-error-rate", "0.5")


def test_a_bot_that_came_back_on_another_port_is_asked_on(desk: Desk) -> None:
    desk.bot.script("question 2", lambda e: e.reply({}, 400))
    words = ("--run-id", "r", "--set", "concurrency=1", "--max-error-rate", "0.1")
    desk.invoke(*words, ends=3)
    folder = desk.folder / "results" / "r"
    before = json.loads((folder / "config.json").read_text())
    other = FakeBot()
    try:
        again = ("--resume", "--retry-errors")
        done = desk.invoke(*words, *again, url=other.url)
        assert f"began at {desk.bot.url}; it continues at {other.url}" in " ".join(
            done.stderr.split()
        )
        assert [line["test_case_id"] for line in desk.read(folder)] == [f"q{n}" for n in range(5)]
        assert set(other.asked) == {"question 2", "question 3", "question 4"}
        after = json.loads((folder / "config.json").read_text())
        assert (before["api"]["url"], after["api"]["url"]) == (desk.bot.url, other.url)
        assert after["config_hash"] == before["config_hash"]
        kept = (folder / "config.json").read_bytes()
        desk.invoke(*words, *again)  # complete: nobody is asked, nothing written
        assert (folder / "config.json").read_bytes() == kept
    finally:
        other.close()


def test_a_bot_that_is_gone_is_named_by_the_address_that_was_tried(desk: Desk) -> None:
    desk.bot.script("question 2", lambda e: e.reply({}, 400))
    words = ("--run-id", "r", "--set", "concurrency=1", "--max-error-rate", "0.1")
    desk.invoke(*words, "--set", "retries=0", ends=3)
    before = (desk.folder / "results" / "r" / "config.json").read_bytes()
    other = FakeBot()
    other.close()
    done = desk.invoke(
        *words, "--set", "retries=0", "--resume", "--retry-errors", url=other.url, ends=3
    )
    assert f"no answer from {other.url}" in done.stderr
    assert (desk.folder / "results" / "r" / "config.json").read_bytes() == before


def test_two_processes_that_begin_one_run_make_it_once(desk: Desk) -> None:
    """Neither has written anything when the other looks: both wait for their first answer."""
    both = threading.Event()

    def first(exchange: Any) -> None:
        if desk.bot.asked["question 0"] >= 2:
            both.set()
        both.wait(60)
        desk.bot.reply_properly(exchange)

    desk.bot.script("question 0", first)
    words = desk.command("--run-id", "r")
    runs = [
        subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=desk.environment)
        for _ in range(2)
    ]
    talk = [process.communicate(timeout=120)[1] for process in runs]
    codes = [process.returncode for process in runs]
    assert sorted(codes) == [0, 2], talk
    assert "this run exists" in talk[codes.index(2)]
    files = {path.name for path in (desk.folder / "results" / "r").iterdir()}
    assert files == {"config.json", "results.jsonl"}


def test_a_copied_folder_is_resumed_where_it_lies(desk: Desk) -> None:
    desk.bot.script("question 3", lambda e: e.reply({}, 400), desk.bot.reply_properly)
    words = ("--set", "concurrency=1", "--max-error-rate", "0.1")
    desk.invoke("--run-id", "old", *words, ends=3)
    results = desk.folder / "results"
    shutil.copytree(results / "old", results / "new")
    before = {path.name: path.read_bytes() for path in (results / "old").iterdir()}
    done = desk.invoke("--run-id", "new", *words, "--resume", "--retry-errors")
    assert done.stdout.strip() == str(results / "new")
    assert [line["test_case_id"] for line in desk.read(results / "new")] == [
        f"q{n}" for n in range(5)
    ]
    assert '"run_id": "new"' in (results / "new" / "config.json").read_text()
    assert {path.name: path.read_bytes() for path in (results / "old").iterdir()} == before


@pytest.mark.parametrize("left", ["results.jsonl", "results.partial.jsonl"])
def test_a_folder_that_lost_its_configuration_is_not_written_over(desk: Desk, left: str) -> None:
    folder = desk.folder / "results" / "r"
    folder.mkdir(parents=True)
    (folder / left).write_text("kept\n")
    done = desk.invoke("--run-id", "r", ends=2)
    assert "choose another --run-id" in done.stderr
    assert [path.name for path in folder.iterdir()] == [left]
    assert (folder / left).read_text() == "kept\n"


@pytest.mark.parametrize("end", ["\n", ""])
def test_lines_that_a_finished_run_lost_are_asked_again(desk: Desk, end: str) -> None:
    """q1 and q3 are gone from results.jsonl; whoever took them out may have taken the last line
    end with them."""
    desk.invoke("--run-id", "r")
    folder = desk.folder / "results" / "r"
    lines = (folder / "results.jsonl").read_text().splitlines()
    (folder / "results.jsonl").write_text("\n".join([lines[0], lines[2], lines[4]]) + end)
    desk.invoke("--run-id", "r", "--resume")
    assert [line["test_case_id"] for line in desk.read(folder)] == [f"q{n}" for n in range(5)]
    assert {name: desk.bot.asked[name] for name in desk.bot.asked} == {
        f"question {n}": 2 if n in (1, 3) else 1 for n in range(5)
    }


@pytest.mark.parametrize("finished", [False, True])
def test_answers_that_a_power_cut_took_are_asked_again(desk: Desk, finished: bool) -> None:
    """A hole from the middle of q1 to the middle of q3, with the line ends in it."""
    desk.invoke("--run-id", "r")
    folder = desk.folder / "results" / "r"
    whole = (folder / "results.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    start, end = len(lines[0]) + 9, len(b"".join(lines[:3])) + 9
    name = "results.jsonl" if finished else "results.partial.jsonl"
    (folder / "results.jsonl").unlink()
    (folder / name).write_bytes(whole[:start] + bytes(end - start) + whole[end:])
    (folder / ".config.json.k3_1ssed").write_text("{")  # a kill in mid-write
    done = desk.invoke("--run-id", "r", "--resume")
    assert "1 line could not be read, as after a power cut" in " ".join(done.stderr.split())
    assert [line["test_case_id"] for line in desk.read(folder)] == [f"q{n}" for n in range(5)]
    assert [desk.bot.asked[f"question {n}"] for n in range(5)] == [1, 2, 2, 2, 1]
    assert not list(folder.glob(".config.json.*"))
