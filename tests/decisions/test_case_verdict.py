"""The one rule by which a case fails: each reason and each warning by hand, repeats, two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.metrics_files import write_metrics
from tests.rows import each_row
from tests.score_lines import write_lines

from decisions.case_changes import changes_of, read_pair
from decisions.case_rules import Basis, CaseRules, read_case_rules
from decisions.case_verdict import CaseVerdict, Ruling, RunVerdicts, judge_case, read_verdicts
from decisions.verdict_counts import VerdictCounts
from ragmetrics.catalogue.cases import RULES
from ragmetrics.pipeline import Expected, ScoredResponse, score_case
from records.errors import StorageError
from records.run import Run

MODEL = Basis(depth=10, judge="m", trusted=True)
LOCAL = Basis(depth=10, judge="l")

FINE: dict[str, float | None] = {
    "pipeline.answered": 1.0,
    "abstention.hallucination_on_unanswerable": None,
    "abstention.over_refusal": 0.0,
    "groundedness.forbidden_claims": 0.0,
    "groundedness.numeric_fabrications": 0.0,
    "pipeline.outcome_match": 1.0,
    "judged.correctness": 5.0,
    "judged.faithfulness": 1.0,
    "retrieval.mrr": 1.0,
}
"""An answer without a fault, as far as these metrics tell."""


def verdict(
    changes: Mapping[str, float | None] | None = None,
    *,
    basis: Basis = MODEL,
    uncertain: bool = False,
) -> CaseVerdict:
    """The verdict on FINE with some scores changed."""
    scores = FINE | dict(changes or {})
    return judge_case([scores], Ruling(CaseRules(), basis), uncertain=[0] if uncertain else [])


def names(rules: Any) -> list[str]:
    return [rule.name for rule in rules]


def test_an_answer_without_a_fault_is_ok() -> None:
    assert verdict() == CaseVerdict(1, 0)
    assert verdict().word == "ok"


@each_row(
    ("metric", "score", "name", "fails"),
    [
        ("pipeline.answered", 0.0, "no_response", True),  # (1) the call failed
        ("abstention.hallucination_on_unanswerable", 1.0, "answered", True),  # (2) should decline
        ("abstention.over_refusal", 1.0, "refused", True),  # (2) the reverse
        ("groundedness.forbidden_claims", 1.0, "forbidden_claim", True),  # (3)
        ("pipeline.forbidden_flags_absent", 0.0, "forbidden_flag", True),  # (3)
        ("judged.correctness", 2.0, "wrong", True),  # (4) at most 2 of 5
        ("judged.faithfulness", 0.75, "claim", True),  # (5) one of four claims has no support
        ("pipeline.required_flags_present", 0.0, "flag", True),  # (7)
        ("pipeline.citations_ok", 0.0, "citations", True),  # (7)
        ("pipeline.outcome_match", 0.0, "outcome", True),  # (8)
        ("groundedness.numeric_fabrications", 2.0, "number", True),  # (9) two numbers
        ("groundedness.unsupported_claims", 1.0, "rule_claim", False),
        ("groundedness.expected_claim_recall", 0.5, "rule_fact", False),
        ("groundedness.nugget_recall_vital", 0.0, "rule_vital", False),
        ("groundedness.expected_citation_recall", 0.0, "citation", False),
        ("pipeline.latency_ok", 0.0, "latency", False),
    ],
)
def test_each_reason_and_each_warning(metric: str, score: float, name: str, fails: bool) -> None:
    found = verdict({metric: score})
    assert found.fails is fails
    assert (names(found.reasons), names(found.warnings)) == (
        ([name], []) if fails else ([], [name])
    )


def test_no_gold_passage_fails_unless_the_answer_is_judged_right() -> None:
    found = verdict({"retrieval.mrr": 0.0, "judged.correctness": None})
    assert names(found.reasons) == ["no_gold"]  # (6), nobody judged it
    found = verdict({"retrieval.mrr": 0.0, "judged.correctness": 2.5})
    assert not found.fails
    assert names(found.warnings) == ["no_gold"]  # right: above 2 of 5
    found = verdict({"retrieval.mrr": 0.0, "judged.correctness": 1.0})
    assert names(found.reasons) == ["wrong", "no_gold"]  # in the order of the rules
    found = verdict({"retrieval.mrr": 0.0}, basis=LOCAL)
    assert names(found.reasons) == ["no_gold"]  # rules that count words call nothing right


@each_row(
    ("partial", "strict", "fails"),
    [
        (1.0, 1.0, False),  # two of two vital facts
        (0.75, 0.5, False),  # one whole, one in part: 1 + .5 - 2 x .75 = 0 are missing
        (0.5, 0.5, True),  # one whole, one missing: 1 + .5 - 1 = .5
        (0.25, 0.0, True),  # one in part, one missing: 1 - .5 = .5
        (0.5, 0.0, False),  # both in part: 1 - 1 = 0
    ],
)
def test_a_vital_fact_is_missing(partial: float, strict: float, fails: bool) -> None:
    found = verdict(
        {"judged.nugget_recall_vital_judged": partial, "judged.nugget_recall_vital_strict": strict}
    )
    assert names(found.reasons) == (["vital_fact"] if fails else [])


def test_what_the_local_judge_says_only_warns() -> None:
    found = verdict({"judged.correctness": 0.0, "judged.faithfulness": 0.0}, basis=LOCAL)
    assert not found.fails
    assert names(found.warnings) == ["wrong", "claim"]
    judged = msgspec.structs.replace(
        LOCAL, definitions={"judged.correctness": "judged/correctness@1"}
    )
    for basis, word, sentence in (
        (LOCAL, "not judged by a model", "Checks that need a judge model were skipped."),
        (judged, "judged by rules alone", "The judge has rules and no model, so its checks only"),
    ):
        unmeasured = Ruling(CaseRules(), basis).unmeasured
        assert unmeasured[-1] == word
        assert sentence in VerdictCounts(8, unmeasured=(word,)).says()


@each_row("basis", [MODEL, LOCAL])
def test_people_overrule_the_judge_and_need_no_model(basis: Basis) -> None:
    said = {"judged.correctness_by_people": 2.0}
    assert names(verdict(said, basis=basis).reasons) == ["wrong_by_people"]
    said = {"judged.correctness_by_people": 4.0, "judged.correctness": 1.0}
    found = verdict(said, basis=basis)
    assert (found.reasons, found.warnings) == ((), ())
    said |= {"retrieval.mrr": 0.0}
    assert names(verdict(said, basis=basis).warnings) == ["no_gold"]  # people call it right
    said = {"judged.faithfulness": 0.5, "judged.faithfulness_by_people": 1.0}
    assert not verdict(said, basis=basis).fails
    said = {"judged.faithfulness_by_people": 0.5}
    assert names(verdict(said, basis=basis).reasons) == ["claim_by_people"]
    undecided = {"judged.correctness_by_people": None, "judged.correctness": 1.0}
    assert verdict(undecided, basis=MODEL).fails, "the judge's word stands"


def test_an_uncertain_outcome_of_a_right_answer_only_warns() -> None:
    missed: dict[str, float | None] = {"pipeline.outcome_match": 0.0}
    found = verdict(missed, uncertain=True)
    assert not found.fails
    assert names(found.warnings) == ["outcome"]
    assert verdict(missed).fails, "another outcome than uncertain"
    assert verdict(missed, basis=LOCAL, uncertain=True).fails
    found = verdict(missed | {"judged.correctness": None}, uncertain=True)
    assert found.fails, "nobody called the answer right"


def test_what_was_not_measured_gives_no_reason() -> None:
    assert not judge_case([{}], Ruling(CaseRules(), MODEL)).fails
    basis = Basis(10, definitions={"pipeline.answered": "pipeline/answered@1"})
    ruling = Ruling(CaseRules(), basis)
    assert ruling.unmeasured == (
        "no abstention scores",
        "no groundedness scores",
        "no retrieval scores",
        "not judged by a model",
    )


def test_only_the_named_exceptions_let_a_response_fail_its_checks_and_be_ok() -> None:
    """pass = 0 implies fails, unless the time budget alone was missed, or the outcome ``uncertain``
    of an answer that a judge calls right."""
    choices = product([True, False], ["uncertain", "a"], [0, 1], [5.0, None], [9.0, 99.0])
    for flagged, flag, cited, judged, total in choices:
        response = ScoredResponse(5, cited, flags=[flag], latency_ms={"total": total})
        expected = Expected("success", ["a"] if flagged else [], ["uncertain"], 1, 50)
        if flag == "uncertain":
            expected = Expected("success", [], [], None, 50)
        checks = score_case(response, expected)
        scores = {f"pipeline.{name}": value for name, value in checks.values.items()}
        outcome = checks.evidence["outcome"]
        found = judge_case(
            [FINE | scores | {"judged.correctness": judged}],
            Ruling(CaseRules(), MODEL),
            uncertain=[0] if outcome == "uncertain" else [],
        )
        others = [
            scores[f"pipeline.{name}"]
            for name in ("required_flags_present", "forbidden_flags_absent", "citations_ok")
        ]
        excepted = scores["pipeline.outcome_match"] != 0 or (outcome == "uncertain" and judged)
        if scores["pipeline.pass"] == 0:
            assert found.fails or (excepted and 0.0 not in others)


def case_of(*mrrs: float) -> CaseVerdict:
    answers = [FINE | {"retrieval.mrr": mrr, "judged.correctness": None} for mrr in mrrs]
    return judge_case(answers, Ruling(CaseRules(), MODEL))


def test_a_case_fails_when_at_least_half_of_its_answers_do() -> None:
    assert (case_of(1, 1, 0).fails, case_of(1, 1, 0).unstable) == (False, True)
    assert (case_of(1, 0).fails, case_of(1, 0).unstable) == (True, True)
    assert (case_of(0, 0).fails, case_of(0, 0).unstable) == (True, False)
    assert case_of(1, 0).word == "fails: no gold, unstable"
    assert case_of(1, 1, 0).word == "ok, unstable"


def test_gold_counts_within_the_depth() -> None:
    # the first gold passage is at rank 4
    at_4 = [FINE | {"retrieval.mrr": 0.25, "judged.correctness": None}]
    for depth, fails in ((None, False), (10, False), (4, False), (3, True)):
        ruling = Ruling(CaseRules(), Basis(depth))
        assert judge_case(at_4, ruling).fails == fails
    assert Ruling(CaseRules(depth=3), Basis(10)).depth == 3
    assert Ruling(CaseRules(depth=30), Basis(10)).depth == 10


def test_reasons_are_sentences_with_the_facts() -> None:
    ruling = Ruling(CaseRules(), Basis(3, trusted=True))
    rule = {rule.name: rule for rule in RULES}

    def says(name: str, value: float | None, evidence: Any = None) -> str:
        return ruling.sentence(rule[name], {rule[name].metric: value}, evidence)

    assert says("no_gold", 0.0) == "no gold passage within the first 3"
    assert says("no_gold", 0.25) == "no gold passage within the first 3, the first one is at rank 4"
    gone = ruling.sentence(rule["no_gold"], {}, before={"retrieval.mrr": 0.25})
    assert gone == "the right passage was at rank 4 and is now missing"
    lower = ruling.sentence(rule["no_gold"], {"retrieval.mrr": 0.2}, before={"retrieval.mrr": 0.5})
    assert lower == "the right passage was at rank 2 and is now at rank 5"
    assert says("wrong", 1.5) == "the judge gives 1.5 of 5 points for correctness"
    assert says("number", 2.0, {"numbers": {"fabricated": ["42", 7]}}) == (
        "2 numbers in no passage: 42, 7"
    )
    assert says("number", 1.0) == "1 number in no passage"
    assert says("outcome", 0.0, {"expected": "success", "outcome": "uncertain"}) == (
        "flagged as unsure, though an answer was expected"
    )
    assert says("outcome", 0.0) == "another outcome than expected"
    assert says("flag", 0.0, {"missing_flags": ["a", "b"]}) == (
        "a required policy flag is missing: a, b"
    )


def read_rules(folder: Path, text: str) -> CaseRules:
    path = folder / "targets.toml"
    path.write_text(text)
    return read_case_rules(path)


def test_levels_bounds_depth_and_own_metrics(tmp_path: Path) -> None:
    text = '[cases]\ndepth = 5\nnumber = "warn"\ncitation = "fail"\nlatency = "off"\n'
    text += 'wrong = "> 3"\n"custom.tone" = ">= 0.5"\n"retrieval.recall@5" = "warn > 0.2"\n'
    rules = read_rules(tmp_path, text)
    levels = {rule.name: rule.level for rule in rules.rules}
    assert rules.depth == 5
    assert "latency" not in levels
    assert (levels["number"], levels["citation"]) == ("warn", "fail")
    scores = FINE | {"judged.correctness": 3.0, "custom.tone": 0.4, "retrieval.recall@5": 0.0}
    found = judge_case([scores], Ruling(rules, MODEL))
    assert names(found.reasons) == ["wrong", "custom.tone"]
    assert names(found.warnings) == ["retrieval.recall@5"]
    ruling = Ruling(rules, MODEL)
    assert ruling.sentence(found.reasons[1], scores) == "tone is 0.4, must be >= 0.5"
    assert rules.sha256 != CaseRules().sha256


def test_without_a_table_the_rules_of_the_catalogue_hold(tmp_path: Path) -> None:
    assert read_rules(tmp_path, "[pipeline]\npass = '> 0.9'\n") == CaseRules()
    assert read_case_rules(tmp_path / "absent.toml") == CaseRules()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("depth = 0", "cases.depth: must be a whole number from 1 up; passages, such as 5"),
        ("no_gold = '> 1'", 'cases.no_gold: takes no bound; write "fail", "warn" or "off"'),
        ("number = 1", "cases.number: 1 is no text; write "),
        ("number = 'maybe'", "cases.number: 'maybe' is not understood; write "),
        ("nonsense = 'warn'", "cases.nonsense: is no rule; write depth, section.metric, or"),
        ("'retrieval.x' = '> 1'", 'cases."retrieval.x": section retrieval has no such metric'),
    ],
)
def test_each_fault_is_named_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(StorageError) as caught:
        read_rules(tmp_path, f"[cases]\n{line}\n")
    assert f"targets.toml:2: {message}" in str(caught.value)


def write_run(folder: Path, k: int, lines: dict[str, list[dict[str, Any]]]) -> Path:
    """A run with some score lines and the metrics.json and config.json that go with them."""
    sections = {}
    for section, own in lines.items():
        write_lines(folder, section, own)
        metrics = dict.fromkeys(name for line in own for name in line["scores"])
        sections[section] = {"definitions": {name: f"{section}/{name}@1" for name in metrics}}
    write_metrics(folder / "metrics.json", {"sections": sections})
    (folder / "config.json").write_text(json.dumps({"schema": 1, "retriever": {"k": k}}))
    return folder


def mrr_lines(**ranks: int) -> list[dict[str, Any]]:
    """Lines of the section retrieval: the rank of the first gold passage of each case, 0: none."""
    return [
        {"case_id": case_id, "repeat": 0, "scores": {"mrr": 1 / rank if rank else 0.0}}
        for case_id, rank in ranks.items()
    ]


def test_two_runs_are_compared_within_the_smaller_depth(tmp_path: Path) -> None:
    base = write_run(
        tmp_path / "base", 10, {"retrieval": mrr_lines(a=1, b=9, c=0, d=1, only_base=1)}
    )
    new = write_run(tmp_path / "new", 3, {"retrieval": mrr_lines(d=0, c=2, b=0, a=3, only_new=1)})
    assert read_verdicts(base).counts().failing == 1  # c; b has its gold at 9 of 10
    pair = read_pair(base, new)
    assert pair.ruling.gold_within == 3
    ways = {case_id: pair.way(case_id) for case_id in ("a", "b", "c", "d", "only_base")}
    assert ways == {
        "a": "ok still",
        "b": "fails still",  # rank 9 is not within the first 3, and now it is gone
        "c": "fixed",
        "d": "broke",
        "only_base": None,
    }
    assert pair.counts() == {"broke": 1, "fixed": 1, "fails still": 1, "ok still": 1}


@each_row("level", ["off", "warn"])
def test_passages_are_not_spoken_of_where_no_case_must_have_gold(
    tmp_path: Path, level: str
) -> None:
    """No case was declined, so both are ok, whatever was retrieved."""
    scores = {"over_refusal": 0.0}
    right = {"abstention": [{"case_id": i, "repeat": 0, "scores": scores} for i in "ab"]}
    base = write_run(tmp_path / "base", 10, right | {"retrieval": mrr_lines(a=1, b=9)})
    new = write_run(tmp_path / "new", 3, right | {"retrieval": mrr_lines(a=1, b=0)})
    rules = read_rules(tmp_path, f'[cases]\nno_gold = "{level}"\n')
    cases = changes_of(read_pair(base, new, rules), 3)
    assert cases is not None
    assert cases.says().startswith("Of 2 cases 0 broke and 0 were fixed; 0 still fail, 2 still ok")
    assert "passages" not in cases.says()
    assert (cases.depth, cases.deeper) == (None, None)
    with_gold = changes_of(read_pair(base, new), 3)
    assert with_gold is not None
    told = "gold must be among the first 3 passages of both runs; 1 of those that still fail passes"
    assert f"{told} in base by its passages up to 10" in with_gold.says()


def test_two_runs_are_compared_by_what_both_were_measured_for(tmp_path: Path) -> None:
    right = [{"case_id": "a", "repeat": 0, "scores": {"over_refusal": 0.0}}]
    wrong = [{"case_id": "a", "repeat": 0, "scores": {"over_refusal": 1.0}}]
    base = write_run(tmp_path / "base", 3, {"retrieval": mrr_lines(a=1)})
    new = write_run(tmp_path / "new", 3, {"retrieval": mrr_lines(a=1), "abstention": wrong})
    assert read_verdicts(new).counts().failing == 1
    assert read_pair(base, new).counts()["broke"] == 0, "the base has no abstention scores"
    both = write_run(tmp_path / "both", 3, {"retrieval": mrr_lines(a=1), "abstention": right})
    assert read_pair(both, new).counts()["broke"] == 1


def test_repeats_and_lines_of_other_orders_are_put_together(tmp_path: Path) -> None:
    lines = [
        {"case_id": case_id, "repeat": repeat, "scores": {"mrr": mrr}}
        for case_id, mrrs in (("a", (1.0, 0.0, 0.0)), ("b", (1.0, 1.0, 0.0)))
        for repeat, mrr in enumerate(mrrs)
    ]
    refused = [
        {"case_id": "b", "repeat": 1, "scores": {"over_refusal": 1.0}},
        {"case_id": "a", "repeat": 0, "scores": {"over_refusal": 0.0}},
        {"case_id": "late", "repeat": 0, "scores": {"over_refusal": 1.0}},
    ]
    run = read_verdicts(write_run(tmp_path / "r", 5, {"retrieval": lines, "abstention": refused}))
    # a: answers 1 and 2 have no gold: 2 of 3; b: 1 declines, 2 has no gold: 2 of 3; late: 1 of 1
    counts = run.counts()
    assert (counts.cases, counts.failing, counts.unstable) == (3, 3, 2)
    found = run.verdict("b")
    assert found is not None
    assert (found.answers, found.failing) == (3, 2)
    assert names(found.reasons) == ["refused"]
    lines = mrr_lines(a=1, b=0, c=1)
    lines.insert(1, lines[0])
    run = read_verdicts(write_run(tmp_path / "r", 5, {"retrieval": lines}))
    assert [verdict.answers for verdict in run.verdicts()] == [1, 1, 1]
    assert (run.counts().cases, run.counts().failing) == (3, 1)  # b has no gold


@each_row("section", ["judged", "rubrics", "custom"])
def test_a_judgement_that_failed_is_no_failed_call(tmp_path: Path, section: str) -> None:
    """A panel without a majority, or a plugin that raised, says nothing of the bot's response."""
    found = [{"case_id": name, "repeat": 0, "scores": {"mrr": 1.0}} for name in "ab"]
    split = {"case_id": "a", "repeat": 0, "status": "failed", "scores": {"quotes": None}}
    split["reasons"] = {"quotes": "judge failed: no_majority"}
    call = {"case_id": "b", "repeat": 0, "status": "failed", "scores": {}}
    call["reasons"] = {"*": "call failed: timeout"}
    table = Run(write_run(tmp_path / "r", 5, {"retrieval": found, section: [split, call]}))
    run = RunVerdicts(Ruling(CaseRules(), LOCAL))
    for name in ("retrieval", section):  # as a report reads them
        run.take_table(table.section(name))
    assert (run.counts().cases, run.counts().reasons) == (2, {"no_response": 1})


