"""Deciding and editing a case as pure functions: its state goes in, the changed state comes out.

Raises ActionRefused, with one sentence, for what cannot be done.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from labeller.case_state import LABEL_FIELDS, CaseState, EditResult, Record, undecided
from labeller.passages import content_words
from labeller.supports import NOTHING, always_met, empty_parts, write_supports
from labeller.worklist import CANNOT_TELL, SKIPPED, UNANSWERABLE, CaseSummary, is_draft
from ragmetrics.tools import fits
from records.cases import CATEGORIES, DRAFT
from records.tool_calls import AnyTool, ExpectedTool, ToolCall, call_words, expected_tool
from terminal.actions import ActionRefused
from terminal.tables import counted

ANSWERABLE: Final = "answerable"
Field = tuple[str, str, tuple[str, ...]]
"""Name, kind (`text`, `lines` or `choice`), choices."""

EDITABLE: Final[tuple[Field, ...]] = (
    ("question", "text", ()),
    ("reference_answer", "text", ()),
    ("expected_key_facts", "lines", ()),
    ("expected_claims", "lines", ()),
    ("forbidden_claims", "lines", ()),
    ("tags", "lines", ()),
    ("category", "choice", CATEGORIES),
    ("difficulty", "text", ()),
)
"""Fields of the form."""
NEAR: Final = 0.8
"""Least share of common content words at which two questions are pointed out as near-duplicates."""

EXPECTED, FORBIDDEN = "expected_tools", "forbidden_tools"
TOOL_LABELS: Final = (EXPECTED, FORBIDDEN, "max_tool_calls", "tool_order")

_SLUG_WORDS, _SLUG_LENGTH = 5, 40


def unanswerable(state: CaseState) -> EditResult:
    """Call the case unanswerable, which takes its marks away; or take that back."""
    case, judgement = state.case, state.judgement
    usual = UNANSWERABLE if case.get("answerable") is False else None
    if judgement.get("decision", usual) == UNANSWERABLE:
        after = _decided(state, None, undecided(case))
        return EditResult("unanswerable", after, "unanswerable is taken back")
    bare = write_supports(case, [], NOTHING) | {"answerable": False}
    after = _decided(replace(state, needs=None), UNANSWERABLE, bare)
    return EditResult("unanswerable", after, "unanswerable; Enter confirms")


def answerable(state: CaseState) -> EditResult:
    """Call the case answerable, or leave that open again."""
    case = state.case
    if state.judgement.get("decision") == ANSWERABLE and not case.get("gold_supports"):
        after, message = _decided(state, None, undecided(case)), "answerable is taken back"
    else:
        after, message = _decided(state, ANSWERABLE, {**case, "answerable": True}), "answerable"
    return EditResult("answerable", after, message)


def skip(state: CaseState) -> EditResult:
    """Judge the case later, or take that back."""
    case_id = state.case["id"]
    if state.judgement.get("decision") == SKIPPED:
        return EditResult("skip", _decided(state, None, state.case), f"{case_id} is open again")
    return EditResult("skip", _decided(state, SKIPPED, state.case), f"{case_id} comes back later")


def cannot_tell(state: CaseState, reason: str) -> EditResult:
    """Say that the case cannot be judged, and why; an empty reason takes that back."""
    if why := reason.strip():
        after = _decided(state, CANNOT_TELL, state.case, reason=why)
        return EditResult("cannot_tell", after, "cannot tell; Enter confirms")
    if state.judgement.get("decision") != CANNOT_TELL:
        raise ActionRefused("Give the reason why it cannot be told.")
    after = _decided(state, None, state.case, reason=None)
    return EditResult("cannot_tell", after, "cannot tell is taken back")


def flag(state: CaseState) -> EditResult:
    """Flag the case, or take the flag off."""
    flagged = None if state.judgement.get("flag") else True
    after = replace(state, judgement=state.judged(flag=flagged))
    return EditResult("flag", after, "flagged" if flagged else "not flagged")


def note(state: CaseState, text: str) -> EditResult:
    """Keep a note with the case; an empty text takes it away."""
    words = text.strip() or None
    after = replace(state, judgement=state.judged(note=words))
    return EditResult("note", after, "note kept" if words else "note removed")


def decision_of(state: CaseState) -> str | None:
    """Decision that Enter would confirm: the decision made, else that of the marks or the set."""
    decision = state.judgement.get("decision")
    if decision is not None and decision != SKIPPED:
        return str(decision)
    if state.case.get("gold_supports") or state.case.get("answerable") is True:
        return ANSWERABLE
    return UNANSWERABLE if state.case.get("answerable") is False else None


def missing_of(state: CaseState) -> str:
    """The parts that are missing before the case can be confirmed without a warning, or ``""``."""
    decision = decision_of(state)
    if decision is None:
        return "Nothing is decided: mark a row, x unanswerable, s later, or c cannot tell."
    if decision == ANSWERABLE and not state.case.get("gold_supports"):
        return "No row is marked. Enter again: answerable, support not found."
    return ""


def confirm(
    state: CaseState, /, rows: list[Record], *, accepts: bool = True, **circumstances: Any
) -> EditResult:
    """The case in its present state, confirmed. A draft is accepted by it if it `accepts` drafts.

    `rows` are the rows as judged; those not marked that an earlier session searched for stay.
    `circumstances` (who, when, how) are noted with the judgement.
    """
    decision, missing, case = decision_of(state), bool(missing_of(state)), state.case
    here = {row["key"] for row in rows}
    before = (row for row in state.judgement.get("rows") or () if isinstance(row, dict))
    searched = [row for row in before if row.get("origin") and not row.get("grade")]
    searched = [row for row in searched if row.get("key") not in here]
    if decision == ANSWERABLE:
        _refuse_empty(state)
    fields = state.judged(
        decision=decision,
        confirmed=True,
        **circumstances,
        support_not_found=True if missing else None,
        rows=rows + searched or None,
    )
    accepted = is_draft(case) and accepts
    if accepted:
        case = {**case, "tags": [tag for tag in case["tags"] if tag != DRAFT]}
    if decision == ANSWERABLE and case.get("answerable") is not True:
        case = {**case, "answerable": True}
    unread = sum(row["grade"] is None for row in rows)
    text = f"Saved as {str(decision).replace('_', ' ')}"
    text += ", support not found." if missing else "."
    verb = "was" if unread == 1 else "were"
    text += f" {unread} of {counted(len(rows), 'passage')} {verb} never shown." if unread else ""
    for number, other in always_met(state.layout):
        noun = state.layout.noun.capitalize()
        text += f" {noun} {number} is always met when {noun.lower()} {other} is; it was not saved."
    text += " The draft is accepted." if accepted else ""
    return EditResult("confirm", CaseState(case, fields), text)


def _refuse_empty(state: CaseState) -> None:
    """Refuse to confirm while a need has no passage: what was begun is not what would be saved."""
    layout, empty = state.layout, empty_parts(state.layout)
    if not empty or not state.case.get("gold_supports"):
        return
    if len(layout.parts) == 1:
        raise ActionRefused("No passage is required yet: all are marked as related.")
    need, back = f"{layout.noun.capitalize()} {empty[0]}", 1 if empty[0] > 1 else 2
    raise ActionRefused(f"{need} has no passage yet: mark one, or ' {back} drops it.")


def _decided(state: CaseState, decision: str | None, case: Record, **more: Any) -> CaseState:
    judgement = state.judged(confirmed=False, **more)
    judgement["decision"] = decision
    return CaseState(case, judgement, state.needs)


def edit(state: CaseState, fields: Record) -> EditResult:
    """Fields of the case set in place; an empty value takes an absent field nowhere."""
    if unknown := [name for name in fields if name not in {name for name, *_ in EDITABLE}]:
        raise ActionRefused(f"{unknown[0]} is not in the form; E edits the whole record.")
    after = replace(state, case=with_fields(state.case, fields))
    return EditResult("edit", after, f"{state.case['id']}: {', '.join(fields)} changed")


def key_fact(state: CaseState, text: str) -> EditResult:
    """Add a text as an expected key fact."""
    fact = " ".join(text.split())
    if not fact:
        raise ActionRefused("Nothing is selected.")
    facts = list(state.case.get("expected_key_facts") or ())
    if fact in facts:
        raise ActionRefused("That is a key fact already.")
    return edit(state, {"expected_key_facts": [*facts, fact]})


def as_text(case: Record) -> str:
    """A record as JSON to edit; every field, two-space indent."""
    return json.dumps(case, ensure_ascii=False, indent=2) + "\n"


def edit_text(state: CaseState, text: str) -> EditResult:
    """Take a record as it was edited as text. Refuses, with the reason, what is none."""
    case_id = state.case["id"]
    try:
        case = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ActionRefused(f"This is not JSON: {error}.") from None
    if not isinstance(case, dict):
        raise ActionRefused("A case is one JSON object.")
    if case.get("id") != case_id:
        raise ActionRefused(f"The id stays {case_id}: ids never change. O copies a case.")
    return EditResult("edit_text", replace(state, case=case, needs=None), f"{case_id} changed")


def copied(case: Record) -> Record:
    """A record without its id, its labels and its place in a conversation."""
    left_out = (*LABEL_FIELDS, *TOOL_LABELS, "id", "conversation", "turn")
    return {k: v for k, v in case.items() if k not in left_out}


def with_fields(case: Record, fields: Record) -> Record:
    """`case` with `fields` set in place, or appended when they say something."""
    changed = dict(case)
    for name, value in fields.items():
        cleaned = _cleaned(value)
        if cleaned == "" and name == "category":
            changed.pop(name, None)
        elif cleaned or name in changed:
            changed[name] = cleaned
    return changed


def near_duplicate(question: str, summaries: Iterable[CaseSummary], except_id: str) -> str | None:
    """The id of another case that asks nearly the same, or None."""
    words = content_words(question)
    for summary in summaries if words else ():
        other = content_words(summary.question)
        if summary.id != except_id and len(words & other) >= NEAR * len(words | other):
            return summary.id
    return None


def slug_id(question: str, taken: Container[str]) -> str:
    """An id made of the question's first content words; a number at its end separates twins.

    Letters of other scripts stay; a question without any letter or digit is ``question``.
    """
    plain = unicodedata.normalize("NFKC", question).casefold()
    plain = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    words: list[str] = re.findall(r"[^\W_]+", plain) or ["question"]
    telling = [word for word in words if content_words(word)]
    first, *others = (telling if len(telling) > 1 else words)[:_SLUG_WORDS]
    slug = first[:_SLUG_LENGTH]
    for word in others:
        if len(slug) + len(word) >= _SLUG_LENGTH:
            break
        slug += f"-{word}"
    numbers = itertools.chain(("",), (f"-{number}" for number in itertools.count(2)))
    return next(case_id for number in numbers if (case_id := slug + number) not in taken)


def _cleaned(value: Any) -> Any:
    """Outer white space off a text; blank items out of a list."""
    if isinstance(value, (list, tuple)):
        return [_cleaned(item) for item in value if str(item).strip()]
    return value.strip() if isinstance(value, str) else value


@dataclass(frozen=True)
class ToolRow:
    """A call that the bot made, or that the case names and the bot did not make (``seen`` False).

    ``place``: in the list of the set that has it.
    """

    name: str
    arguments: dict[str, Any]
    label: str
    seen: bool = True
    place: int | None = None
    gave: str = ""

    def text(self) -> str:
        """The call written like code, and its result."""
        call = call_words(self.name, self.arguments)
        return f"{call}  {self.gave}" if self.seen else f"{call}  (not called)"


def tool_rows(case: Record, calls: Sequence[ToolCall]) -> list[ToolRow]:
    """The calls of the bot with their labels, then those that only the case names."""
    labelled = [
        (label, place, tool)
        for label, name in (("expected", EXPECTED), ("forbidden", FORBIDDEN))
        for place, tool in enumerate(_tools_of(case, name))
    ]
    rows, met = [], set()
    for call in calls:
        gave = f"failed: {call.error}" if call.error else f"gave {call.result}" * bool(call.result)
        row = ToolRow(call.name, call.arguments, "", gave=" ".join(gave.split())[:200])
        for label, place, tool in labelled:
            if fits(tool, call):
                met.add((label, place))
                if not row.label:
                    row = replace(row, label=label, place=place)
        rows.append(row)
    return rows + [
        ToolRow(tool.name, tool.arguments, label, seen=False, place=place)
        for label, place, tool in labelled
        if (label, place) not in met
    ]


def _tools_of(case: Record, name: str) -> list[ExpectedTool]:
    return [expected_tool(msgspec.convert(tool, AnyTool)) for tool in case.get(name) or ()]


def expect(state: CaseState, row: ToolRow) -> EditResult:
    """Expect a call with these arguments, or no longer."""
    stated: Record = {"name": row.name}
    if row.arguments:
        stated["arguments"] = row.arguments
    if row.label == "expected":
        return _relabelled(_without_tool(state, EXPECTED, row), f"{row.name} is not expected")
    state = _without_tool(state, FORBIDDEN, row) if row.label == "forbidden" else state
    after = _with_tool(state, EXPECTED, stated)
    return _relabelled(after, f"{row.name} is expected with these arguments")


def forbid(state: CaseState, row: ToolRow) -> EditResult:
    """Forbid a tool, with any arguments, or no longer."""
    if row.label == "forbidden":
        return _relabelled(_without_tool(state, FORBIDDEN, row), f"{row.name} is not forbidden")
    state = _without_tool(state, EXPECTED, row) if row.label == "expected" else state
    return _relabelled(_with_tool(state, FORBIDDEN, row.name), f"{row.name} is forbidden")


def expect_none(state: CaseState) -> EditResult:
    """Say that the question needs no tool, or take that back."""
    if state.case.get(EXPECTED) == []:
        after, words = _tools_set(state.case, EXPECTED, None), "tools are not labelled"
    else:
        after, words = _tools_set(state.case, EXPECTED, []), "no tool call is expected"
    return _relabelled(replace(state, case=after), words)


def _relabelled(after: CaseState, message: str) -> EditResult:
    return EditResult("label_tools", after, message)


def _with_tool(state: CaseState, name: str, tool: Any) -> CaseState:
    return replace(state, case=_tools_set(state.case, name, [*(state.case.get(name) or ()), tool]))


def _without_tool(state: CaseState, name: str, row: ToolRow) -> CaseState:
    """Without the entry of a row; the last one takes the field with it, for an empty list says that
    no call is expected."""
    kept = [tool for place, tool in enumerate(state.case[name]) if place != row.place]
    return replace(state, case=_tools_set(state.case, name, kept or None))


def _tools_set(case: Record, name: str, value: list[Any] | None) -> Record:
    rest = {key: item for key, item in case.items() if key != name or value is not None}
    return rest if value is None else {**rest, name: value}
