"""Known products: one command connects each, and the run gives the metrics worked out by hand.

The plan of the replies has the right file at rank 1, 2, 3 and nowhere, so over four questions
recall@5 is 3/4, MRR (1 + 1/2 + 1/3 + 0)/4 = 11/24 and precision@1 1/4.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.bots.products import CASES, NOT_FOUND, PRODUCTS, SAVED_ONLY, answer, reply, serve
from tests.bots.serving import Answer, BotServer, View
from tests.bots.strange import QUESTIONS
from tests.commands import call, read_lines, write_lines
from tests.rows import each_row

import connect_bot
import run_eval
import score_retrieval
from clients.known import recipes
from clients.profile import check_profile

NAMES = sorted(PRODUCTS)


@dataclass
class Bench:
    name: str
    server: BotServer
    folder: Path

    @property
    def profile(self) -> Path:
        return self.folder / "bot.toml"

    @property
    def environ(self) -> dict[str, str]:
        header = PRODUCTS[self.name].header
        return {"BOT_KEY": header[1]} if header else {}

    def connect(self) -> Result:
        product = PRODUCTS[self.name]
        url = self.server.url + (product.path if product.url is None else product.url)
        words = [url, "--eval-set", str(self.cases()), "--name", str(self.profile), "--yes"]
        if product.header:
            words += ["--header", f"{product.header[0]}=BOT_KEY"]
        if self.name in SAVED_ONLY:
            saved = self.folder / "answer.json"
            saved.write_text(json.dumps(reply(self.name, QUESTIONS["garden/roses.md"])), "utf-8")
            words[0:1] = ["--from-response", str(saved)]
        return call(connect_bot, *words, *product.options, env=self.environ)

    def cases(self) -> Path:
        return write_lines(self.folder / "set.jsonl", CASES)

    def run(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        common = ["--eval-set", str(self.cases()), "--results-dir", str(self.folder / "out")]
        words = ["--api-url", self.server.url, "--profile", str(self.profile), "--run-id", "r"]
        call(run_eval, *words, "--store-full-text", *common, env=self.environ)
        scored = call(score_retrieval, "--run", "r", *common, "--json", "-q")
        means = json.loads(scored.stdout)["mean"]
        return means, read_lines(self.folder / "out" / "r" / "results.jsonl")


@each_row("name", NAMES)
def test_one_command_connects_it_and_the_metrics_are_right(name: str, tmp_path: Path) -> None:
    with serve(name) as server:
        bench = Bench(name, server, tmp_path)
        done = bench.connect()
        recipe = next(each for each in recipes() if each.name == name)
        assert f"This is {recipe.title}." in done.output
        assert "Write your own id" not in done.output, "the address has it"
        means, results = bench.run()
    assert means["recall@5"] == pytest.approx(3 / 4)
    assert means["mrr"] == pytest.approx(11 / 24)
    assert means["precision@1"] == pytest.approx(1 / 4)
    by_id = {row["test_case_id"]: row for row in results}
    for case in CASES:
        said = by_id[case["id"]]["answer"]
        assert said.strip().startswith(answer(case["question"]).rstrip(".")), said
    assert by_id["mars"]["answer"].strip().startswith(NOT_FOUND)
    assert by_id["mars"]["retrieved"] == []


@each_row("name", NAMES)
def test_a_saved_answer_is_recognised_by_its_keys(name: str, tmp_path: Path) -> None:
    made = reply(name, QUESTIONS["garden/roses.md"])
    saved = tmp_path / "answer"
    saved.write_text(made if isinstance(made, str) else json.dumps(made), "utf-8")
    done = call(connect_bot, "--from-response", str(saved), "--dry-run", "--name", "a.toml")
    recipe = next(each for each in recipes() if each.name == name)
    assert f"This is {recipe.title}." in done.output
    profile = tomllib.loads(done.stdout)
    response = profile["response"]
    has_gap = re.search("/[A-Z]", profile.get("request", {}).get("path", "")) is not None
    assert ("Write your own id into the path of the request." in done.output) is has_gap
    assert "answer" in response
    assert response.keys() & {"retrieved", "searches"}


def test_without_passages_retrieval_is_not_mapped_and_the_remedy_is_told(tmp_path: Path) -> None:
    """A flow that does not return its source documents: null, never a recall of 0."""
    product = PRODUCTS["flowise"]

    def bare(body: Any, headers: Any) -> Answer:
        whole = dict(reply("flowise", body["question"]))
        del whole["sourceDocuments"]
        return Answer(whole)

    with BotServer({("POST", product.path): bare}) as server:
        bench = Bench("flowise", server, tmp_path)
        done = bench.connect()
        assert "turn on 'Return Source Documents'" in done.output
        means, results = bench.run()
    assert means.get("recall@5") is None
    assert {row["retrieved"] for row in results} == {None}
    assert {row["references"] for row in results} == {None}


def test_a_described_product_says_which_address_it_needs(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "paths": {"/v1/workspace/{slug}/chat": {"post": {}}, "/v1/auth": {"get": {}}}
    }
    views: dict[tuple[str, str], View] = {
        ("GET", "/openapi.json"): lambda body, headers: Answer(document)
    }
    with BotServer(views) as server:
        name = str(tmp_path / "bot.toml")
        done = call(connect_bot, server.url, "--name", name, "--yes", ends=2)
    assert "this is AnythingLLM, whose address names one of yours" in done.output
    assert "/api/v1/workspace/SLUG/chat" in done.output


@each_row("recipe", recipes())
def test_a_recipe_is_a_profile_and_names_its_source(recipe: Any) -> None:
    for source in recipe.recognition["source"]:
        repository, _, path = source.partition(": ")
        assert "/" in repository
        assert len(repository.partition("@")[2]) == 12
        assert path
    tables = {k: v for k, v in recipe.profile.items() if k != "profile"}
    raw = {**recipe.settings, "request": {"path": "/ask", "body": {"q": "{question}"}}}
    raw |= tables | {"response": {"answer": "answer"} | tables.get("response", {})}
    text = json.dumps(raw).replace("{model}", "m").replace("/{", "/{{").replace("}/", "}}/")
    loaded = json.loads(text)
    path = loaded["request"]["path"]
    loaded["request"]["path"] = path if "{{" not in path else "/ask"
    check_profile(recipe.name, loaded, recipe.name)


def test_every_recipe_has_a_reply() -> None:
    assert [recipe.name for recipe in recipes()] == NAMES


def test_what_is_peculiar_stands_in_the_profile(tmp_path: Path) -> None:
    with serve("dify") as server:
        bench = Bench("dify", server, tmp_path)
        bench.connect()
    text = bench.profile.read_text("utf-8")
    assert "# Dify reports one passage for each document" in text
    written = tomllib.loads(text)
    assert written["request"]["body"]["conversation_id"] == "{session}"
    assert written["absent"] == "empty"
    assert written["one_passage_per_document"] is True
