"""The screen for verdict labels: every key, blindness, hostile text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.contrasts import unreadable_on
from tests.key_names import textual_name
from tests.rows import each_row
from tests.screens import press, see, shown

from terminal.safe_text import display
from validation.claim_screen import ClaimApp, run
from validation.claim_session import (
    CLAIMS,
    FACTS,
    ClaimContext,
    ClaimItem,
    ClaimSession,
    LabelDecision,
    LabelKind,
    SessionGoal,
    actions,
)

LONG = "Nothing of interest here. " * 60


def an_item(number: int, **more: Any) -> ClaimItem:
    answer = f"First of {number}. Plan {number} costs nothing. Last."
    start = answer.index("Plan")
    text = f"{LONG}Plan {number} costs nothing at all. {LONG}"
    window = text.index("Plan")
    made = ClaimItem(
        f"key{number}",
        f"q{number} [1]",
        f"What does plan {number} cost?",
        answer,
        f"Plan {number} costs nothing.",
        (ClaimContext("a.md", "Other things."), ClaimContext("b.md", text, (window, window + 20))),
        (start, start + 20),
        1,
        frozenset({"plan", "costs"}),
        f"contradicted - says {number}",
    )
    return replace(made, **more)


class Bench:
    """A screen over three claims, or those given; ``written`` holds what was recorded."""

    def __init__(self, items: list[ClaimItem] | None = None, **options: Any) -> None:
        self.written: list[LabelDecision] = []
        self.broken: OSError | None = None
        self.session = ClaimSession(
            items or [an_item(n) for n in range(3)], self.record, annotator="maria", **options
        )
        self.app = ClaimApp(self.session)

    def record(self, decision: LabelDecision) -> None:
        if self.broken is not None:
            raise self.broken
        self.written.append(decision)

    def shown(self) -> str:
        return shown(self.app)


async def test_one_key_a_claim_and_on_to_the_next() -> None:
    bench = Bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        shown = bench.shown()
        assert "claim 1/3 q0 [1]" in shown
        assert "Plan 0 costs nothing at all." in shown  # the best window, far down its passage
        assert "passage 2 of 2 b.md" in shown
        await see(pilot, "1", "claim 2/3 q1 [1]")
        await see(pilot, "n", "not supported (u undoes): q1 [1]; l is the next claim")
        await see(pilot, "escape", "Leave the program?")
        await see(pilot, "escape 3", "every claim is labelled")
        await pilot.press("q")
    assert [one.label for one in bench.written] == ["supported", "not_supported", "cannot_tell"]
    assert bench.app.return_code == 0


@each_row("theme", ["dark", "light"])
async def test_every_screen_can_be_read_in_both_themes(theme: str) -> None:
    """On terminals of all colours and of 256."""
    bench = Bench()
    bench.app = ClaimApp(bench.session, theme=theme)
    async with bench.app.run_test(size=(120, 40)) as pilot:
        for keys in ("1", "hvf", "]", "?", "q"):
            await pilot.press(*(textual_name(key) for key in keys))
            await pilot.pause()
            assert unreadable_on(bench.app) == set(), keys


async def test_the_verdict_is_hidden_until_the_claim_is_labelled() -> None:
    bench = Bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await see(pilot, "v", "label the claim first")
        assert "contradicted" not in bench.shown()
        await see(pilot, "1 h v", "contradicted - says 0")
        await pilot.press("2")
    assert [one.after_verdict for one in bench.written] == [False, True]


async def test_undo_and_redo_go_to_their_claim() -> None:
    bench = Bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "1 2 u", "claim 2/3", "OPEN")
        await see(pilot, "u u", "nothing to undo")
        await see(pilot, "U", "SUPPORTED")
        await see(pilot, "ctrl+r U", "nothing to redo")
    labels = [(one.act, one.label) for one in bench.written]
    assert labels == [
        ("label", "supported"),
        ("label", "not_supported"),
        ("undo", None),
        ("undo", None),
        ("redo", "supported"),
        ("redo", "not_supported"),
    ]


async def test_notes_and_flags_are_kept_and_undone_beside_the_labels() -> None:
    bench = Bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "c ~odd enter f", "flagged: q0 [1]", "claim, note: odd", "OPEN, FLAGGED")
        await pilot.press("1", "h", "v", "f")  # a note after the verdict: the label stays blind
        assert "SUPPORTED ━" in bench.shown()
        await pilot.press("u", "u", "u")  # the flag, the label, the first flag
        assert "undone: q0 [1]" in bench.shown()
        assert "note: odd" in bench.shown()
        assert "OPEN ━" in bench.shown()
        await see(pilot, "u U c backspace backspace backspace enter", "note taken away")
        bench.broken = OSError(28, "No space left on device")
        await see(pilot, "c x enter", "NOT SAVED, nothing changed")
        assert "note: x" not in bench.shown()
    written = [(one.act, one.label, one.note, one.flag) for one in bench.written]
    assert written == [
        ("note", None, "odd", False),
        ("note", None, "odd", True),
        ("label", "supported", "odd", True),
        ("note", "supported", "odd", False),
        ("undo", "supported", "odd", True),
        ("undo", None, "odd", True),
        ("undo", None, "odd", False),
        ("undo", None, "", False),
        ("redo", None, "odd", False),
        ("note", None, "", False),
    ]
    assert [one.after_verdict for one in bench.written[:5]] == [False] * 5


async def test_a_narrow_header_says_whether_the_judge_is_hidden() -> None:
    bench = Bench([an_item(n, name=f"a-name-of-some-length-{n} [1]") for n in range(120)])
    async with bench.app.run_test(size=(60, 18)) as pilot:
        for width in (60, 40):
            await pilot.resize_terminal(width, 18)
            await pilot.press("1")
            head = bench.shown().splitlines()[0]
            assert "| judge hidden" in head
            assert "/120 a" in head
            assert " done |" in head


async def test_moving_decides_nothing() -> None:
    bench = Bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "h", "that is the first claim")
        await see(pilot, "l right l", "that is the last claim")
        await pilot.press("h", "1", "left")
        assert "claim 2/3" in bench.shown()  # the label went on to claim 3, left came back
        await see(pilot, "enter", "claim 3/3")
        await pilot.press("4", "d")  # a claim has no fourth label
    assert len(bench.written) == 1


async def test_passages_turn_and_scroll() -> None:
    bench = Bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await see(pilot, "]", "Other things.")
        await see(pilot, "[", "Plan 0 costs nothing at all.")
        await pilot.press("pageup", "pageup", "pageup", "k")
        assert "Plan 0 costs nothing at all." not in bench.shown()
        await see(pilot, "w", "Plan 0 costs nothing at all.")
        await pilot.press("j", "pagedown", "J", "K", "tab", "shift+tab")
    assert bench.written == []


async def test_a_passage_is_searched_read_on_and_zoomed() -> None:
    bench = Bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "slash ~at·all enter", '"at all": 1 of 1')
        await see(pilot, "f3 z s", "later: q0 [1]", "claim 2/3")
        await pilot.press("1", "1")
        assert "claim 1/3" in bench.shown()  # what was put off comes last
        for _ in range(5):
            await pilot.press("full_stop")
        assert "passage 1 of 2" in bench.shown()
        await pilot.press("Y", "ctrl+z")
        assert bench.app.clipboard == "Plan 0 costs nothing."
        assert "there is no shell here" in bench.shown()
        await press(pilot, "colon")
        await pilot.press("escape")


async def test_what_cannot_be_kept_has_not_happened() -> None:
    bench = Bench()
    bench.broken = OSError(28, "No space left on device")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("1")
        shown = bench.shown()
        assert "NOT SAVED, nothing changed: No space left" in shown
        assert "claim 1/3" in shown
        assert "0 done" in shown
        bench.broken = None
        await pilot.press("1")
    assert bench.session.count() == 1


async def test_help_lists_every_key_and_any_key_leaves_it() -> None:
    bench = Bench()
    async with bench.app.run_test(size=(80, 50)) as pilot:
        await press(pilot, "question_mark")
        shown = bench.shown()
        assert all(action.shown in shown for action in actions(CLAIMS))
        await pilot.press("1")
        assert bench.app.screen is bench.app.main
    assert bench.written == []


@each_row("kind", [CLAIMS, FACTS])
def test_every_action_has_a_function_and_no_key_two_actions(kind: LabelKind) -> None:
    keys = [key for action in actions(kind) for key in action.keys]
    assert len(keys) == len(set(keys))
    screen = Bench(kind=kind).app.main
    assert set(screen.acts()) >= {action.id for action in actions(kind)}


@each_row("size", [(80, 24), (160, 48)])
async def test_facts_have_their_own_words_and_a_fourth_label(size: tuple[int, int]) -> None:
    """The reference stands above the fact, the bot's answer below it."""
    text = "The plan costs seven euros."
    items = [
        an_item(
            n,
            name=f"q{n} [f1]",
            claim="It costs five euros.",
            answer="Five euros, says the list.",
            passages=(ClaimContext("what the bot said", text, (0, len(text))),),
            span=None,
            best=0,
        )
        for n in range(4)
    ]
    bench = Bench(items, kind=FACTS)
    async with bench.app.run_test(size=size) as pilot:
        await pilot.pause()
        shown = bench.shown()
        for word in ("fact 1/4 q0 [f1]", "reference answer", "answer 1 of 1", "OPEN", text):
            assert word in shown
        for word in ("claim", "passage 1", "supported"):
            assert word not in shown
        for word in ("present", "missing", "cannot tell", "contradicted"):
            assert word in shown.splitlines()[-1]
        await see(pilot, "v", "label the fact first")
        await see(pilot, "4 x y 3 u question_mark", "contradicted")
        await pilot.press("escape")
    expected = ["contradicted", "missing", "present", "cannot_tell", None]
    assert [one.label for one in bench.written] == expected


