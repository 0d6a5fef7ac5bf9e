"""Two annotators' labels side by side, and the choice that becomes the gold label.

A is the set, B the other annotator's file; a screen need not say whose is whose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from labeller.anchors import locate
from labeller.editing import Editing
from labeller.entry import Entry
from labeller.history import timestamp
from labeller.supports import Record, Support, read_supports, short_name, write_supports
from labeller.views import Row
from terminal.actions import ActionRefused

CHOICES: Final = ("a", "b", "union", "neither")


@dataclass(frozen=True)
class Disagreement:
    """One thing that A and B label differently: the state of the case, or a support.

    `a` and `b` are as shown: ``A3`` (group and grade), ``-`` for no mark, or the state's name.
    `choice` is ``""`` until one was taken.
    """

    index: int
    kind: str
    text: str
    rel_path: str
    heading_path: str
    a: str
    b: str
    row: Row | None
    choice: str


class Adjudicating(Editing):
    """Actions that settle disagreements with another annotator. Each choice is one step to undo."""

    @property
    def annotators(self) -> list[str]:
        """The other annotators whose labels are at hand."""
        return sorted(self.others)

    def disagreements(self, name: str) -> list[Disagreement]:
        """Where the labels of the current case and those of `name` differ.

        A is what the set said when the first choice was taken, so that the list stands still.
        """
        first, second, choices = self._sides(name)
        found: list[tuple[str, str, str, str, str, str, Row | None]] = []
        if _state(first) != _state(second):
            found.append(("state", "answerable?", "", "", _state(first), _state(second), None))
        a = {support.anchor: support for support in read_supports(first)}
        b = {support.anchor: support for support in read_supports(second)}
        for anchor in dict.fromkeys([*a, *b]):
            shown = _mark(a.get(anchor)), _mark(b.get(anchor))
            if shown[0] != shown[1]:
                support = a.get(anchor) or b[anchor]
                found.append(
                    ("support", short_name(support), *anchor, *shown, self._row_of(support))
                )
        return [
            Disagreement(i, *item, choice=choices.get(_name(item[0], item[1]), ""))
            for i, item in enumerate(found)
        ]

    def adjudicate(self, name: str, index: int, choice: str) -> str:
        """Take ``a``, ``b``, the ``union`` or ``neither`` for one disagreement."""
        if choice not in CHOICES:
            raise ActionRefused(f"A choice is one of: {', '.join(CHOICES)}.")
        items = self.disagreements(name)
        if not 0 <= index < len(items):
            raise ActionRefused("There is no such disagreement.")
        item = items[index]
        first, second, choices = self._sides(name)
        case = self._need_case().case
        if item.kind == "state":
            case = _with_state(case, first, second, choice)
        else:
            anchor = (item.rel_path, item.heading_path)
            case = _with_support(case, anchor, first, second, choice)
        known = {"with": name, "a": {k: first[k] for k in _FIELDS if k in first}}
        known["choices"] = {**choices, _name(item.kind, item.text): choice}
        judgement = self._judge(adjudication=known)
        self._commit("adjudicate", Entry(case, judgement, self.letter))
        return f"{item.text}: {choice}"

    def adjudicated(self, name: str) -> str:
        """Confirm the case as it was settled. Refused while something was not chosen."""
        left = [item for item in self.disagreements(name) if not item.choice]
        if left:
            raise ActionRefused(f"{len(left)} not chosen yet: {left[0].text}.")
        case = self._need_case().case
        decision = "unanswerable" if case.get("answerable") is False else "answerable"
        self._change(
            "adjudicated",
            judgement=self._judge(
                decision=decision, confirmed=True, by=self.annotator, at=timestamp(self._now())
            ),
        )
        return f"{self.current} is settled with {name}"

    def _sides(self, name: str) -> tuple[Record, Record, dict[str, str]]:
        if name not in self.others:
            raise ActionRefused(f"No labels of {name} are at hand.")
        theirs = self.others[name].get(self.current)
        if theirs is None:
            raise ActionRefused(f"{name} has not labelled {self.current}.")
        entry = self._need_case()
        known: dict[str, Any] = entry.judgement.get("adjudication") or {}
        if known.get("with") != name:
            return entry.case, theirs, {}
        return known["a"], theirs, known["choices"]

    def _row_of(self, support: Support) -> Row | None:
        rows = self.rows()
        places, _ = locate(support.data, [row.chunk for row in rows])
        return rows[places[0]] if places else None


_FIELDS = ("answerable", "gold_supports", "required_support_groups")


def _name(kind: str, text: str) -> str:
    return kind if kind == "state" else text


def _state(case: Record) -> str:
    known = {True: "answerable", False: "unanswerable"}
    return known.get(case.get("answerable"), "open")  # type: ignore[arg-type]


def _mark(support: Support | None) -> str:
    if support is None:
        return "-"
    grade = support.data.get("grade")
    return "".join(sorted(support.letters)) + ("" if grade is None else f"{grade:g}")


def _with_state(case: Record, first: Record, second: Record, choice: str) -> Record:
    sides = {"a": first.get("answerable"), "b": second.get("answerable"), "union": True}
    answerable = sides.get(choice)
    out = {k: v for k, v in case.items() if k != "answerable" or answerable is not None}
    if answerable is not None:
        out["answerable"] = answerable
    return write_supports(out, []) if answerable is False else out


def _with_support(
    case: Record, anchor: tuple[str, str], first: Record, second: Record, choice: str
) -> Record:
    a = next((s for s in read_supports(first) if s.anchor == anchor), None)
    b = next((s for s in read_supports(second) if s.anchor == anchor), None)
    final = {"a": a, "b": b, "union": _union(a, b)}.get(choice)
    supports = read_supports(case)
    place = next((i for i, s in enumerate(supports) if s.anchor == anchor), len(supports))
    supports[place : place + 1] = [] if final is None else [final]
    out = write_supports(case, supports)
    if supports and out.get("answerable") is not True:
        out["answerable"] = True
    return out


def _union(a: Support | None, b: Support | None) -> Support | None:
    """Both annotators' letters and snippets, and the higher grade."""
    if a is None or b is None:
        return a or b
    snippets = _both(a.data.get("snippets") or (), b.data.get("snippets") or ())
    grades = [g for s in (a, b) if (g := s.data.get("grade")) is not None]
    joint = a.having(**({"snippets": snippets} if snippets else {}))
    joint = joint.having(grade=max(grades)) if grades else joint
    return replace(joint, letters=a.letters | b.letters)


def _both(one: Sequence[str], other: Sequence[str]) -> list[str]:
    return [*one, *(item for item in other if item not in one)]
