"""gate_run.py: each rule fails and passes, what is lost, what it writes and prints, bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.score_lines import read_lines, write_lines

import storage

BASELINE = ("--baseline", "base")


def test_accepted_trade_offs_are_recorded_and_shown(gate: Any) -> None:
    gate.rules('[retrieval]\n"recall@5" = ">= 0.9"\nscope_miss = "<= 0.5"\n')
    words = ("--accept", "recall@5=k was lowered", "--accept", "scope_miss=not so")
    done = gate.run(*words, "--junit", "g.xml", "--markdown", "g.md", "--github", "--verbose")
    assert done.returncode == 0, done.stderr
    found = json.loads((gate.new.folder / "gate.json").read_text())
    assert found["counts"] == {"accepted": 1, "failed": 0, "passed": 2, "skipped": 2}
    assert found["accepts"] == [
        {"name": "recall@5", "needed": True, "reason": "k was lowered"},
        {"name": "scope_miss", "needed": False, "reason": "not so"},
    ]
    assert "Accepted: k was lowered" in done.stdout
    assert "--accept scope_miss was not needed" in " ".join(done.stdout.split())
    assert "::warning file=gates.toml,line=2,title=Gate failed%2C accepted" in done.stdout
    assert "Accepted: `k was lowered`" in (gate.folder / "g.md").read_text()
    skipped = next(ET.parse(gate.folder / "g.xml").getroot().iter("skipped"))
    assert "accepted: k was lowered" in (skipped.get("message") or "")
    unknown = gate.run("--accept", "mmr=typo")
    assert unknown.returncode == 2
    assert "no gate checks that" in " ".join(unknown.stderr.split())


def test_the_same_verdict_gives_the_same_bytes(gate: Any) -> None:
    gate.rules('[gates.baseline]\n"*" = "margin 0.05"\n')
    kept = []
    for _ in range(2):
        assert gate.run(*BASELINE, "--junit", "g.xml").returncode == 0
        kept.append(
            (gate.new.folder / "gate.json").read_bytes() + Path(gate.folder / "g.xml").read_bytes()
        )
    assert kept[0] == kept[1]
    done = gate.run(*BASELINE, "--json")
    assert done.stdout.encode() == (gate.new.folder / "gate.json").read_bytes()


def test_the_table_can_hold_no_workflow_command(gate: Any) -> None:
    """A case id that is a command: GitHub is told to look for none until an unguessable word."""
    gate.rules(
        '[[gates.must_pass]]\nmetric = "retrieval.recall@5"\ncases = ["::set-env::x\\n::y"]\n'
    )
    done = gate.run("--github")
    first, *lines = done.stdout.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert len(token) == 32
    after = lines[lines.index(f"::{token}::") + 1 :]
    assert all(line.startswith(("::error ", "::notice ")) for line in after)
    assert not any(line.startswith("::y") for line in after)


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ('[retreival]\n"recall@5" = "> 0"\n', (), "[retreival]: no such section"),
        ('[gates.baseline]\n"retreival.x" = "none"\n', BASELINE, "no such section"),
        ('[retrieval]\n"recall@5" = "0.5"\n', (), 'gates.toml:2: retrieval."recall@5"'),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--baseline", "new"), "is its own baseline"),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--baseline", "old"), "no such folder"),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--baseline", "gates.toml"), "not JSON"),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--accept", "x"), "metric=reason"),
        ('[retrieval]\n"recall@5" = "> 0"\n', ("--json", "--github"), "both write to stdout"),
    ],
)
def test_bad_input_ends_with_2_and_writes_nothing(
    gate: Any, text: str, words: tuple[str, ...], says: str
) -> None:
    gate.rules(text)
    done = gate.run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (gate.new.folder / "gate.json").exists()


def test_a_terminal_without_marks_gets_the_reasons_and_no_scores_are_said(
    gate: Any,
) -> None:
    gate.rules('[retrieval]\n"recall@5" = ">= 0.9"\n')
    done = gate.run(PYTHONIOENCODING="ascii")
    assert done.returncode == 1, done.stderr
    row = next(line for line in done.stdout.splitlines() if "retrieval.recall@5" in line)
    assert row.split()[1:5] == ["retrieval.recall@5", ">=", "0.9", "0.800"]
    gate.rules('[retrieval]\n"recall@5" = "> 0"\n')
    (gate.new.folder / "metrics.json").unlink()
    done = gate.run()
    assert done.returncode == 2
    assert "is not scored" in " ".join(done.stderr.split())


N = 40
PAIRS = {
    # rule: (gates file, options, section and scores or head that fail it, the failing check)
    "floor": (
        '[retrieval]\n"recall@5" = ">= 0.75"\n', (), {"hits": 29}, "retrieval.recall@5"
    ),
    "floor of what should be low": (
        '[retrieval]\nscope_miss = "<= 0.1"\n', (), {"misses": 5}, "retrieval.scope_miss"
    ),
    "relative drop": (
        '[gates.baseline]\n"retrieval.recall@5" = "drop 10 %"\n', BASELINE, {"hits": 28},
        "retrieval.recall@5",
    ),
    "absolute drop": (
        '[gates.baseline]\n"retrieval.*" = "drop 0.05"\n', BASELINE, {"hits": 29},
        "retrieval.recall@5",
    ),
    "margin": (
        '[gates.baseline]\n"retrieval.recall@5" = "margin 0.05"\n', BASELINE, {"hits": 30},
        "retrieval.recall@5",
    ),
    "regression": (
        '[gates.baseline]\n"retrieval.*" = "regression"\n', BASELINE, {"hits": 20},
        "retrieval.recall@5",
    ),
    "cases": ('[gates.run]\ncases = ">= 40"\n', (), {"cases": 39}, "cases"),
    "errors": ('[gates.run]\nerrors = "<= 0"\n', (), {"errors": 1}, "errors"),
    "error share": (
        '[gates.run]\nerror_share = "<= 0.02"\n', (), {"errors": 1}, "error_share"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_each_rule_fails_and_passes(gate: Any, name: str) -> None:
    """margin: 2 of 40 lost, a difference of -0.05 whose interval goes beyond 0.05. errors: 1 of 40
    is a share of 0.025."""
    text, words, change, failing = PAIRS[name]
    gate.rules(text)
    assert gate.failures(*words) == {}
    wanted = {"hits": 32, "misses": 4} | change
    gate.new.scores |= gate.scores(wanted.pop("hits"), wanted.pop("misses"))
    gate.new.head |= wanted
    gate.new.write()
    assert set(gate.failures(*words)) == {failing}


@pytest.mark.parametrize(
    ("rule", "section", "failing"),
    [
        ('cost_usd = "<= 1"', {"cost_usd": 1.5}, "cost_usd"),
        ('cost_per_case_usd = "<= 0.03"', {"cost_usd": 1.5}, "cost_per_case_usd"),
        ('tokens = "<= 1000"', {"usage": {"total_tokens": 1001}}, "tokens"),
        ('tokens = "<= 1000"', {"usage": {"input_tokens": 900, "output_tokens": 101}}, "tokens"),
        ('latency_p95_ms = "<= 100"', {"latency_ms": {"total": {"p95": 101}}}, "latency_p95_ms"),
        (
            'latency_generate_max_ms = "<= 100"',
            {"latency_ms": {"generate": {"max": 101}}},
            "latency_generate_max_ms",
        ),
    ],
)
def test_cost_and_time(gate: Any, rule: str, section: dict[str, Any], failing: str) -> None:
    """1.5 dollars for 40 cases are 0.0375 a case. What is not known fails too."""
    gate.rules(f"[gates.run]\n{rule}\n")
    assert set(gate.failures()) == {f"{failing}:measured"}
    gate.new.scores["pipeline"] = {"pass": [1.0] * N}
    good: dict[str, Any] = {
        "cost_usd": 0.5,
        "usage": {"total_tokens": 10},
        "latency_ms": {"total": {"p95": 5}, "generate": {"max": 5}},
    }
    gate.new.more["pipeline"] = good
    gate.new.write()
    assert gate.failures() == {}
    gate.new.more["pipeline"] = good | section
    gate.new.write()
    assert set(gate.failures()) == {failing}


def test_a_number_of_the_run_against_the_baseline(gate: Any) -> None:
    gate.rules('[gates.baseline]\n"run.latency_p95_ms" = "drop 20 %"\n')
    for run, time in ((gate.base, 100), (gate.new, 119)):
        run.scores["pipeline"] = {"pass": [1.0] * N}
        run.more["pipeline"] = {"latency_ms": {"total": {"p95": time}}}
        run.write()
    assert gate.failures(*BASELINE) == {}
    gate.new.more["pipeline"] = {"latency_ms": {"total": {"p95": 121}}}
    gate.new.write()
    assert set(gate.failures(*BASELINE)) == {"latency_p95_ms"}


def test_coverage_and_failed_shares(gate: Any) -> None:
    """4 of 40 not applicable: coverage 0.9. 1 failed of 37: 0.027."""
    gate.rules('[gates.coverage]\n"retrieval.*" = ">= 0.9"\n[gates.failed]\n"*" = "<= 0.02"\n')
    gate.new.scores["retrieval"]["recall@5"] = [1.0] * 36 + [None] * 4
    gate.new.write()
    assert gate.failures() == {}
    gate.new.scores["retrieval"]["recall@5"] = [1.0] * 35 + [None] * 5
    gate.new.write()
    assert set(gate.failures()) == {"retrieval.recall@5:coverage"}
    gate.new.scores["retrieval"]["recall@5"] = [1.0] * 36 + [None] * 4
    gate.new.more["retrieval"] = {"failed": {"recall@5": 1, "scope_miss": 0}}
    gate.new.write()
    assert set(gate.failures()) == {"retrieval.recall@5:coverage", "retrieval.recall@5:failed"}


def test_nothing_may_be_lost_against_a_baseline(gate: Any) -> None:
    """No rule names these: a case, a metric, a section. The coverage counts where the file says so:
    one case more to which a metric does not apply is no failure."""
    gate.rules('[gates.baseline]\n"retrieval.recall@5" = "none"\n"*" = "drop 90 %"\n')
    assert gate.failures(*BASELINE) == {}
    kept = gate.new.scores
    gate.new.ids = [f"c{place}" for place in range(N - 1)] + ["other"]
    gate.new.write()
    assert "1 case is missing: c39" in gate.failures(*BASELINE)["cases_missing"]
    gate.new.ids = None
    gate.new.scores = kept | {"retrieval": {"recall@5": kept["retrieval"]["recall@5"]}}
    gate.new.write()
    assert "retrieval.scope_miss:measured" in gate.failures(*BASELINE)
    gate.new.scores = {"retrieval": kept["retrieval"]}
    gate.new.write()
    assert gate.failures(*BASELINE)["context.*:measured"].startswith("the run has no such section")
    column = kept["retrieval"]["scope_miss"]
    gate.new.scores = kept | {"retrieval": kept["retrieval"] | {"scope_miss": [*column[:-1], None]}}
    gate.new.write()
    assert gate.failures(*BASELINE) == {}
    gate.rules('[gates]\ncoverage_drop = 0.02\n[gates.baseline]\n"*" = "drop 90 %"\n')
    assert set(gate.failures(*BASELINE)) == {"retrieval.scope_miss:coverage"}
    gate.rules('[gates]\ncoverage_drop = 0.05\n[gates.baseline]\n"*" = "drop 90 %"\n')
    assert gate.failures(*BASELINE) == {}


def test_what_decides_comes_before_what_is_lost_with_it_and_each_loss_once(gate: Any) -> None:
    """Every answer refused: no gold is found, so no claim is left and a primary metric is gone."""
    claims = {"claim_support_rate": [1.0] * N, "unsupported_claims": [0.0] * N}
    gate.base.scores |= {"retrieval": {"evidence_recall@5": [1.0] * N}, "groundedness": claims}
    gate.base.write()
    gone = dict.fromkeys(claims, [None] * N)
    gate.new.scores |= {"retrieval": {"evidence_recall@5": [0.0] * N}, "groundedness": gone}
    gate.new.write()
    gate.rules("[gates]\n")
    first, *lost = gate.failures(*BASELINE)
    assert first == "retrieval.evidence_recall@5"
    checks = json.loads((gate.new.folder / "gate.json").read_text("utf-8"))["checks"]
    names = [check["name"] for check in checks if check["status"] == "failed"]
    assert names == [first, *lost], "none is there twice"
    assert lost == ["groundedness.claim_support_rate:measured"], "no rule names the other"


def test_what_cannot_be_measured_fails(gate: Any) -> None:
    gate.rules('[retrieval]\n"recall@5" = "> 0"\n"ndcg@5" = ">= 0"\n')
    gate.new.scores["retrieval"]["recall@5"] = [None] * N
    gate.new.write()
    assert set(gate.failures()) == {"retrieval.recall@5:measured", "retrieval.ndcg@5:measured"}
    gate.rules('[gates.baseline]\n"retrieval.recall@5" = "drop 10 %"\n"context.x" = "drop 1 %"\n')
    assert {"retrieval.recall@5:measured", "context.x:measured"} <= set(gate.failures(*BASELINE))


def test_runs_that_are_not_measured_alike_fail(gate: Any) -> None:
    gate.rules('[gates.baseline]\n"*" = "drop 90 %"\n')
    gate.new.head["eval_set_sha256"] = "b" * 64
    gate.new.write()
    assert "eval set" in gate.failures(*BASELINE)["comparable"]
    gate.new.head["eval_set_sha256"] = "a" * 64
    gate.new.more["retrieval"] = {
        "definitions": {"recall@5": "retrieval/recall@99", "scope_miss": "retrieval/scope_miss@1"}
    }
    gate.new.write()
    failed = gate.failures(*BASELINE)
    assert set(failed) == {"retrieval.recall@5:measured"}
    assert "another definition" in failed["retrieval.recall@5:measured"]


def test_cases_that_must_pass(gate: Any) -> None:
    """c0 hits and c39 misses; c99 was never asked; scope_miss is better when low."""
    gate.rules('[[gates.must_pass]]\nmetric = "retrieval.recall@5"\ncases = ["c0"]\n')
    assert gate.failures() == {}
    gate.rules('[[gates.must_pass]]\nmetric = "retrieval.recall@5"\ncases = ["c39", "c99"]\n')
    failed = gate.failures()
    assert failed["case.c39"] == "retrieval.recall@5 is 0.000, must be >= 1"
    assert failed["case.c99"] == "the run has no retrieval score of this case"
    gate.rules('[[gates.must_pass]]\nmetric = "retrieval.scope_miss"\ncases = ["c0", "c39"]\n')
    assert set(gate.failures()) == {"case.c0"}
    gate.new.scores["retrieval"]["recall@5"][0] = None
    gate.new.write()
    gate.rules('[[gates.must_pass]]\nmetric = "retrieval.recall@5"\ncases = ["c0"]\n')
    assert gate.failures()["case.c0"] == "retrieval.recall@5 is not scored (no gold)"


def test_cases_that_must_pass_by_tag(gate: Any) -> None:
    cases = [
        {"id": f"c{place}", "question": "Why?", "tags": ["first"] if place < 2 else ["last"]}
        for place in range(N)
    ]
    path = gate.folder / "set.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    words = ("--eval-set", path)
    gate.rules('[[gates.must_pass]]\nmetric = "retrieval.recall@5"\ntags = ["first"]\n')
    done = gate.run(*words)
    assert done.returncode == 2, "the set is not the one that was scored"
    assert "is not the set that the run was scored with" in " ".join(done.stderr.split())
    gate.new.head["eval_set_sha256"] = storage.sha256_file(path)
    gate.new.write()
    assert gate.failures(*words) == {}
    gate.rules('[[gates.must_pass]]\nmetric = "retrieval.recall@5"\ntags = ["last", "none"]\n')
    failed = gate.failures(*words)
    assert len(failed) == 8 + 1
    assert "no case of the eval set has the tag" in failed["case.tag:none"]


def test_every_repeat_of_a_case_must_pass(gate: Any) -> None:
    gate.rules('[[gates.must_pass]]\nmetric = "retrieval.recall@5"\ncases = ["c0"]\n')
    again = {"case_id": "c0", "repeat": 1, "scores": {"recall@5": 0.0, "scope_miss": 0.0}}
    first, *rest = read_lines(gate.new.folder, "retrieval")
    write_lines(gate.new.folder, "retrieval", [first, again, *rest])
    assert "in 1 of 2 answers" in gate.failures()["case.c0"]


def test_a_metrics_file_is_a_baseline(gate: Any) -> None:
    """Without score lines the two intervals decide: half-widths of 0.1 each make 0.141."""
    gate.rules('[gates.baseline]\n"retrieval.recall@5" = "margin 0.2"\n')
    path = gate.folder / "main.json"
    path.write_bytes((gate.base.folder / "metrics.json").read_bytes())
    assert gate.failures("--baseline", path) == {}
    gate.rules('[gates.baseline]\n"retrieval.recall@5" = "margin 0.14"\n')
    failed = gate.failures("--baseline", path)
    assert "up to 0.141 (independent intervals, n = 40)" in failed["retrieval.recall@5"]
    for run, labels in ((gate.base, "c" * 64), (gate.new, "d" * 64)):
        run.head["labels_sha256"] = labels
        run.write()
    path.write_bytes((gate.base.folder / "metrics.json").read_bytes())
    failed = gate.failures("--baseline", path)["comparable"]
    assert "labels (scored): cccccccccccc → dddddddddddd" in failed
    gate.new.head["cases"] = 39
    gate.new.write()
    assert (
        gate.failures("--baseline", path)["cases_missing"]
        == "the baseline has 40 cases, the run 39"
    )


def test_a_metrics_file_tells_of_another_judge_and_other_options(gate: Any) -> None:
    """As a folder does: the committed metrics.json of the main branch is what CI has."""
    gate.rules('[gates.baseline]\n"retrieval.recall@5" = "drop 10 %"\n"judged.*" = "drop 10 %"\n')
    for run, model in ((gate.base, "one"), (gate.new, "two")):
        run.scores["judged"] = {"faithfulness": [1.0] * 40}
        judge = {"identity": {"model": model}, "parameters": {"temperature": 0}}
        run.more["judged"] = {"options": {"judge": judge}}
        run.more["retrieval"] = {"options": {"match": model}}
        run.write()
    path = gate.folder / "main.json"
    path.write_bytes((gate.base.folder / "metrics.json").read_bytes())
    for baseline in (path, "base"):
        said = gate.failures("--baseline", baseline)["comparable"]
        assert "judge.identity.model: one → two" in said
        assert "retrieval.options.match: one → two" in said


def test_rules_on_a_baseline_without_one(gate: Any) -> None:
    gate.rules('[gates.baseline]\n"*" = "drop 10 %"\n')
    done = gate.run()
    assert done.returncode == 2
    assert "no --baseline was given" in done.stdout
    assert "Gate NOT CHECKED: 1 check passed, 2 skipped." in done.stdout
    assert "nothing that the bot answered was checked. Give --baseline RUN, or " in done.stderr
    assert json.loads((gate.folder / "results/new/gate.json").read_text())["passed"] is False
    gate.rules('[gates]\nrequire_baseline = true\n[gates.baseline]\n"*" = "drop 10 %"\n')
    assert set(gate.failures()) == {"baseline"}
