"""A bot that is being connected: its answers, read by the proposed paths, checked and proved.

The paths are proposed in guess.py. When the user changes one, all answers are read again.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from clients.answer_checks import HeardAnswer, ScoreOrder, lags, order_of, score_lists, shared_words
from clients.bot import Heard, read_answer
from clients.connect_options import ConnectOptions
from clients.expressions import compile_path
from clients.guess import fitting_units
from clients.http import CallError
from clients.mapping import AnswerMap
from clients.place_check import (
    AskedQuestion,
    PlaceCheck,
    PlaceVerdict,
    asked_of,
    check_places,
    first_and_last_right,
    path_verdict,
    suggest,
)
from clients.probe import Try
from clients.profile import check_profile
from clients.proof import Proof, ProofRow, prove
from clients.proposal import (
    NAMING,
    TABLE_OF_LIST,
    FieldRow,
    Proposal,
    field_rows,
    list_at,
    profile_text,
    set_paths,
)
from clients.reply_form import tree
from clients.secrets import public_url
from clients.shapes import Shape
from ragmetrics.paths import shared_folder
from records.cases import TestCase
from records.errors import StorageError
from records.results import ErrorInfo, TestResult
from records.runs import HOME, PROFILES, ROOT

UNANSWERED = ("no_answer", "bot_error")
"""Kinds of errors of single questions: the mapping may be right all the same."""


@dataclass(frozen=True)
class Draft:
    """The proposed profile that a person accepts or changes."""

    rows: list[FieldRow]
    tree: list[str]
    faults: list[str]


@dataclass
class Outcome:
    """The result of connecting a bot: the profile's text, and all that was found on the way."""

    target: Path
    base_url: str
    text: str
    rows: list[FieldRow]
    tries: list[Try]
    verdict: PlaceVerdict
    proof: Proof
    notes: list[str]
    variables: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    written: bool = False

    def next_command(self, eval_set: Path | None) -> str:
        """The run that the profile is for, as it can be typed in the working folder.

        ``eval_set``: the set that the user named.
        """
        url = public_url(self.base_url) or "http://HOST:PORT"
        own = self.target.parent == PROFILES
        profile = self.target.stem if own else os.path.abspath(self.target)
        more = ["--eval-set", os.path.abspath(eval_set)] if eval_set else []
        if own and (HOME / "Makefile").is_file():
            folder = os.path.relpath(HOME)
            words = ["make", *([] if folder == "." else ["-C", folder]), "run", f"API={url}"]
            if HOME == ROOT:
                more = ["--profile", profile, *more]
            else:
                words.append(f"PROFILE={profile}")
            words += [f"ARGS={shlex.join(more)}"] if more else []
            return shlex.join(words)
        script = ROOT / "eval" / "scripts" / "run_eval.py"
        words = [os.path.relpath(sys.executable), os.path.relpath(script), "--api-url", url]
        return shlex.join([*words, "--profile", profile, "--store-full-text", *more])

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        verdict, places = self.verdict, self.verdict.places
        check = {"gold": places.gold, "paths": places.paths, "headings": places.headings}
        return {
            "profile": str(self.target),
            "written": self.written,
            "url": public_url(self.base_url),
            "text": self.text,
            "fields": {row.field: row.path for row in self.rows},
            "tries": list(map(asdict, self.tries)),
            "check": {**check, "settings": verdict.settings, "sentences": verdict.sentences()},
            "proof": list(map(asdict, self.proof.rows)),
            "notes": self.notes,
            "variables": self.variables,
            "requests": len(self.tries),
            "usage": self.usage,
            "cost_usd": self.cost_usd,
        }


