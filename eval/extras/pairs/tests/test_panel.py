"""A panel of judges from its files: votes, cache, cost before the first call, resuming, labels."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.scripts.judging.conftest import JudgedRun, Server, ids_in, schema_of

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
MODELS = {name: f"{name}-2025-01-01" for name in "abc"}
QUOTE = "The fee is 15 euros"
JUDGE = """server = "{url}"
model = "{model}"
revision = "r1"
retries = 0
prices = {{ prompt = 1.0, completion = 1.0 }}
"""


class Voters:
    """Replies of the three models: those in ``deny`` find nothing, those in ``broken`` fail."""

    def __init__(self) -> None:
        self.deny: set[str] = set()
        self.broken: set[str] = set()

    def __call__(self, server: Server, body: dict[str, Any]) -> tuple[int, Any]:
        name = body["model"][0]
        if name in self.broken:
            return 500, {"error": "down"}
        verdict = "not_found" if name in self.deny else "supported"
        entry = {"context": "c1", "quote": QUOTE, "reason": name, "verdict": verdict}
        reply = {"notes": "", "manipulation": False}
        done = server.completion(reply | {"verdicts": [{"id": i} | entry for i in ids_in(body)]})
        return 200, done | {"model": body["model"]}


@pytest.fixture
def panel(run: JudgedRun, server: Server, tmp_path: Path) -> Any:
    """The run of four cases, its server, the voters, and the words that make the panel judge."""
    run.write()
    voters = Voters()
    server.reply = voters
    plain = server.completion
    server.completion = lambda reply, *more: {  # type: ignore[method-assign]
        k: v for k, v in plain(reply, *more).items() if k != "model"
    }
    for name, model in MODELS.items():
        text = JUDGE.format(url=server.url, model=model)
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    (tmp_path / "three.toml").write_text('panel = ["a", "b", "c"]\n', "utf-8")
    words = ("--judge", str(tmp_path / "three.toml"), "--metrics", "groundedness")
    return run, server, voters, words, tmp_path


def of_models(server: Server) -> Counter[str]:
    """Judgements by the model that was asked."""
    return Counter(call["model"][0] for call in server.calls if "verdicts" in schema_of(call))


def test_the_majority_counts_and_alpha_stands_beside_it(panel: Any) -> None:
    run, server, voters, words, _ = panel
    voters.deny = {"c"}
    section = run.judge(*words)
    # good has 1 claim, bad 2; shy abstains. Two of three say supported on each claim.
    assert section["mean"]["groundedness"] == 5.0
    row = section["panel"]["agreement"]["groundedness"]
    # nominal: a, b say supported and c not_found on all 3 claims. Within pairs 2 of 3 differ:
    # D_o = 2/3; of 9 labels 6 and 3: D_e = 2*6*3 / (9*8) = 1/2; alpha = 1 - (2/3)/(1/2) = -1/3
    assert row["alpha"] == pytest.approx(-1 / 3, abs=1e-6)
    assert (row["level"], row["items"], row["split"]) == ("nominal", 3, 3)
    assert section["panel"]["judges"] == list(MODELS.values())
    line = next(line for line in run.lines() if line["case_id"] == "good")
    assert line["extra"]["votes"] == {"1": ["supported", "supported", "not_found"]}
    assert line["judge"]["provider"] == "panel"
    assert of_models(server) == {"a": 2, "b": 2, "c": 2}
    shown = run.call(*words)
    assert "alpha between judges" in shown.stdout
    kept = run.finished.bytes_of("judged"), (run.finished.run / "verdicts.jsonl").read_bytes()
    run.judge("--rescore")
    run.judge(*words, "--offline")
    assert kept[0] == run.finished.bytes_of("judged")
    assert kept[1] == (run.finished.run / "verdicts.jsonl").read_bytes()
    assert of_models(server) == {"a": 2, "b": 2, "c": 2}


def test_what_a_member_said_alone_is_not_paid_again(panel: Any) -> None:
    run, server, _, words, folder = panel
    run.judge("--judge", str(folder / "b.toml"), *words[2:])
    assert of_models(server) == {"b": 2}
    run.judge(*words)
    assert of_models(server) == {"a": 2, "b": 2, "c": 2}
    run.judge("--judge", str(folder / "c.toml"), *words[2:])
    assert of_models(server) == {"a": 2, "b": 2, "c": 2}


def test_a_failing_member_is_a_missing_vote_and_no_majority_no_score(panel: Any) -> None:
    run, _, voters, words, _ = panel
    voters.broken = {"b"}
    section = run.judge(*words)
    assert section["mean"]["groundedness"] == 5.0  # two of three are more than half
    assert section["panel"]["agreement"]["groundedness"]["missing_votes"] == 3
    (run.finished.run / "verdicts.jsonl").unlink()
    voters.deny = {"c"}
    (run.finished.folder / "cache" / "judge_cache.jsonl").unlink()
    done = run.call(*words, "--json")
    assert done.exit_code == 3, done.output
    section = json.loads(done.stdout)
    assert section["n"]["groundedness"] == 0
    assert section["failed"]["groundedness"] == 3  # two without a majority, one call of the bot's
    assert section["panel"]["agreement"]["groundedness"]["no_majority"] == 2
    assert "no verdict of the panel has a majority of its judges" in done.stderr


def test_the_cost_of_all_is_said_before_anything_is_sent_and_its_limit_holds(panel: Any) -> None:
    run, server, _, words, _ = panel
    report = json.loads(run.call(*words, "--dry-run", "--json").stdout)
    assert (report["tasks"], report["calls"]) == (6, 6)
    assert report["cost_usd"] > 0
    assert server.calls == []
    shown = run.call(*words, "--dry-run")
    told = "the answers go to a-2025-01-01 (127.0.0.1), b-2025-01-01 (127.0.0.1), c-2025-01-01"
    assert told in " ".join(shown.stdout.split())
    assert server.calls == []
    done = run.call(*words, "--max-cost", "0.02", "--set", "concurrency=1")
    assert "concurrency belongs in the files of its members" in done.output
    # each call costs (5000 + 50) / 10^6 = 0.00505 dollars; the fourth, with probes, reaches .02
    done = run.call(*words, "--max-cost", "0.02")
    assert told in " ".join(done.stderr.split())
    assert sum(of_models(server).values()) < 6
    assert all(line["status"] != "ok" for line in run.lines() if line["failure"] == "budget")
    assert run.judge(*words)["n"]["groundedness"] == 2
    assert of_models(server) == {"a": 2, "b": 2, "c": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('panel = ["a"]', "two judges or more"),
        ('panel = ["a", "a"]', "each once"),
        ('panel = ["a", "nowhere"]', "nowhere: no judge of that name"),
        ('panel = ["a", "three"]', "three: is a panel itself"),
        ('panel = ["a", "b"]\nmodel = "x"', "is given together with panel"),
        ('panel = ["a", "rules"]', "rules: names no server"),
        ('panel = ["a", "twin"]', "two members are the same judge"),
    ],
)
def test_a_bad_panel_is_one_sentence(panel: Any, text: str, said: str) -> None:
    run, server, _, words, folder = panel
    (folder / "three.toml").write_text(text + "\n", "utf-8")
    (folder / "rules.toml").write_text('server = "local"\n', "utf-8")
    (folder / "twin.toml").write_text((folder / "a.toml").read_text("utf-8"), "utf-8")
    done = run.call(*words)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
    assert server.judgements == 0


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_it_goes_on_and_no_member_is_paid_twice(panel: Any) -> None:
    run, server, _, words, _ = panel
    names = [f"case{number}" for number in range(20)]
    shutil.rmtree(run.finished.run)
    run.write([{"id": n} for n in names], [run.result(n, f"{QUOTE}, says {n}.") for n in names])
    server.delay = 0.03
    finished = run.finished
    command = [
        *(sys.executable, str(SCRIPTS / "judge_answers.py"), "--run", str(finished.run)),
        *("--eval-set", str(finished.folder / "set.jsonl")),
        *("--cache-dir", str(finished.folder / "cache"), "-q", *words),
    ]
    cache = finished.folder / "cache" / "judge_cache.jsonl"
    for wanted in (7, 23, 41):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            begun = time.monotonic()
            while time.monotonic() < begun + 60 and process.poll() is None:
                if cache.exists() and cache.read_bytes().count(b"\n") >= wanted:
                    break
                time.sleep(0.002)
            process.kill()
            process.communicate()
        assert process.returncode == -signal.SIGKILL
    assert run.judge(*words)["n"]["groundedness"] == 20
    keys = [json.loads(line)["key"] for line in cache.read_text("utf-8").splitlines()]
    assert len(keys) == len(set(keys)) == 60


def test_another_panel_is_another_judge(panel: Any) -> None:
    run, _, _, words, folder = panel
    run.judge(*words)
    first = json.loads((run.finished.run / "config.json").read_text("utf-8"))["judge"]
    (folder / "three.toml").write_text('panel = ["a", "b"]\n', "utf-8")
    section = run.judge(*words)
    judge = json.loads((run.finished.run / "config.json").read_text("utf-8"))["judge"]
    assert first["identity"] != judge["identity"]
    assert [one["identity"]["model"] for one in judge["members"]] == [MODELS["a"], MODELS["b"]]
    assert judge["identity"]["strength"] == "revision"
    assert section["panel"]["judges"] == [MODELS["a"], MODELS["b"]]


def by_helpful(voters: Voters) -> Any:
    """All members find the answer helpful, but b in the cases 0 to 7, and nobody in 8 to 15."""

    def reply(server: Server, body: dict[str, Any]) -> tuple[int, Any]:
        answer = body["messages"][1]["content"].rpartition("<<<BEGIN answer")[2]
        case = int(re.findall(r"says case(\d+)", answer)[0])
        bad = case in range(8, 16) or (case < 8 and body["model"][0] == "b")
        entry = {"id": "1", "quote": "" if bad else QUOTE, "reason": ""}
        entry["verdict"] = "not helpful" if bad else "helpful"
        done = server.completion({"notes": "", "verdicts": [entry], "manipulation": False})
        return 200, done | {"model": body["model"]}

    return reply


def test_people_label_what_a_panel_said_by_a_rubric_and_correct_its_mean(panel: Any) -> None:
    """Of 40 answers the panel finds 32 helpful (80 %), and b differs on 8 of them: they are first
    in every ten and get more than their share. People call all 40 helpful, so the panel is wrong on
    the 8 that it does not, and the mean with its errors out is 1, all of these being labelled."""
    from click.testing import CliRunner

    from calibrate_judge import main as calibrate

    run, server, voters, words, folder = panel
    names = [f"case{number:02}" for number in range(40)]
    shutil.rmtree(run.finished.run)
    run.write([{"id": n} for n in names], [run.result(n, f"{QUOTE}, says {n}.") for n in names])
    server.reply = by_helpful(voters)
    section = run.judge(*words[:2], "--metrics", "rubrics.helpful")
    assert section["mean"]["helpful"] == pytest.approx(0.8)
    row = section["panel"]["agreement"]["helpful"]
    assert (row["level"], row["items"], row["split"]) == ("ordinal", 40, 8)
    common = ["--run", str(run.finished.run), "--eval-set", str(run.finished.folder / "set.jsonl")]
    common += ["--labels-dir", str(folder / "labels"), "--metric", "rubrics.helpful"]
    common += ["--annotator", "maria"]

    def label(typed: str, sample: int) -> list[str]:
        done = CliRunner().invoke(
            calibrate, [*common, "--label", "--plain", "--set", f"sample={sample}"], input=typed
        )
        assert done.exit_code == 0, done.output
        lines = (folder / "labels" / "verdicts" / "maria.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line)["case_id"] for line in lines]

    first = label("3\n" * 8, 8)
    assert [name < "case08" for name in first[:3]] == [True, True, False]
    labelled = label("3\n" * 24, 32)
    # of the panel's "helpful": 8 x .5 = 4 against 24 x .218 = 5.2, so 43 % of its 24 labels: all 8
    assert {f"case{n:02}" for n in range(8)} <= set(labelled)
    done = CliRunner().invoke(calibrate, [*common, "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["judge"]["provider"] == "panel"
    # all that is labelled is helpful, also the 8 that the panel does not find so
    corrected = report["corrected"]
    assert (corrected["helpful"], corrected["stratified"]["mean"]) == pytest.approx((0.8, 1.0))
