"""Conversations that broke between two runs, from score lines on disk."""

from __future__ import annotations

from pathlib import Path

import orjson

from decisions.conversations import changed_conversations, conversation_lines

Passes = dict[str, list[float | None]]
"""The pass of each turn, by conversation."""


def write_run(folder: Path, passes: Passes, repeats: int = 1) -> Path:
    """Score lines; with repeats, the last one has what is written and the others pass."""
    rows = [
        {
            "case_id": f"{name}-{turn}",
            "repeat": repeat,
            "status": "scored",
            "scores": {"pass": score if repeat == repeats - 1 else 1.0},
        }
        for name, scores in passes.items()
        for turn, score in enumerate(scores, 1)
        for repeat in range(repeats)
    ]
    (folder / "scores").mkdir(parents=True)
    lines = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    (folder / "scores" / "pipeline.jsonl").write_bytes(lines)
    return folder


def write_set(folder: Path, passes: Passes) -> Path:
    path = folder / "set.jsonl"
    rows = [
        {"id": f"{name}-{turn}", "question": "?", "conversation": name, "turn": turn}
        for name, scores in passes.items()
        for turn in range(1, len(scores) + 1)
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


BASE: Passes = {
    "same": [1.0, 1.0],
    "broke": [1.0, 1.0, 1.0],
    "fixed": [1.0, 0.0],
    "earlier": [1.0, 1.0, 0.0],
    "unchecked": [None, None],
}
NEW: Passes = BASE | {"broke": [1.0, 0.0, 0.0], "fixed": [1.0, 1.0], "earlier": [0.0, 1.0, 0.0]}


def test_which_conversations_broke_and_at_which_turn(tmp_path: Path) -> None:
    eval_set = write_set(tmp_path, BASE)
    base, new = write_run(tmp_path / "a", BASE), write_run(tmp_path / "b", NEW, repeats=2)
    changes = changed_conversations(base, new, eval_set)
    assert changes is not None
    assert (changes.compared, changes.base_passed, changes.new_passed) == (4, 2, 2)
    assert [
        (change.kind, change.conversation, change.case_id, change.base_turn, change.new_turn)
        for change in changes.changed
    ] == [
        ("broke", "broke", "broke-2", None, 2),
        ("breaks earlier", "earlier", "earlier-1", 3, 1),
        ("fixed", "fixed", "fixed-2", 2, None),
    ]
    assert conversation_lines(changes) == [
        "Conversations in which every turn passes: 2 of 4 → 2 of 4.",
        "  broke: broke (passed → broke at turn 2)",
        "  breaks earlier: earlier (broke at turn 3 → broke at turn 1)",
        "  fixed: fixed (broke at turn 2 → passed)",
    ]
    assert changes.to_dict()["changed"][0]["kind"] == "broke"


def test_sets_without_conversations_have_none_that_changed(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_bytes(b'{"id": "a", "question": "conversation?"}\n')
    base, new = write_run(tmp_path / "a", BASE), write_run(tmp_path / "b", NEW)
    assert changed_conversations(base, new, tmp_path / "set.jsonl") is None
    (tmp_path / "c").mkdir()
    assert changed_conversations(base, tmp_path / "c", write_set(tmp_path, BASE)) is None
