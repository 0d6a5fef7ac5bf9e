"""Which judge it is, for each kind of server; what may change by itself is refused."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from clients.http import ask_all
from judging.identity import JudgeError, JudgePin, JudgeUnreachable
from records.verdicts import JudgeIdentity

DIGEST = "46e0c10c039e019119339687c3c1757cc81b9da49709a3b3924863ba87ca666e"
TEMPLATE = "{{ .System }} {{ .Prompt }}"


def short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def ollama(fake: Any, **model: Any) -> None:
    named = {"name": "llama3.1:8b", "model": "llama3.1:8b", "digest": DIGEST} | model
    latest = {"name": "llama3.1:latest", "digest": DIGEST}
    fake.resources = {
        "/api/version": {"version": "0.12.3"},
        "/api/tags": {"models": [named, latest]},
        "/api/show": {"template": TEMPLATE, "details": {"quantization_level": "Q4_K_M"}},
    }


def llama_cpp(fake: Any, **props: Any) -> None:
    known = {
        "build_info": "b6543-0a1b2c3",
        "model_path": "/home/me/judge.gguf",
        "chat_template": TEMPLATE,
        "default_generation_settings": {"n_ctx": 8192},
    }
    fake.resources = {
        "/props": {name: value for name, value in (known | props).items() if value is not None},
        "/v1/models": {"data": [{"id": "/home/me/judge.gguf", "meta": {"size": 5, "x": 1}}]},
    }


def vllm(fake: Any, **model: Any) -> None:
    known = {"id": "judge-8b", "owned_by": "vllm", "root": "org/judge-8b", "max_model_len": 4096}
    known |= {"created": 1_700_000_000, "permission": [{"id": "modelperm-1"}]}
    fake.resources = {"/v1/models": {"data": [known | model]}, "/version": {"version": "0.11.0"}}


def lm_studio(fake: Any, **more: Any) -> None:
    model = {"id": "qwen/qwen3-8b", "arch": "qwen3", "quantization": "Q4_K_M", "publisher": "qwen"}
    model |= more
    fake.resources = {
        "/api/v0/models": {"data": [model | {"max_context_length": 32768}]},
        "/v1/models": {"data": [{"id": "qwen/qwen3-8b", "owned_by": "organization_owner"}]},
        # LM Studio answers 200 to what it does not know
        "/api/version": {"error": "Unexpected endpoint or method."},
        "/props": {"error": "Unexpected endpoint or method."},
    }


def llama_cpp_python(fake: Any) -> None:
    fake.resources = {"/v1/models": {"data": [{"id": "/w/tiny.gguf", "owned_by": "me"}]}}


def test_ollama_is_known_by_its_digest(fake_judge: Any, judge: Any) -> None:
    ollama(fake_judge)
    client = judge(model="llama3.1:8b")
    build = f"0.12.3 template:{short(TEMPLATE)}"
    known: dict[str, Any] = {"digest": f"sha256:{DIGEST}", "build": build, "strength": "digest"}
    assert client.identity == JudgeIdentity("ollama", "llama3.1:8b", **known)
    assert client.describe()["facts"] == {"details": {"quantization_level": "Q4_K_M"}}
    asked = [one for one in fake_judge.bot.seen if one.path == "/api/show"]
    assert asked[0].json() == {"model": "llama3.1:8b"}


@each_row("model", ["llama3.1", "llama3.1:latest"])
def test_the_latest_tag_is_refused_unless_allowed(fake_judge: Any, judge: Any, model: str) -> None:
    ollama(fake_judge)
    with pytest.raises(JudgeError, match=r"llama3.1:latest is not pinned: its tag latest moves"):
        judge(model=model)
    identity = judge(model=model, pin=JudgePin(allow_unpinned=True)).identity
    assert (identity.model, identity.strength) == ("llama3.1:latest", "digest")


def test_a_cloud_model_of_ollama_has_no_weights_to_pin(fake_judge: Any, judge: Any) -> None:
    ollama(fake_judge, remote_host="https://ollama.com:443")
    with pytest.raises(JudgeError, match="not pinned: it runs elsewhere"):
        judge(model="llama3.1:8b")


def test_ollama_alone_says_which_digest_it_has(fake_judge: Any, judge: Any, tmp_path: Path) -> None:
    """A file or revision that the user names must not hide that a tag was pulled anew."""
    weights = tmp_path / "judge.gguf"
    weights.write_bytes(b"GGUF weights")
    ollama(fake_judge)
    client = judge(model="llama3.1:8b", pin=JudgePin(file=weights))
    assert client.identity.digest == f"sha256:{DIGEST}"
    for pin in (JudgePin(file=weights), JudgePin(revision="abc")):
        with pytest.raises(JudgeError, match="its tag latest moves"):
            judge(model="llama3.1", pin=pin)
    ollama(fake_judge, digest="f" * 64)
    assert "changed during the run" in str(client.changed())


def test_a_server_that_loads_its_model_is_not_taken_for_another(
    fake_judge: Any, judge: Any
) -> None:
    llama_cpp(fake_judge)
    fake_judge.script("/props", fake_judge.fails(503, "Loading model"))
    with pytest.raises(JudgeUnreachable, match=r"not ready .HTTP 503: .*Loading model"):
        judge(model=None, pin=JudgePin(allow_unpinned=True))


def test_a_model_that_ollama_lacks(fake_judge: Any, judge: Any) -> None:
    ollama(fake_judge)
    with pytest.raises(JudgeError, match="Ollama has no model qwen3:8b; run `ollama pull"):
        judge(model="qwen3:8b")


def test_llama_cpp_is_known_by_build_path_and_template(fake_judge: Any, judge: Any) -> None:
    llama_cpp(fake_judge)
    client = judge(model=None)
    path = short("/home/me/judge.gguf")
    build = f"b6543-0a1b2c3 path:{path} template:{short(TEMPLATE)}"
    assert client.identity == JudgeIdentity(
        "llama.cpp", "judge.gguf", build=build, strength="build"
    )
    assert client.describe()["facts"] == {"context": 8192, "size": 5}
    assert "/home" not in str(client.describe())


def test_the_weights_file_is_the_strongest_pin(fake_judge: Any, judge: Any, tmp_path: Path) -> None:
    weights = tmp_path / "judge.gguf"
    weights.write_bytes(b"GGUF weights")
    digest = f"sha256:{hashlib.sha256(b'GGUF weights').hexdigest()}"
    llama_cpp(fake_judge)
    identity = judge(model="judge", pin=JudgePin(file=weights)).identity
    assert (identity.digest, identity.strength) == (digest, "digest")
    llama_cpp_python(fake_judge)
    identity = judge(model=None, pin=JudgePin(file=weights)).identity
    known: dict[str, Any] = {"digest": digest, "strength": "digest"}
    assert identity == JudgeIdentity("llama-cpp-python", "tiny.gguf", **known)


def test_llama_cpp_without_a_build_is_not_pinned(fake_judge: Any, judge: Any) -> None:
    llama_cpp(fake_judge, build_info=None)
    told = "does not report its build; give the weights: --set file="
    with pytest.raises(JudgeError, match=told):
        judge(model="judge")


def test_llama_cpp_python_tells_only_a_name(fake_judge: Any, judge: Any) -> None:
    llama_cpp_python(fake_judge)
    with pytest.raises(JudgeError, match=r"tiny.gguf is not pinned: .* --set file="):
        judge(model=None)
    client = judge(model=None, pin=JudgePin(allow_unpinned=True))
    assert client.identity == JudgeIdentity("llama-cpp-python", "tiny.gguf")
    assert fake_judge.chats(canaries=True)[0]["model"] == "/w/tiny.gguf"


def test_vllm_needs_a_declared_revision(fake_judge: Any, judge: Any) -> None:
    vllm(fake_judge)
    with pytest.raises(JudgeError, match=r"judge-8b is not pinned: .* --set revision="):
        judge(model="judge-8b")
    client = judge(model="judge-8b", pin=JudgePin(revision="0e9e39f"))
    build = "0.11.0 root:org/judge-8b max_model_len:4096"
    known: dict[str, Any] = {"build": build, "revision": "0e9e39f", "strength": "revision"}
    assert client.identity == JudgeIdentity("vllm", "judge-8b", **known)
    # what changes at every call is no part of it
    vllm(fake_judge, created=1_800_000_000, permission=[{"id": "modelperm-2"}])
    assert client.changed() is None
    vllm(fake_judge, max_model_len=8192)
    assert "changed during the run" in str(client.changed())


def test_lm_studio_has_a_weak_identity(fake_judge: Any, judge: Any) -> None:
    lm_studio(fake_judge)
    assert judge(model=None).identity == JudgeIdentity(
        "lmstudio", "qwen/qwen3-8b", build="qwen qwen3 Q4_K_M", strength="name only"
    )
    with pytest.raises(JudgeError, match="LM Studio has no model other"):
        judge(model="other")
    lm_studio(fake_judge, arch=3, quantization="")  # what is no text says nothing of the build
    assert judge(model=None).identity.build == "qwen"


def test_a_digest_that_changes_during_the_run(fake_judge: Any, judge: Any) -> None:
    ollama(fake_judge)
    client = judge(model="llama3.1:8b")
    assert client.changed() is None
    ollama(fake_judge, digest="f" * 64)
    assert "the judge changed during the run: it was ollama/llama3.1:8b@" in client.changed()


def test_the_judge_is_looked_at_after_the_run_has_ended(
    fake_judge: Any, judge: Any, task: Any
) -> None:
    """Whoever ended it may have set ``stop`` by then."""
    ollama(fake_judge)
    stop = threading.Event()
    client = judge(model="llama3.1:8b", stop=stop)
    assert [verdict.ok for verdict in ask_all([task(), task()], client.ask, 2, stop)] == [True] * 2
    assert not stop.is_set(), "nothing was broken off"
    stop.set()
    assert client.changed() is None
    ollama(fake_judge, digest="f" * 64)
    assert "changed during the run" in str(client.changed())
    fake_judge.close()
    client.close()
    with pytest.raises(JudgeUnreachable):
        client.changed()
