"""verdicts.jsonl read into claims: which lines count, what a claim carries along."""

from __future__ import annotations

import json
from typing import Any

import pytest

import storage
from storage import StorageError
from validation.claims import read_judged, support_score


def read(run: Any) -> Any:
    cases = {case.id: case for case in storage.read_cases(run.folder / "set.jsonl", None)}
    return read_judged(run.run, "groundedness", cases)


def test_a_claim_carries_what_is_needed_to_label_and_slice_it(judged_run: Any) -> None:
    judged_run.write(
        {"q1": [("Costs are 5 EUR.", "supported"), ("It may rain.", "quote_unverified")]}
    )
    first, second = read(judged_run).claims
    assert first.key == ("q1", 0, "1")
    assert (first.supported, second.supported) == (True, False)
    assert first.answer == "Costs are 5 EUR. It may rain."
    assert first.answer[slice(*second.span)] == "It may rain."
    assert first.contexts[0].title == "notes/0.md > Part"
    assert (first.source, second.source) == ("notes/0.md", "notes/0.md")
    assert first.slices == {"category": "factual", "claim_type": "assertion", "numbers": "with"}
    assert second.slices["claim_type"] == "inference"
    assert (first.score, first.reason) == (None, "because of 1")


def test_cases_weigh_alike_whatever_their_claims(judged_run: Any) -> None:
    judged_run.write(
        {
            "q1": [("One thing is so.", "supported")],
            "q2": [("Two things are so.", "supported"), ("Three things are so.", "not_found")],
        }
    )
    assert [claim.weight for claim in read(judged_run).claims] == [1, 0.5, 0.5]


def test_the_last_line_counts_and_failures_are_no_verdicts(judged_run: Any) -> None:
    judged_run.write({"q1": [("One thing is so.", "supported")], "q2": [("Two.", "supported")]})
    judged_run.verdicts.append(judged_run.line("q1", [("One thing is so.", "not_found")]))
    judged_run.verdicts.append(judged_run.line("q2", []) | {"status": "failed"})
    judged_run.save()
    judged = read(judged_run)
    assert [(claim.case_id, claim.verdict) for claim in judged.claims] == [("q1", "not_found")]
    assert judged.failed == 1


def test_parts_belong_together(judged_run: Any) -> None:
    judged_run.write({"q1": [("One thing is so.", "supported")]})
    second = judged_run.line("q1", [("", ""), ("Two things are so.", "not_found")])
    second["input"]["claims"] = second["input"]["claims"][1:]
    second["verdicts"] = second["verdicts"][1:]
    judged_run.verdicts[0] |= {"parts": 2}
    judged_run.save()
    assert (read(judged_run).claims, read(judged_run).failed) == ([], 1)  # a part is missing
    judged_run.verdicts.append(second | {"part": 1, "parts": 2})
    judged_run.save()
    assert [claim.claim_id for claim in read(judged_run).claims] == ["1", "2"]


def test_lines_about_an_answer_that_is_gone_do_not_count(judged_run: Any) -> None:
    """Of an answer in two parts the second stays over when the new answer has one."""
    judged_run.write({"q1": [("One thing is so.", "supported")]})
    part = judged_run.line("q1", [("Gone.", "supported")]) | {"subject": "old", "parts": 2}
    present = judged_run.verdicts.pop()
    judged_run.verdicts += [part, part | {"part": 1}]
    judged_run.save()
    judged = read(judged_run)
    assert (judged.claims, judged.failed, judged.changed) == ([], 0, 1)
    judged_run.verdicts.append(present)
    judged_run.save()
    judged = read(judged_run)
    assert [claim.claim for claim in judged.claims] == ["One thing is so."]
    assert (judged.failed, judged.changed) == (0, 0)


def test_what_code_decided_is_not_the_judges(judged_run: Any) -> None:
    judged_run.write({"q1": [("One thing is so.", "not_found")]}, mode="code")
    judged = read(judged_run)
    assert (judged.claims, judged.by_code, judged.judges) == ([], 1, [])


def test_repeats_of_the_judge_give_a_score(judged_run: Any) -> None:
    judged_run.write({"q1": [("One thing is so.", "supported")]})
    for repeat, verdict in ((1, "not_found"), (2, "supported")):
        line = judged_run.line("q1", [("One thing is so.", verdict)])
        judged_run.verdicts.append(line | {"judge_repeat": repeat})
    judged_run.save()
    (claim,) = read(judged_run).claims
    assert claim.verdict == "supported"  # the first opinion
    assert claim.score == pytest.approx(2 / 3)


def test_the_local_judge_has_the_score_of_its_rules(judged_run: Any) -> None:
    local = {"provider": "local", "model": "support"}
    judged_run.write({"q1": [("Passage speaks of dragons.", "not_found")]}, judge=local)
    (claim,) = read(judged_run).claims
    # two of the three content words stand in "Passage of q1. It speaks of many …": neither end
    assert claim.score is not None
    assert 0.2 < claim.score < 0.8
    assert support_score("Passage speaks.", ["Passage of q1. It speaks."], "") > claim.score
    assert support_score("It costs 99 EUR.", ["It costs 5 EUR."], "") == 0.0  # a number vetoes


def test_a_verdict_of_another_judge_than_the_configured_does_not_count(judged_run: Any) -> None:
    judged_run.write({"q1": [("One thing is so.", "supported")]})
    path = judged_run.run / "config.json"
    config = json.loads(path.read_text())
    identity = judged_run.verdicts[0]["judge"] | {"digest": "sha256:other"}
    config["judge"] = {"identity": identity, "prompts": {}, "parameters": {}}
    path.write_text(json.dumps(config))
    with pytest.raises(StorageError, match="no verdicts of groundedness"):
        read(judged_run)


@pytest.mark.parametrize("part", ["passage", "answer"])
def test_a_verdict_on_another_text_is_not_comparable(judged_run: Any, part: str) -> None:
    """Lines name the texts that the judge saw by a hash; their words come from results.jsonl."""
    judged_run.write({"q1": [("One thing is so.", "supported")]})
    asked = judged_run.verdicts[0]["input"]
    (claim,) = read(judged_run).claims
    assert claim.contexts[0].text == asked["contexts"][0]["text"]
    assert claim.answer == "One thing is so."
    if part == "passage":
        asked["contexts"][0]["text"] = "Another passage."
    else:
        asked["answer"] = "Another answer."
    judged_run.save()
    judged = read(judged_run)
    assert (judged.claims, judged.changed) == ([], 1)


def test_a_torn_last_line_is_passed_over_and_another_is_named(judged_run: Any) -> None:
    judged_run.write({"q1": [("One thing is so.", "supported")]})
    path = judged_run.run / "verdicts.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"schema": 2, "case')
    assert len(read(judged_run).claims) == 1
    path.write_bytes(b"[]\n" + whole)
    with pytest.raises(StorageError, match=r"verdicts\.jsonl:1"):
        read(judged_run)