async def test_the_two_answers_of_a_pair_have_equal_room() -> None:
    labels = ("left", "right", "cannot_tell", "equal")
    bench = Bench(kind=LabelKind("pair", labels, "left answer", "text", "", letters=False))
    for size in ((80, 24), (120, 40)):
        bench.app = ClaimApp(bench.session)
        async with bench.app.run_test(size=size):
            screen = bench.app.main
            assert abs(screen.answer.size.height - screen.text.size.height) <= 1, size


@each_row(("size", "turn"), [((80, 24), 0), ((160, 48), 1), ((40, 12), 2)])
async def test_hostile_text_is_shown_letter_by_letter(
    hostile: tuple[str, ...], size: tuple[int, int], turn: int
) -> None:
    hostile = hostile[turn::3]  # each text in one of the windows
    items = [
        ClaimItem(
            f"k{n}",
            text,
            f"{text} question",
            f"{text} answer {text}",
            f"{text} claim",
            (ClaimContext(f"{text}.md", f"{text} passage", (0, len(text))),),
            (0, len(text)),
            0,
            frozenset({text, "passage"}),
            text,
        )
        for n, text in enumerate(hostile)
    ]
    bench = Bench(items)
    async with bench.app.run_test(size=size, notifications=True) as pilot:
        for text in hostile:
            await pilot.pause()
            shown = bench.shown()
            first = display(text).split("\n")[0].strip()[:30]
            assert first in shown, ascii(text)
            assert not set(shown) & set("\x1b\x9b\x9d\x00\x07\u202e\ufeff\u2028"), ascii(text)
            await pilot.press("1", "h", "v")
            assert not set(bench.shown()) & set("\x1b\x9b\x9d\x00\x07\u202e\ufeff\u2028")
            await pilot.press("l")
    assert bench.session.count() == len(hostile)


