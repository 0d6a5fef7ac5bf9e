"""Label files: what is refused, which line counts, how annotators are joined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from records.claim_labels import answer_sha256, label_files, labels_sha256, read_labels
from storage import StorageError
from validation.claims import JudgedClaim
from validation.labels import join

ANSWER = "It is so. It costs 5."
CLAIMS = [
    JudgedClaim("q1", 0, str(n), text, "supported", answer=ANSWER)
    for n, text in enumerate(("It is so.", "It costs 5.", "More.", "Less."), 1)
]


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(claim_id: str, label: str | None, **more: Any) -> dict[str, Any]:
    return {"case_id": "q1", "claim_id": claim_id, "label": label} | more


def test_every_problem_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "maria.jsonl",
        row("1", "yes"),
        {"case_id": "q1", "label": "supported"},
        row("1", "supported", repeat="0"),
        row("1", "supported"),
    )
    with pytest.raises(StorageError) as caught:
        read_labels([path])
    said = str(caught.value)
    assert "maria.jsonl:1: label: must be one of supported, not_supported, cannot_tell" in said
    assert "maria.jsonl:2: claim_id" in said
    assert "maria.jsonl:3: repeat" in said
    assert ":4:" not in said


def joined(path: Path, *rows: dict[str, Any]) -> Any:
    """What the claims have of a file with these lines."""
    return join(read_labels([write(path / "maria.jsonl", *rows)]), CLAIMS, "groundedness")


def test_a_short_line_is_enough(tmp_path: Path) -> None:
    (label,) = read_labels([write(tmp_path / "maria.jsonl", row("1", "supported"))])
    assert label.key == ("q1", 0, "1")
    assert (label.annotator, label.metric) == ("maria", "groundedness")
    assert join([label], CLAIMS, "groundedness").human == {("q1", 0, "1"): 1}


def test_the_last_line_counts_and_null_takes_back(tmp_path: Path) -> None:
    said = (("1", "supported"), ("1", "not_supported"), ("2", "supported"), ("2", None))
    assert joined(tmp_path, *(row(*words) for words in said)).human == {("q1", 0, "1"): 0}


def test_labels_of_other_words_are_stale(tmp_path: Path) -> None:
    found = joined(
        tmp_path,
        row("1", "supported", claim="It is so.", answer_sha256=answer_sha256(ANSWER)),
        row("2", "supported", claim="It costs 6."),
        row("3", "supported", answer_sha256=answer_sha256("another answer")),
        row("9", "supported"),
        row("4", "present", metric="correctness"),
    )
    assert found.human == {("q1", 0, "1"): 1}
    assert (found.counts["stale"], found.counts["unknown"]) == (2, 1)


def test_labels_of_another_run_take_nothing_from_those_of_this_one(tmp_path: Path) -> None:
    """One file serves all runs: the same case and claim id, other answers."""
    this, other = answer_sha256(ANSWER), answer_sha256("another answer")
    lines = (
        *(("1", "supported", this), ("2", "supported", this), ("3", "supported", this)),
        *(("1", "not_supported", other), ("2", None, other), ("3", None, this)),
        *(("3", "supported", other), ("4", "supported", other), ("4", None, other)),
    )
    found = joined(tmp_path, *(row(n, said, answer_sha256=sha) for n, said, sha in lines))
    assert found.human == {("q1", 0, "1"): 1, ("q1", 0, "2"): 1}
    assert found.counts["stale"] == 0  # 3 is taken back here, 4 there


def test_annotators_are_joined_by_their_majority(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "verdicts" / f"{name}.jsonl", *(row(n, one) for n, one in said.items()))
        for name, said in {
            "ann": {"1": "supported", "2": "supported", "3": "cannot_tell"},
            "bob": {"1": "supported", "2": "not_supported", "3": "cannot_tell"},
            "eve": {"1": "not_supported", "2": "cannot_tell"},
        }.items()
    ]
    assert label_files(tmp_path, []) == files
    found = join(read_labels(files), CLAIMS, "groundedness")
    assert found.human == {("q1", 0, "1"): 1}  # two to one
    assert found.counts["disputed"] == 1  # claim 2: one to one
    assert found.counts["cannot_tell"] == 1  # claim 3
    assert found.annotators == {"ann": 3, "bob": 3, "eve": 2}
    # Units {1,1,0} and {1,0}: pairs that differ 2*2/2 + 2/1 = 4 (ordered, over size - 1);
    # expected 2*3*2 = 12 of 5 labels: alpha = 1 - 4 * 4 / 12 = -1/3
    assert found.alpha == pytest.approx(-1 / 3)


def test_only_drawn_labels_are_a_random_sample_and_unblind_ones_are_counted(
    tmp_path: Path,
) -> None:
    drawn = row("1", "supported", sample="random:0")
    assert joined(tmp_path, drawn, row("2", "supported", sample="random:0")).random_sample
    found = joined(tmp_path, drawn, row("2", "supported", after_verdict=True))
    assert not found.random_sample
    assert found.counts["after_verdict"] == 1


def test_the_hash_covers_the_bytes_of_all_files(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.jsonl", row("1", None)), write(tmp_path / "b.jsonl")
    before = labels_sha256([one, two])
    assert before == labels_sha256([two, one])
    write(two, row("2", "supported"))
    assert labels_sha256([one, two]) != before
