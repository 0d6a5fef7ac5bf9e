"""Bots whose request is found in a roundabout way: models, refused operations, begun sessions."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from click.testing import Result
from tests.bots.serving import Answer, BotServer, View
from tests.bots.strange import CASES, passages, reply
from tests.commands import call, write_lines
from tests.rows import each_row

import connect_bot
import run_eval

Views = dict[tuple[str, str], View]


def connect(server: BotServer, path: str, folder: Path, *more: str, ends: int = 0) -> Result:
    name = str(folder / "bot.toml")
    return call(connect_bot, server.url + path, "--name", name, "--yes", *more, ends=ends)


def written(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "bot.toml").read_text("utf-8"))


def chat(model: str, asked: list[Any]) -> View:
    """OpenAI's protocol with one model."""

    def answer(body: Any, headers: Mapping[str, str]) -> Answer:
        asked.append(body)
        if body.get("model") != model:
            error = {"message": f"The model {body.get('model')} does not exist. Available: {model}"}
            return Answer({"error": error}, 404)
        made = reply(body["messages"][-1]["content"])
        message = {"role": "assistant", "content": made["answer"]}
        return Answer({"choices": [{"message": message}], "sources": made["sources"]})

    return answer


def listed(*names: str) -> View:
    return lambda body, headers: Answer({"data": [{"id": name} for name in names]})


CHAT = "/v1/chat/completions"


def test_the_model_is_one_that_the_bot_lists(tmp_path: Path) -> None:
    views = {("POST", CHAT): chat("house", []), ("GET", "/v1/models"): listed("house", "large")}
    with BotServer(views) as server:
        done = connect(server, CHAT, tmp_path)
    assert "model house, the first of 2; another: --model NAME" in done.output
    assert written(tmp_path)["request"]["body"]["model"] == "house"


def test_the_users_model_is_asked_and_none_is_listed(tmp_path: Path) -> None:
    asked: list[Any] = []
    views = {("POST", CHAT): chat("large", asked), ("GET", "/v1/models"): listed("house", "large")}
    with BotServer(views) as server:
        connect(server, CHAT, tmp_path, "--model", "large")
    assert {body["model"] for body in asked} == {"large"}


def test_a_model_that_only_the_error_names_is_found(tmp_path: Path) -> None:
    with BotServer({("POST", CHAT): chat("house-1", [])}) as server:
        connect(server, CHAT, tmp_path)
    assert written(tmp_path)["request"]["body"]["model"] == "house-1"


def described(**paths: dict[str, Any]) -> View:
    text = {"type": "string"}
    schema = {"type": "object", "properties": {"question": text}, "required": ["question"]}
    operation = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    every = {
        path: {"post": operation if asks else {}} for path, asks in paths["operations"].items()
    }
    return lambda body, headers: Answer({"openapi": "3.1.0", "paths": every})


def plain(body: Any, headers: Mapping[str, str]) -> Answer:
    return Answer(reply(body["question"]))


def closed(body: Any, headers: Mapping[str, str]) -> Answer:
    return Answer({"detail": "Not authenticated"}, 401)


def test_another_operation_is_tried_after_a_refusal(tmp_path: Path) -> None:
    """The chat operation is the likelier one and needs a key; the other is open."""
    operations = {"/v1/chat/answers": True, "/lookup": True}
    views: Views = {
        ("GET", "/openapi.json"): described(operations=operations),
        ("POST", "/v1/chat/answers"): closed,
        ("POST", "/lookup"): plain,
    }
    with BotServer(views) as server:
        connect(server, "", tmp_path)
    assert written(tmp_path)["request"]["path"] == "/lookup"


def test_where_all_operations_refuse_the_header_is_asked_for(tmp_path: Path) -> None:
    operations = {"/v1/chat/answers": True, "/lookup": True}
    views: Views = {("GET", "/openapi.json"): described(operations=operations)}
    views |= {("POST", path): closed for path in operations}
    with BotServer(views) as server:
        done = connect(server, "", tmp_path, ends=2)
    assert "the bot needs a header (HTTP 401)" in done.output


def test_a_header_that_the_bot_names_is_asked_for_by_its_name(tmp_path: Path) -> None:
    def unnamed(body: Any, headers: Mapping[str, str]) -> Answer:
        return Answer({"error": "X-User-Id header missing"}, 401)

    with BotServer({("POST", "/ask"): unnamed}) as server:
        done = connect(server, "/ask", tmp_path, ends=2)
    assert "--header 'X-User-Id: VALUE' where it is no secret" in " ".join(done.output.split())


def test_the_id_of_a_refused_request_is_no_header_to_send(tmp_path: Path) -> None:
    def refusing(body: Any, headers: Mapping[str, str]) -> Answer:
        return Answer({"error": "Unauthorized", "x-request-id": "a-1"}, 401)

    with BotServer({("POST", "/ask"): refusing}) as server:
        done = connect(server, "/ask", tmp_path, ends=2)
    assert "--header Authorization=BOT_TOKEN" in done.output