def test_passages_that_nobody_knows_matter_to_rules_alone(tmp_path: Path) -> None:
    """A bot that sends no passages: no rule reads the section context, one reads retrieval.mrr."""
    line = {"case_id": "a", "repeat": 0, "scores": {}, "reasons": {"*": "passages are not mapped"}}
    lines = {"context": [line | {"scores": {"mattr": None}}]}
    lines["retrieval"] = [line | {"scores": {"mrr": None}}]
    table = Run(write_run(tmp_path / "r", 5, lines))
    ruling = Ruling(CaseRules(), LOCAL)
    assert "context" not in ruling.sections
    run = RunVerdicts(ruling)
    run.take_table(table.section("context"))
    assert not run.unknown
    run.take_table(table.section("retrieval"))
    assert [[rule.name for rule in ruling.rules_of(bits)] for bits in run.unknown.values()] == [
        ["no_gold"]
    ]


@each_row(
    ("cases", "failing", "says"),
    [
        (1, 0, "0 of 1 case fails."),
        (1, 1, "1 of 1 case fails."),
        (2, 0, "0 of 2 cases fail."),
        (2, 1, "1 of 2 cases fails."),
        (1_000, 999, "999 of 1,000 cases fail."),
    ],
)
def test_the_verb_follows_the_numbers(cases: int, failing: int, says: str) -> None:
    assert VerdictCounts(cases, failing).says() == says


