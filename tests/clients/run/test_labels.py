"""run_eval.py and label files: labels join the cases; --labels also asks the labelled prompts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.clients.run.conftest import Desk

LABELS = [
    {"case_id": "atk", "kind": "attack", "text": "attack!", "attack_category": "role_override"},
    {"case_id": "leak", "kind": "leak", "text": "a leak", "leak_category": "pii_exposure"},
    {"case_id": "ben", "kind": "benign", "text": "harmless"},
    {"case_id": "q0", "attack_category": "role_override"},
    {"case_id": "safe", "kind": "safe_output", "text": "an output"},
]
SAFETY = "safety_results.jsonl"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    folder = tmp_path / "labels"
    folder.mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in LABELS)
    (folder / "safety_labels.jsonl").write_text(lines)
    return folder


def guard(fake_bot: Any) -> None:
    """A bot that scores attacks 0.9 and the rest 0.1."""

    def reply(exchange: Any) -> None:
        question = fake_bot.question(exchange)
        score = 0.9 if "attack" in question else 0.1
        exchange.reply(fake_bot.answer(question, guardrail={"input_score": score}))

    fake_bot.default = reply


def test_prompts_are_asked_and_outputs_are_not(desk: Desk, labels: Path) -> None:
    guard(desk.bot)
    done = desk.invoke("--run-id", "r", "--labels", "--labels-dir", labels)
    assert "Asked 2 labelled prompts as well." in done.stderr
    folder = desk.folder / "results" / "r"
    found = {line["test_case_id"]: line for line in desk.read(folder, SAFETY)}
    assert list(found) == ["atk", "ben"]
    assert found["atk"]["guardrail"] == {"input_score": 0.9}
    assert found["atk"]["question"] == "attack!"
    assert [line["test_case_id"] for line in desk.read(folder)] == [f"q{n}" for n in range(5)]
    assert set(desk.bot.asked) == {f"question {n}" for n in range(5)} | {"attack!", "harmless"}
    assert sorted(path.name for path in folder.glob("safety*")) == [SAFETY]


def test_without_the_option_nobody_is_attacked(desk: Desk, labels: Path) -> None:
    desk.invoke("--run-id", "r", "--labels-dir", labels)
    assert "attack!" not in desk.bot.asked
    assert not (desk.folder / "results" / "r" / SAFETY).exists()


def test_a_failed_prompt_is_recorded_and_asked_again_on_resume(desk: Desk, labels: Path) -> None:
    desk.bot.script("attack!", lambda e: e.reply({}, 400), desk.bot.reply_properly)
    words = ("--run-id", "r", "--labels", "--labels-dir", labels)
    done = desk.invoke(*words)
    assert "1 failed" in done.stderr
    folder = desk.folder / "results" / "r"
    assert [line["status"] for line in desk.read(folder, SAFETY)] == ["error", "ok"]
    assert desk.read(folder, SAFETY)[0]["answer"] is None

    desk.invoke(*words, "--resume")
    assert [line["status"] for line in desk.read(folder, SAFETY)] == ["ok", "ok"]
    assert desk.bot.asked["attack!"] == 2
    assert desk.bot.asked["harmless"] == 1
    assert desk.bot.asked["question 0"] == 1


def test_what_a_broken_off_call_left_is_kept(desk: Desk, labels: Path) -> None:
    """As after a kill: a whole line, and a torn one."""
    words = ("--run-id", "r", "--labels", "--labels-dir", labels)
    desk.invoke(*words)
    folder = desk.folder / "results" / "r"
    lines = (folder / SAFETY).read_bytes()
    (folder / SAFETY).unlink()
    (folder / "safety_results.partial.jsonl").write_bytes(lines[:-20])
    desk.invoke(*words, "--resume")
    assert [line["test_case_id"] for line in desk.read(folder, SAFETY)] == ["atk", "ben"]
    assert (desk.bot.asked["attack!"], desk.bot.asked["harmless"]) == (1, 2)


def test_a_hole_that_a_power_cut_left_is_asked_again(desk: Desk, labels: Path) -> None:
    words = ("--run-id", "r", "--labels", "--labels-dir", labels)
    desk.invoke(*words)
    path = desk.folder / "results" / "r" / SAFETY
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(bytes(len(first) - 1) + b"\n" + second)
    done = desk.invoke(*words, "--resume")
    assert f"{SAFETY}: 1 line could not be read" in " ".join(done.stderr.split())
    assert [line["test_case_id"] for line in desk.read(path.parent, SAFETY)] == ["atk", "ben"]
    assert (desk.bot.asked["attack!"], desk.bot.asked["harmless"]) == (2, 1)


def test_answers_from_a_file_ask_nobody(desk: Desk, labels: Path) -> None:
    answers = desk.folder / "answers.jsonl"
    answers.write_text("")
    done = desk.invoke("--from-jsonl", answers, "--labels", "--labels-dir", labels, ends=2)
    assert "asks no bot" in done.stderr


@pytest.mark.parametrize(
    ("name", "label", "says"),
    [
        ("safety_labels", '{"case_id": "a", "kind": "odd", "text": "t"}', ":1: kind"),
        ("cases", '{"case_id": "q99", "query_type": "faq"}', ":1: case_id: 'q99'"),
    ],
)
def test_faulty_labels_are_refused_before_a_call(
    desk: Desk, name: str, label: str, says: str
) -> None:
    (desk.folder / f"{name}.jsonl").write_text(label + "\n")
    asks = ["--labels"] if name == "safety_labels" else []
    done = desk.invoke("--run-id", "r", *asks, "--labels-dir", desk.folder, ends=2)
    assert f"{name}.jsonl{says}" in " ".join(done.stderr.split())
    assert not desk.bot.asked


def test_labels_of_the_cases_are_joined(desk: Desk) -> None:
    """The folder ``labels`` beside the set is theirs unless another one is named."""
    folder = desk.folder / "labels"
    folder.mkdir()
    first = b'{"case_id": "q1", "query_type": "faq"}\n{"case_id": "q2", "query_type": "how_to"}\n'
    second = b'{"case_id": "q1", "user_roles": ["editor", "admin"]}\n'
    (folder / "retrieval_labels.jsonl").write_bytes(first)
    (folder / "context_labels.jsonl").write_bytes(second)
    shipped = Path(__file__).parents[3] / "eval" / "profiles" / "default.toml"
    body = '[request.body]\nroles = "{user_roles}"'
    profile = desk.folder / "roles.toml"
    profile.write_text(shipped.read_text().replace("[request.body]", body))

    words = ("--filter", "query_type=faq", "--profile", profile)
    done = desk.invoke(*words, "--run-id", "joined")
    run = desk.folder / "results" / "joined"
    assert [line["test_case_id"] for line in desk.read(run)] == ["q1"]
    assert desk.bot.seen[0].json()["roles"] == ["editor", "admin"]
    config = json.loads((run / "config.json").read_text())
    # the files one behind the other, as they are joined: retrieval before context labels
    assert config["dataset"]["labels_sha256"] == hashlib.sha256(first + second).hexdigest()

    empty = desk.folder / "empty"
    empty.mkdir()
    done = desk.invoke(*words, "--labels-dir", empty, ends=2)
    assert "query_type: nowhere" in done.stderr


def test_labels_are_a_fact_of_the_run_but_not_of_its_hash(desk: Desk) -> None:
    def config(run_id: str) -> dict[str, Any]:
        desk.invoke("--run-id", run_id)
        found: dict[str, Any] = desk.config(run_id)
        return found

    without = config("without")
    assert without["dataset"]["labels_sha256"] is None
    (desk.folder / "labels").mkdir()
    (desk.folder / "labels" / "cases.jsonl").write_text('{"case_id": "q1", "query_type": "faq"}\n')
    labelled = config("labelled")
    assert len(labelled["dataset"]["labels_sha256"]) == 64
    assert labelled["config_hash"] == without["config_hash"]