class Sessions:
    """A bot that is asked inside a session, which remembers; how many were begun."""

    def __init__(self) -> None:
        self.memory: dict[str, list[str]] = {}
        self._ids = itertools.count(1)

    def begin(self, body: Any, headers: Mapping[str, str]) -> Answer:
        name = f"s-{next(self._ids)}"
        self.memory[name] = []
        return Answer({"session": {"created": 1}, "session_id": name}, 201)

    def ask(self, name: str) -> Callable[[Any, Mapping[str, str]], Answer]:
        def answer(body: Any, headers: Mapping[str, str]) -> Answer:
            if name not in self.memory:
                return Answer({"detail": "no such session"}, 404)
            self.memory[name].append(body["question"])
            return Answer(reply(body["question"]))

        return answer

    def views(self) -> Views:
        asks = {("POST", f"/sessions/s-{n}/messages"): self.ask(f"s-{n}") for n in range(1, 60)}
        operations = {"/sessions": False, "/sessions/{session_id}/messages": True}
        document = described(operations=operations)
        return {("POST", "/sessions"): self.begin, ("GET", "/openapi.json"): document, **asks}


GARDEN = [CASES[n] | {"conversation": "garden", "turn": n + 1} for n in (0, 1)]
TURNS = [*GARDEN, *CASES[2:4]]


@each_row("way", ["described", "by hand"])
def test_each_conversation_is_begun_anew(tmp_path: Path, way: str) -> None:
    bot = Sessions()
    cases = write_lines(tmp_path / "set.jsonl", TURNS)
    with BotServer(bot.views()) as server:
        if way == "described":
            connect(server, "", tmp_path, "--eval-set", str(cases))
        else:
            begin = f"curl -X POST {server.url}/sessions -d '{{}}'"
            path = "/sessions/{session}/messages"
            connect(server, path, tmp_path, "--begin", begin)
        assert written(tmp_path)["request"]["path"] == "/sessions/{session}/messages"
        bot.memory.clear()
        words = ["--api-url", server.url, "--profile", str(tmp_path / "bot.toml"), "--run-id", "r"]
        words += ["--eval-set", str(cases), "--results-dir", str(tmp_path / "out")]
        call(run_eval, *words)
    texts = [case["question"] for case in TURNS]
    # the two turns share a session, the two other questions have one each
    assert sorted(bot.memory.values()) == sorted([texts[:2], texts[2:3], texts[3:]])


def test_a_secret_in_the_first_request_is_not_written(tmp_path: Path) -> None:
    bot, secret = Sessions(), "sk-4711-canary-0815-zz"
    with BotServer(bot.views()) as server:
        body = json.dumps({"api_key": secret, "title": "eval"})
        begin = f"curl -X POST {server.url}/sessions -d '{body}'"
        done = connect(server, "/sessions/{session}/messages", tmp_path, "--begin", begin)
    assert secret not in (tmp_path / "bot.toml").read_text("utf-8") + done.output
    assert written(tmp_path)["begin"]["body"] == {"api_key": "${BOT_API_KEY}", "title": "eval"}


def test_begin_without_a_session_in_the_request_is_refused(tmp_path: Path) -> None:
    with BotServer({}) as server:
        done = connect(
            server, "/ask", tmp_path, "--begin", f"curl -X POST {server.url}/sessions", ends=2
        )
    assert "--begin: write {session} where its id goes" in done.output


def test_the_folder_of_a_server_is_cut_without_labels(tmp_path: Path) -> None:
    def absolute(body: Any, headers: Mapping[str, str]) -> Answer:
        found = passages(body["question"])
        items = [item | {"file_path": f"/srv/app/docs/{item['file_path']}"} for item in found]
        return Answer({"answer": reply(body["question"])["answer"], "sources": items})

    ask = [word for case in CASES[:3] for word in ("--ask", str(case["question"]))]
    with BotServer({("POST", "/ask"): absolute}) as server:
        done = connect(server, "/ask", tmp_path, *ask)
    assert written(tmp_path)["path_root"] == "/srv/app/docs"
    assert "All returned files are in /srv/app/docs" in done.output


def of_field(name: str) -> View:
    """A demo of a few lines: it reads one field, and fails without a word where that is missing."""

    def answer(body: Any, headers: Mapping[str, str]) -> Answer:
        if name not in body:
            return Answer({"error": "Internal Server Error"}, 500)
        made = reply(str(body[name]))
        return Answer({"response": made["answer"], "sources": made["sources"]})

    return answer


@each_row("name", ["question", "message", "query", "input", "prompt", "msg"])
def test_a_bot_that_reads_one_field_is_asked_without_a_curl(tmp_path: Path, name: str) -> None:
    with BotServer({("POST", "/chat"): of_field(name)}) as server:
        connect(server, "/chat", tmp_path)
    assert written(tmp_path)["request"]["body"][name] == "{question}"


@each_row("part", ['"top_k": 3', '"options": {"k": "3"}'])
def test_a_fixed_number_of_passages_is_reported(tmp_path: Path, part: str) -> None:
    with BotServer({("POST", "/chat"): of_field("question")}) as server:
        body = f'{{"question": "{{question}}", {part}}}'
        done = connect(server, "/chat", tmp_path, "--body", body)
        name = "top_k" if "top_k" in part else "k"
        says = f'{name} stays 3 for every --k; write "{{k}}" in its place to vary it.'
        assert says in " ".join(done.output.split())
        assert written(tmp_path)["request"]["body"] != {}
        free = body.replace('"3"', '"{k}"').replace(" 3", ' "{k}"')
        done = connect(server, "/chat", tmp_path, "--body", free, "--force")
    assert "for every --k" not in done.output