def test_rules_on_tools_decide_runs_without_tools_as_before(tmp_path: Path) -> None:
    """The hash is that of the rules before there were any on tools: a committed baseline stays
    one. A rule that a user changes counts."""
    before = "929be50248319fa27cb2709ae68e6396e616c2b14f6228de5366ba2b1929c3ae"
    assert CaseRules().sha256 == before
    assert read_rules(tmp_path, '[cases]\nforbidden_tool = "warn"\n').sha256 != before
    unmeasured = Ruling(CaseRules(), Basis(definitions={})).unmeasured
    assert "no retrieval scores" in unmeasured
    assert "no tools scores" not in unmeasured


def test_a_forbidden_call_fails_and_a_missing_one_may_be_judged_right() -> None:
    metrics = ("tools.forbidden_called", "tools.tool_recall", "tools.no_call_ok", WRONG)
    ruling = Ruling(CaseRules(), Basis(None, "j", True, dict.fromkeys(metrics, "")))

    def ends(right: float | None = None, **scores: float) -> tuple[list[str], list[str]]:
        found: dict[str, Any] = {f"tools.{name}": value for name, value in scores.items()}
        verdict = judge_case([found | ({WRONG: right} if right else {})], ruling)
        return names(verdict.reasons), names(verdict.warnings)

    assert ends(forbidden_called=1, tool_recall=0.5) == (["forbidden_tool", "tool"], [])
    assert ends(no_call_ok=0) == (["no_tool"], [])
    assert ends(forbidden_called=0, tool_recall=1, no_call_ok=1) == ([], [])
    assert ends(5.0, tool_recall=0.5, forbidden_called=0) == ([], ["tool"])


WRONG = "judged.correctness"