async def test_an_answer_without_passages_and_a_claim_without_place() -> None:
    bench = Bench([an_item(1, passages=(), span=None, best=0)])
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "]", "without any passage")
        await pilot.press("w", "2")
    assert bench.session.count("not_supported") == 1


async def test_a_long_claim_is_shown_to_its_end() -> None:
    claim = "Plan 1 costs nothing, " + "and that is so on every day of it, " * 9 + "says the END."
    bench = Bench([an_item(1, claim=claim), an_item(2)])
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "says the END." in bench.shown()
        assert "costs nothing at all." in bench.shown()  # the window of the passage, too
        await press(pilot, "n")
        assert bench.app.main.bars["v-claim"].size.height == 4


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(ValueError, match="theme 'nope' is unknown"):
        run(Bench().session, theme="nope")


async def test_the_goal_is_a_window_before_the_first_label_and_progress_stays_in_sight() -> None:
    def progress(labels: Any, short: bool) -> str:
        return f"{'' if short else 'faithfulness '}{len(labels)} labels"

    bench = Bench(goal=SessionGoal("This run has 2 unsupported claims. " * 20, progress))
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await see(pilot, "", "This run has 2 unsupported claims.", "Press any key to continue.")
        await pilot.press("1")  # closes the window and labels nothing
        assert bench.written == []
        assert "faithfulness 0 labels" in bench.shown()
        await see(pilot, "1", "faithfulness 1 labels")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "faithfulness" not in bench.shown()
        assert "1 labels" in bench.shown()
    again = Bench(goal=bench.session.goal, decided=[LabelDecision("key0", "supported")])
    async with again.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert (
            "Press any key to continue." not in again.shown()
        )  # it was said before the first label
