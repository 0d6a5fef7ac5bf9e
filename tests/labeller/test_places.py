"""Two sets in one folder keep their judgements apart."""

from __future__ import annotations

import json
from pathlib import Path

from labeller.case_state import foreign_words
from records.judged import judgements_dir


def write(path: Path, key: str, ids: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({key: one, "question": "?"}) + "\n" for one in ids]
    path.write_text("".join(lines))
    return path


def test_a_set_of_another_name_has_a_folder_of_its_own(tmp_path: Path) -> None:
    usual = write(tmp_path / "eval_set.jsonl", "id", "ab")
    mine = write(tmp_path / "mine.jsonl", "id", "ab")
    labels = tmp_path / "labels"
    assert judgements_dir(usual, labels) == labels / "judgements"
    assert judgements_dir(mine, labels) == labels / "judgements" / "mine"
    write(labels / "judgements" / "gold.jsonl", "case_id", "ab")
    assert judgements_dir(mine, labels) == labels / "judgements" / "mine"  # may be the other's


def test_the_old_place_stays_in_use_for_a_set_that_is_alone(tmp_path: Path) -> None:
    mine = write(tmp_path / "mine.jsonl", "id", "abc")
    labels = tmp_path / "labels"
    shared, own = labels / "judgements", labels / "judgements" / "mine"
    write(shared / "gold.jsonl", "case_id", "ab")
    assert judgements_dir(mine, labels) == shared
    write(shared / "maria.jsonl", "case_id", "z")  # another set's
    assert judgements_dir(mine, labels) == own
    write(shared / "maria.jsonl", "case_id", "a")
    assert judgements_dir(mine, labels) == shared
    own.mkdir()
    assert judgements_dir(mine, labels) == own


def test_foreign_judgements_are_told_with_the_remedy() -> None:
    assert foreign_words(["a", "b"], {"a", "b", "c"}) == ""
    assert foreign_words(["a", "z"], {"a"}).startswith("one judgement is about no case of the set")
    said = foreign_words("vwxyz", {"a"})
    assert said.startswith("5 judgements are about no case of the set ('v', 'w', 'x', …)")
    assert "--labels-dir" in said
