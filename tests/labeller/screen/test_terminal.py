"""The real script in a pseudo-terminal: what reaches the terminal, the disk, the exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.fake_bot import Exchange, FakeBot
from tests.labeller.screen.conftest import SCRIPT, Start, write_data
from tests.screens import OWN

DANGEROUS = (b"\x1b]0;", b"\x1b]2;", b"\x1b]52;", b"\x1b[2J", b"\x1bc", b"\xc2\x9b", b"\xc2\x9d")


def simple_cases(count: int = 5) -> list[dict[str, Any]]:
    """Cases with a field of their own between ours, to see that order and fields stay."""
    return [
        {"id": f"q-{n}", "zz_own": [n, {"b": 1, "a": 2}], "question": f"How long is log {n} kept?"}
        for n in range(1, count + 1)
    ]


TEXTS = [f"Log number {n} is kept for {n} days. Then it is deleted." for n in range(1, 6)]


def read_set(folder: Path) -> list[dict[str, Any]]:
    """The cases on disk."""
    return [json.loads(line) for line in (folder / "eval_set.jsonl").read_bytes().splitlines()]


@pytest.fixture
def start_asking(tmp_path: Path, fake_bot: FakeBot, pseudo_terminal: Start) -> Start:
    """Starts the script on a set in `tmp_path`, with the passages of a bot."""
    argv = [sys.executable, str(SCRIPT), "--eval-set", str(tmp_path / "eval_set.jsonl")]
    argv += ["--labels-dir", str(tmp_path), "--api-url", fake_bot.url]
    return lambda: pseudo_terminal(argv, columns=80, rows=24, cwd=tmp_path)


def test_three_cases_from_the_keyboard(tmp_path: Path, start: Start) -> None:
    before = write_data(tmp_path, simple_cases(), TEXTS).splitlines()
    with start() as terminal:
        terminal.wait_for(b"lines 1-")
        terminal.write(b"2\r")  # the common case: two keys
        terminal.wait_for(b"q-2")
        terminal.write(b"1M4\r")  # two needs
        terminal.wait_for(b"q-3")
        terminal.write(b"x\r")
        terminal.wait_for(b"q-4")
        terminal.write(b"q")
        assert terminal.wait() == 0
    cases = read_set(tmp_path)
    assert [case.get("answerable") for case in cases] == [True, True, False, None, None]
    assert len(cases[0]["gold_supports"]) == 1
    assert cases[0]["gold_supports"][0]["rel_path"].startswith("part")
    assert len(cases[1]["gold_supports"]) == 2
    assert "required_support_groups" not in cases[1], "both are needed, as without groups"
    assert "gold_supports" not in cases[2]
    after = (tmp_path / "eval_set.jsonl").read_bytes().splitlines()
    assert after[3:] == before[3:], "lines that were not touched keep their bytes"
    assert [list(case)[:3] for case in cases] == [["id", "zz_own", "question"]] * 5


def test_thirty_keys_in_one_write_wait_for_slow_passages(
    tmp_path: Path, fake_bot: FakeBot, start_asking: Start
) -> None:
    write_data(tmp_path, simple_cases(10), TEXTS)

    keys_wait = threading.Event()

    def passages(exchange: Exchange) -> None:
        keys_wait.wait(120)
        question = exchange.json()["question"]
        chunk = fake_bot.answer(question)["retrieved"][0]
        found = [chunk | {"rel_path": f"n{n}.md", "text": f"{question} {n}"} for n in range(5)]
        exchange.reply(fake_bot.answer(question, retrieved=found))

    fake_bot.delay, fake_bot.default = 0.1, passages
    with start_asking() as terminal:
        terminal.wait_for(b"Fetching passages")
        terminal.write(b"23\r" * 10)
        terminal.wait_for(b"keys wait for the passages, Esc drops them")
        keys_wait.set()
        terminal.wait_for(b"open 0")
        terminal.write(b"q")
        assert terminal.wait() == 0
    cases = read_set(tmp_path)
    assert [case.get("answerable") for case in cases] == [True] * 10
    assert [len(case["gold_supports"]) for case in cases] == [2] * 10


def test_a_passage_that_a_search_of_the_bot_found_is_marked(
    tmp_path: Path, fake_bot: FakeBot, start_asking: Start
) -> None:
    write_data(tmp_path, simple_cases(1), TEXTS)

    def passages(exchange: Exchange) -> None:
        question = exchange.json()["question"]
        chunk = fake_bot.answer(question)["retrieved"][0]
        path = "searched.md" if question == "other words" else "own.md"
        found = [chunk | {"rel_path": path, "text": f"{path} has the text."}]
        exchange.reply(fake_bot.answer(question, retrieved=found))

    fake_bot.default = passages
    with start_asking() as terminal:
        terminal.wait_for(b"lines 1-")
        terminal.write(b"p")
        terminal.wait_for(b"Search the API")
        terminal.write(b"other words k=7\r")
        terminal.wait_for(b"1 new chunk")
        terminal.write(b"G ")
        terminal.wait_for(b"row +1 meets")
        terminal.write(b"q")
        assert terminal.wait() == 0
    (asked,) = [sent for sent in map(Exchange.json, fake_bot.seen) if "words" in sent["question"]]
    assert (asked["question"], asked["k"]) == ("other words", 7)
    assert [gold["rel_path"] for gold in read_set(tmp_path)[0]["gold_supports"]] == ["searched.md"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_cleanly(tmp_path: Path, start: Start, number: signal.Signals) -> None:
    write_data(tmp_path, simple_cases(), TEXTS)
    with start() as terminal:
        terminal.wait_for(b"lines 1-")
        terminal.write(b"2")
        terminal.wait_for(b"row 2 meets")
        terminal.kill(number)
        assert terminal.wait() == 130
        assert b"\x1b[?1049l" in terminal.output, "the alternate screen was left"
    assert read_set(tmp_path)[0]["gold_supports"], "and the label was saved"


def test_hostile_text_reaches_the_terminal_as_text_only(
    tmp_path: Path, start: Start, hostile: tuple[str, ...]
) -> None:
    # A run cannot hold a lone surrogate: its reader refuses such a line. A set can.
    texts = [f"{text} body" for text in hostile if "\ud800" not in text]
    cases = [
        {"id": f"q-{n}", "question": f"{text} asked", "tags": [text], "reference_answer": text}
        for n, text in enumerate(hostile)
    ]
    write_data(tmp_path, cases, texts)
    with start(columns=160, rows=48) as terminal:
        terminal.wait_for(b"lines 1-")
        for _ in hostile:
            terminal.write(b"jl")
            terminal.read(0.03)
        for keys, back in ((b"e", b"\x1b"), (b"1w", b"\x1b"), (b"t", b"\x1b"), (b"P", b"\x1b")):
            terminal.write(keys)
            terminal.read(0.3)
            terminal.write(back)
            terminal.read(0.3)
        terminal.write(b"q")
        terminal.wait()
        written = bytes(terminal.output)
    for payload in DANGEROUS:
        assert payload not in written, payload
    rest = OWN.sub(b"", written)
    assert b"\x1b" not in rest, rest[max(0, rest.find(b"\x1b") - 40) :][:120]
    assert not set(rest) & {0, 7, 8, 11, 12, 14, 15, 127}
    for char in "\u202e\u2066\u200b\ufeff\u2028\U000e0041":
        assert char.encode() not in rest, ascii(char)
    assert "␛[2J".encode() in rest


def test_edit_in_the_users_editor(tmp_path: Path, start: Start) -> None:
    write_data(tmp_path, simple_cases(), TEXTS)
    with start(env={"VISUAL": None, "EDITOR": "sed -i s/How.long/Until.when/"}) as terminal:
        terminal.wait_for(b"lines 1-")
        terminal.write(b"E")
        terminal.wait_for(b"Until.when is log 1 kept?")
        terminal.write(b"q")
        assert terminal.wait() == 0
    assert read_set(tmp_path)[0]["question"] == "Until.when is log 1 kept?"
    assert read_set(tmp_path)[0]["zz_own"] == [1, {"b": 1, "a": 2}]


def test_no_colour(tmp_path: Path, start: Start) -> None:
    write_data(tmp_path, simple_cases(), TEXTS)
    with start(env={"NO_COLOR": "1"}) as terminal:
        shown = terminal.wait_for(b"lines 1-") + terminal.read()
        terminal.write(b"q")
        assert terminal.wait() == 0
    colours = set(re.findall(rb"38;2;(\d+);(\d+);(\d+)", shown))
    assert all(red == green == blue for red, green, blue in colours), "grey only"
    assert b">[ ]" in shown, "the cursor is a sign, not a colour"


def test_resize_in_mid_session(tmp_path: Path, start: Start) -> None:
    write_data(tmp_path, simple_cases(), TEXTS)
    with start() as terminal:
        terminal.wait_for(b"lines 1-")
        for size in ((160, 48), (40, 10), (10, 3), (80, 24)):
            terminal.resize(*size)
            terminal.read(0.2)
        terminal.write(b"2\r")
        terminal.wait_for(b"q-2")
        terminal.write(b"q")
        assert terminal.wait() == 0
    assert read_set(tmp_path)[0]["gold_supports"]


def test_full_disk_is_told_in_place(tmp_path: Path, start: Start) -> None:
    write_data(tmp_path, simple_cases(), TEXTS)
    with start() as terminal:
        terminal.wait_for(b"lines 1-")
        # The set's name becomes a folder: no replace can succeed, whoever runs the test.
        os.rename(tmp_path / "eval_set.jsonl", tmp_path / "kept.jsonl")
        (tmp_path / "eval_set.jsonl").mkdir()
        (tmp_path / "eval_set.jsonl" / "x").write_text("")
        terminal.write(b"2")
        terminal.wait_for(b"row 2 meets")
        terminal.write(b"\x13")
        shown = terminal.wait_for(b"NOT SAVED")
        assert b"NOT SAVED" in shown
        terminal.write(b"3")
        terminal.wait_for(b"row 3 meets")
        terminal.write(b"q")
        assert terminal.wait() == 2
