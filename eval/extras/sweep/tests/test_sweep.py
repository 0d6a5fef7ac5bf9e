"""sweep_runs.py against a scripted bot: drops, ends, budgets, and kills that change nothing."""

from __future__ import annotations

import json
import random
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fake_bot import Exchange

import compare_runs
import report_run
from extras.sweep import sweep_runs
from extras.sweep.tests.conftest import CASES, MissingBot

PROFILE = """
schema = 1
[request]
path = "/ask"
[request.body]
question = "{question}"
k = "{k}"
rerank = "{rerank}"
[settings]
rerank = "none"
[response]
answer = "answer"
retrieved = "retrieved"
latency_ms = "latency_ms"
cost_usd = "cost_usd"
[chunk]
chunk_id = "chunk_id"
rel_path = "rel_path"
text = "text"
"""
GRID = """
baseline = "none"
quality = "evidence_recall@5"
constraints = ["p95_latency_ms <= 100"]
setting = [
  { name = "none", rerank = "none" },
  { name = "good", rerank = "good" },
  { name = "bad", rerank = "bad" },
  { name = "slow", rerank = "slow" },
]
"""
SHARES = {"none": 5, "good": 10, "bad": 2, "slow": 10}
"""Of ten cases, how many a setting finds."""

Sweep = Callable[..., Result]


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    (tmp_path / "bot.toml").write_text(PROFILE)
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


@pytest.fixture
def rerank_bot(bot: MissingBot) -> MissingBot:
    """Finds as many as its rerank says; one of them is slow, each call costs a cent."""

    def reply(exchange: Exchange) -> None:
        question = bot.question(exchange)
        rerank, number = exchange.json()["rerank"], int(question.split()[-1])
        payload = bot.answer(question, cost_usd=0.01)
        payload["latency_ms"] = {"total": 500.0 if rerank == "slow" else 5.0}
        # 7 n mod 10 spreads the misses over both categories alike
        if 7 * number % 10 >= SHARES[rerank]:
            payload["retrieved"][0]["chunk_id"] = "c-another"
        exchange.reply(payload)

    bot.default = reply
    return bot


@pytest.fixture
def sweep(
    tmp_path: Path, eval_set: Path, grid: Path, rerank_bot: MissingBot, environment: Any
) -> Sweep:
    def call(sweep_id: str, *words: str) -> Result:
        line = [
            *(str(grid), "--eval-set", str(eval_set), "--results-dir", str(tmp_path / "results")),
            *("--profile", str(tmp_path / "bot.toml"), "--api-url", rerank_bot.url),
            *("--run-id", sweep_id, *words),
        ]
        return CliRunner().invoke(sweep_runs.main, line, env=environment)

    return call


def table(tmp_path: Path, sweep_id: str) -> dict[str, Any]:
    """sweep.json without the name of the sweep."""
    text = (tmp_path / f"results/{sweep_id}.sweep.json").read_text()
    data: dict[str, Any] = json.loads(text.replace(f'"{sweep_id}', '"the-sweep'))
    data["compare"] = [words.replace(sweep_id, "the-sweep") for words in data["compare"]]
    return data


