"""Editing cases: fields, the record as text, new cases, copies, deletion."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from labeller.deciding import Deciding
from labeller.entry import LABEL_FIELDS, Entry, Record
from labeller.snippets import content_words
from terminal.actions import ActionRefused

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

_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL)


class Editing(Deciding):
    """Actions that change what a case says. Each is one step to undo."""

    def edit(self, fields: Record) -> str:
        """Set fields of the current case in place; an empty value takes an absent field nowhere."""
        self._own_set()
        unknown = [name for name in fields if name not in {name for name, *_ in EDITABLE}]
        if unknown:
            raise ActionRefused(f"{unknown[0]} is not in the form; E edits the whole record.")
        self._change("edit", case=_with_fields(self._need_case().case, fields))
        return f"{self.current}: {', '.join(fields)} changed"

    def key_fact(self, text: str) -> str:
        """Add a text as an expected key fact."""
        fact = " ".join(text.split())
        if not fact:
            raise ActionRefused("Nothing is selected.")
        facts = list(self.case.get("expected_key_facts") or ())
        if fact in facts:
            raise ActionRefused("That is a key fact already.")
        return self.edit({"expected_key_facts": [*facts, fact]})

    def record_text(self) -> str:
        """The current record as JSON to edit; every field, two-space indent."""
        return json.dumps(self._need_case().case, ensure_ascii=False, indent=2) + "\n"

    def edit_text(self, text: str) -> str:
        """Take a record as it was edited as text. Refused, with the reason, when it is none."""
        self._own_set()
        self._need_case()
        try:
            case = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ActionRefused(f"This is no JSON: {error}.") from None
        if not isinstance(case, dict):
            raise ActionRefused("A case is one JSON object.")
        if case.get("id") != self.current:
            raise ActionRefused(
                f"The id stays {self.current}: ids are given once. O copies a case."
            )
        self._change("edit_text", case=case)
        return f"{self.current} changed"

    def add_case(self, question: str, **fields: Any) -> str:
        """Add a case after the current one, and open it. Ids are never given twice."""
        self._own_set()
        return self._insert("add_case", _with_fields({"question": question.strip()}, fields))

    def duplicate_case(self) -> str:
        """Add a copy of the current case without its labels, and open it."""
        self._own_set()
        case = {k: v for k, v in self._need_case().case.items() if k not in (*LABEL_FIELDS, "id")}
        return self._insert("duplicate_case", case)

    def delete_case(self) -> str:
        """Take the current case out of the set. Undo brings it back."""
        self._own_set()
        self._writable()
        entry, gone = self._need_case(), self.current
        self._step("delete_case", gone, entry, None, self._order.index(gone))
        return f"{gone} is deleted; u brings it back"

    def near_duplicate(self, question: str) -> str | None:
        """The id of another case that asks nearly the same, or None."""
        words = content_words(question)
        for brief in self._briefs.values():
            other = content_words(brief.question)
            if (
                brief.id != self.current
                and words
                and len(words & other) >= NEAR * len(words | other)
            ):
                return brief.id
        return None

    def new_id(self) -> str:
        """An id that no case has or had, counted on from the highest number in use."""
        ids = [*self._records, *self._order, *sorted(self._used_ids)]
        last = _NUMBERED.fullmatch(self._order[-1]) if self._order else None
        before, digits, after = last.groups() if last else ("q-", "0000", "")
        highest, width = int(digits), len(digits)
        for case_id in ids:
            match = _NUMBERED.fullmatch(case_id)
            if match and (match[1], match[3]) == (before, after):
                highest = max(highest, int(match[2]))
        return f"{before}{highest + 1:0{width}d}{after}"

    # -- inside --------------------------------------------------------------------------------

    def _insert(self, action: str, fields: Record) -> str:
        self._writable()
        case_id = self.new_id()
        case = {"id": case_id, **{k: v for k, v in fields.items() if k != "id"}}
        self._check(case, None)
        near = self.near_duplicate(str(case["question"])) if action == "add_case" else None
        place = self._order.index(self.current) + 1 if self.current else 0
        self._step(action, case_id, None, Entry(case, {}), place)
        self._go(case_id)
        return f"{case_id} added" + (f"; {near} asks nearly the same" if near else "")

    def _own_set(self) -> None:
        if self.second:
            raise ActionRefused(
                "A second annotator labels; the set itself is changed in the first pass."
            )


def _with_fields(case: Record, fields: Record) -> Record:
    """`case` with `fields` set in place, or appended when they say something."""
    out = dict(case)
    for name, value in fields.items():
        kept = _clean(value)
        if kept or name in out:
            if kept == "" and name == "category":
                out.pop(name, None)
            else:
                out[name] = kept
    return out


def _clean(value: Any) -> Any:
    """Outer white space off a text; blank items out of a list."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (list, tuple)):
        return [
            item.strip() if isinstance(item, str) else item for item in value if str(item).strip()
        ]
    return value
