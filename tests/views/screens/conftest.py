"""Made-up runs for the browser's screens: no files, every number known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.screens import shown
from tests.views import tables
from tests.views.tables import answer

from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Key
from decisions.committed import ComparedPair
from decisions.slices import SliceMember, Slices, find_slices
from records.cases import TestCase
from records.errors import StorageError
from records.notes import CaseNote, own_note
from records.results import TestResult
from records.scores import ScoreLine
from views.browser.answers import AnswerTable
from views.browser.app import BrowseApp
from views.browser.cases import CasesScreen
from views.case import Case, Claim, GoldMatch, JudgedMetric, RetrievedPassage
from views.runs import MetricTrend, RunInfo, Trend

Scores = dict[str, tuple[float | None, float | None]]
"""recall@5 and outcome_match by case id; None: not scored."""
BASE: Scores = {"q1": (1.0, 1.0), "q2": (0.5, 1.0), "q3": (0.0, 0.0), "q4": (None, None)}
NEW: Scores = {"q1": (1.0, 0.0), "q2": (0.5, 1.0), "q3": (1.0, 1.0), "q5": (1.0, 1.0)}


def table_of(scores: Scores, text: str = "", more: Sequence[TestResult] = ()) -> AnswerTable:
    """A table with these scores; question and id hold `text`. ``more``: answers without scores."""
    answers = [
        answer(
            f"{case_id}{text}",
            question=f"{text}How long is log {case_id} kept?",
            latency=10.0 * number,
        )
        for number, case_id in enumerate(scores)
    ]
    cases = [
        TestCase(line.test_case_id, "?", True, "factual", tags=["odd"] if number % 2 else ["even"])
        for number, line in enumerate(answers)
    ]
    recalls, matches = ([values[at] for values in scores.values()] for at in (0, 1))
    of_section = {"retrieval": {"recall@5": recalls}, "pipeline": {"outcome_match": matches}}
    return tables.table_of([*answers, *more], of_section, cases)


@dataclass
class FakeRun:
    """A run that no folder holds."""

    run_id: str
    table: AnswerTable
    text: str = ""
    notices: Sequence[str] = ()
    state: Any = "complete"
    more: Sequence[JudgedMetric] = ()
    tell: Callable[[], None] = lambda: None
    exported: Any = None
    looked: int = 0
    closed: bool = False
    answer: str = "Thirty days. For ever."
    verdict: tuple[str, ...] = ()
    rules: CaseRules = CaseRules()
    basis: Basis = Basis()

    @property
    def info(self) -> RunInfo:
        return RunInfo(
            self.run_id,
            self.state,
            started="2026-01-02T03:04:05",
            done=self.table.count,
            planned=9,
            errors=0,
            sections={"retrieval": {"recall@5": (0.5, 3)}},
            config=(("retriever.k", f"5{self.text}"),),
            problem=self.text,
        )

    def start(self, tell: Callable[[], None]) -> None:
        self.tell = tell

    def read_again(self) -> None:
        self.looked += 1

    def close(self) -> None:
        self.closed = True

    def outcome(self, base: Any) -> ComparedPair:
        return ComparedPair(self.verdict)

    def slices(self, marks: Mapping[int, bool]) -> Slices:
        """The slices by tag: case numbers begin at 0, the odd ones have the tag `odd`."""
        tags = ("with tag even", "with tag odd")
        cases = [SliceMember(name, "", (tags[at % 2],)) for at, name in enumerate(self.table.ids)]
        return find_slices(cases, marks)

    def export(self, keys: Sequence[Key], reasons: Sequence[str], form: str, path: Path) -> int:
        self.exported = (list(keys), list(reasons), form, path)
        if path.name == "taken":
            raise StorageError("taken: exists already; choose another name.")
        return len(keys)

    def detail(self, key: Key) -> Case | None:
        row, text = self.table.row_of(*key), self.text
        if row is None:
            return None
        answer = f"{text}{self.answer}"
        size = len(text)
        return Case(
            case_id=self.table.ids[row],
            repeat=0,
            question=self.table.questions[row],
            status="ok",
            answer=answer,
            claims=(
                Claim(answer[: size + 12], (0, size + 12), "supported", text, f"c1{text}"),
                Claim("For ever.", (size + 13, size + 22), "contradicted", text),
            ),
            claims_by=f"support rules{text}",
            passages=(
                RetrievedPassage(
                    1, f"c1{text}", f"{text}a.md", f"{text}kept " * 200, True, 9, gold=True
                ),
            ),
            hits=(1,),
            match=f"anchor{text}",
            gold=(GoldMatch(f"{text}a.md", (f"{text}kept",), rank=1),),
            labels=(("key fact", f"{text}30 days"),),
            lines={f"x{text}": ScoreLine("", 0, "scored", {f"m{text}": 0.5}, {"n": f"no {text}"})},
            judged=(
                JudgedMetric(
                    text, text, text, text, (Claim(text, None, "unclear", text, quote=text),)
                ),
                *self.more,
            ),
            trace=(("flags", f"{text}late"),),
            raw=f'{{"answer": "{text}"}}'.encode("utf-8", "surrogatepass"),
            problems=(text,) if text else (),
        )


@dataclass
class FakeNotes:
    """Notes that no file holds."""

    by_case: dict[str, tuple[CaseNote, ...]]

    def of(self, case_id: str) -> tuple[CaseNote, ...]:
        return self.by_case.get(case_id, ())

    def own(self, case_id: str) -> CaseNote:
        return own_note(self.of(case_id))

    def put(self, case_id: str, note: CaseNote) -> None:
        if case_id == "q5":
            raise StorageError("notes: cannot be written (No space left on device).")
        self.by_case[case_id] = (note,) if note.text or note.flag else ()


@dataclass
class FakeLibrary:
    """Two runs, or more."""

    runs: dict[str, FakeRun]
    folder: str = "results"
    command: Any = ("label", "it")
    notes: FakeNotes = field(default_factory=lambda: FakeNotes({}))

    def refresh(self) -> list[RunInfo]:
        return [run.info for run in self.runs.values()]

    def open(self, run_id: str) -> FakeRun:
        if run_id not in self.runs:
            raise ValueError(f"{run_id}: no such folder any more")
        return self.runs[run_id]

    def trend(self, key: Key) -> Trend:
        text = next(iter(self.runs.values())).text
        line = MetricTrend(f"x{text}", f"m{text}", (0.5, None, 1.0), (2,))
        return Trend(((f"base{text}", f"2026{text}"),), (line,), (text,) if text else ())

    def judged_pair(self, base: str, new: str, key: Key) -> Any:
        return [("pairs", "better", f"quote of {key[0]}")] if new == "new" else []

    def label_command(self, run_id: str, case_id: str) -> Any:
        return self.command


def library(text: str = "") -> FakeLibrary:
    made = {
        name: FakeRun(name, table_of(scores, text), text)
        for name, scores in ((f"base{text}", BASE), (f"new{text}", NEW))
    }
    made_library = FakeLibrary(made)
    for run in made.values():
        run.table.notes = made_library.notes.by_case
    return made_library


def listed(app: BrowseApp) -> str:
    """The digits of the cases in the list."""
    screen = app.screen_stack[-1]
    while not isinstance(screen, CasesScreen):
        screen = app.screen_stack[app.screen_stack.index(screen) - 1]
    return "".join(screen.cases.table.ids[row][1] for row in screen.cases.listed)


EVERYWHERE = (
    *("j space k", "enter", "slash", "escape", "S", "escape C", "escape c", "escape f u U A"),
    *("enter S S enter", "F F X", "s escape", "slash ctrl+u enter", "question_mark", "tab"),
    *("escape colon", "escape L", "escape enter", "z tab tab"),
    *("slash k e p t enter n N Y y full_stop", "T", "r", "r w G escape D enter", "a enter"),
    *("tab tab tab", "2 escape escape escape escape"),
)


async def press_everywhere(
    pilot: Any, app: BrowseApp, see: Callable[[BrowseApp], Any] = shown
) -> list[Any]:
    """Go through every screen and window; what each of them showed (or ``see`` of it)."""
    seen = []
    for keys in EVERYWHERE:
        for key in keys.split():
            await pilot.press(key)
            await pilot.pause()
        seen.append(see(app))
    return seen


class Fakes:
    """What the tests of the screens use."""

    Library = FakeLibrary
    Run = FakeRun
    new_scores = NEW
    library = staticmethod(library)
    table_of = staticmethod(table_of)
    shown = staticmethod(shown)
    listed = staticmethod(listed)
    press_everywhere = staticmethod(press_everywhere)


@pytest.fixture
def fakes() -> type[Fakes]:
    """Made-up runs and what to see of them."""
    return Fakes
