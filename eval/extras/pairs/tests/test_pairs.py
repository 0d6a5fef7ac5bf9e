"""judge_pairs.py with a fake server: both orders, what is printed, kept, asked again, refused."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.scripts.judging.conftest import Server

from extras.pairs.judge_pairs import main
from extras.pairs.record import read_pairs
from storage import ErrorInfo, ResultsWriter, RunConfig, TestResult, sha256_file

SCRIPT = Path(__file__).parents[1] / "judge_pairs.py"
PAIR_KILLS = int(os.environ.get("PAIR_KILLS", "6"))
CASES = [{"id": f"c{number:02}"} for number in range(12)]
BLOCK = r"<<<BEGIN {} answer [0-9a-f]{{16}}>>>\n(.*?)\n<<<END"


def shown(body: dict[str, Any]) -> tuple[str, str]:
    """The first and the second answer of a prompt."""
    text = body["messages"][1]["content"]
    first, second = (
        re.search(BLOCK.format(place), text, re.DOTALL) for place in ("first", "second")
    )
    assert first is not None
    assert second is not None
    return first[1], second[1]


def points(answer: str) -> int:
    """What the fake judge thinks of an answer: its number."""
    return int(re.findall(r"\d+", answer)[-1])


def by_points(server: Server, body: dict[str, Any]) -> tuple[int, Any]:
    """The answer with the larger number wins; equal numbers: the first place wins."""
    first, second = shown(body)
    verdict = "first" if points(first) >= points(second) else "second"
    quote = first if verdict == "first" else second
    return 200, reply(server, verdict, quote)


def reply(server: Server, verdict: str, quote: str) -> Any:
    entry = {"id": "1", "quote": quote, "reason": "more", "verdict": verdict}
    return server.completion({"notes": "", "verdicts": [entry], "manipulation": False})


class Pairs:
    """Two runs of twelve cases: the new one wins 6 and loses 2, the order decides 2, one pair is
    equal, and in one the base has no answer."""

    NEW = (2, 2, 2, 2, 2, 2, 1, 1, 5, 5, 3, 4)
    BASE = (1, 1, 1, 1, 1, 1, 2, 2, 5, 5, 3, 1)

    def __init__(self, finished: Any, server: Server) -> None:
        self.finished, self.server = finished, server
        self.results = finished.folder / "results"
        server.reply = by_points
        finished.write(CASES, [self.result(n, f"Run new says {p}") for n, p in enumerate(self.NEW)])
        (self.results / "run").rename(self.results / "new")
        self.write("new", [f"I think it is {p}" for p in self.NEW])
        others = [f"It must be {p}" for p in self.BASE]
        others[10] = "I think  it is 3"
        self.write("old", others, failed=11)

    @staticmethod
    def result(number: int, answer: str, **more: Any) -> TestResult:
        return TestResult(f"c{number:02}", answer=answer, **more)

    def write(self, name: str, answers: list[str], failed: int = -1) -> None:
        """A finished run of that name."""
        shutil.rmtree(self.results / name, ignore_errors=True)
        writer = ResultsWriter(self.results, name)
        sha = sha256_file(self.finished.folder / "set.jsonl")
        writer.write_config(RunConfig(name, dataset={"sha256": sha}))
        for number, answer in enumerate(answers):
            result = self.result(number, answer)
            if number == failed:
                result.answer, result.status, result.error = None, "error", ErrorInfo("timeout")
            writer.write_result(result)
        writer.finish(case["id"] for case in CASES)

    def words(self, *more: str) -> list[str]:
        words = ["--run", "new", "--base", "old", "--judge", self.server.url]
        words += ["--model", self.server.model, "--set", "retries=0", "--set", "revision=r1"]
        return [*words, "--cache-dir", str(self.finished.folder / "cache"), *more]

    def call(self, *more: str) -> Any:
        return self.finished.score(main, *self.words(*more), columns=200)

    def json(self, *more: str) -> dict[str, Any]:
        done = self.call("--json", "-q", *more)
        assert done.exit_code == 0, done.output
        found: dict[str, Any] = json.loads(done.stdout)["pairs"][0]
        return found


@pytest.fixture
def pairs(finished: Any, server: Server) -> Pairs:
    return Pairs(finished, server)


def test_each_pair_is_asked_in_both_orders_without_names_and_equal_ones_are_not(
    pairs: Pairs,
) -> None:
    found = pairs.json()
    # 6 won, 2 lost; 2 by the order and 1 equal are undecided; the base failed on c11
    assert (found["better"], found["worse"], found["undecided"], found["cases"]) == (6, 2, 3, 11)
    assert (found["equal"], found["failed"]) == (1, 0)
    assert pairs.server.judgements == 20  # ten pairs, two orders
    asked = [body for body in pairs.server.calls if "BEGIN first answer" in str(body)]
    assert len(asked) == 20
    orders = sorted(shown(body) for body in asked)
    assert sorted(orders) == sorted((two, one) for one, two in orders)
    assert not any(re.search(r"\b(new|old|base)\b", str(body["messages"])) for body in asked)


def test_the_order_and_the_first_place_are_printed(pairs: Pairs) -> None:
    done = pairs.call()
    assert done.exit_code == 0, done.output
    assert "better 6, worse 2, undecided 3 of 11" in done.output
    # the place decided the two pairs of equal numbers: 2 of 10; first wins 8 + 4 of 20 = 60 %
    assert "The order decided 20 % of 10 pairs" in done.output
    assert "The first place wins 60 % of the verdicts" in done.output
    assert "1 case with equal answers: not asked." in done.output
    assert "I think it is 2 (more)" in done.output  # the quote that decided
    last = done.stdout.strip().splitlines()
    assert any(
        "no evidence of a difference: the run wins 75 % of 8 decided cases" in x for x in last[-3:]
    )


def test_calls_are_said_before_anything_is_sent_and_max_cost_holds(pairs: Pairs) -> None:
    prices = pairs.finished.folder / "prices.toml"
    prices.write_text(f'["{pairs.server.model}"]\nprompt = 100.0\ncompletion = 100.0\n')
    done = pairs.call("--dry-run", "--set", f"prices={prices}")
    assert done.exit_code == 0, done.output
    assert re.search(r"calls\s+.*20", done.output)
    assert pairs.server.judgements == 0
    # 5,050 tokens a reply at $100 a million are $0.505: the second reply reaches $1
    words = ("--set", f"prices={prices}", "--set", "concurrency=1", "--max-cost", "1")
    done = pairs.call(*words)
    assert done.output.index("20 calls (0 more are in the cache), about $") >= 0
    assert "--max-cost 1 stops it" in done.output
    assert pairs.server.judgements <= 3
    assert done.exit_code == 3


def test_a_failed_call_is_a_missing_verdict_and_asked_again(pairs: Pairs) -> None:
    def failing(server: Server, body: dict[str, Any]) -> tuple[int, Any]:
        first, second = shown(body)
        if first == "I think it is 1" and points(second) == 2:
            return 400, {"error": {"message": "no"}}
        return by_points(server, body)

    pairs.server.reply = failing
    done = pairs.call("--json", "-q")
    found = json.loads(done.stdout)["pairs"][0]
    assert (found["better"], found["worse"], found["undecided"], found["failed"]) == (6, 0, 3, 2)
    pairs.server.reply = by_points
    asked = pairs.server.judgements
    assert pairs.json()["worse"] == 2
    assert pairs.server.judgements == asked + 2  # the order that failed of each; the other is kept


def test_a_quote_that_no_answer_has_decides_nothing(pairs: Pairs) -> None:
    pairs.server.reply = lambda server, body: (200, reply(server, "first", "words of no answer"))
    found = pairs.json()
    assert (found["better"], found["worse"], found["undecided"]) == (0, 0, 11)
    assert (found["habits"]["by_order"], found["habits"]["unquoted"]) == (0, 10)
    done = pairs.call("--rescore")
    assert "The quote is in neither answer in 10 of 10 pairs; they count as undecided." in " ".join(
        done.output.split()
    )


def test_failures_are_counted_by_their_kind(pairs: Pairs) -> None:
    """Every call answers 400: 10 pairs in two orders are 20 judgements that failed alike."""
    pairs.server.reply = lambda server, body: (400, {"error": {"message": "no"}})
    done = pairs.call("--max-error-rate", "1")
    assert "('" not in done.output
    assert re.search(r"20 judgements failed \(\w+\): ", " ".join(done.output.split()))


def test_the_same_command_asks_nothing_twice_and_rescore_counts_the_file(pairs: Pairs) -> None:
    first = pairs.json()
    asked = pairs.server.judgements
    path = pairs.results / "new" / "pairs" / "old.jsonl"
    before = path.read_bytes()
    assert pairs.json() == first == pairs.json("--rescore")
    assert pairs.server.judgements == asked
    assert path.read_bytes() == before
    assert not (pairs.results / "new" / "verdicts.jsonl").exists()
    config = json.loads((pairs.results / "new" / "config.json").read_text())
    assert not config.get("judge")  # who judges pairs is not who judges the run


def test_an_answer_that_has_changed_is_judged_again_and_until_then_does_not_count(
    pairs: Pairs,
) -> None:
    pairs.json()
    answers = [f"I think it is {p}" for p in pairs.NEW]
    folder = pairs.results / "new" / "pairs" / "old.jsonl"
    text = folder.read_bytes()
    pairs.write("new", ["I think it is 0", *answers[1:]])
    folder.parent.mkdir()
    folder.write_bytes(text)
    (file,) = read_pairs(pairs.results / "new", pairs.results / "old")
    assert file.stale == 1
    assert len(file.verdicts) == 10
    found = pairs.json()
    assert (found["better"], found["worse"], found["stale"]) == (5, 3, 0)


def test_a_rubric_asks_its_own_question_beside_the_usual_one(pairs: Pairs) -> None:
    pairs.json()
    found = pairs.json("--rubric", "helpful")
    assert found["question"] == "helpful"
    system = pairs.server.calls[-1]["messages"][0]["content"]
    assert "The better answer is the one that comes nearer to:" in system
    names = [file.metric for file in read_pairs(pairs.results / "new", pairs.results / "old")]
    assert names == ["pairs", "pairs.helpful"]


def test_several_runs_are_compared_with_the_base_alone(pairs: Pairs) -> None:
    pairs.write("third", [f"I guess it is {p}" for p in pairs.NEW])
    done = pairs.call("--json", "-q", "--run", "new,third")
    found = json.loads(done.stdout)["pairs"]
    assert [(one["base_id"], one["new_id"]) for one in found] == [("old", "new"), ("old", "third")]
    assert [p.name for p in (pairs.results / "third" / "pairs").glob("*.jsonl")] == ["old.jsonl"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--base", "new"), "the run itself"),
        (("--judge", "local"), "the embedded rules cannot compare two answers"),
        (("--rubric", "nonesuch"), "no such rubric"),
        (("--rescore",), "no verdicts on these pairs"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(pairs: Pairs, words: Any, says: str) -> None:
    done = pairs.call(*words)
    assert done.exit_code == 2, done.output
    assert says in done.output
    assert pairs.server.judgements == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_anywhere_it_goes_on_and_pays_nothing_twice(finished: Any, server: Server) -> None:
    """PAIR_KILLS processes are killed with SIGKILL after some calls; then one ends by itself.

    40 pairs of other answers are 80 calls, one after the other and in one order, so a call whose
    place is below the number of kept verdicts would be paid twice."""
    finished.write(
        [{"id": f"case{number}"} for number in range(40)],
        [TestResult(f"case{number}", answer=f"mine{number:02} is 2") for number in range(40)],
    )
    results = finished.folder / "results"
    (results / "run").rename(results / "new")
    shutil.copytree(results / "new", results / "old")
    base = results / "old" / "results.jsonl"
    base.write_bytes(re.sub(rb"mine(\d+) is 2", rb"other\1 is 1", base.read_bytes()))
    config = results / "old" / "config.json"
    config.write_bytes(config.read_bytes().replace(b'"run"', b'"old"'))
    server.reply, server.delay = by_points, 0.03
    cache = finished.folder / "cache" / "judge_cache.jsonl"
    command = [
        *(sys.executable, str(SCRIPT), "--run", "new", "--base", "old", "--judge", server.url),
        *("--model", server.model, "--set", "retries=0", "--set", "revision=r1"),
        *("--set", "concurrency=1", "--cache-dir", str(cache.parent)),
        *("--eval-set", str(finished.folder / "set.jsonl"), "--results-dir", str(results)),
    ]

    def kept() -> int:
        return cache.read_bytes().count(b"\n") if cache.exists() else 0

    killed, again = 0, 0
    order: dict[tuple[str, str], int] = {}
    chance = random.Random(5)
    for number in range(PAIR_KILLS + 1):
        first, stored = len(server.calls), kept()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            wanted = stored + 1 + number % 2 if number < PAIR_KILLS else 1000
            begun = time.monotonic()
            while process.poll() is None and kept() < wanted and time.monotonic() < begun + 60:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.03))
            if number < PAIR_KILLS:
                process.kill()
            output = process.communicate()[0]
        killed += process.returncode == -signal.SIGKILL
        for call in server.calls[first:]:
            if "BEGIN first answer" in str(call):
                again += order.setdefault(shown(call), len(order)) < stored
    assert process.returncode == 0, output
    assert b"better 40, worse 0, undecided 0 of 40" in output
    assert again == 0, "what was in the cache is never asked for again"
    keys = [json.loads(line)["key"] for line in cache.read_text("utf-8").splitlines()]
    assert len(keys) == len(set(keys)) == len(order) == 80
    under_way = server.judgements - 80
    print(f"{killed} kills, {again} paid twice; {under_way} calls had no reply yet when killed")


WHEN_AND_HOW = ("judging_runs", "attempts", "cached", "seconds", "messages", "usage")


def comparable(lines: bytes) -> list[bytes]:
    """Verdict lines in order, without what tells when and by which run they were asked."""
    rows = [row for row in map(json.loads, lines.splitlines()) if "case_id" in row]
    for row in rows:
        for name in WHEN_AND_HOW:
            row.pop(name, None)
            row.get("extra", {}).pop(name, None)
    return sorted(json.dumps(row, sort_keys=True).encode() for row in rows)


@pytest.mark.parametrize("run", ["new", "old"])
def test_an_example_of_the_rubric_is_no_answer_of_either_run(pairs: Pairs, run: str) -> None:
    from records.rubrics import find

    rubric, _ = find("helpful")
    pairs.write(run, [rubric.examples[0].answer] * len(CASES))
    done = pairs.call("--rubric", "helpful")
    assert done.exit_code == 2, done.output
    assert "examples[1].answer: is the answer of the run to case" in done.output
    assert pairs.server.judgements == 0


def words_of(pairs: Pairs) -> list[str]:
    own = ["--eval-set", str(pairs.finished.folder / "set.jsonl")]
    return [*own, "--results-dir", str(pairs.results)]


def label(pairs: Pairs, typed: str, *more: str) -> Any:
    """calibrate_judge.py on the pairs, its lines typed."""
    from calibrate_judge import main as calibrate

    words = [*words_of(pairs), "--labels-dir", str(pairs.finished.folder / "labels")]
    words += ["--annotator", "maria", "--run", "new", "--pairs-with", "old", *more]
    return CliRunner().invoke(calibrate, words, input=typed)


def test_people_label_pairs_blind_and_are_compared_with_the_judge(pairs: Pairs) -> None:
    """Maria takes the larger number, like the judge, and calls equal numbers equal. So both agree
    on the 8 pairs that the judge decided and on the 2 that its order decided: kappa 1."""
    pairs.json()
    shown = label(pairs, "q\n", "--label", "--plain").output
    screen = shown.split("pair 1 of 10")[1].split("new: people have decided no pair")[0]
    assert not re.search(r"\b(new|old|base)\b", screen)
    assert "question: About c" in screen
    for _ in range(10):
        seen = label(pairs, "a\n", "--label", "--plain").output
        left = points(re.findall(r"left answer: (.*)", seen)[-1])
        right = points(re.findall(r"right answer:\n(.*)", seen)[-1])
        typed = "1\n" if left > right else "2\n" if right > left else "0\n"
        label(pairs, typed, "--label", "--plain")
    done = label(pairs, "", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["n"], report["agreement"], report["kappa"]) == (10, 1.0, 1.0)
    assert report["confusion"]["new better"] == {"base better": 0, "undecided": 0, "new better": 6}
    assert report["length"]["p"] is None  # 10 labels of 40
    lines = (pairs.finished.folder / "labels" / "verdicts" / "maria.jsonl").read_text()
    rows = [json.loads(line) for line in lines.splitlines()]
    assert {row["label"] for row in rows} <= {"left", "right", "equal"}
    assert {row["metric"] for row in rows} == {"pairs"}
    assert "there are 10." in pairs.call("--rescore").output


def test_sides_are_drawn_by_a_hash(pairs: Pairs) -> None:
    """Of 400 pairs about half are turned (200 ± 40 is four standard deviations), another annotator
    gets other ones, and the same annotator the same."""
    from extras.pairs.labelling import is_turned

    keys = [(f"case {number}", 0) for number in range(400)]
    maria, tom = ([is_turned(who, key, ("a", "b")) for key in keys] for who in ("maria", "tom"))
    assert 160 < sum(maria) < 240
    assert maria != tom
    assert maria == [is_turned("maria", key, ("a", "b")) for key in keys]


@pytest.mark.parametrize("more", [("--run", "new,old"), ("--gate",), ("--metric", "correctness")])
def test_pairs_are_calibrated_with_a_base_alone(pairs: Pairs, more: tuple[str, ...]) -> None:
    pairs.json()
    done = label(pairs, "", *more)
    assert done.exit_code == 2
    assert "compares the pairs of one --run" in " ".join(done.output.split())


def test_compare_report_and_browser_show_the_pairs(pairs: Pairs) -> None:
    from compare_runs import main as compare
    from extras.pairs.compared import of_case
    from report_run import main as report_run
    from score_pipeline import main as score
    from views.library import RunLibrary

    pairs.json()
    folder = pairs.finished.folder
    words = words_of(pairs)
    for name in ("old", "new"):
        done = CliRunner().invoke(score, [*words, "--run", name, "-q"])
        assert done.exit_code == 0, done.output
    page = folder / "page.html"
    done = CliRunner().invoke(compare, [*words, "old", "new", "--html", str(page)])
    assert "better 6, worse 2, undecided 3 of 11" in done.output, done.output
    assert "I think it is 2 (more)" in done.output
    assert "It must be 1" in done.output  # the other answer
    assert "better 6, worse 2, undecided 3 of 11" in page.read_text()
    report = ["--run", "new", "--baseline", str(pairs.results / "old"), "--format", "md"]
    done = CliRunner().invoke(report_run, [*words, *report])
    assert done.exit_code == 0, done.output
    assert "better 6, worse 2, undecided 3 of 11" in (pairs.results / "new/report.md").read_text()
    runs = pairs.results / "old", pairs.results / "new"
    assert of_case(*runs, ("c00", 0)) == [("pairs", "better", "I think it is 2 (more)")]
    assert of_case(*runs, ("c10", 0)) == [("pairs", "equal answers, not asked", "")]
    assert of_case(runs[1], runs[0], ("c00", 0)) == []
    library = RunLibrary(pairs.results, folder / "set.jsonl", folder / "labels")
    assert library.judged_pair("old", "new", ("c00", 0)) == of_case(*runs, ("c00", 0))


def panel_of(pairs: Pairs, *servers: str) -> list[str]:
    """Words that let a panel judge: a member for each server."""
    folder = pairs.finished.folder
    for number, url in enumerate(servers):
        text = f'server = "{url}"\nmodel = "m{number}-2025-01-01"\nrevision = "r1"\nretries = 0\n'
        text += "prices = { prompt = 100.0, completion = 100.0 }\n"
        (folder / f"j{number}.toml").write_text(text)
    names = [f"j{number}" for number in range(len(servers))]
    (folder / "panel.toml").write_text(f"panel = {json.dumps(names)}\n")
    plain = pairs.server.completion
    pairs.server.completion = lambda said, *more: {  # type: ignore[method-assign]
        name: value for name, value in plain(said, *more).items() if name != "model"
    }
    words = ["--run", "new", "--base", "old", "--judge", str(folder / "panel.toml")]
    return [*words, "--cache-dir", str(folder / "cache")]


def named(server: Server, body: dict[str, Any]) -> tuple[int, Any]:
    status, done = by_points(server, body)
    return status, done | {"model": body["model"]}


def test_a_panel_judges_pairs_says_what_is_cached_and_keeps_max_cost(pairs: Pairs) -> None:
    pairs.server.reply = named
    words = panel_of(pairs, pairs.server.url, pairs.server.url, pairs.server.url)
    call = pairs.finished.score
    done = call(main, *words, "--dry-run", columns=400)
    assert "In all 60 calls (0 more are in the cache), about $" in done.output, done.output
    done = call(main, *words, "--max-cost", "5", columns=400)
    assert done.exit_code == 3, done.output
    assert "--max-cost 5 stops it" in done.output
    paid = pairs.server.judgements
    # a reply costs $0.505; the tenth reaches 5, and a few are under way then
    assert 10 <= paid < 40
    done = call(main, *words, "--dry-run", columns=400)
    kept = int(re.findall(r"\((\d+) more are in the cache\)", done.output)[0])
    assert paid - 9 <= kept <= paid
    done = call(main, *words, "--json", "-q")
    assert json.loads(done.stdout)["pairs"][0]["better"] == 6
    assert pairs.server.judgements == 60


def test_a_panel_with_a_dead_member_is_not_begun_and_says_which_it_is(pairs: Pairs) -> None:
    pairs.server.reply = named
    live, dead = pairs.server.url, "http://127.0.0.1:9/v1"
    call = pairs.finished.score
    done = call(main, *panel_of(pairs, live, live, dead), columns=400)
    assert done.exit_code == 3, done.output
    assert "Error: panel: m2-2025-01-01: the judge cannot be reached" in done.output
    assert pairs.server.judgements == 0


@pytest.mark.parametrize("said", ["both", "FIRST ", "", 7, None, ["first"], "first\n"])
def test_nonsense_for_a_verdict_is_a_failure_and_no_tie(pairs: Pairs, said: Any) -> None:
    def nonsense(server: Server, body: dict[str, Any]) -> tuple[int, Any]:
        return 200, reply(server, said, shown(body)[0])

    pairs.server.reply = nonsense
    done = pairs.call("--json", "-q")
    assert done.exit_code == 3, done.output
    found = json.loads(done.stdout)["pairs"][0]
    # ten pairs were asked and failed; the equal one is the only one with an outcome
    assert (found["failed"], found["cases"], found["better"] + found["worse"]) == (10, 1, 0)