def test_a_race_drops_what_is_worse_or_slow_and_ends_when_decided(
    tmp_path: Path, eval_set: Path, sweep: Sweep, rerank_bot: MissingBot
) -> None:
    done = sweep("race")
    assert done.exit_code == 0, done.output
    data = table(tmp_path, "race")
    by_name = {row["name"]: row for row in data["settings"]}
    # none is the baseline: never dropped, but it has lost
    states = {"none": "worse", "good": "best", "bad": "worse", "slow": "broken"}
    assert {name: row["state"] for name, row in by_name.items()} == states
    assert (data["ended"], data["best"]) == ("decided", "good")
    # 4 settings share .05: of 10 calls all slow, P = .05^10, far below .05 / 8 / 5
    assert by_name["slow"]["cases"] == 10
    assert "p95_latency_ms <= 100 is broken: 500" in by_name["slow"]["reason"]
    assert by_name["bad"]["cases"] < by_name["none"]["cases"] < CASES
    assert by_name["good"]["cases"] == by_name["none"]["cases"]
    assert data["calls"] == sum(row["calls"] for row in data["settings"]) < data["planned"] == 400
    # each start warms up with one call that counts nowhere
    assert rerank_bot.asked.total() > data["calls"]
    assert [row["name"] for row in data["settings"] if row["pareto"]] == ["good"]
    assert "biased upwards" in done.stdout
    assert "◆ good" in done.stdout

    # every setting is an ordinary run, and the commands are right
    (command,) = data["compare"]
    words = command.replace("the-sweep", "race").split()[2:]
    folders = ["--eval-set", str(eval_set), "--results-dir", str(tmp_path / "results")]
    compared = CliRunner().invoke(compare_runs.main, [*folders, *words])
    assert compared.exit_code == 0, compared.output
    config = json.loads((tmp_path / "results/race.04-slow/config.json").read_text())
    assert config["run"]["stopped"].startswith("dropped from the sweep: p95_latency_ms")
    assert config["run"]["pace"] == {"sweep": "race", "setting": {"rerank": "slow"}}

    # the report of each of them shows the whole sweep
    words = ["--run", "race.02-good", *folders]
    reported = CliRunner().invoke(report_run.main, words)
    assert reported.exit_code == 0, reported.output
    page = (tmp_path / "results/race.02-good/report.html").read_text()
    assert '<h2 id="sweep-title">Sweep race</h2>' in page
    assert "◆ good (this run)" in page
    assert "p95_latency_ms &lt;= 100 is broken" in page
    assert config["retriever"]["requested"]["settings"] == {"rerank": "slow"}


class Killed(BaseException):
    """What a kill is to this process."""


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(number, marks=pytest.mark.thorough) for number in (1, 2))]
)
def test_killed_and_resumed_at_random_it_comes_to_the_same_table(
    tmp_path: Path, sweep: Sweep, rerank_bot: MissingBot, monkeypatch: Any, number: int
) -> None:
    """Killed at a result that chance picks, as often as it says: somewhere in the first 120 of
    the 230 or so that a whole sweep writes."""
    from records import runs

    assert sweep("whole").exit_code == 0
    chance = random.Random(number)
    write = runs.ResultsWriter.write_result
    left = [chance.randrange(40) for _ in range(chance.randint(1, 3))]
    kills = len(left)

    def write_until(self: Any, *words: Any) -> None:
        if left and left[0] == 0:
            left.pop(0)
            raise Killed
        if left:
            left[0] -= 1
        write(self, *words)

    with monkeypatch.context() as patch:
        patch.setattr(runs.ResultsWriter, "write_result", write_until)
        resume: tuple[str, ...] = ()
        for _ in range(kills):
            with pytest.raises(Killed):
                sweep("killed", *resume)
            resume = ("--resume",)
    done = sweep("killed", *resume)
    assert done.exit_code == 0, done.output
    assert table(tmp_path, "killed") == table(tmp_path, "whole")
    rerank_bot.asked.clear()
    assert sweep("killed", *resume).exit_code == 0  # once more: nothing is asked
    assert rerank_bot.asked.total() == 0
    assert table(tmp_path, "killed") == table(tmp_path, "whole")


def test_settings_that_bring_different_passages_raise_no_doubt(
    tmp_path: Path, sweep: Sweep, grid: Path
) -> None:
    grid.write_text('[grid]\nrerank = ["good", "bad"]\n')
    assert sweep("unlike").exit_code == 0
    assert "the same answers" not in table(tmp_path, "unlike")["reason"]


def test_a_budget_ends_it_and_more_of_it_goes_on(tmp_path: Path, sweep: Sweep) -> None:
    """A block is 10 cases of 4 settings: 40 calls; another one of at least two is more than 50."""
    assert sweep("tight", "--max-calls", "50").exit_code == 0
    first = table(tmp_path, "tight")
    assert (first["ended"], first["calls"]) == ("budget", 40)
    assert "max-calls" in first["reason"]
    assert sweep("paid", "--max-cost", "0.5").exit_code == 0  # 40 calls of a cent
    assert table(tmp_path, "paid")["calls"] == 40
    refused = sweep("tight")
    assert refused.exit_code == 2
    assert "--resume" in refused.output
    assert sweep("tight", "--resume").exit_code == 0
    assert sweep("whole").exit_code == 0
    assert table(tmp_path, "tight") == table(tmp_path, "whole")
    other = sweep("tight", "--resume", "--seed", "9")
    assert other.exit_code == 2
    assert "seed changed" in other.output