@dataclass
class ConnectJob:
    """The answers of a bot and the profile that is proposed for it.

    ``heard``: the answers in the order of the questions; ``repeat``: that to the first one again.
    """

    options: ConnectOptions
    shape: Shape
    heard: list[Heard]
    repeat: Heard | None
    proposal: Proposal
    cases: Sequence[TestCase]
    _verdict: PlaceVerdict = PlaceVerdict(PlaceCheck())
    _time_doubt: str = ""
    _faults: list[str] = field(default_factory=list)
    _left_out: list[str] = field(default_factory=list)
    _typed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._first = len(self.heard)
        self._gold = {case.id: case.gold_supports for case in self.cases}

    def settle(self) -> None:
        """Find the settings with which labels match, and read all answers by the proposed paths."""
        self._left_out = []
        settings = self.proposal.settings
        places = ("path_root", "path_cut", "path_files", "heading_separator", "heading_root")
        by_hand = {name: settings.pop(name) for name in places if name in settings}
        self._drop_doubles()
        self._read()
        raw = self._asked()
        self._settle_time()
        known = [gold.rel_path for case in self.cases for gold in case.gold_supports]
        found = by_hand or (suggest(raw, known) if known else self._folder())
        settings.update(found)
        self._read()
        settled, tables = self._asked(), self.proposal.tables
        has_lists = bool(tables["response"].keys() & {"retrieved", "searches"})
        self._verdict = PlaceVerdict(
            check_places(settled),
            check_places(raw),
            found,
            path_verdict(settled, known),
            has_paths=has_lists and "rel_path" in tables["chunk"],
        )

    def hear(self, heard: Heard) -> None:
        """Take the answer to one more case into all that is checked."""
        self.heard.append(heard)
        self.settle()

    def order_is_open(self) -> bool:
        """Whether more answers are needed to see that scores rise in every list."""
        order = self._order()
        return order is not None and order.kind == "open"

    def _order(self) -> ScoreOrder | None:
        is_reversed = self.proposal.settings.get("order") == "reversed"
        tables, payloads = self.proposal.tables, self._payloads
        return order_of(*score_lists(tables, payloads, is_reversed=is_reversed))

    def _order_row(self) -> ProofRow | None:
        order = self._order()
        if order is None or order.kind == "open":
            return None
        read = [(each.question.text, each.result) for each in self.heard]
        says = order.sentence(shared_words(read), first_and_last_right(self._asked()))
        return ProofRow("Is the best passage first?", order.field, (), order.mark, says)

    def _lag(self) -> str:
        """The first answers in the order in which they were asked, the first question last."""
        return lags(
            [
                HeardAnswer(
                    each.question.text,
                    each.result,
                    frozenset(s.rel_path for s in self._gold.get(each.question.case_id, ())),
                )
                for each in (*self.heard[: self._first], *([self.repeat] if self.repeat else []))
            ]
        )

    def _folder(self) -> dict[str, str]:
        """Without labels: the folder of the server that all files that came lie in."""
        paths = [chunk.rel_path or "" for each in self.heard for chunk in each.result.chunks()]
        cut = shared_folder(paths)
        settings = {"path_root": cut.root, "path_cut": " ".join(cut.steps)}
        note = f"All returned files are in {cut.root}; change it with --set path_root=FOLDER."
        if cut.root and note not in self.proposal.notes:
            self.proposal.notes.append(note)
        return {name: value for name, value in settings.items() if value}

    def _drop_doubles(self) -> None:
        """Take out citations that are the list of passages: every answer would cite them all."""
        response = self.proposal.tables["response"]
        passages, cited = response.get("retrieved"), response.get("references")
        if cited is None or passages is None:
            return
        lists = [(list_at(passages, p), list_at(cited, p)) for p in self._payloads]
        same = any(len(items) > 1 for items, _ in lists) and all(a == b for a, b in lists)
        if cited == passages or same:
            response.pop("references")
            self.proposal.tables["reference"] = {}
            note = f"references: {cited} was left out: it is the list of passages"
            self.proposal.notes.append(f"{note}, so it does not say what an answer cites.")

    def _settle_time(self) -> None:
        """Take the bot's own time only where it fits the measured one in one unit."""
        response, settings = self.proposal.tables["response"], self.proposal.settings
        path = response.get("latency_ms")
        if self.options.from_response:
            self._time_doubt = "The answer is a saved one: no call was measured."
            return
        if path is None:
            return
        times = map(compile_path(path), self._payloads)
        totals = [time.get("total") if isinstance(time, dict) else None for time in times]
        seconds = [each.timing.total for each in self.heard]
        units = fitting_units(totals, seconds)
        if not any(totals):
            self._time_doubt = (
                "The bot reports no time of the whole call: the unit of its times is not checked."
            )
            return
        settings.pop("latency_unit", None)
        if len(units) == 1:
            self._time_doubt = ""
            settings |= {} if units == ["ms"] else {"latency_unit": units[0]}
            return
        response.pop("latency_ms")
        number, measured = next(pair for pair in zip(totals, seconds, strict=True) if pair[0])
        self._time_doubt = (
            f"The bot's time ({number}) fits {'no unit' if not units else ' and '.join(units)} for "
            f"a call of {measured * 1000:,.1f} ms; the measured one is taken."
        )

    def edited(self, edit: Callable[[Draft], Mapping[str, str] | None]) -> bool:
        """Let the user change fields until nothing is changed any more; False when they stop."""
        while True:
            shown = tree(self.heard[0].payload)
            changes = edit(Draft(self._rows(), shown, [*self._faults, *self._left_out]))
            if changes is None:
                return False
            if not changes:
                return True
            self._faults = []
            try:
                set_paths(self.proposal, changes)
                self._typed |= changes
                set_paths(self.proposal, self._typed)  # a list that was left out comes back
            except StorageError as error:
                self._faults = [error.message]
            self.settle()

    def outcome(self, base: str, tries: list[Try], variables: list[str]) -> Outcome:
        read = [each.result for each in (*self.heard, *([self.repeat] if self.repeat else []))]
        usage: Counter[str] = Counter()
        for result in read:
            usage.update({k: n for k, n in result.usage.items() if type(n) is int})
        costs = [result.cost_usd for result in read if result.cost_usd is not None]
        kinds = (None, *UNANSWERED)
        proof = prove(
            self.proposal.tables,
            [each for each in self.heard if getattr(each.result.error, "kind", None) in kinds],
            self.repeat.result if self.repeat else None,
            self._verdict,
            retrieves_only=self.proposal.settings.get("kind") == "retrieval",
            time_doubt=self._time_doubt,
            order=self._order_row(),
            lag=self._lag(),
        )
        return Outcome(
            target=self.options.target,
            base_url=base,
            text=profile_text(self.shape, self.proposal, self.options.limits),
            rows=self._rows(),
            tries=tries,
            verdict=self._verdict,
            proof=proof,
            notes=self.proposal.about + self.proposal.notes + self._left_out + self._faults,
            variables=variables,
            usage=dict(usage),
            cost_usd=sum(costs) if costs else None,
        )

    @property
    def _payloads(self) -> list[Any]:
        return [each.payload for each in self.heard]

    def _rows(self) -> list[FieldRow]:
        return field_rows(self.proposal, self._payloads)

    def _read(self) -> None:
        """Read all answers by the present profile; a path that does not fit is left out of it."""
        while True:
            raw = tomllib.loads(profile_text(self.shape, self.proposal, {}))
            if "answer" not in self.proposal.tables["response"]:
                raw["kind"] = "retrieval"  # to read the rest; that it lacks one the proof says
            # What a profile would refuse is shown and set right here, not taken out of it.
            answer = replace(check_profile("connect_bot", raw, "the profile").answer, answers=False)
            self.heard = [_read(each, answer) for each in self.heard]
            self.repeat = self.repeat and _read(self.repeat, answer)
            errors = [each.result.error for each in (*self.heard, self.repeat) if each]
            misfit = next((e.message for e in errors if e and e.kind not in UNANSWERED), None)
            if misfit is None:
                return
            self._drop(misfit)

    def _drop(self, fault: str) -> None:
        """Take the path at fault out of the proposal. Raises StorageError when none is left."""
        fields = re.split(r"[\[.:]", fault, maxsplit=1)
        name, inner = fields[0].strip(), re.search(r"\]\.(\w+)", fault.partition(":")[0])
        tables = self.proposal.tables
        table = TABLE_OF_LIST.get(name)
        if inner and table and inner[1] in tables[table]:
            path = tables[table].pop(inner[1])
        elif "has no such field" in fault and self.proposal.settings.get("required") is None:
            self.proposal.settings["required"] = "answer"
            return
        elif name in tables["response"] and len(tables["response"]) > 1:
            path = tables["response"].pop(name)
        else:
            raise StorageError(f"the answers cannot be read: {fault}; set paths with --set.")
        remedy = ""
        if table and name not in tables["response"]:
            remedy = f" Set {NAMING[table]} too, with a path inside an item of {path}."
        self._left_out.append(f"{name}: {path} was left out ({fault}).{remedy}")

    def _asked(self) -> list[AskedQuestion]:
        return [
            asked_of(each.result, self._gold[each.question.case_id])
            for each in self.heard
            if each.result.status == "ok" and self._gold.get(each.question.case_id)
        ]


def _read(heard: Heard, answer: AnswerMap) -> Heard:
    """The reply with its result, which is an error where the paths do not fit."""
    try:
        result = read_answer(heard.payload, answer, heard.question, heard.timing)
    except CallError as error:
        question, info = heard.question, ErrorInfo(error.kind, error.message)
        result = TestResult(question.case_id, question.text, "error", error=info)
    return replace(heard, result=result)
