"""Profiles: what is refused, with every problem at once, what a template becomes, and [limits]."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import call
from tests.rows import each_row

import run_eval
from clients.expressions import compile_path
from clients.mapping import payload_fields
from clients.profile import load_profile
from clients.secrets import resolve_headers
from clients.templates import ABSENT, merge, render
from records.errors import StorageError

PROFILES = Path(__file__).parents[2] / "eval" / "profiles"
SMALLEST = """
[request]
path = "/ask"
[request.body]
q = "{question}"
[response]
answer = "a"
"""


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_smallest_profile(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, SMALLEST), PROFILES)
    assert (profile.method, profile.uses) == ("POST", frozenset({"question"}))
    assert profile.answer.required == set()
    assert profile.answer.answers


def test_comments_do_not_change_the_hash_and_content_does(tmp_path: Path) -> None:
    first = load_profile(write(tmp_path, SMALLEST), PROFILES).sha256
    commented = load_profile(write(tmp_path, "# words\n" + SMALLEST), PROFILES).sha256
    changed = load_profile(write(tmp_path, SMALLEST.replace("/ask", "/b")), PROFILES).sha256
    assert first == commented != changed


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        colour = "red"
        latency_unit = "minutes"
        required = ["confidence"]
        [request]
        path = "ask"
        method = "FETCH"
        query = ["debug"]
        [request.headers]
        X = 5
        [request.body]
        q = "{question} {nonsense}"
        [response]
        answer = "a..b"
        retrieved = 7
        mood = "m"
        cost_usd = "c"
        [chunk]
        id = "id"
        [constant]
        cost_usd = 0.0
        abstained = "no"
        [prices]
        prompt_tokens = -1
        """,
    )
    with pytest.raises(StorageError) as caught:
        load_profile(path, PROFILES)
    fields = """colour latency_unit required request.path request.method request.query
        request.headers.X request.body.q response.answer response.retrieved response.mood chunk.id
        constant.cost_usd constant.abstained prices.prompt_tokens"""
    assert {problem.field for problem in caught.value.problems} == set(fields.split())
    assert all(problem.path == path for problem in caught.value.problems)
    assert caught.value.exit_code == 2