def test_the_winner_is_confirmed_on_cases_that_the_race_did_not_ask(
    tmp_path: Path, sweep: Sweep
) -> None:
    done = sweep("sure", "--confirm", "20")
    assert done.exit_code == 0, done.output
    data = table(tmp_path, "sure")
    own = data["confirmed"]
    assert own["cases"] == 20
    assert own["best"] == 1.0
    assert own["difference"] == pytest.approx(own["best"] - own["baseline"])
    asked = [
        set(json.loads((tmp_path / f"results/{run}/config.json").read_text())["run"]["asked"])
        for run in ("sure.02-good", "sure.02-good.confirm")
    ]
    assert not asked[0] & asked[1]
    assert "Confirmed on 20 other cases" in done.stdout


def test_where_no_fresh_cases_remain_some_are_asked_again(tmp_path: Path, sweep: Sweep) -> None:
    """90 of 100 are more than half: all stay in the race, which ends before it has asked all; the
    90 that come last in its order are asked, and of what it asked the first 10 are not among them.
    """
    done = sweep("twice", "--confirm", "90")
    assert done.exit_code == 0, done.output
    data = table(tmp_path, "twice")
    raced = next(row["cases"] for row in data["settings"] if row["name"] == "good")
    own = data["confirmed"]
    assert data["planned"] == 400  # nothing was set aside
    assert (own["cases"], own["again"]) == (90, raced - 10)
    assert 0 < own["again"] < 90
    assert own["best"] == 1.0
    assert f"{own['again']} of them asked again" in done.stdout


def test_equal_settings_cannot_be_told_apart(tmp_path: Path, sweep: Sweep, grid: Path) -> None:
    grid.write_text('[grid]\nrerank = ["good"]\nk = [3, 5]\n')
    assert sweep("equal", "--ask-all").exit_code == 0
    data = table(tmp_path, "equal")
    assert [row["name"] for row in data["settings"]] == ["k=3", "k=5"]
    assert (data["ended"], data["calls"]) == ("all asked", 200)
    assert data["reason"].startswith("every case was asked; 2 settings show no clear difference")
    assert sweep("early").exit_code == 0
    early = table(tmp_path, "early")
    assert (early["ended"], early["calls"]) == ("futile", 100)  # at half: they never differ
    assert "check that the bot reads the settings of the grid" in early["reason"]
    assert "2 settings show no clear difference" in early["reason"]
    shutil.rmtree(tmp_path / "results/equal.02-k-5")
    assert sweep("equal", "--resume").exit_code == 0  # a folder that was lost is asked again


