"""Conversations are asked in order, under their own history, and go on where a run stopped."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

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


def stored(read: Any, folder: Path, name: str = "results.jsonl") -> dict[tuple[str, int], Line]:
    return {(line["test_case_id"], line["repeat"]): line for line in read(folder, name)}


def bodies(bot: Any) -> dict[str, list[Line]]:
    """What the bot was sent, by question."""
    sent: dict[str, list[Line]] = defaultdict(list)
    for exchange in bot.seen:
        sent[exchange.json().get("question", "")].append(exchange.json())
    return sent


def test_live_turns_are_asked_with_the_answers_of_their_own_repeat(
    tmp_path: Path, fake_bot: Any, invoke: Any, read: Any
) -> None:
    write_talks(tmp_path)
    count: Counter[str] = Counter()

    def numbered(exchange: Any) -> None:  # another answer at each asking
        question = exchange.json()["question"]
        count[question] += 1
        exchange.reply({"answer": f"{question} #{count[question]}"})

    fake_bot.default = numbered
    invoke(
        *("--run-id", "r", "--repeat", "2", "--set", "concurrency=4"),
        *("--profile", write_profile(tmp_path, "history")),
    )
    lines = stored(read, tmp_path / "results" / "r")
    order = [line["test_case_id"] for line in read(tmp_path / "results" / "r")]
    assert order[:6] == ["a1", "a1", "a2", "a2", "a3", "a3"]
    for repeat in (0, 1):
        (sent,) = [
            body["history"]
            for body in bodies(fake_bot)["b: and 3?"]
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
    assert all("history" not in body for body in bodies(fake_bot)["by itself?"])
    assert "asked_with" not in lines["single", 0]
    config = json.loads((tmp_path / "results" / "r" / "config.json").read_text())
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
    tmp_path: Path,
    fake_bot: Any,
    invoke: Any,
    read: Any,
    history: str,
    question: str,
    sent: list[tuple[str, str]] | None,
) -> None:
    write_talks(tmp_path)
    fake_bot.script("a: what?", lambda exchange: exchange.raw(b"", status=400))
    profile = write_profile(tmp_path, "history", "session")
    invoke(*("--run-id", "r", "--set", f"history={history}", "--profile", profile))
    (body,) = bodies(fake_bot)[question]
    pairs = [(m["role"], m["content"]) for m in body["history"]] if "history" in body else None
    assert pairs == sent
    sessions = [
        body["session"] for each in bodies(fake_bot).values() for body in each if "session" in body
    ]
    assert len(set(sessions)) == len(sessions) == 9  # a bot with a memory cannot mix the turns up
    assert stored(read, tmp_path / "results" / "r")["a2", 0]["asked_with"] == history


def test_a_session_is_one_conversation_one_repeat(
    tmp_path: Path, fake_bot: Any, invoke: Any, read: Any
) -> None:
    write_talks(tmp_path)
    fake_bot.default = echo
    invoke("--run-id", "r", "--repeat", 2, "--profile", write_profile(tmp_path, "session"))
    lines = stored(read, tmp_path / "results" / "r")
    sessions = {
        (name, repeat): {lines[f"{name}{turn}", repeat]["session"] for turn in (1, 2, 3)}
        for name in "abc"
        for repeat in (0, 1)
    }
    assert all(len(each) == 1 for each in sessions.values())
    assert len(set.union(*sessions.values())) == 6
    assert next(iter(sessions["a", 1])).startswith("r-a-1-1-")
    assert all("session" not in body for body in bodies(fake_bot)["by itself?"])


def test_a_failed_turn_fails_the_later_ones_and_counts_once(
    tmp_path: Path, fake_bot: Any, invoke: Any, read: Any
) -> None:
    write_talks(tmp_path)
    fake_bot.default = echo
    fake_bot.script("a: what?", lambda exchange: exchange.raw(b"", status=400), echo)
    fake_bot.script("b: and 2?", lambda exchange: exchange.reply({"answer": " "}), echo)
    profile = write_profile(tmp_path, "history")
    # 2 of 10 calls failed themselves; with the 3 turns behind them it would be half of all
    invoke("--run-id", "r", "--profile", profile, "--max-error-rate", "0.2")
    lines = stored(read, tmp_path / "results" / "r")
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
    assert not fake_bot.asked["a: and 2?"]
    before = fake_bot.asked.copy()
    again = ("--run-id", "r", "--profile", profile, "--resume", "--retry-errors")
    invoke(*again)
    asked = fake_bot.asked - before
    assert set(asked) == {"a: what?", "a: and 2?", "a: and 3?", "b: and 2?", "b: and 3?"}
    lines = stored(read, tmp_path / "results" / "r")
    assert {line["status"] for line in lines.values()} == {"ok"}
    (history,) = [body["history"] for body in bodies(fake_bot)["b: and 3?"]]
    assert history[1]["content"] == lines["b1", 0]["answer"]
    assert history[3]["content"] == lines["b2", 0]["answer"]


def test_a_stopped_run_goes_on_from_the_missing_turn_or_begins_a_session_anew(
    tmp_path: Path, fake_bot: Any, invoke: Any, read: Any
) -> None:
    write_talks(tmp_path)
    fake_bot.default = echo
    for uses in (("history",), ("history", "session")):
        run_id, profile = "-".join(uses), write_profile(tmp_path, *uses)
        invoke("--run-id", run_id, "--profile", profile)
        folder = tmp_path / "results" / run_id
        lines = (folder / "results.jsonl").read_text().splitlines(keepends=True)
        # a2 and all behind it are lost; of c another answer stands at turn 1
        changed = json.loads(lines[6]) | {"answer": "of somebody else"}
        (folder / "results.jsonl").unlink()
        (folder / "results.partial.jsonl").write_text(
            "".join([lines[0], *lines[3:6], json.dumps(changed) + "\n", *lines[7:]])
        )
        before = fake_bot.asked.copy()
        invoke("--run-id", run_id, "--profile", profile, "--resume")
        asked = fake_bot.asked - before
        begun = {"a: what?", "c: what?"} & set(asked)
        assert set(asked) - begun == {f"{name}: and {turn}?" for name in "ac" for turn in (2, 3)}
        assert not begun or run_id == "history-session"
        assert set(asked.values()) == {1}
        if run_id == "history":
            first = [(line["test_case_id"], line["answer"]) for line in read(folder)][:6]
            assert first == [
                (line["test_case_id"], line["answer"]) for line in map(json.loads, lines[:6])
            ]
            (history,) = [
                body["history"]
                for body in bodies(fake_bot)["c: and 2?"]
                if body["history"][1]["content"] == "of somebody else"
            ]
            assert len(history) == 2
        else:
            new = stored(read, folder)
            assert new["c1", 0]["answer"] != "of somebody else"
            assert len({new[f"c{turn}", 0]["session"] for turn in (1, 2, 3)}) == 1
            assert "-c-0-2-" in new["c1", 0]["session"]


def test_a_call_that_timed_out_is_not_sent_again_within_a_session(
    tmp_path: Path, fake_bot: Any, invoke: Any, read: Any
) -> None:
    write_talks(tmp_path, "a")
    fake_bot.default = echo
    fake_bot.script("a: and 2?", lambda exchange: exchange.hang(), echo)
    for uses, times in ((("session",), 1), (("history",), 2)):
        fake_bot.asked.clear()
        fake_bot.script("a: and 2?", lambda exchange: exchange.hang(), echo)
        run_id, profile = "-".join(uses), write_profile(tmp_path, *uses)
        words = ("--run-id", run_id, "--profile", profile, "--set", "timeout=0.3")
        invoke(*words, "--max-error-rate", "1")
        assert fake_bot.asked["a: and 2?"] == times
    lines = stored(read, tmp_path / "results" / "session")
    assert lines["a2", 0]["error"]["kind"] == "timeout"
    assert lines["a3", 0]["error"]["kind"] == "earlier_turn_failed"


def test_the_lines_of_a_session_are_written_together(
    tmp_path: Path, fake_bot: Any, invoke: Any
) -> None:
    write_talks(tmp_path)
    partial = tmp_path / "results" / "r" / "results.partial.jsonl"
    seen: set[int] = set()
    lock = threading.Lock()

    def look(exchange: Any) -> None:
        with lock:
            if partial.exists():
                lines = partial.read_bytes().splitlines()
                seen.add(sum(b"and" in line or b"what" in line for line in lines))
        echo(exchange)

    fake_bot.default = look
    profile = write_profile(tmp_path, "session")
    invoke("--run-id", "r", "--profile", profile, "--set", "concurrency=2")
    assert seen
    assert {lines % 3 for lines in seen} == {0}


def test_what_cannot_be_asked_is_refused_before_the_first_call(
    tmp_path: Path, fake_bot: Any, invoke: Any
) -> None:
    write_talks(tmp_path, reference_answer=None)
    both, session = (
        write_profile(tmp_path, "history", "session"),
        write_profile(tmp_path, "session"),
    )
    for words, message in [
        (("--set", "history=replay", "--profile", both), "a1, a2, b1, b2, c1"),
        (("--set", "history=replay", "--profile", session), "knows only {session}"),
        (
            ("--retrieval-only", "--set", "history=live", "--profile", both),
            "choose --set history=replay, alone or none",
        ),
        (("--retrieval-only", "--profile", both), "a1, a2, b1, b2, c1"),
    ]:
        done = invoke("--run-id", "r", *words, ends=2)
        assert message in done.stderr
    assert not fake_bot.seen
    assert not (tmp_path / "results" / "r").exists()
    plain = write_profile(tmp_path)
    done = invoke("--run-id", "r", "--profile", plain)
    assert "neither {history} nor {session}" in done.stderr
    assert "add one of them to [request.body]" in done.stderr
    config = json.loads((tmp_path / "results" / "r" / "config.json").read_text())
    assert config["retriever"]["requested"]["history"] == "none"


def test_retrieval_alone_asks_with_the_reference_answers(
    tmp_path: Path, fake_bot: Any, invoke: Any, read: Any
) -> None:
    write_talks(tmp_path)
    fake_bot.default = echo
    words = ("--run-id", "r", "--retrieval-only", "--profile", write_profile(tmp_path, "history"))
    done = invoke(*words)
    assert "set's reference answers (--set history=replay)" in " ".join(done.stderr.split())
    (second,) = bodies(fake_bot)["a: and 2?"]
    assert [message["content"] for message in second["history"]] == ["a: what?", "reference a1"]
    assert stored(read, tmp_path / "results" / "r")["a2", 0]["asked_with"] == "replay"
    config = json.loads((tmp_path / "results" / "r" / "config.json").read_text())
    assert config["retriever"]["requested"]["history"] == "replay"


def test_a_selection_takes_conversations_whole(tmp_path: Path, invoke: Any, read: Any) -> None:
    write_talks(tmp_path)
    profile = write_profile(tmp_path, "history")
    done = invoke("--run-id", "f", "--filter", "tag=t", "--profile", profile)
    folder = tmp_path / "results" / "f"
    assert [line["test_case_id"] for line in read(folder)] == ["b1", "b2", "b3"]
    done = invoke("--run-id", "l", "--limit", "4", "--profile", profile)
    assert "--limit 4 is inside a conversation, which is asked whole: 6 cases" in done.stderr
    ids = [line["test_case_id"] for line in read(tmp_path / "results" / "l")]
    assert ids == ["a1", "a2", "a3", "b1", "b2", "b3"]
    (tmp_path / "set.jsonl").write_text('{"id": "x", "question": "?"}\n')
    done = invoke("--run-id", "x", "--set", "history=none", "--profile", profile)
    assert "history changes nothing" in done.stderr


def test_a_history_of_a_case_is_always_sent(
    tmp_path: Path, fake_bot: Any, invoke: Any, read: Any
) -> None:
    fixed = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    line = {"id": "f", "question": "And you?", "history": fixed}
    (tmp_path / "set.jsonl").write_text(json.dumps(line) + "\n")
    extra = '[history]\nassistant = "bot"\ncontent = "text"\n'
    profile = write_profile(tmp_path, "history", extra=extra)
    invoke("--run-id", "r", "--set", "history=none", "--profile", profile)
    (body,) = bodies(fake_bot)["And you?"]
    assert body["history"] == [{"role": "user", "text": "Hi"}, {"role": "bot", "text": "Hello"}]
    (result,) = read(tmp_path / "results" / "r")
    assert result["asked_with"] == "fixed"
    config = json.loads((tmp_path / "results" / "r" / "config.json").read_text())
    assert "history" not in config["retriever"]["requested"]


def test_a_bot_with_one_memory_is_reset_and_asked_by_nobody_else(
    tmp_path: Path, fake_bot: Any, invoke: Any
) -> None:
    write_talks(tmp_path)
    order: list[str] = []
    fake_bot.delay = 0.005
    fake_bot.question = lambda exchange: exchange.json().get("question", "")

    def remember(exchange: Any) -> None:
        order.append(exchange.path.rpartition("/")[2])
        exchange.reply({"answer": "yes"})

    fake_bot.default = remember
    profile = write_profile(tmp_path, extra='[reset]\npath = "/forget"\nbody = { all = true }\n')
    invoke("--run-id", "r", "--profile", profile)
    assert order == ["forget", *["ask"] * 3] * 3 + ["forget", "ask"]
    assert fake_bot.most_at_once == 1


def test_a_bot_that_names_its_sessions_is_answered_with_that_name(
    tmp_path: Path, fake_bot: Any, invoke: Any, read: Any
) -> None:
    write_talks(tmp_path, "a")

    def named(exchange: Any) -> None:
        body = exchange.json()
        exchange.reply({"answer": "yes", "conversation": body.get("session") or "own-7"})

    fake_bot.default = named
    profile = write_profile(tmp_path, "session", extra='session = "conversation"\n')
    invoke("--run-id", "r", "--profile", profile)
    assert "session" not in bodies(fake_bot)["a: what?"][0]
    assert bodies(fake_bot)["a: and 3?"][0]["session"] == "own-7"
    assert stored(read, tmp_path / "results" / "r")["a3", 0]["session"] == "own-7"


def test_the_default_profile_sends_both_with_turns_and_neither_otherwise(
    tmp_path: Path, fake_bot: Any, invoke: Any
) -> None:
    write_talks(tmp_path)
    invoke("--run-id", "r")
    sent = bodies(fake_bot)
    assert {"history", "session"} <= sent["a: and 2?"][0].keys()
    assert not {"history", "session"} & sent["by itself?"][0].keys()
    assert not {"history"} & sent["a: what?"][0].keys()


def test_answers_of_elsewhere_are_known_by_conversation_and_turn(
    tmp_path: Path, invoke: Any, read: Any
) -> None:
    write_talks(tmp_path, "a", question="And then?")  # the same words at every turn
    lines: list[Line] = [
        {"conversation": "a", "turn": turn, "answer": f"answer {turn}"} for turn in (3, 1, 2)
    ]
    lines.append({"question": "by itself?", "answer": "yes"})
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = invoke("--run-id", "r", "--from-jsonl", path)
    answers = [(line["test_case_id"], line["answer"]) for line in read(tmp_path / "results" / "r")]
    assert answers == [*((f"a{turn}", f"answer {turn}") for turn in (1, 2, 3)), ("single", "yes")]
    for line, words in [
        ({"conversation": "a", "turn": 4, "answer": ""}, "turn 4 of conversation 'a' is not in"),
        ({"question": "And then?", "answer": ""}, "give an id, or conversation and turn"),
    ]:
        path.write_text(json.dumps(line) + "\n")
        done = invoke("--run-id", "s", "--from-jsonl", path, ends=2)
        assert words in done.stderr


@pytest.mark.parametrize("uses", [("history",), ("session",), ()])
def test_every_unchanged_turn_is_compared_whatever_the_bot_was_sent(
    tmp_path: Path, fake_bot: Any, invoke: Any, read: Any, uses: tuple[str, ...]
) -> None:
    """Base is asked with its own live answers, none of which the bot gives again; the new run with
    the same profile, or another one. Of ten questions b2 is reworded, so that b3 follows on another
    one; the other eight are the same. Conversation d is new."""
    count: Counter[str] = Counter()

    def never_the_same(exchange: Any) -> None:
        count["calls"] += 1
        exchange.reply({"answer": f"answer {count['calls']}"})

    fake_bot.default = never_the_same
    runs = (("base", "abc", ("history",)), ("new", "abcd", uses))
    for run_id, names, placeholders in runs:
        path = write_talks(tmp_path, names, expected_outcome="success")
        if run_id == "new":
            path.write_text(path.read_text().replace("b: and 2?", "b: or 2?"))
        done = invoke("--run-id", run_id, "--profile", write_profile(tmp_path, *placeholders))
        words = ["--run", run_id, "--eval-set", str(path)]
        words += ["--results-dir", str(tmp_path / "results")]
        CliRunner().invoke(score_pipeline.main, words)
    base, new = (stored(read, tmp_path / "results" / name) for name in ("base", "new"))
    alike = {case for case, _ in base if base[case, 0]["asked"] == new[case, 0]["asked"]}
    assert alike == {"a1", "a2", "a3", "b1", "c1", "c2", "c3", "single"}
    if uses == ("history",):
        assert base["a3", 0]["history_sha256"] != new["a3", 0]["history_sha256"]

    words = ["base", "new", "--json", "--results-dir", str(tmp_path / "results")]
    done = CliRunner().invoke(compare_runs.main, words)
    (found,) = json.loads(done.stdout)["comparisons"]
    assert found["set_changes"] == {
        "same": 8, "new": 3, "reworded": 2, "relabelled": 0, "gone": 0, "rescored": 0,
    }  # fmt: skip
    (answered,) = (row for row in found["rows"] if row["metric"] == "answered")
    assert answered["n"] == 8
