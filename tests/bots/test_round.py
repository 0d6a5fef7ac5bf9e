"""The whole way with each of the three bots: connect, run, score; no bot is changed for it."""

from __future__ import annotations

import importlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.bots.chat_endpoint import CHAT_KEY
from tests.bots.handbook import search
from tests.bots.serving import BotServer
from tests.commands import call

import connect_bot
import run_eval
import score_retrieval
from clients.bot import ChatApi, Question
from clients.expressions import compile_path
from clients.profile import fill, load_profile

HERE = Path(__file__).parent
QUESTIONS = HERE / "questions.jsonl"
CASES = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]
NAMES = ("query_engine", "chat_endpoint", "event_stream")
ENVIRON = {"SHOP_AUTHORIZATION": f"Bearer {CHAT_KEY}"}
LEAST_SHARE = 0.9


@dataclass
class Stage:
    server: BotServer
    expected: dict[str, Any]
    folder: Path

    @property
    def profile(self) -> Path:
        return self.folder / "bot.toml"

    def connect(self, *more: str) -> Result:
        words = [self.server.url + self.expected["url"], "--eval-set", str(QUESTIONS)]
        if header := self.expected.get("header"):
            words += ["--header", header]
        words += ["--name", str(self.profile), "--yes", *more]
        return call(connect_bot, *words, env=ENVIRON)


@pytest.fixture(params=NAMES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    module = importlib.import_module(f"tests.bots.{request.param}")
    expected = tomllib.loads((HERE / f"{request.param}.toml").read_text("utf-8"))
    with module.make() as server:
        yield Stage(server, expected, tmp_path)


def expected_values(stage: Stage) -> dict[str, tuple[Any, Any]]:
    """Each field of the bot's list: what a person's path finds and what the profile's path finds.

    Paths are compared by what they find in one real answer: there are many ways to write one.
    """
    raw = tomllib.loads(stage.profile.read_text("utf-8"))
    pairs: dict[str, tuple[Any, Any]] = {}
    for name, value in stage.expected["settings"].items():
        pairs[name] = (value, raw.get(name, ""))
    for name, value in stage.expected["request"].items():
        pairs[f"request.{name}"] = (value, compile_path(name)(raw["request"]))
    payload = payload_of(stage)
    for table in ("response", "chunk", "reference", "facts"):
        for name, path in stage.expected.get(table, {}).items():
            of = payload
            if list_name := {"chunk": "retrieved", "reference": "references"}.get(table):
                of = compile_path(stage.expected["response"][list_name])(payload)[0]
            got = raw.get(table, {}).get(name)
            pairs[f"{table}.{name}"] = (compile_path(path)(of), got and compile_path(got)(of))
    return pairs


def payload_of(stage: Stage) -> Any:
    """One raw answer of the bot, asked by the profile that connect_bot wrote."""
    from clients.bot import parse_reply

    profile, headers = fill(load_profile(str(stage.profile), stage.folder), ENVIRON)
    client = ChatApi(stage.server.url, profile, headers)
    try:
        reply = client.reply(Question("q", stage.expected["question"], 2))
    finally:
        client.close()
    return parse_reply(reply, profile.stream)[0]


def test_the_profile_says_what_a_person_would_have_written(stage: Stage) -> None:
    done = stage.connect()
    pairs = expected_values(stage)
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    assert len(pairs) - len(wrong) >= LEAST_SHARE * len(pairs), wrong
    assert CHAT_KEY not in stage.profile.read_text("utf-8") + done.output


def test_the_first_run_gives_the_right_figures(stage: Stage) -> None:
    """Two commands after connect_bot. A gold place counts as found where the bot's search, asked
    beside it, brings that section: so recall is known without any profile."""
    stage.connect("--json")
    results = str(stage.folder / "results")
    common = ["--eval-set", str(QUESTIONS), "--results-dir", results]
    words = ["--api-url", stage.server.url, "--profile", str(stage.profile), *common]
    call(run_eval, *words, "--run-id", "first", env=ENVIRON)
    scored = call(score_retrieval, "--run", "first", *common, "--json", "-q")
    means = json.loads(scored.stdout)["mean"]
    labelled = [case for case in CASES if case["gold_supports"]]
    found = [
        case["gold_supports"][0]["heading_path"]
        in (" > ".join(part.headings) for _, part in search(case["question"], 3))
        for case in labelled
    ]
    assert sum(found) == len(found) == 5  # by hand: each question shares its rarest words with one
    assert means["recall@5"] == pytest.approx(sum(found) / len(found))
    assert means["mrr"] == pytest.approx(1.0)


def test_what_connect_says_of_the_labels(stage: Stage) -> None:
    done = stage.connect("--json")
    shown = json.loads(done.stdout)
    check = shown["check"]
    settings = stage.expected["settings"]
    places = ("heading_separator", "heading_root", "path_root")
    assert check["settings"] == {name: settings[name] for name in places if name in settings}
    assert (check["gold"], check["paths"], check["headings"]) == (3, 3, 3)
    row = next(row for row in shown["proof"] if row["question"] == "Is this their place?")
    assert row["says"].startswith("3 of 3 gold files were retrieved, 3 of them at")