def test_a_bot_that_is_gone_drops_nobody(
    tmp_path: Path, sweep: Sweep, rerank_bot: MissingBot
) -> None:
    rerank_bot.default = lambda exchange: exchange.reset()
    gone = sweep("gone", "--set", "retries=0")
    assert gone.exit_code == 3
    assert all(row["state"] == "racing" for row in table(tmp_path, "gone")["settings"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[grid]\nrerank = ['good']\n", "needs 2 to"),
        ("[grid]\nrerank = 'good'\n", "must be a list"),
        ("[grid]\nnothing = [1, 2]\n", "would change nothing"),
        ("[grid]\nk = [0, 2]\n", "above 0"),
        ("[grid]\nk = [1, 1]\n", "two settings are named"),
        ("quality = 'nonsense'\n[grid]\nk = [1, 2]\n", "no such metric"),
        ("quality = { 'ndcg@5' = 0 }\n[grid]\nk = [1, 2]\n", "above 0"),
        ("quality = 'fact_recall'\n[grid]\nk = [1, 2]\n", "needs more than results"),
        ("constraints = ['fast']\n[grid]\nk = [1, 2]\n", "write NAME"),
        ("baseline = 'x'\n[grid]\nk = [1, 2]\n", "no setting is named"),
        ("other = 1\n[grid]\nk = [1, 2]\n", "unknown"),
        ("warm_up = 'x'\n[grid]\nk = [1, 2]\n", "warm_up: must be a whole number"),
        ("command = 'bot {port}'\n[grid]\nk = [1, 2]\n", "no value for {port}"),
        ("[grid]\nk = [1, 2]\ndemo_args = ['lexical_only=true']\n", "for --api-url demo"),
        ("[grid]\nk = [1, 2]\ndemo_args = ['--lexical-only']\n", "write KEY=VALUE"),
        ("[grid]\nheaders = ['a=b c', 'x=Y']\n", "NAME=VARIABLE"),
        ("[grid\n", "cannot be used"),
    ],
)
def test_a_grid_that_cannot_be_run_asks_nobody(
    sweep: Sweep, grid: Path, rerank_bot: MissingBot, text: str, says: str
) -> None:
    grid.write_text(text)
    done = sweep("never")
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
    assert rerank_bot.asked.total() == 0


RESTARTED = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
port, rerank = sys.argv[1:]
class Bot(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"answer": rerank, "retrieved": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
HTTPServer(("127.0.0.1", int(port)), Bot).serve_forever()
"""


def test_a_bot_that_is_restarted_with_each_setting(
    tmp_path: Path, eval_set: Path, grid: Path, environment: dict[str, str | None]
) -> None:
    """Its answer is the word that it was started with: spaces and quotes stay in one word."""
    (tmp_path / "restarted.py").write_text(RESTARTED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profile = PROFILE.replace('rerank = "{rerank}"\n[settings]\nrerank = "none"', "")
    (tmp_path / "bot.toml").write_text(profile)
    command = f"{sys.executable} {tmp_path}/restarted.py {port} {{rerank}}"
    grid.write_text(f"command = '{command}'\n[grid]\nrerank = ['a b', \"c'd\"]\n")
    line = [
        *(str(grid), "--eval-set", str(eval_set), "--results-dir", str(tmp_path / "results")),
        *("--profile", str(tmp_path / "bot.toml"), "--api-url", f"http://127.0.0.1:{port}"),
        *("--run-id", "own", "--max-calls", "21"),
    ]
    done = CliRunner().invoke(sweep_runs.main, line, env=environment)
    assert done.exit_code == 0, done.output
    answers = {
        json.loads(text)["answer"]
        for path in (tmp_path / "results").glob("own.*/results.jsonl")
        for text in path.read_text().splitlines()
    }
    assert answers == {"a b", "c'd"}
    with socket.socket() as probe:  # it was stopped with its last turn
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    grid.write_text("command = 'false {rerank}'\n[grid]\nrerank = ['a', 'b']\n")
    line[line.index("own")] = "other"
    done = CliRunner().invoke(sweep_runs.main, line, env=environment)
    assert done.exit_code == 3
    assert "ended with code 1" in done.output


def test_answers_that_a_power_cut_took_from_a_sweep_are_asked_again(
    tmp_path: Path, eval_set: Path, sweep: Sweep, rerank_bot: MissingBot
) -> None:
    assert sweep("race").exit_code == 0
    before = table(tmp_path, "race")
    (results,) = (tmp_path / "results").glob("race.*-good/results.jsonl")
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join([*lines[:2], bytes(len(lines[2]) - 1) + b"\n", *lines[3:]]))
    lost = json.loads(lines[2])["question"]
    asked = rerank_bot.asked.copy()
    done = sweep("race", "--resume")
    assert done.exit_code == 0, done.output
    assert "1 line could not be read" in " ".join(done.output.split())
    again = rerank_bot.asked - asked
    assert again[lost] >= 1
    assert again.total() <= 2  # a warm-up is asked, too
    assert len(results.read_bytes().splitlines()) == len(lines)
    assert table(tmp_path, "race")["settings"] == before["settings"]
