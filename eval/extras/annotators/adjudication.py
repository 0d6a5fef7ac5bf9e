"""Two annotators' labels of a case side by side, and the choice that becomes the gold label.

A is the set, B the other annotator's file; a screen need not say whose is whose. Pure: states and
records go in and come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from labeller.case_state import LABEL_FIELDS, CaseState, Record
from labeller.passages import locate
from labeller.rows import ChunkRow
from labeller.supports import (
    NOTHING,
    Needs,
    Support,
    merged,
    needs_of,
    read_supports,
    short_name,
    turned,
    write_supports,
)

CHOICES: Final = ("a", "b", "union", "neither")


@dataclass(frozen=True)
class Disagreement:
    """One thing that A and B label differently: the state of the case, or a support.

    `a` and `b` are as shown: ``need 1, grade 3``, ``not marked``, or the state's name.
    `choice` is ``""`` until one was taken.
    """

    index: int
    kind: str
    text: str
    rel_path: str
    heading_path: str
    a: str
    b: str
    row: ChunkRow | None
    choice: str

    @property
    def key(self) -> str:
        """The key under which its choice is noted."""
        return _key(self.kind, self.text)


def disagreements(
    state: CaseState, theirs: Record, name: str, rows: Sequence[ChunkRow]
) -> list[Disagreement]:
    """Where the labels of a case and those of the annotator `name` differ.

    A is what the set said when the first choice was taken, so that the list stands still.
    """
    first, choices = _first_side(state, name)
    differences: list[tuple[str, str, str, str, str, str, ChunkRow | None]] = []
    ours_state, their_state = _state_name(first), _state_name(theirs)
    if ours_state != their_state:
        differences.append(("state", "answerable?", "", "", ours_state, their_state, None))
    a = {support.identity: support for support in _supports(first)}
    b = {support.identity: support for support in _supports(theirs)}
    for identity in dict.fromkeys([*a, *b]):
        shown = _mark(a.get(identity)), _mark(b.get(identity))
        if shown[0] != shown[1]:
            support = a.get(identity) or b[identity]
            row = _row_of(support, rows)
            differences.append(("support", _name_of(support), *support.anchor, *shown, row))
    return [
        Disagreement(i, *difference, choice=choices.get(_key(difference[0], difference[1]), ""))
        for i, difference in enumerate(differences)
    ]


def settled(
    state: CaseState, theirs: Record, name: str, item: Disagreement, choice: str
) -> CaseState:
    """The state with ``a``, ``b``, the ``union`` or ``neither`` taken for one disagreement."""
    first, choices = _first_side(state, name)
    if item.kind == "state":
        case = _with_state(state.case, first, theirs, choice)
    else:
        case = _with_support(state.case, item.text, first, theirs, choice)
    adjudication = {
        "with": name,
        "a": {k: first[k] for k in LABEL_FIELDS if k in first},
        "choices": {**choices, item.key: choice},
    }
    return CaseState(case, state.judged(adjudication=adjudication))


def confirmed(state: CaseState, *, by: str, at: str) -> CaseState:
    """The case confirmed as it was settled."""
    decision = "unanswerable" if state.case.get("answerable") is False else "answerable"
    judgement = state.judged(decision=decision, confirmed=True, by=by, at=at)
    return replace(state, judgement=judgement)


def _first_side(state: CaseState, name: str) -> tuple[Record, dict[str, str]]:
    """A's labels, as they were before the first choice, and the choices since."""
    adjudication: dict[str, Any] = state.judgement.get("adjudication") or {}
    if adjudication.get("with") != name:
        return state.case, {}
    return adjudication["a"], adjudication["choices"]


def _name_of(support: Support) -> str:
    """A name that no other support of the case has: with all of its quote, where it has that."""
    quote = support.identity[2]
    return f'{support.anchor[0]} "{quote}"' if quote else short_name(support)


def _row_of(support: Support, rows: Sequence[ChunkRow]) -> ChunkRow | None:
    positions, _ = locate(support.data, [row.chunk for row in rows])
    return rows[positions[0]] if positions else None


def _key(kind: str, text: str) -> str:
    return kind if kind == "state" else text


def _state_name(case: Record) -> str:
    names = {True: "answerable", False: "unanswerable"}
    return names.get(case.get("answerable"), "open")  # type: ignore[arg-type]


def _mark(support: Support | None) -> str:
    if support is None:
        return "not marked"
    grade = support.data.get("grade")
    numbers = ", ".join(map(str, sorted(support.parts)))
    need = f"need {numbers}" if numbers else "not required"
    return need if grade is None else f"{need}, grade {grade:g}"


def _supports(case: Record) -> list[Support]:
    """The supports of a case with the numbers of its needs, in whichever form it is shown."""
    return read_supports(case, _needs(case))


def _needs(case: Record) -> Needs:
    needs = needs_of(case)
    return turned(needs) if needs.ways else needs


def _with_state(case: Record, first: Record, second: Record, choice: str) -> Record:
    sides = {"a": first.get("answerable"), "b": second.get("answerable"), "union": True}
    answerable = sides.get(choice)
    out = {k: v for k, v in case.items() if k != "answerable" or answerable is not None}
    if answerable is not None:
        out["answerable"] = answerable
    return write_supports(out, [], NOTHING) if answerable is False else out


def _with_support(case: Record, name: str, first: Record, second: Record, choice: str) -> Record:
    a = next((s for s in _supports(first) if _name_of(s) == name), None)
    b = next((s for s in _supports(second) if _name_of(s) == name), None)
    union = next(iter(merged(support for support in (a, b) if support is not None)), None)
    final = {"a": a, "b": b, "union": union}.get(choice)
    supports = _supports(case)
    index = next((i for i, s in enumerate(supports) if _name_of(s) == name), len(supports))
    supports[index : index + 1] = [] if final is None else [final]
    out = write_supports(case, supports, _needs(case))
    if supports and out.get("answerable") is not True:
        out["answerable"] = True
    return out


def choice_words(item: Disagreement, choice: str) -> str:
    """A choice in words: what is taken, and of which side."""
    sides = {"a": f"A, {item.a}", "b": f"B, {item.b}", "union": "both", "neither": "neither"}
    return f"chosen: {sides[choice]}"
