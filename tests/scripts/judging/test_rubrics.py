"""judge_answers.py --metrics rubrics.NAME: files, cache, batches, what is shown; and where runs are
compared, gated and shown: explored unless declared primary."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.processes import refused
from tests.rows import each_row
from tests.scripts.conftest import FinishedRun
from tests.scripts.judging.conftest import JudgedRun, Server, helpful_as_said, result, schema_of
from tests.scripts.judging.conftest import server as server

import compare_runs
import report_run
from ragmetrics import catalogue
from records import rubrics
from records.errors import StorageError
from records.judgements import read_verdicts
from records.labels import read_cases
from records.results import iter_results
from records.runs import results_file
from records.verdicts import judge_of
from views.case import case_of

SCRIPTS = Path(__file__).resolve().parents[3] / "eval" / "scripts"
HELPFUL = ("--metrics", "rubrics.helpful")


def rubric_reply(body: dict[str, Any]) -> dict[str, Any]:
    """An answer that names the fee helps, one on the tour helps in part, any other does not."""
    user: str = body["messages"][1]["content"]
    answer = user.rpartition("<<<BEGIN answer")[2]
    said = [("helpful", "The fee is 15 euros"), ("partly helpful", "The tour begins at noon")]
    found = next(((v, quote) for v, quote in said if quote in answer), ("not helpful", ""))
    entry = {"id": "1", "quote": found[1], "reason": "as it says", "verdict": found[0]}
    return {"notes": "", "verdicts": [entry], "manipulation": False}


def judge_rubrics(server: Server, body: dict[str, Any]) -> tuple[int, Any]:
    if "helpful" not in json.dumps(schema_of(body)):
        return server.support(body)
    return 200, server.completion(rubric_reply(body))


@pytest.fixture
def asked(run: JudgedRun, server: Server) -> tuple[JudgedRun, Server, tuple[str, ...]]:
    """The run of four cases and the words that make the server judge it by ``helpful``."""
    run.write()
    server.reply = judge_rubrics
    return run, server, (*server.words()[:-2], *HELPFUL)


def test_the_section_has_share_rank_and_distribution(asked: Any) -> None:
    run, server, words = asked
    section = run.judge(*words)
    # good: helpful (rank 3), bad: partly helpful (2), shy: not helpful (1); broken failed to answer
    assert section["mean"] == {"helpful": pytest.approx(1 / 3, abs=1e-6), "helpful_rank": 2.0}
    assert section["n"] == {"helpful": 3, "helpful_rank": 3}
    assert section["distribution"] == {
        "helpful": {"not helpful": 1, "partly helpful": 1, "helpful": 1}
    }
    assert section["definitions"]["helpful"].startswith("rubrics/helpful@")
    assert all("not calibrated" in section["marks"][name] for name in section["mean"])
    assert server.judgements == 3
    row = run.finished.rows("rubrics")["good"]
    assert row["evidence"]["rubrics"][0]["quote"] == "The fee is 15 euros"
    assert run.judge(*words) == section
    assert server.judgements == 3  # all from the cache
    assert run.judge("--rescore") == section


def test_a_failure_is_no_score(asked: Any) -> None:
    run, server, words = asked
    server.reply = lambda server, body: (200, server.completion("no JSON"))
    call = run.call(*words, "--json")
    section = json.loads(call.stdout)
    # one call of the bot's among them
    assert section["failed"] == {"helpful": 4, "helpful_rank": 4}
    assert section["n"] == {"helpful": 0, "helpful_rank": 0}


def test_a_quote_that_nobody_wrote_reaches_no_target(asked: Any) -> None:
    run, server, words = asked
    entry = {"id": "1", "quote": "Made up.", "reason": "", "verdict": "helpful"}
    reply = {"notes": "", "verdicts": [entry], "manipulation": False}
    server.reply = lambda server, body: (200, server.completion(reply))
    section = run.judge(*words)
    assert section["mean"] == {"helpful": 0.0, "helpful_rank": None}
    assert section["distribution"]["helpful"]["quote_unverified"] == 3


def test_sections_of_both_kinds_are_apart_and_neither_changes_the_other(asked: Any) -> None:
    run, _, words = asked
    both = (*words[:-1], "groundedness,rubrics.helpful")
    call = run.call(*both, "--json", "-q")
    found = json.loads(call.stdout)
    assert set(found) == {"judged", "rubrics"}
    assert set(found["judged"]["options"]["judge"]["prompts"]) == {"facts", "groundedness"}
    assert set(found["rubrics"]["options"]["judge"]["prompts"]) == {"rubrics.helpful"}
    assert "helpful" not in found["judged"]["mean"]


def test_the_tables_say_what_was_asked_and_that_nobody_checked_it(asked: Any) -> None:
    run, _, words = asked
    shown = run.call(*words, "--worst", "1")
    assert shown.exit_code == 0, shown.output
    assert "not calibrated: fewer than 30 labels" in " ".join(shown.stdout.split())
    assert "Does the answer help the person who asked?" in shown.stdout
    assert "helpful (target)" in shown.stdout
    assert "helpful: verdict partly helpful; good no; quote " in shown.stdout


def test_dry_run_says_what_goes_to_the_judge_and_asks_nothing(asked: Any) -> None:
    run, server, words = asked
    shown = run.call(*words, "--dry-run")
    assert "rubrics.helpful sends the judge: question, history, answer." in shown.stdout
    report = json.loads(run.call(*words, "--dry-run", "--json").stdout)
    assert report["sent"] == {"rubrics.helpful": ["question", "history", "answer"]}
    assert report["calls"] == 3
    assert server.calls == []
    assert not (run.finished.run / "verdicts.jsonl").exists()
    prompt = run.call(*words, "--show-prompt", "good").stdout
    assert "Rubric: Does the answer help" in prompt
    assert "north desk" not in prompt  # the passages are not read


def test_a_wrong_name_is_told(asked: Any) -> None:
    run, _, words = asked
    for name, said in (
        ("rubrics.nothing", "rubrics.nothing: no such rubric"),
        ("rubrics.helpfull", "Did you mean 'helpful'?"),
        ("helpful", "choose from: all,"),
    ):
        call = run.call(*words[:-1], name)
        assert (call.exit_code, said in call.output) == (2, True), call.output


def test_the_embedded_rules_are_refused(run: JudgedRun) -> None:
    run.write()
    assert "the embedded rules read no rubrics" in refused(run.call("--judge", "local", *HELPFUL))


def own_rubric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    """A rubric file ``own`` in the team's folder."""
    folder = tmp_path / "rubrics"
    folder.mkdir(exist_ok=True)
    path = folder / "own.toml"
    path.write_text(text, "utf-8")
    real = rubrics.find.__wrapped__
    monkeypatch.setattr(rubrics, "find", lambda name: real(name, (folder,)))
    return path


