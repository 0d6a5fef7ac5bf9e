"""What may not differ, what may, and what is said about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from decisions.compare import CompareOptions, compare
from decisions.comparison import Comparison
from decisions.headline import failures
from decisions.invariants import IncomparableError

Runs = Any
SCORES = {"mrr": [1.0, 0.5]}
JUDGED = {"groundedness": [5.0, 4.0]}


def judge(**parts: Any) -> dict[str, Any]:
    identity = {"provider": "ollama", "model": "m", "digest": "abc"} | parts.pop("identity", {})
    prompts = {"groundedness": {"version": 1, "sha256": "1"}}
    parameters = {"temperature": 0.0, "seed": 1}
    whole = {"identity": identity, "prompts": prompts, "parameters": parameters}
    return {"judge": whole | parts}


def refused(base: Any, new: Any) -> IncomparableError:
    """The refusal; with --ignore-invariants the same pair is compared, and the difference named."""
    with pytest.raises(IncomparableError) as caught:
        compare(base, new)
    found = compare(base, new, CompareOptions(ignore_invariants=True))
    assert found.controls == caught.value.differences
    assert any("they were measured differently" in note for note in found.notes)
    assert caught.value.exit_code == 2
    first, *_, last = caught.value.message.splitlines()
    if "eval set (asked)" in caught.value.message:
        assert last == "Ask base again with the set of new (run_eval.py), then score it."
    elif "eval set (scored)" in caught.value.message:
        assert last == "Score base again with the set of new (eval_suite.py)."
        assert first.endswith("different versions of the eval set (fingerprints below).")
    else:
        assert last == "Score or ask one of them again."
    with pytest.raises(IncomparableError, match="; --anyway compares them anyway"):
        compare(base, new, CompareOptions(override="--anyway"))
    return caught.value


OTHER_PROMPT = {"groundedness": {"version": 2, "sha256": "1"}}


@pytest.mark.parametrize(
    ("section", "changed", "named"),
    [
        ("retrieval", {"eval_set": "6" * 64}, "eval set (scored): 555555555555 → 6666"),
        (
            "retrieval",
            {"config": {"dataset": {"sha256": "7" * 64}}},
            "eval set (asked): 555555555555 → 7777",
        ),
        (
            "retrieval",
            {"definitions": {"mrr": "retrieval/mrr@2"}},
            "retrieval.definitions.mrr: x/mrr@1 → retrieval/mrr@2",
        ),
        ("retrieval", {"options": {"match": "doc"}}, "retrieval.options.match: – → doc"),
        ("judged", {"identity": {"model": "n"}}, "judge.identity.model: m → n"),
        ("judged", {"prompts": OTHER_PROMPT}, "judge.prompts.groundedness.version: 1 → 2"),
        (
            "judged",
            {"parameters": {"temperature": 0.7, "seed": 1}},
            "judge.parameters.temperature: 0.0 → 0.7",
        ),
    ],
)
def test_what_measures_must_be_the_same(
    runs: Runs, section: str, changed: dict[str, Any], named: str
) -> None:
    own: dict[str, Any] = {}
    scores: Any = SCORES
    if section == "judged":
        scores, own, changed = JUDGED, {"config": judge()}, {"config": judge(**changed)}
    base = runs.make("base", scores, section, **own)
    error = refused(base, runs.make("new", scores, section, **(own | changed)))
    assert len(error.differences) == 1
    assert named in error.message


def both(runs: Runs, name: str, **judged: Any) -> Any:
    """A run with scores of two sections: retrieval, and what a judge found."""
    runs.make(name, {"recall@5": [1.0, 0.5]})
    return runs.make(name, JUDGED, "judged", **judged)


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (
            {"options": {"correctness_weight": 1.0}},
            {"options": {"correctness_weight": 0.75}},
            "judged.options.correctness_weight: 1.0 → 0.75",
        ),
        (
            {"options": judge()},
            {"options": judge(identity={"model": "n"})},
            "judge.identity.model: m → n",
        ),
    ],
)
def test_a_section_that_was_scored_differently_is_left_out(
    runs: Runs, one: dict[str, Any], other: dict[str, Any], named: str
) -> None:
    """The other one is compared; without a section that decides nothing is."""
    base, new = both(runs, "base", **one), both(runs, "new", **other)
    found = compare(base, new, CompareOptions(override="--anyway"))
    assert {row.section for row in found.rows} == {"retrieval"}
    assert found.controls == ()
    said = (
        f"judged is left out, because it was scored differently (base → new): {named}; score one "
        "of the runs again like the other (judge_answers.py); --anyway compares it anyway."
    )
    assert found.left_out == (said,)
    assert said in found.notes
    assert failures([found], ["worse"]) == [said]
    assert failures([found], ["groundedness"]) == [said]
    assert failures([found], ["recall@5"]) == []
    assert any(row.section == "judged" for row in ignoring(base, new).rows)
    for asked in (
        CompareOptions(sections=("judged",)),
        CompareOptions(sections=("judged", "retrieval")),
        CompareOptions(metrics=("groundedness",)),
    ):
        with pytest.raises(IncomparableError, match=named.partition(" ")[0]):
            compare(base, new, asked)


def ignoring(base: Any, new: Any) -> Comparison:
    return compare(base, new, CompareOptions(ignore_invariants=True))


def test_nothing_is_compared_when_no_metric_is_left_that_decides(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decisions.primary.BUILT_IN", ("retrieval.recall@5",))
    base, new = both(runs, "base"), both(runs, "new")
    runs.make("new", {"recall@5": [1.0, 0.5]}, options={"gain": "exp"})
    with pytest.raises(IncomparableError, match="gain: – → exp"):
        compare(base, new)
    assert {row.section for row in ignoring(base, new).rows} == {"retrieval", "judged"}


@pytest.mark.parametrize(
    ("base", "new"),
    [
        # a judge that judged nothing here
        ({"config": judge()}, {"config": judge(identity={"model": "n"})}),
        ({"options": {"seed": 0, "k": [1, 3]}}, {"options": {"seed": 1, "k": [1, 5]}}),
        # labels when a run was asked
        (
            {"config": {"dataset": {"sha256": "5" * 64, "labels_sha256": "a"}}},
            {"config": {"dataset": {"sha256": "5" * 64, "labels_sha256": "b"}}},
        ),
    ],
)
def test_what_may_differ(runs: Runs, base: dict[str, Any], new: dict[str, Any]) -> None:
    found = compare(runs.make("base", SCORES, **base), runs.make("new", SCORES, **new))
    assert found.controls == ()
    assert not any("label" in note for note in found.notes)


def test_a_judge_is_known_by_the_scores_themselves(runs: Runs) -> None:
    """Both sections say who judged: config.json may be gone (only metrics.json is committed)."""
    one, other = judge()["judge"], judge(identity={"digest": "def"})["judge"]
    base = runs.make("base", JUDGED, "judged", options={"judge": one})
    new = runs.make("new", JUDGED, "judged", options={"judge": other})
    error = refused(base, new)
    assert [str(one) for one in error.differences] == ["judge.identity.digest: abc → def"]


def test_prompts_of_other_metrics_and_builds_of_a_server_do_not_matter(runs: Runs) -> None:
    one, other = judge()["judge"], judge()["judge"]
    other["prompts"] = other["prompts"] | {"correctness": {"version": 1, "sha256": "2"}}
    one["fingerprints"], other["fingerprints"] = ["fp_1"], ["fp_2"]
    one["answered_as"], other["answered_as"] = [], ["m-2025"]
    base = runs.make("base", JUDGED, "judged", options={"judge": one, "embedding_model": ""})
    new = runs.make("new", JUDGED, "judged", options={"judge": other, "embedding_model": "e"})
    found = compare(base, new)
    assert found.controls == ()
    assert any("other builds: fp_1; then fp_2" in note for note in found.notes)
    for builds in (["fp_1"], []):  # the same build, and one that is not known, is no other
        other["fingerprints"] = builds
        new = runs.make("new", JUDGED, "judged", options={"judge": other, "embedding_model": "e"})
        assert "builds" not in " ".join(compare(base, new).notes)
        assert "builds" not in " ".join(compare(new, base).notes)
    one["answered_as"] = ["m-2024"]
    base = runs.make("base", JUDGED, "judged", options={"judge": one})
    assert "judge.answered_as: m-2024 → m-2025" in refused(base, new).message


def test_another_version_of_the_toolkit_and_failed_calls_are_remarked(runs: Runs) -> None:
    scores = {"mrr": [1.0, 0.5]}
    base = runs.make("base", scores, config={"tool_version": "0.1"})
    same = runs.make("same", scores, config={"tool_version": "0.1"})
    unknown = runs.make("unknown", scores)
    assert "version" not in " ".join(compare(base, same).notes)
    assert "The toolkit's version differs: 0.1, unknown." in compare(base, unknown).notes
    base, new = runs.make("base", SCORES), runs.make("new", SCORES)
    path = new / "metrics.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"errors": 3}))
    assert any("failed: 0 in base, 3 in new" in note for note in compare(base, new).notes)


def test_gold_that_changed_between_the_scorings_is_refused(runs: Runs) -> None:
    same, other = {"match": "doc", "found": [1, None]}, {"match": "doc", "found": [2]}
    base = runs.make("base", SCORES, evidence=[same, same])
    new = runs.make("new", SCORES, evidence=[{"match": "doc", "found": [None, 7]}, other])
    error = refused(base, new)
    assert "other gold in 1 cases (q1)" in error.message
    # Other ranks of the same number of supports are what is compared.
    fine = runs.make("fine", SCORES, evidence=[{"match": "doc", "found": [None, 7]}, same])
    assert compare(base, fine).controls == ()


FIELDS = ["answer", "references", "retrieved", "retrieved[].chunk_id", "retrieved[].text"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        (FIELDS[:-1], "payload field retrieved[].text: sent → –"),
        (FIELDS[1:], "payload field answer: sent → –"),
        ([*FIELDS, "abstained"], "payload field abstained: – → sent"),
    ],
)
def test_fields_that_scores_are_made_from_must_be_sent_by_both(
    runs: Runs, fields: list[str], named: str
) -> None:
    base = runs.make("base", SCORES, config={"api": {"fields_seen": FIELDS}})
    new = runs.make("new", SCORES, config={"api": {"fields_seen": fields}})
    assert named in refused(base, new).message


@pytest.mark.parametrize(
    "fields",
    [
        [*FIELDS, "retriever.reranker", "guardrail.output_score", "retrieved[].score_vector"],
        ["answer", "references", "retrieved"],  # the first answer had no chunks
        [],  # imported answers: nothing is known
    ],
)
def test_fields_that_describe_the_system_may_differ(runs: Runs, fields: list[str]) -> None:
    base = runs.make("base", SCORES, config={"api": {"fields_seen": FIELDS}})
    new = runs.make("new", SCORES, config={"api": {"fields_seen": fields}})
    assert compare(base, new).controls == ()


def varied(runs: Runs, base: dict[str, Any], new: dict[str, Any], *declared: str) -> Comparison:
    one = runs.make("base", SCORES, config=base)
    other = runs.make("new", SCORES, config=new)
    return compare(one, other, CompareOptions(varied=declared))


ONE = {"retriever": {"k": 5, "requested": {"k": 5}}, "index": {"chunk_size": 800, "hash": "a"}}


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        (
            {"retriever": {"k": 9, "requested": {"k": 9}}},
            ["retriever.k: 5 → 9", "retriever.requested.k: 5 → 9"],
        ),
        # a hash follows from the setting that changed
        (
            {"index": {"chunk_size": 400, "hash": "b"}},
            ["index.chunk_size: 800 → 400", "index.hash: a → b"],
        ),
    ],
)
def test_one_change_is_shown_and_no_cause_for_a_warning(
    runs: Runs, changed: dict[str, Any], shown: list[str]
) -> None:
    found = varied(runs, ONE, ONE | changed)
    assert [str(change) for change in found.varied] == shown
    assert not any("changed together" in note for note in found.notes)


TWO = {"retriever": {"k": 9, "requested": {"k": 9}}, "index": {"chunk_size": 400, "hash": "b"}}


def test_what_changed_is_the_second_sentence(runs: Runs) -> None:
    found = varied(runs, ONE, TWO)
    assert found.says[1] == found.changed
    assert found.changed.startswith("Changed: chunk_size ")
    assert "; k " in found.changed
    assert found.changed.endswith(". None can be credited alone.")
    assert varied(runs, ONE, ONE).changed == "Nothing in the settings changed."
    notes = varied(runs, ONE, ONE, "answerer", "k").notes
    assert "Declared as varied, but the same in both: answerer, k." in notes


def test_what_was_asked_for_counts_when_the_bot_tells_nothing(runs: Runs) -> None:
    base = {"retriever": {"requested": {"k": 5, "folder_mode": None}}}
    new = {"retriever": {"requested": {"k": 9, "folder_mode": "on"}}}
    assert varied(runs, base, new).changed.startswith("Changed: folder_mode – → on; k 5 → 9.")


def test_the_history_that_turns_were_asked_with_is_a_change_of_its_own(runs: Runs) -> None:
    """Of k the bot tells itself, so what was asked for of it counts no second time."""

    def asked(k: int, history: str) -> dict[str, Any]:
        return {"retriever": {"k": k, "requested": {"k": k, "history": history}}}

    changed = varied(runs, asked(5, "alone"), asked(9, "replay")).changed
    assert changed == "Changed: k 5 → 9; history alone → replay. None can be credited alone."
    found = varied(runs, asked(5, "alone"), asked(5, "replay"))
    assert [str(change) for change in found.varied] == [
        "retriever.requested.history: alone → replay"
    ]
    assert found.changed == "Changed: history alone → replay."


def test_runs_scored_with_other_labels_are_refused(runs: Runs) -> None:
    base, new = (
        runs.make("base", SCORES, labels="a" * 64),
        runs.make("new", SCORES, labels="b" * 64),
    )
    assert "labels (scored): aaaaaaaaaaaa → bbbbbbbbbbbb" in refused(base, new).message
    base = runs.make("base", SCORES, labels="a" * 64)
    new = runs.make("new", SCORES, labels=None)
    assert "labels (scored): aaaaaaaaaaaa → –" in refused(base, new).message
    path = new / "metrics.json"
    known = json.loads(path.read_text())
    del known["labels_sha256"]
    path.write_text(json.dumps(known))
    assert compare(base, new).controls == ()


WHOLE = {"index": {"sha256": "a"}, "retriever": {"k": 5}, "answerer": {"model": "m"}}
SAME = (
    "What the bot reports of itself is the same in both runs {}: differences are chance, or what "
    "the bot does not report."
)
SILENT = {"retriever": {"requested": {"k": 5}}, "api": {"source": "http", "url": "demo"}}


@pytest.mark.parametrize(
    ("base", "new", "note"),
    [
        (WHOLE, WHOLE, SAME.format("(index, retriever, answerer)")),
        (
            {"index": {"sha256": "a"}} | SILENT,
            {"index": {"sha256": "a"}} | SILENT,
            SAME.format("(index; nothing is known of its retriever, answerer)"),
        ),
        (
            SILENT,
            SILENT,
            "The bot does not report its index, retriever and answerer: differences are chance, or "
            "a change of these.",
        ),
        (WHOLE, WHOLE | {"retriever": {"k": 6}}, None),
    ],
)
def test_equal_configurations_are_worth_what_was_reported(
    runs: Runs, base: dict[str, Any], new: dict[str, Any], note: str | None
) -> None:
    """A bot that is silent about itself may have changed in anything between two runs."""
    one = runs.make("base", SCORES, config=base)
    notes = compare(one, runs.make("new", {"mrr": [0.5, 0.5]}, config=new)).notes
    assert [one for one in notes if "chance" in one] == ([note] if note else [])


@pytest.mark.parametrize(
    ("found", "says"),
    [
        # base: 2 supports at 2 chunks, then 1 at 1: 1.00 a chunk
        ([[1, 1], [3]], "1.00 gold supports in base, 1.50 in new"),  # 3 at 2 chunks
        ([[1, 2], [None]], ""),  # 2 at 2
        ([[None, None], [None]], ""),  # nothing found: nothing tells
    ],
)
def test_chunks_of_another_size_are_told(runs: Runs, found: list[Any], says: str) -> None:
    evidence = [{"match": "anchor", "found": ranks, "hits": []} for ranks in ([1, 2], [4])]
    other = [{"match": "anchor", "found": ranks, "hits": []} for ranks in found]
    base = runs.make("base", SCORES, evidence=evidence)
    notes = compare(base, runs.make("new", SCORES, evidence=other)).notes
    told = [note for note in notes if "gold supports" in note]
    assert (says in told[0] and "evidence_recall" in told[0]) if says else not told
