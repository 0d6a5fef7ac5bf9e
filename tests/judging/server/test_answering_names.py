"""Which names in replies are those of the judge that was asked, and what follows from another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from clients.http import finish
from judging.cache import CachedJudge
from judging.identity import UNNAMED, JudgeError, JudgePin, decide
from records.runs import JUDGE_CACHE
from records.verdicts import JudgeIdentity

DATED, OTHER = "gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18"


def by_name(model: str, revision: str | None = None) -> JudgeIdentity:
    return JudgeIdentity("unknown", model, revision=revision)


def declared(model: str, revision: str) -> JudgeIdentity:
    return JudgeIdentity("vllm", model, build="0.11.0", revision=revision, strength="revision")


@each_row(
    ("identity", "answered"),
    [
        (by_name(DATED), DATED),
        # spellings of one name: provider prefix, folders, .gguf, :latest, case, form of the date
        (by_name(DATED), "openai/GPT-4o-2024-08-06"),
        (by_name("openai/gpt-4o-2024-08-06"), DATED),
        (by_name("judge-2024-08-06"), "/models/Judge-2024-08-06.gguf"),
        (by_name("judge-2024-08-06"), "C:\\models\\judge-2024-08-06.gguf"),
        (by_name("judge-2024-08-06:latest"), "judge-2024-08-06"),
        (by_name("claude-3-5-sonnet-20241022"), "claude-3-5-sonnet@20241022"),
        (by_name("claude-3-5-sonnet-20241022"), "claude-3-5-sonnet-2024-10-22"),
        # a declared revision: the asked name, or the revision in the name
        (declared("judge-8b", "0e9e39f"), "org/judge-8b"),
        (declared("judge-8b", "0e9e39f"), "other-name-0E9E39F249"),
        # what a floating name stood for, or an alias, in an identity that is settled
        (by_name("gpt-4o", DATED), DATED),
        (by_name("gpt-4o", DATED), "gpt-4o"),
        (by_name(DATED, "azure-deployment-7"), "azure-deployment-7"),
        (declared("judge-8b", "r1 azure-7"), "azure-7"),
    ],
)
def test_the_judge_itself(identity: JudgeIdentity, answered: str) -> None:
    naming = decide(identity, answered)
    assert (naming.fault, naming.note, naming.revision) == (None, None, identity.revision)


@each_row(
    ("identity", "answered", "note"),
    [
        (by_name(DATED), None, UNNAMED),
        (declared("judge-8b", "r1"), None, UNNAMED),
        (by_name(DATED), "gpt-4o", "treated as the same"),
        (declared(DATED, "r1"), "gpt-4o", "treated as the same"),
        (by_name(DATED), f"{DATED}-eu", "treated as the same"),
        (JudgeIdentity("lmstudio", "qwen/qwen3-8b"), "qwen3-8b-q4", "treated as the same"),
        (JudgeIdentity("ollama", "a", digest="d", strength="digest"), "b", "by its digest"),
        (JudgeIdentity("llama.cpp", "a", build="b6543", strength="build"), "b", "by its build"),
        (JudgeIdentity("ollama", "a", digest="d", strength="digest"), None, None),
    ],
)
def test_what_is_accepted_and_noted(
    identity: JudgeIdentity, answered: str | None, note: str | None
) -> None:
    naming = decide(identity, answered)
    assert (naming.fault, naming.revision) == (None, identity.revision)
    assert naming.note is None if note is None else note in (naming.note or "")


@each_row(
    ("identity", "answered"),
    [
        (by_name(DATED), OTHER),
        (by_name(DATED), "gpt-4o-2024-11-20"),
        (by_name("gpt-4-0613"), "gpt-4-1106-preview"),
        (by_name(DATED), "gpt-4"),  # begins the name only within one of its parts
        (by_name(DATED), "llama-3.1-8b"),
        (by_name("fake-2024-08-06"), OTHER),
        (JudgeIdentity("lmstudio", "qwen/qwen3-8b"), "qwen3-80b"),
        (declared("judge-8b", "0e9e39f"), "judge-8b-v2"),
        (declared(DATED, "r7"), OTHER),
        (by_name("gpt-4o", DATED), "gpt-4o-2024-11-20"),
        (by_name(DATED, "azure-deployment-7"), "azure-deployment-8"),
    ],
)
def test_another_model_is_a_fault_that_names_both(identity: JudgeIdentity, answered: str) -> None:
    fault = decide(identity, answered).fault or ""
    assert f"asked for {identity.model}" in fault
    assert fault.endswith(f"answers as {answered}")


@each_row(
    ("identity", "answered", "revision", "noted"),
    [
        (by_name("gpt-4o"), DATED, DATED, False),
        (by_name("gpt-4o"), "gpt-4o", None, False),
        (by_name("gpt-4o"), None, None, True),
        (by_name("gpt-4o"), OTHER, OTHER, True),
        (by_name("my-alias"), DATED, DATED, True),
    ],
)
def test_what_a_floating_name_stands_for_is_its_revision(
    identity: JudgeIdentity, answered: str | None, revision: str | None, noted: bool
) -> None:
    naming = decide(identity, answered, floating=True)
    assert (naming.fault, naming.revision, naming.note is not None) == (None, revision, noted)


@each_row(
    ("identity", "answered", "revision"),
    [
        (by_name(DATED), "Azure/Deployment-7", "Azure/Deployment-7"),
        (declared(DATED, "r1"), "deployment-7", "r1 deployment-7"),
        (by_name(DATED), DATED, None),  # the alias is not needed
        (JudgeIdentity("x", DATED, digest="d", strength="digest"), "deployment-7", None),
    ],
)
def test_an_accepted_alias_belongs_to_the_identity(
    identity: JudgeIdentity, answered: str, revision: str | None
) -> None:
    naming = decide(identity, answered, aliases=((DATED, "deployment-7"), ("b", "c")))
    assert (naming.fault, naming.note, naming.revision) == (None, None, revision)
    other = by_name("other-2024-08-06")
    assert decide(other, "deployment-7", aliases=((DATED, "deployment-7"),)).fault


def as_model(fake_judge: Any, name: str | None, reply: Any) -> Any:
    return fake_judge.says(reply, fields={"model": name})


CANARY = {"wet": "yes", "code": "zq-17-umber"}
Cached = Callable[[Any], CachedJudge]


def test_a_substitute_is_refused_at_the_probe(fake_judge: Any, judge: Any) -> None:
    fake_judge.script("water", as_model(fake_judge, OTHER, CANARY))
    with pytest.raises(JudgeError) as caught:
        judge()
    assert caught.value.exit_code == 2
    assert caught.value.message == (
        f"asked for judge-2024-08-06, the judge's server answers as {OTHER}; ask for that model, "
        f"or accept it with --set alias=judge-2024-08-06={OTHER}."
    )


def test_a_substitute_after_the_probe_gives_no_verdict_and_is_asked_no_more(
    fake_judge: Any, judge: Any, cached: Cached, task: Any, good: Any, tmp_path: Path
) -> None:
    fake_judge.script("ships", as_model(fake_judge, OTHER, good))
    client = judge()
    first, second = finish(cached(client).ask(task())), finish(cached(client).ask(task("trees")))
    assert [first.failure, second.failure] == ["other_model", "other_model"]
    assert (first.answered_as, first.data, bool(first.raw)) == (OTHER, None, True)
    assert len(fake_judge.chats()) == 1
    assert "asking stopped" in second.message
    assert not (tmp_path / JUDGE_CACHE).exists(), "nothing was stored"
    assert OTHER in str(client.changed())


def test_a_name_that_moves_while_it_is_asked(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    """Each name alone would do for the floating one; both together are two models."""
    fake_judge.script("ships", as_model(fake_judge, "j-2024-01-01", good))
    fake_judge.script("trees", as_model(fake_judge, "j-2024-02-02", good))
    client = judge(model="j", pin=JudgePin(allow_unpinned=True))  # the probe is answered as j
    assert finish(client.ask(task())).ok
    assert finish(client.ask(task("trees"))).failure == "other_model"
    assert client.changed() == (
        "the judge's server answered with different models: j, j-2024-01-01, j-2024-02-02"
    )


def test_another_name_is_noted_once_where_the_digest_is_known(
    fake_judge: Any, judge: Any, task: Any, good: Any, tmp_path: Path
) -> None:
    weights = tmp_path / "judge.gguf"
    weights.write_bytes(b"GGUF weights")
    fake_judge.script("ships", as_model(fake_judge, "alias", good))
    client = judge(pin=JudgePin(file=weights))
    assert [finish(client.ask(task(repeat=n))).ok for n in range(3)] == [True] * 3
    assert len(client.notes) == 1
    assert "answers as alias; it is identified by its digest" in client.notes[0]
    assert client.changed() is None


@pytest.mark.parametrize(("name", "hit"), [(OTHER, False), (None, True), ("judge", True)])
def test_a_stored_verdict_of_another_model_is_asked_anew(
    fake_judge: Any, judge: Any, cached: Cached, task: Any, tmp_path: Path, name: Any, hit: bool
) -> None:
    client = judge()
    finish(cached(client).ask(task()))
    path = tmp_path / JUDGE_CACHE
    line = json.loads(path.read_text())
    assert line["answered_as"] == fake_judge.model
    assert len(line["judging_run"]) == 16
    path.write_text(json.dumps(line | {"answered_as": name}) + "\n")
    assert (cached(client).stored(task()) is not None) is hit
    assert finish(cached(client).ask(task())).cached is hit
