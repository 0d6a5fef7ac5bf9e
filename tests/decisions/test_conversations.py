"""Which conversations broke between two runs, and at which turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.score_lines import read_lines, write_lines

from decisions import conversations
from decisions.case_changes import read_pair
from decisions.compare_words import compare_page
from decisions.comparison import Comparison
from decisions.conversations import ConversationFlip, ConversationFlips
from records.runs import scores_file
from terminal.print_page import print_page
from views.page import markdown
from views.report.compared import talk_blocks
from views.report.page import PageBlocks

PASS, BREAKS, FAILED, UNLABELLED = 1.0, 0.0, "failed", None


def written(folder: Path, passes: dict[str, list[Any]], repeat: int = 0) -> None:
    lines = read_lines(folder, "pipeline") if scores_file(folder, "pipeline").exists() else []
    for name, values in passes.items():
        for number, value in enumerate(values, 1):
            failed = value == FAILED
            scores = {"outcome_match": None if failed else value}
            line = {"case_id": f"{name}{number}", "repeat": repeat, "scores": scores}
            lines.append(line | {"status": "failed" if failed else "scored"})
    lines.sort(key=lambda line: str(line["case_id"]))  # the repeats of a case stand together
    write_lines(folder, "pipeline", lines)


@pytest.fixture
def eval_set(tmp_path: Path) -> Path:
    """Conversations a to f of three turns, and a question by itself."""
    cases: list[dict[str, Any]] = [{"id": "alone1", "question": "Alone?"}]
    for name in "abcdef":
        for turn in (1, 2, 3):
            case = {"id": f"{name}{turn}", "question": f"{name} {turn}?", "conversation": name}
            cases.append(case | {"turn": turn})
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


def find_changes(base: Path, new: Path, eval_set: Path) -> ConversationFlips | None:
    return conversations.find_changes(read_pair(base, new), eval_set)


def test_a_conversation_breaks_at_its_first_failing_turn(tmp_path: Path, eval_set: Path) -> None:
    base, new = tmp_path / "base", tmp_path / "new"
    whole = [PASS, PASS, PASS]
    written(
        base,
        {
            "a": whole,
            "b": [PASS, PASS, BREAKS],
            "c": [BREAKS, PASS, PASS],
            "d": whole,
            "e": [PASS, PASS],  # its third turn has no line: it was not asked
            "f": [UNLABELLED, BREAKS, PASS],
            "alone": [PASS],
        },
    )
    written(
        new,
        {
            "a": [PASS, FAILED, BREAKS],
            "b": [BREAKS, PASS, BREAKS],
            "c": whole,
            "d": [UNLABELLED, PASS, PASS],
            "e": [BREAKS, PASS, PASS],
            "f": [UNLABELLED, PASS, BREAKS],
            "alone": [BREAKS],
        },
    )
    changes = find_changes(base, new, eval_set)
    assert changes is not None
    assert changes.compared == 5
    assert [(c.conversation, c.case_id, c.says()) for c in changes.broke] == [
        ("a", "a2", "all 3 turns were ok, now turn 2 fails")
    ]
    assert [(c.conversation, c.case_id, c.says()) for c in changes.earlier] == [
        ("b", "b1", "first failed at turn 3, now at turn 1")
    ]
    assert [(c.conversation, c.question, c.says()) for c in changes.fixed] == [
        ("c", "c 1?", "turn 1 failed, now all 3 turns are ok")
    ]
    assert [(c.conversation, c.question, c.says()) for c in changes.later] == [
        ("f", "f 2?", "first failed at turn 2, now at turn 3")
    ]
    assert changes.summary() == (
        "Of 5 conversations 1 broke and 1 was fixed; 1 now fails earlier, 1 later."
    )


def test_each_repeat_is_a_conversation_of_its_own(tmp_path: Path, eval_set: Path) -> None:
    base, new = tmp_path / "base", tmp_path / "new"
    for repeat in (0, 1):
        written(base, {"a": [PASS, PASS, PASS]}, repeat)
    written(new, {"a": [PASS, PASS, PASS]}, 0)
    written(new, {"a": [PASS, PASS, BREAKS]}, 1)
    changes = find_changes(base, new, eval_set)
    assert changes is not None
    assert [(c.repeat, c.new_turn) for c in changes.broke] == [(1, 3)]


def test_without_conversations_or_scores_there_is_nothing(tmp_path: Path, eval_set: Path) -> None:
    base, new = tmp_path / "base", tmp_path / "new"
    assert find_changes(base, new, eval_set) is None
    for folder in (base, new):
        written(folder, {"a": [PASS, PASS], "alone": [PASS]})
    assert find_changes(base, new, eval_set) is None  # no conversation is whole
    assert find_changes(base, new, tmp_path / "absent.jsonl") is None
    eval_set.write_text('{"id": "alone1", "question": "What of \\"conversation\\"?"}\n')
    assert find_changes(base, new, eval_set) is None


def test_every_form_of_a_comparison_names_them_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    change = ConversationFlip("talk [b]", 1, 3, None, 2, "t2", "And <b>\x1b[31mthat?")
    talks = ConversationFlips(14, (change,) * 12, ())
    page = compare_page(Comparison("old", "new", ()), talks=talks)
    print_page(Console(width=200, markup=False, highlight=False), page)
    printed = capsys.readouterr().out
    assert "talk [b] (repeat 1): all 3 turns were ok, now turn 2 fails" in printed
    assert "2 more: --json has all of them." in printed
    assert "\x1b[31m" not in printed
    text = markdown([page])
    assert "- `talk [b]` (repeat 1): all 3 turns were ok, now turn 2 fails (`And <b>" in text
    assert "\x1b" not in text
    blocks = talk_blocks(talks)
    html = str(PageBlocks().write(blocks))
    assert "now turn 2 fails" in html
    assert "&lt;b&gt;" in html
    assert "Of 14 conversations 12 broke" in html
