"""Verdict labels line by line: what is said, what is recorded, hostile texts."""

from __future__ import annotations

import io

from tests.rows import each_row

from validation.claim_session import (
    ClaimContext,
    ClaimItem,
    ClaimLines,
    ClaimSession,
    LabelDecision,
    SessionGoal,
)

TEXT = "Before all.\n\nPlan B costs\n20 EUR a month.\n\nAfter all."


def an_item(number: int) -> ClaimItem:
    start = TEXT.index("20 EUR")
    return ClaimItem(
        f"key{number}",
        f"q{number} [1]",
        "What does it cost?",
        f"Plan {number} costs 20 EUR. Cheap, isn't it?",
        f"Plan {number} costs 20 EUR.",
        (ClaimContext("a.md", "Other things."), ClaimContext("b.md", TEXT, (start, start + 6))),
        best=1,
        verdict="contradicted - by the list",
    )


def talk(typed: str, items: list[ClaimItem] | None = None) -> tuple[str, list[LabelDecision]]:
    """What is said to the typed lines, and what was recorded."""
    written: list[LabelDecision] = []
    out = io.StringIO()
    session = ClaimSession(
        items or [an_item(n) for n in range(3)], written.append, annotator="maria"
    )
    assert ClaimLines(session, io.StringIO(typed), out, prompt=False).run() == 0
    return out.getvalue(), written


def test_a_claim_is_shown_with_the_paragraph_around_its_window() -> None:
    said, written = talk("")
    assert said.splitlines() == [
        "",
        "claim 1 of 3, 0 done: q0 [1], open",
        "question: What does it cost?",
        "claim: Plan 0 costs 20 EUR.",
        "best window, in passage 2 of 2, b.md:",
        "Plan B costs",
        "20 EUR a month.",
    ]
    assert written == []


def test_labels_undo_and_redo_are_recorded_in_their_order() -> None:
    said, written = talk("1\nx\nu\nr\n3\nq\n1\n")
    assert [(one.key, one.label, one.act) for one in written] == [
        ("key0", "supported", "label"),
        ("key1", "not_supported", "label"),
        ("key1", None, "undo"),
        ("key1", "not_supported", "redo"),
        ("key1", "cannot_tell", "label"),  # undo and redo go to their claim
    ]
    assert "supported: q0 [1]\n" in said
    assert "not supported: q1 [1]\n" in said
    assert "undone: q1 [1]\n" in said
    assert "claim 3 of 3, 2 done: q2 [1], open" in said


def test_the_verdict_is_hidden_until_there_is_a_label() -> None:
    said, written = talk("v\n1\nh\nv\nn\n")
    first, _, rest = said.partition("supported: q0 [1]")
    assert "contradicted" not in first
    assert "label the claim first" in first
    assert "judge: contradicted - by the list" in rest
    assert [one.after_verdict for one in written] == [False, True]


@each_row(
    ("typed", "said"),
    [
        ("a", "answer: Plan 0 costs 20 EUR. Cheap, isn't it?"),
        ("t", "1: a.md\n2: b.md"),
        ("t 1", "a.md:\nOther things."),
        ("t 3", "t takes a number from 1 to 2"),
        ("t x", "t takes a number from 1 to 2"),
        ("h", "that is the first claim"),
        ("o", "claim 2 of 3"),
        ("l\nl\nl", "that is the last claim"),
        ("s\n1\n1", "claim 1 of 3, 2 done"),
        ("n", "not supported: q0 [1]"),
        ("u", "nothing to undo"),
        ("c odd one\nl\nh", "q0 [1], open\nnote: odd one"),
        ("c odd\nc", "note taken away: q0 [1]"),
        ("f\nl\nh", "q0 [1], open, flagged"),
        ("f\nu\nl\nh", "claim 1 of 3, 0 done: q0 [1], open\n"),
        ("r", "nothing to redo"),
        ("1\n1\n1\no", "every claim is labelled"),
        ("1\nh\n1", "it has that label already"),
        ("?", "How to label, so that everyone labels alike"),
        ("yes", "'yes' is not a command; ? lists them"),
        ("", "1 supported, 2 not, 3 cannot tell"),
    ],
)
def test_every_command_says_what_it_did(typed: str, said: str) -> None:
    assert said in talk(f"{typed}\n")[0]


def test_what_cannot_be_kept_is_said_and_does_not_count() -> None:
    def record(decision: LabelDecision) -> None:
        raise OSError(28, "No space left on device")

    out = io.StringIO()
    session = ClaimSession([an_item(0)], record)
    ClaimLines(session, io.StringIO("1\n"), out, prompt=False).run()
    assert "NOT SAVED, nothing changed: No space left on device" in out.getvalue()
    assert session.count() == 0


def test_foreign_texts_command_no_terminal() -> None:
    bad = "\x1b]0;title\x07\u202e"
    item = ClaimItem("k", f"q{bad}", bad, bad, bad, (ClaimContext(bad, bad),), verdict=bad)
    said, _ = talk("a\nt\nt 1\n1\nv\n", [item])
    assert not {"\x1b", "\x07", "\u202e"} & set(said)


def test_a_prompt_is_for_people_only() -> None:
    out = io.StringIO()
    ClaimLines(
        ClaimSession([an_item(0)], lambda _: None), io.StringIO("q\n"), out, prompt=True
    ).run()
    assert out.getvalue().endswith("1 supported, 2 not, 3 cannot tell, ? more> ")


def test_an_item_without_texts_below_says_so() -> None:
    said, written = talk("t\nt 1\n", [ClaimItem("k", "q [1]", "Q?", "A.", "A.")])
    assert said.count("The bot answered without any passage.") == 3  # shown, and asked for twice
    assert written == []


def test_the_goal_is_told_first_and_with_every_label() -> None:
    out = io.StringIO()
    goal = SessionGoal("Two runs would do.", lambda labels, short: f"{2 - len(labels)} more")
    session = ClaimSession([an_item(0), an_item(1)], lambda decision: None, goal=goal)
    ClaimLines(session, io.StringIO("1\n2\n"), out, prompt=False).run()
    said = out.getvalue()
    assert said.startswith("Two runs would do.\n")
    assert "supported: q0 [1] (1 more)\n" in said
    assert "not supported: q1 [1] (0 more)\n" in said
