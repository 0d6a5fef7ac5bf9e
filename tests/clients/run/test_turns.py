"""Conversations are asked in order, under their own history, and go on where a run stopped."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.clients.run.conftest import Desk
from tests.commands import call

import compare_runs
import score_pipeline

Line = dict[str, Any]


def write_talks(folder: Path, names: str = "abc", turns: int = 3, **more: Any) -> Path:
    """Conversations of as many turns each, with a question by itself behind them."""
    lines: list[Line] = [
        {
            "id": f"{name}{turn}",
            "question": f"{name}: and {turn}?" if turn > 1 else f"{name}: what?",
            "conversation": name,
            "turn": turn,
            "reference_answer": f"reference {name}{turn}",
            "question_alone": f"{name}: whole {turn}?",
            "tags": ["t"] if (name, turn) == ("b", 2) else [],
            **more,
        }
        for name in names
        for turn in range(1, turns + 1)
    ]
    lines.append({"id": "single", "question": "by itself?"})
    path = folder / "set.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def write_profile(folder: Path, *uses: str, extra: str = "") -> str:
    """A profile whose request has these placeholders beside the question."""
    path = folder / f"talks-{'-'.join(uses) or 'plain'}.toml"
    body = "".join(f'{name} = "{{{name}}}"\n' for name in ("question", *uses))
    path.write_text(
        f'[request]\npath = "/ask"\n[request.body]\n{body}[response]\nanswer = "answer"\n{extra}'
    )
    return str(path)


def echo(exchange: Any) -> None:
    """The answer is a hash of everything that the bot was sent, but the session."""
    body = exchange.json()
    known = json.dumps([body.get("history"), body["question"]])
    exchange.reply({"answer": f"E{hashlib.sha256(known.encode()).hexdigest()[:8]}"})


def stored(desk: Desk, run_id: str) -> dict[tuple[str, int], Line]:
    return {(line["test_case_id"], line["repeat"]): line for line in desk.results(run_id)}


def bodies(bot: Any) -> dict[str, list[Line]]:
    """What the bot was sent, by question."""
    sent: dict[str, list[Line]] = defaultdict(list)
    for exchange in bot.seen:
        sent[exchange.json().get("question", "")].append(exchange.json())
    return sent


def test_live_turns_are_asked_with_the_answers_of_their_own_repeat(desk: Desk) -> None:
    write_talks(desk.folder)
    count: Counter[str] = Counter()

    def numbered(exchange: Any) -> None:  # another answer at each asking
        question = exchange.json()["question"]
        count[question] += 1
        exchange.reply({"answer": f"{question} #{count[question]}"})

    desk.bot.default = numbered
    desk.invoke(
        *("--run-id", "r", "--repeat", "2", "--set", "concurrency=4"),
        *("--profile", write_profile(desk.folder, "history")),
    )
    lines = stored(desk, "r")
    order = [line["test_case_id"] for line in desk.results("r")]
    assert order[:6] == ["a1", "a1", "a2", "a2", "a3", "a3"]
    for repeat in (0, 1):
        (sent,) = [
            body["history"]
            for body in bodies(desk.bot)["b: and 3?"]
            if body["history"][1]["content"] == lines["b1", repeat]["answer"]
        ]
        assert sent == [
            {"role": "user", "content": "b: what?"},
            {"role": "assistant", "content": lines["b1", repeat]["answer"]},
            {"role": "user", "content": "b: and 2?"},
            {"role": "assistant", "content": lines["b2", repeat]["answer"]},
        ]
        pairs = json.dumps(
            [[m["role"], m["content"]] for m in sent], separators=(",", ":"), ensure_ascii=False
        )
        digest = hashlib.sha256(pairs.encode()).hexdigest()
        assert lines["b3", repeat]["history_sha256"] == digest
        assert lines["b3", repeat]["asked_with"] == "live"
    assert all("history" not in body for body in bodies(desk.bot)["by itself?"])
    assert "asked_with" not in lines["single", 0]
    config = desk.config("r")
    assert config["retriever"]["requested"]["history"] == "live"
    assert config["run"]["selected"] == 10  # turns and the question by itself


@pytest.mark.parametrize(
    ("history", "question", "sent"),
    [
        ("replay", "a: and 2?", [("user", "a: what?"), ("assistant", "reference a1")]),
        ("alone", "a: whole 2?", None),
        ("none", "a: and 2?", None),
    ],
)
def test_other_histories_need_no_answer_before(
    desk: Desk, history: str, question: str, sent: list[tuple[str, str]] | None
) -> None:
    write_talks(desk.folder)
    desk.bot.script("a: what?", lambda exchange: exchange.raw(b"", status=400))
    profile = write_profile(desk.folder, "history", "session")
    desk.invoke(*("--run-id", "r", "--set", f"history={history}", "--profile", profile))
    (body,) = bodies(desk.bot)[question]
    pairs = [(m["role"], m["content"]) for m in body["history"]] if "history" in body else None
    assert pairs == sent
    sessions = [
        body["session"] for each in bodies(desk.bot).values() for body in each if "session" in body
    ]
    assert len(set(sessions)) == len(sessions) == 9  # a bot with a memory cannot mix the turns up
    assert stored(desk, "r")["a2", 0]["asked_with"] == history


def test_a_session_is_one_conversation_one_repeat(desk: Desk) -> None:
    write_talks(desk.folder)
    desk.bot.default = echo
    desk.invoke(
        "--run-id", "r", "--repeat", "2", "--profile", write_profile(desk.folder, "session")
    )
    lines = stored(desk, "r")
    sessions = {
        (name, repeat): {lines[f"{name}{turn}", repeat]["session"] for turn in (1, 2, 3)}
        for name in "abc"
        for repeat in (0, 1)
    }
    assert all(len(each) == 1 for each in sessions.values())
    assert len(set.union(*sessions.values())) == 6
    assert next(iter(sessions["a", 1])).startswith("r-a-1-1-")
    assert all("session" not in body for body in bodies(desk.bot)["by itself?"])


def test_a_failed_turn_fails_the_later_ones_and_counts_once(desk: Desk) -> None:
    write_talks(desk.folder)
    desk.bot.default = echo
    desk.bot.script("a: what?", lambda exchange: exchange.raw(b"", status=400), echo)
    desk.bot.script("b: and 2?", lambda exchange: exchange.reply({"answer": " "}), echo)
    profile = write_profile(desk.folder, "history")
    # 2 of 10 calls failed themselves; with the 3 turns behind them it would be half of all
    desk.invoke("--run-id", "r", "--profile", profile, "--max-error-rate", "0.2")
    lines = stored(desk, "r")
    kinds = {case: line["error"] and line["error"]["kind"] for (case, _), line in lines.items()}
    assert kinds == {
        "a1": "client_error",
        "a2": "earlier_turn_failed",
        "a3": "earlier_turn_failed",
        "b1": None,
        "b2": "no_answer",
        "b3": "earlier_turn_failed",
        "c1": None,
        "c2": None,
        "c3": None,
        "single": None,
    }
    assert lines["a3", 0]["error"]["message"].startswith("turn 1 (a1) failed: client_error")
    assert not desk.bot.asked["a: and 2?"]
    before = desk.bot.asked.copy()
    again = ("--run-id", "r", "--profile", profile, "--resume", "--retry-errors")
    desk.invoke(*again)
    asked = desk.bot.asked - before
    assert set(asked) == {"a: what?", "a: and 2?", "a: and 3?", "b: and 2?", "b: and 3?"}
    lines = stored(desk, "r")
    assert {line["status"] for line in lines.values()} == {"ok"}
    (history,) = [body["history"] for body in bodies(desk.bot)["b: and 3?"]]
    assert history[1]["content"] == lines["b1", 0]["answer"]
    assert history[3]["content"] == lines["b2", 0]["answer"]


def test_a_stopped_run_goes_on_from_the_missing_turn_or_begins_a_session_anew(desk: Desk) -> None:
    write_talks(desk.folder)
    desk.bot.default = echo
    for uses in (("history",), ("history", "session")):
        run_id, profile = "-".join(uses), write_profile(desk.folder, *uses)
        desk.invoke("--run-id", run_id, "--profile", profile)
        folder = desk.folder / "results" / run_id
        lines = (folder / "results.jsonl").read_text().splitlines(keepends=True)
        # a2 and all behind it are lost; of c another answer stands at turn 1
        changed = json.loads(lines[6]) | {"answer": "of somebody else"}
        (folder / "results.jsonl").unlink()
        (folder / "results.partial.jsonl").write_text(
            "".join([lines[0], *lines[3:6], json.dumps(changed) + "\n", *lines[7:]])
        )
        before = desk.bot.asked.copy()
        desk.invoke("--run-id", run_id, "--profile", profile, "--resume")
        asked = desk.bot.asked - before
        begun = {"a: what?", "c: what?"} & set(asked)
        assert set(asked) - begun == {f"{name}: and {turn}?" for name in "ac" for turn in (2, 3)}
        assert not begun or run_id == "history-session"
        assert set(asked.values()) == {1}
        if run_id == "history":
            first = [(line["test_case_id"], line["answer"]) for line in desk.read(folder)][:6]
            assert first == [
                (line["test_case_id"], line["answer"]) for line in map(json.loads, lines[:6])
            ]
            (history,) = [
                body["history"]
                for body in bodies(desk.bot)["c: and 2?"]
                if body["history"][1]["content"] == "of somebody else"
            ]
            assert len(history) == 2
        else:
            new = stored(desk, run_id)
            assert new["c1", 0]["answer"] != "of somebody else"
            assert len({new[f"c{turn}", 0]["session"] for turn in (1, 2, 3)}) == 1
            assert "-c-0-2-" in new["c1", 0]["session"]


def test_a_call_that_timed_out_is_not_sent_again_within_a_session(desk: Desk) -> None:
    write_talks(desk.folder, "a")
    desk.bot.default = echo
    desk.bot.script("a: and 2?", lambda exchange: exchange.hang(), echo)
    for uses, times in ((("session",), 1), (("history",), 2)):
        desk.bot.asked.clear()
        desk.bot.script("a: and 2?", lambda exchange: exchange.hang(), echo)
        run_id, profile = "-".join(uses), write_profile(desk.folder, *uses)
        words = ("--run-id", run_id, "--profile", profile, "--set", "timeout=0.3")
        desk.invoke(*words, "--max-error-rate", "1")
        assert desk.bot.asked["a: and 2?"] == times
    lines = stored(desk, "session")
    assert lines["a2", 0]["error"]["kind"] == "timeout"
    assert lines["a3", 0]["error"]["kind"] == "earlier_turn_failed"


def test_the_lines_of_a_session_are_written_together(desk: Desk) -> None:
    write_talks(desk.folder)
    partial = desk.folder / "results" / "r" / "results.partial.jsonl"
    seen: set[int] = set()
    lock = threading.Lock()

    def look(exchange: Any) -> None:
        with lock:
            if partial.exists():
                lines = partial.read_bytes().splitlines()
                seen.add(sum(b"and" in line or b"what" in line for line in lines))
        echo(exchange)

    desk.bot.default = look
    profile = write_profile(desk.folder, "session")
    desk.invoke("--run-id", "r", "--profile", profile, "--set", "concurrency=2")
    assert seen
    assert {lines % 3 for lines in seen} == {0}


def test_what_cannot_be_asked_is_refused_before_the_first_call(desk: Desk) -> None:
    write_talks(desk.folder, reference_answer=None)
    both = write_profile(desk.folder, "history", "session")
    session = write_profile(desk.folder, "session")
    for words, message in [
        (("--set", "history=replay", "--profile", both), "a1, a2, b1, b2, c1"),
        (("--set", "history=replay", "--profile", session), "knows only {session}"),
        (
            ("--retrieval-only", "--set", "history=live", "--profile", both),
            "choose --set history=replay, alone or none",
        ),
        (("--retrieval-only", "--profile", both), "a1, a2, b1, b2, c1"),
    ]:
        done = desk.invoke("--run-id", "r", *words, ends=2)
        assert message in done.stderr
    assert not desk.bot.seen
    assert not (desk.folder / "results" / "r").exists()
    plain = write_profile(desk.folder)
    done = desk.invoke("--run-id", "r", "--profile", plain)
    assert "neither {history} nor {session}" in done.stderr
    assert "add one of them to [request.body]" in done.stderr
    config = desk.config("r")
    assert config["retriever"]["requested"]["history"] == "none"


def test_retrieval_alone_asks_with_the_reference_answers(desk: Desk) -> None:
    write_talks(desk.folder)
    desk.bot.default = echo
    profile = write_profile(desk.folder, "history")
    done = desk.invoke("--run-id", "r", "--retrieval-only", "--profile", profile)
    assert "set's reference answers (--set history=replay)" in " ".join(done.stderr.split())
    (second,) = bodies(desk.bot)["a: and 2?"]
    assert [message["content"] for message in second["history"]] == ["a: what?", "reference a1"]
    assert stored(desk, "r")["a2", 0]["asked_with"] == "replay"
    config = desk.config("r")
    assert config["retriever"]["requested"]["history"] == "replay"


def test_a_selection_takes_conversations_whole(desk: Desk) -> None:
    write_talks(desk.folder)
    profile = write_profile(desk.folder, "history")
    done = desk.invoke("--run-id", "f", "--filter", "tag=t", "--profile", profile)
    folder = desk.folder / "results" / "f"
    assert [line["test_case_id"] for line in desk.read(folder)] == ["b1", "b2", "b3"]
    done = desk.invoke("--run-id", "l", "--limit", "4", "--profile", profile)
    assert "--limit 4 is inside a conversation, which is asked whole: 6 cases" in done.stderr
    ids = [line["test_case_id"] for line in desk.results("l")]
    assert ids == ["a1", "a2", "a3", "b1", "b2", "b3"]
    (desk.folder / "set.jsonl").write_text('{"id": "x", "question": "?"}\n')
    done = desk.invoke("--run-id", "x", "--set", "history=none", "--profile", profile)
    assert "history changes nothing" in done.stderr


def test_a_history_of_a_case_is_always_sent(desk: Desk) -> None:
    fixed = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    line = {"id": "f", "question": "And you?", "history": fixed}
    (desk.folder / "set.jsonl").write_text(json.dumps(line) + "\n")
    extra = '[history]\nassistant = "bot"\ncontent = "text"\n'
    profile = write_profile(desk.folder, "history", extra=extra)
    desk.invoke("--run-id", "r", "--set", "history=none", "--profile", profile)
    (body,) = bodies(desk.bot)["And you?"]
    assert body["history"] == [{"role": "user", "text": "Hi"}, {"role": "bot", "text": "Hello"}]
    (result,) = desk.results("r")
    assert result["asked_with"] == "fixed"
    config = desk.config("r")
    assert "history" not in config["retriever"]["requested"]


def test_a_bot_with_one_memory_is_reset_and_asked_by_nobody_else(desk: Desk) -> None:
    write_talks(desk.folder)
    order: list[str] = []
    desk.bot.delay = 0.005
    desk.bot.question = lambda exchange: exchange.json().get("question", "")

    def remember(exchange: Any) -> None:
        order.append(exchange.path.rpartition("/")[2])
        exchange.reply({"answer": "yes"})

    desk.bot.default = remember
    profile = write_profile(desk.folder, extra='[reset]\npath = "/forget"\nbody = { all = true }\n')
    desk.invoke("--run-id", "r", "--profile", profile)
    assert order == ["forget", *["ask"] * 3] * 3 + ["forget", "ask"]
    assert desk.bot.most_at_once == 1


def test_a_bot_that_names_its_sessions_is_answered_with_that_name(desk: Desk) -> None:
    write_talks(desk.folder, "a")

    def named(exchange: Any) -> None:
        body = exchange.json()
        exchange.reply({"answer": "yes", "conversation": body.get("session") or "own-7"})

    desk.bot.default = named
    profile = write_profile(desk.folder, "session", extra='session = "conversation"\n')
    desk.invoke("--run-id", "r", "--profile", profile)
    assert "session" not in bodies(desk.bot)["a: what?"][0]
    assert bodies(desk.bot)["a: and 3?"][0]["session"] == "own-7"
    assert stored(desk, "r")["a3", 0]["session"] == "own-7"


def test_the_default_profile_sends_both_with_turns_and_neither_otherwise(desk: Desk) -> None:
    write_talks(desk.folder)
    desk.invoke("--run-id", "r")
    sent = bodies(desk.bot)
    assert {"history", "session"} <= sent["a: and 2?"][0].keys()
    assert not {"history", "session"} & sent["by itself?"][0].keys()
    assert not {"history"} & sent["a: what?"][0].keys()


def test_answers_of_elsewhere_are_known_by_conversation_and_turn(desk: Desk) -> None:
    write_talks(desk.folder, "a", question="And then?")  # the same words at every turn
    lines: list[Line] = [
        {"conversation": "a", "turn": turn, "answer": f"answer {turn}"} for turn in (3, 1, 2)
    ]
    lines.append({"question": "by itself?", "answer": "yes"})
    path = desk.folder / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = desk.invoke("--run-id", "r", "--from-jsonl", path)
    answers = [(line["test_case_id"], line["answer"]) for line in desk.results("r")]
    assert answers == [*((f"a{turn}", f"answer {turn}") for turn in (1, 2, 3)), ("single", "yes")]
    for line, words in [
        ({"conversation": "a", "turn": 4, "answer": ""}, "turn 4 of conversation 'a' is not in"),
        ({"question": "And then?", "answer": ""}, "give an id, or conversation and turn"),
    ]:
        path.write_text(json.dumps(line) + "\n")
        done = desk.invoke("--run-id", "s", "--from-jsonl", path, ends=2)
        assert words in done.stderr


@pytest.mark.parametrize("uses", [("history",), ("session",), ()])
def test_unchanged_turns_are_compared_whatever_was_sent(desk: Desk, uses: tuple[str, ...]) -> None:
    """Base is asked with its own live answers, none of which the bot gives again; the new run with
    the same profile, or another one. Of ten questions b2 is reworded, so that b3 follows on another
    one; the other eight are the same. Conversation d is new."""
    count: Counter[str] = Counter()

    def never_the_same(exchange: Any) -> None:
        count["calls"] += 1
        exchange.reply({"answer": f"answer {count['calls']}"})

    desk.bot.default = never_the_same
    runs = (("base", "abc", ("history",)), ("new", "abcd", uses))
    for run_id, names, placeholders in runs:
        path = write_talks(desk.folder, names, expected_outcome="success")
        if run_id == "new":
            path.write_text(path.read_text().replace("b: and 2?", "b: or 2?"))
        desk.invoke("--run-id", run_id, "--profile", write_profile(desk.folder, *placeholders))
        words = ["--run", run_id, "--eval-set", str(path)]
        words += ["--results-dir", str(desk.folder / "results")]
        call(score_pipeline, *words)
    base, new = (stored(desk, name) for name in ("base", "new"))
    alike = {case for case, _ in base if base[case, 0]["asked"] == new[case, 0]["asked"]}
    assert alike == {"a1", "a2", "a3", "b1", "c1", "c2", "c3", "single"}
    if uses == ("history",):
        assert base["a3", 0]["history_sha256"] != new["a3", 0]["history_sha256"]

    words = ["base", "new", "--json", "--results-dir", str(desk.folder / "results")]
    (found,) = json.loads(call(compare_runs, *words).stdout)["comparisons"]
    assert found["set_changes"] == {
        "same": 8, "new": 3, "reworded": 2, "relabelled": 0, "gone": 0, "rescored": 0,
    }  # fmt: skip
    (answered,) = (row for row in found["rows"] if row["metric"] == "answered")
    assert answered["n"] == 8