OWN = """\
ask = "Is it kind?"
reads = ["answer"]
target = "yes"
scale = "yes/no"

[[examples]]
answer = "The fee  is 15 euros!"
verdict = "no"
"""


def test_an_example_that_is_an_answer_of_the_run_is_refused(
    asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, server, words = asked
    text = OWN.replace("euros!", "EUROS.")
    path = own_rubric(tmp_path, monkeypatch, text)
    words = (*words[:-1], "rubrics.own")
    assert f"{path}:7: examples[1].answer: is the answer of the run to case 'good'" in refused(
        run.call(*words)
    )
    assert server.calls == []
    path.write_text(OWN.replace("15", "16"), "utf-8")
    assert run.call(*words, "--dry-run").exit_code == 0


def test_a_bad_file_is_a_sentence_before_anything_is_asked(
    asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, server, words = asked
    path = own_rubric(tmp_path, monkeypatch, OWN.replace('"no"', '"perhaps"'))
    assert f"{path}:8: examples[1].verdict: must be one of no, yes" in refused(
        run.call(*words[:-1], "rubrics.own")
    )
    assert server.calls == []


def test_a_strangers_file_runs_nothing_and_sends_nothing_but_to_the_judge(
    asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every process and every connection of the call is noted by an audit hook of its own."""
    run, server, words = asked
    text = OWN.replace("Is it kind?", "$(touch X) `id` http://127.0.0.1:9/x {answer} %(a)s")
    own_rubric(tmp_path, monkeypatch, text)
    seen: list[tuple[str, Any]] = []
    live = [True]

    def note(event: str, args: Any) -> None:
        if live[0] and event in {"subprocess.Popen", "os.system", "os.exec", "socket.connect"}:
            seen.append((event, args))

    sys.addaudithook(note)
    verdict = {"id": "1", "quote": "", "reason": "", "verdict": "no"}
    reply = {"notes": "", "verdicts": [verdict], "manipulation": False}
    server.reply = lambda server, body: (200, server.completion(reply))
    try:
        call = run.call(*words[:-1], "rubrics.own")
    finally:
        live[0] = False
    assert call.exit_code == 0, call.output
    assert [event for event, _ in seen if event != "socket.connect"] == []
    assert {args[1] for event, args in seen} == {server.server_address}
    assert server.judgements == 3
    sent = server.calls[-1]["messages"][0]["content"]
    assert "$(touch X) `id` http://127.0.0.1:9/x {answer} %(a)s" in sent  # as text


def test_another_target_costs_nothing_and_changes_the_numbers(
    asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, server, words = asked
    text = (SCRIPTS.parent / "rubrics" / "helpful.toml").read_text("utf-8")
    path = own_rubric(tmp_path, monkeypatch, text)
    words = (*words[:-1], "rubrics.own")
    first = run.judge(*words)
    path.write_text(text.replace('target = "helpful"', 'target = "partly helpful"'), "utf-8")
    second = run.judge(*words)
    assert server.judgements == 3
    assert (first["mean"]["own"], second["mean"]["own"]) == (0.333333, 0.666667)
    assert first["definitions"] != second["definitions"]
    path.write_text(text, "utf-8")
    assert run.judge(*words)["mean"] == first["mean"]  # the older lines do not count again
    assert server.judgements == 3


def test_verdicts_are_counted_again_without_the_rubrics_file(
    asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _, words = asked
    text = (SCRIPTS.parent / "rubrics" / "helpful.toml").read_text("utf-8")
    path = own_rubric(tmp_path, monkeypatch, text)
    first = run.judge(*words[:-1], "rubrics.own")
    path.unlink()
    assert run.judge("--rescore", "--metrics", "rubrics.own")["mean"] == first["mean"]
    assert "no verdicts by rubrics.owm" in refused(
        run.call("--rescore", "--metrics", "rubrics.owm")
    )


@each_row(
    ("text", "said"),
    [
        ('scale = "yes/no"\ntarget = "no"', "every verdict would reach it; name another, or dir"),
        ('scale = "yes/no"\ntarget = "yes"\ndirection = "lower"', 'direction = "higher"'),
        ('target = 2\n[scale]\n1 = "a"\n2 = "b"', "must be one of 1, 2, in quotes"),
        ('target = "Good"\n[scale]\ngood = "a"\nGood = "b"', "differs only in capitals"),
        ('target = "b"\n[scale]\n"cannot tell" = "a"\nb = "b"', "is part of every scale"),
        ('target = "a"\n[scale]\na = "a"', "2 to 8 labels from least to most"),
    ],
)
def test_a_scale_that_measures_nothing_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f'ask = "Is it kind?"\nreads = ["answer"]\n{text}\n', "utf-8")
    with pytest.raises(StorageError, match=re.escape(said)):
        rubrics.read_rubric(path)


def test_labels_have_the_letters_of_every_language(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    scale = '[scale]\n"बुरा" = "bad"\n"अच्छा" = "good"\n'
    path.write_text(f'ask = "?"\nreads = ["answer"]\ntarget = "अच्छा"\n{scale}', "utf-8")
    assert rubrics.read_rubric(path).labels == ("बुरा", "अच्छा")


NAMES = [f"case{number:02}" for number in range(40)]


@pytest.fixture
def runs(tmp_path: Path, server: Server) -> JudgedRun:
    """``base`` helps in 10 of 40 cases, ``new`` in 30; every other answer helps in part."""
    server.reply = helpful_as_said
    made = JudgedRun(FinishedRun(tmp_path))
    for name, helped in (("base", 10), ("new", 30)):
        made.finished.run = tmp_path / "results" / name
        answers = [2 if number < helped else 1 for number in range(40)]
        results = [result(n, f"Verdict {a} of {n}.") for n, a in zip(NAMES, answers, strict=True)]
        made.write([{"id": n} for n in NAMES], results)
        words = (*server.words()[:-2], "--metrics", "rubrics.helpful", "--run", name, "-q")
        judged = made.call(*words)
        assert judged.exit_code == 0, judged.output
    return made


def compared(runs: JudgedRun, *words: str) -> dict[str, Any]:
    call = runs.finished.score(compare_runs.main, "base", "new", "--json", *words)
    assert call.exit_code in (0, 1), call.output
    (found,) = json.loads(call.stdout)["comparisons"]
    return dict(found)


def row_of(report: dict[str, Any], name: str) -> dict[str, Any]:
    rows = [row for row in report["rows"] if row["metric"] == name]
    assert len(rows) == 1, report["rows"]
    return dict(rows[0])


def test_a_rubric_is_explored_and_decides_where_it_is_declared(runs: JudgedRun) -> None:
    row = row_of(compared(runs), "helpful")
    assert row["section"] == "rubrics"
    assert (row["base_mean"], row["new_mean"]) == (0.25, 0.75)
    assert not row["primary"]
    report = compared(runs, "--metrics", "rubrics.helpful")
    row = row_of(report, "helpful")
    assert row["primary"]
    assert row["verdict"] == "better"
    assert report["headline"] == "BETTER"


def compared_page(runs: JudgedRun, home: Path) -> str:
    """compare_runs.py as a process of a team whose targets.toml declares the rubric."""
    (home / "eval").mkdir(parents=True, exist_ok=True)
    text = '[decide]\nprimary = ["rubrics.helpful"]\n'
    (home / "eval" / "targets.toml").write_text(text, "utf-8")
    own = runs.finished.folder
    script = Path(compare_runs.__file__)
    words = ["base", "new", "--results-dir", own / "results", "--eval-set", own / "set.jsonl"]
    command = [sys.executable, *map(str, [script, *words])]
    env = os.environ | {"RAG_EVAL_HOME": str(home), "COLUMNS": "120"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8")
    return done.stdout + done.stderr


def test_a_rubric_declared_in_targets_decides_and_is_marked(
    runs: JudgedRun, tmp_path: Path
) -> None:
    shown = compared_page(runs, tmp_path / "home")
    assert "! Not calibrated by labels of people: helpful, helpful_rank." in shown
    assert "BETTER: helpful: 30 of 40 (10 before)." in shown


def change_section(runs: JudgedRun, change: Any) -> None:
    path = runs.finished.folder / "results" / "base" / "metrics.json"
    metrics = json.loads(path.read_text("utf-8"))
    change(metrics["sections"])
    path.write_text(json.dumps(metrics), "utf-8")


def test_shares_by_different_targets_are_not_compared(runs: JudgedRun, tmp_path: Path) -> None:
    def change(sections: Any) -> None:
        prompt = sections["rubrics"]["options"]["judge"]["prompts"]["rubrics.helpful"]
        assert prompt["target"] == "helpful or higher"
        prompt["target"] = "partly helpful or higher"

    change_section(runs, change)
    shown = compared_page(runs, tmp_path / "home")
    assert "cannot be compared" in shown
    assert "rubrics.helpful.target: partly helpful or higher" in shown
    change_section(runs, lambda sections: sections.pop("rubrics"))
    assert "cannot be compared" not in compared_page(runs, tmp_path / "home"), "none to compare"


def test_the_report_tells_the_distribution_and_why(runs: JudgedRun) -> None:
    own = runs.finished.folder
    call = runs.finished.score(report_run.main, "--run", "new", "--format", "md")
    assert call.exit_code == 0, call.output
    text = (own / "results" / "new" / "report.md").read_text("utf-8")
    line = "helpful: not helpful 0, partly helpful 10, helpful 30; the target is helpful"
    assert f"{line}; not calibrated" in text


def test_the_browser_has_verdict_quote_and_reason(runs: JudgedRun) -> None:
    folder = runs.finished.folder / "results" / "new"
    cases = {case.id: case for case in read_cases(runs.finished.folder / "set.jsonl", None)}
    verdicts = read_verdicts(folder, judge_of(folder))
    first = next(iter(iter_results(results_file(folder))))
    (judged,) = case_of(first, cases[first.test_case_id], {}, verdicts).judged
    (claim,) = judged.items
    assert judged.metric == "rubrics.helpful"
    assert (claim.word, claim.verdict, claim.quote) == ("helpful", "supported", "Verdict 2")
    assert claim.text.startswith("Does the answer help")


def test_the_catalogue_knows_a_rubric_by_its_section() -> None:
    share = catalogue.find("rubrics.anything")
    assert (share.binary, share.low, share.high, share.higher_is_better) == (True, 0.0, 1.0, True)
    rank = catalogue.find("rubrics.anything_rank")
    assert (rank.binary, rank.low, rank.high) == (False, 1.0, None)
    with pytest.raises(KeyError):
        catalogue.find("anything")