@each_row(
    ("text", "words"),
    [
        ("[request\n", "cannot be used"),
        (SMALLEST.replace("{question}", "hello"), 'has no "{question}"'),
        (SMALLEST.replace("answer", "# answer"), "maps no field"),
        ("schema = 2\n" + SMALLEST, "this version reads 1"),
        ('required = [["answer"]]\n' + SMALLEST, "must be a list of texts; write names of fields"),
        (SMALLEST.replace('/ask"', '/ask?debug=true"'), "parameters go into request.query"),
        (SMALLEST.replace("[request]", '[request]\nmethod = "GET"'), "a GET request has none"),
    ],
)
def test_single_problems(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(StorageError, match=words):
        load_profile(write(tmp_path, text), PROFILES)


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    for name in ("shop", "help"):
        (tmp_path / f"{name}.toml").write_text(SMALLEST)
    with pytest.raises(StorageError, match="default, documents, help, openai_chat, shop"):
        load_profile("nothing", tmp_path)


def test_placeholders_keep_their_type() -> None:
    values = {"k": 5, "question": "a {k} b", "folders": ["x", "y"], "vaults": [], "seed": None}
    template = {
        "k": "{k}",
        "text": "top {k} of {folders}: {question}",
        "folders": "{folders}",
        "vaults": "{vaults}",
        "braces": "{{k}}",
        "single": ["{{ opens", "closes }}"],
        "nested": [{"seed": "{seed}"}, "{seed}", True, 1.5],
    }
    # a value is put in as it is: braces inside the question are text
    assert render(template, values) == {
        "k": 5,
        "text": "top 5 of x, y: a {k} b",
        "folders": ["x", "y"],
        "braces": "{k}",
        "single": ["{ opens", "closes }"],
        "nested": [{}, True, 1.5],
    }
    assert render("{seed}", values) is ABSENT


def test_merge_goes_into_tables() -> None:
    base = {"a": {"b": 1, "c": 2}, "d": [1]}
    assert merge(base, {"a": {"b": 9}, "d": [2]}) == {"a": {"b": 9, "c": 2}, "d": [2]}
    assert base == {"a": {"b": 1, "c": 2}, "d": [1]}


@each_row("value", [{"a": {"b": 1}}, {"a": [1]}, {"a": None}, {}, [], None, "a", 3])
def test_the_short_way_equals_jmespath(value: object) -> None:
    """Dotted names are looked up without the interpreter; ``a.b | @`` goes through it."""
    assert compile_path("a.b")(value) == compile_path("a.b | @")(value)


def test_payload_fields_have_names_and_no_values() -> None:
    payload = {"a": [{"b": {"c": {"d": "secret"}}}], "e": "secret"}
    assert payload_fields(payload) == ["a", "a[].b", "a[].b.c", "e"]


def test_headers_from_the_environment() -> None:
    templates = {"Authorization": "Bearer ${KEY}", "X-Plain": "v"}
    headers, problems = resolve_headers(templates, {"KEY": "abcdef"}, "here")
    assert not problems
    assert headers.values == {"Authorization": "Bearer abcdef", "X-Plain": "v"}
    assert "abcdef" in headers.secrets
    assert "abcdef" not in repr(headers)
    assert not resolve_headers({"X": "${KEY}"}, {"KEY": "abcd"}, "here")[1]  # long enough


@each_row("value", ["", "abc", "abc\ndef", " abcdef", "abcdef\r"])
def test_values_that_are_no_header_are_refused_and_not_shown(value: str) -> None:
    _, problems = resolve_headers({"X": "${KEY}"}, {"KEY": value}, "here")
    assert len(problems) == 1
    if value:
        assert value.strip() not in str(problems[0])


def test_limits_do_not_make_another_profile(tmp_path: Path) -> None:
    """Two runs are as comparable as before, wherever a limit was written."""
    plain = load_profile(write(tmp_path, SMALLEST), tmp_path)
    slow = load_profile(write(tmp_path, SMALLEST + "[limits]\nrpm = 30\nretries = 0\n"), tmp_path)
    assert slow.limits == {"rpm": 30, "retries": 0}
    assert (slow.sha256, slow.turns_sha256) == (plain.sha256, plain.turns_sha256)


@each_row(
    ("line", "told"),
    [
        ("retry = 1", "limits.retry: is unknown; write retries"),
        ("timeout = 0", "limits.timeout: must be a number above 0, up to 86400"),
        ("concurrency = true", "limits.concurrency: must be a whole number from 1 up to 512"),
        ("max_mb = inf", "limits.max_mb: must be a number"),
    ],
)
def test_a_bad_limit_is_a_sentence_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    path = write(tmp_path, SMALLEST + f"[limits]\nbackoff = 0.1\n{line}\n")
    with pytest.raises(StorageError) as caught:
        load_profile(str(path), tmp_path)
    assert f"{path}:10: {told}" in caught.value.message


def test_the_option_counts_more_than_the_profile(tmp_path: Path, fake_bot: Any) -> None:
    text = SMALLEST.replace("q =", "question =").replace('"a"', '"answer"')
    path = write(tmp_path, text + "[limits]\nconcurrency = 3\nretries = 1\n")
    eval_set = tmp_path / "set.jsonl"
    eval_set.write_text(json.dumps({"id": "a", "question": "question 0"}) + "\n")
    words = ["--api-url", fake_bot.url, "--profile", str(path), "--eval-set", str(eval_set)]
    words += ["--results-dir", str(tmp_path / "results"), "--run-id", "r", "--set", "retries=2"]
    call(run_eval, *words)
    run = json.loads((tmp_path / "results" / "r" / "config.json").read_text())["run"]
    assert (run["concurrency"], run["retries"], run["timeout_s"]) == (3, 2, 60.0)
