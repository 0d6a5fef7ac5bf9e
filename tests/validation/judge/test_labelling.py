"""The sample, the annotator's file, and the claim as the screen gets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from records.claim_labels import ClaimLabel, LabelFile, read_labels
from storage import StorageError
from validation.claim_session import ClaimSession, LabelDecision
from validation.claims import JudgedClaim, JudgedContext
from validation.drawing import drawn_claims
from validation.goal import name_of
from validation.labels import DecisionStore, _labelled_item, label

CLAIMS = [
    JudgedClaim(f"q{n}", 0, "1", f"Claim {n} holds.", "supported" if n % 4 else "not_found")
    for n in range(200)
]


def test_every_decision_is_a_line_that_counts_later(tmp_path: Path) -> None:
    path = tmp_path / "labels" / "verdicts" / "maria.jsonl"
    drawn = drawn_claims(CLAIMS[1:4], 3, 0)  # all three are passed, and without a score
    claims = [item.claim for item in drawn]
    with LabelFile(path) as file:
        store = DecisionStore(file, drawn, "groundedness", "maria")
        session = ClaimSession([_labelled_item(claim) for claim in claims], store.record)
        session.decide("supported")
        session.goto_open()
        session.decide("cannot_tell")
        session.undo()
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["label"] for line in lines] == ["supported", "cannot_tell", None]
        assert lines[0] == {
            "case_id": claims[0].case_id,
            "repeat": 0,
            "metric": "groundedness",
            "claim_id": "1",
            "claim": claims[0].claim,
            "answer_sha256": claims[0].answer_sha256,
            "label": "supported",
            "annotator": "maria",
            "at": lines[0]["at"],
            "sample": "strata:0",
            "stratum": "passed",
            "stratum_size": 3,
            "probability": 1 / 3,
            "act": "label",
        }
        assert lines[1]["probability"] == 2 / 3  # two of three were drawn by then
        assert list(store.decided())[2].act == "undo"
    assert [one.label for one in read_labels([path])] == ["supported", "cannot_tell", None]
    with LabelFile(path) as file:
        store = DecisionStore(file, drawn, "groundedness", "maria")
        again = ClaimSession(
            [_labelled_item(claim) for claim in claims], store.record, decided=store.decided()
        )
        assert again.labels == {name_of(claims[0].key): "supported"}
        again.redo()  # over the restart
        assert again.labels[name_of(claims[1].key)] == "cannot_tell"
        again.put_note("odd")
        again.turn_flag()
    counted = read_labels([path])[-1]
    assert (counted.label, counted.note, counted.flag) == ("cannot_tell", "odd", True)
    assert json.loads(path.read_bytes().splitlines()[-1])["act"] == "note"
    with LabelFile(path) as file:
        store = DecisionStore(file, drawn, "groundedness", "maria")
        items = [_labelled_item(claim) for claim in claims]
        third = ClaimSession(items, store.record, decided=store.decided())
        third.undo()  # the flag, after a restart
        assert third.noted.note == "odd"
        assert not third.noted.flag


def test_labels_of_a_changed_answer_are_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "maria.jsonl"
    with LabelFile(path) as file:
        DecisionStore(file, drawn_claims(CLAIMS[:1], 1, 0), "groundedness", "maria").record(
            LabelDecision(name_of(CLAIMS[0].key), "supported")
        )
        changed = [JudgedClaim("q0", 0, "1", "Claim 0 holds.", "supported", answer="new")]
        store = DecisionStore(file, drawn_claims(changed, 1, 0), "groundedness", "maria")
        assert list(store.decided()) == []


def test_a_torn_line_is_cut_and_two_sessions_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "maria.jsonl"
    path.write_bytes(b'{"case_id": "q0", "claim_id": "1", "label": null}\n{"case_i')
    with LabelFile(path) as file:
        file.append(ClaimLabel(("q1", 0, "1"), "groundedness", "", "", None, "maria"))
        with pytest.raises(StorageError, match="is labelling into it now"), LabelFile(path):
            pass
    assert [one.key[0] for one in read_labels([path])] == ["q0", "q1"]


def test_the_best_window_is_marked_and_the_verdict_kept_apart() -> None:
    passages = (
        JudgedContext("c1", "a.md", "Cats sleep all day."),
        JudgedContext(
            "c2", "b.md", "First. Dogs bark at night. Dogs eat meat. Birds sing. Fish swim."
        ),
    )
    claim = JudgedClaim(
        "q", 0, "1", "Dogs eat meat.", "not_found", contexts=passages, reason="no such"
    )
    made = _labelled_item(claim)
    assert made.best == 1
    window = made.passages[1].window
    assert window is not None
    assert "Dogs eat meat." in passages[1].text[slice(*window)]
    assert made.passages[0].window is None
    assert made.words == {"dogs", "eat", "meat"}
    assert made.verdict == "not_found - no such"
    assert _labelled_item(JudgedClaim("q", 0, "1", "Dogs eat meat.", "x")).passages == ()


@each_row("name", ["", "a/b", "../x", "-x"])
def test_an_annotator_is_a_plain_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="--annotator"):
        label(CLAIMS, "groundedness", tmp_path, name, sample=1, seed=0)


def test_without_a_terminal_there_is_no_screen(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(StorageError, match="not a terminal"):
        label(CLAIMS, "groundedness", tmp_path, "maria", sample=1, seed=0)
