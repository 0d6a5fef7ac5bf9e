"""Deciding and editing a case as pure functions: its state goes in, the changed state comes out.

Raises ActionRefused, with one sentence, for what cannot be done.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Any, Final

from labeller.case_state import LABEL_FIELDS, CaseState, EditResult, Record, undecided
from labeller.needs import NOTHING, always_met, empty_parts
from labeller.passages import content_words
from labeller.supports import write_supports
from labeller.worklist import CANNOT_TELL, SKIPPED, UNANSWERABLE, CaseSummary, is_draft
from records.cases import DRAFT
from terminal.actions import ActionRefused
from terminal.tables import counted

ANSWERABLE: Final = "answerable"
CATEGORIES: Final = (
    "factual",
    "reasoning",
    "multi_hop",
    "recency/conflict",
    "general",
    "adversarial",
)
EDITABLE: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("question", "text", ()),
    ("reference_answer", "text", ()),
    ("expected_key_facts", "lines", ()),
    ("expected_claims", "lines", ()),
    ("forbidden_claims", "lines", ()),
    ("tags", "lines", ()),
    ("category", "choice", CATEGORIES),
    ("difficulty", "text", ()),
)
"""Fields of the form: name, kind, and the choices of a ``choice``."""
NEAR: Final = 0.8
"""Least share of common content words at which two questions are pointed out as near-duplicates."""

TOOL_LABELS: Final = ("expected_tools", "forbidden_tools", "max_tool_calls", "tool_order")

_SLUG_WORDS, _SLUG_LENGTH = 5, 40


# -- decisions -------------------------------------------------------------------------------------


def unanswerable(state: CaseState) -> EditResult:
    """Call the case unanswerable, which takes its marks away; or take that back."""
    case, judgement = state.case, state.judgement
    if judgement.get("decision") == UNANSWERABLE or (
        case.get("answerable") is False and "decision" not in judgement
    ):
        after, message = _decided(state, None, undecided(case)), "unanswerable is taken back"
    else:
        bare = write_supports(case, [], NOTHING) | {"answerable": False}
        after = _decided(replace(state, needs=None), UNANSWERABLE, bare)
        message = "unanswerable; Enter confirms"
    return EditResult("unanswerable", after, message)


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
    why = reason.strip()
    if why:
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
    searched = [
        row
        for row in state.judgement.get("rows") or ()
        if isinstance(row, dict)
        and (row.get("origin") and not row.get("grade") and row.get("key") not in here)
    ]
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
    back = 1 if empty[0] > 1 else 2
    raise ActionRefused(
        f"{layout.noun.capitalize()} {empty[0]} has no passage yet: mark one, or ' {back} drops it."
    )


def _decided(state: CaseState, decision: str | None, case: Record, **more: Any) -> CaseState:
    judgement = state.judged(confirmed=False, **more)
    judgement["decision"] = decision
    return CaseState(case, judgement, state.needs)


# -- the case itself -------------------------------------------------------------------------------


def edit(state: CaseState, fields: Record) -> EditResult:
    """Fields of the case set in place; an empty value takes an absent field nowhere."""
    unknown = [name for name in fields if name not in {name for name, *_ in EDITABLE}]
    if unknown:
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
        if not cleaned and name not in changed:
            continue
        if cleaned == "" and name == "category":
            changed.pop(name, None)
        else:
            changed[name] = cleaned
    return changed


def near_duplicate(question: str, summaries: Iterable[CaseSummary], except_id: str) -> str | None:
    """The id of another case that asks nearly the same, or None."""
    words = content_words(question)
    for summary in summaries:
        other = content_words(summary.question)
        if summary.id != except_id and words and len(words & other) >= NEAR * len(words | other):
            return summary.id
    return None


def slug_id(question: str, taken: Container[str]) -> str:
    """An id made of the question's first content words; a number at its end separates twins.

    Letters of other scripts stay; a question without any letter or digit is ``question``.
    """
    plain = unicodedata.normalize("NFKC", question).casefold()
    plain = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    words = re.findall(r"[^\W_]+", plain)
    telling = [word for word in words if content_words(word)]
    telling = telling if len(telling) > 1 else words
    slug = ""
    for word in telling[:_SLUG_WORDS]:
        if slug and len(slug) + len(word) >= _SLUG_LENGTH:
            break
        slug = f"{slug}-{word}" if slug else word[:_SLUG_LENGTH]
    slug = slug or "question"
    numbers = itertools.chain(("",), (f"-{number}" for number in itertools.count(2)))
    return next(case_id for number in numbers if (case_id := slug + number) not in taken)


def _cleaned(value: Any) -> Any:
    """Outer white space off a text; blank items out of a list."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (list, tuple)):
        return [
            item.strip() if isinstance(item, str) else item for item in value if str(item).strip()
        ]
    return value
