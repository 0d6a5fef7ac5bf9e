"""Decisions about the current case: answerable or not, later, beyond telling; confirming them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labeller.anchors import heading
from labeller.entry import Entry
from labeller.history import timestamp
from labeller.marking import Marking
from labeller.supports import USUAL_GRADE, write_supports
from labeller.worklist import (
    CANNOT_TELL,
    DRAFT,
    IDLE_SECONDS,
    SKIPPED,
    UNANSWERABLE,
    is_draft,
    next_open,
)
from terminal.actions import ActionRefused

ANSWERABLE = "answerable"


@dataclass(frozen=True)
class Confirmed:
    """What Enter did: `done` False says what is missing; asking again stores it as it is."""

    done: bool
    message: str
    next: str | None = None


class Deciding(Marking):
    """Actions that decide a case. Each but `confirm`'s warning is one step to undo."""

    def unanswerable(self) -> str:
        """Call the case unanswerable, which takes its marks away; or take that back."""
        entry = self._need_case()
        if entry.judgement.get("decision") == UNANSWERABLE or (
            entry.case.get("answerable") is False and "decision" not in entry.judgement
        ):
            self._decide("unanswerable", None, {**entry.case, "answerable": True})
            return "unanswerable is taken back"
        bare = write_supports(entry.case, [])
        bare["answerable"] = False
        self._decide("unanswerable", UNANSWERABLE, bare, letter="A")
        return "unanswerable; Enter confirms"

    def answerable(self) -> str:
        """Call the case answerable, or leave that open again."""
        entry = self._need_case()
        if entry.judgement.get("decision") == ANSWERABLE and not entry.case.get("gold_supports"):
            self._decide("answerable", None, entry.case)
            return "answerable is taken back"
        self._decide("answerable", ANSWERABLE, {**entry.case, "answerable": True})
        return "answerable"

    def skip(self) -> str:
        """Judge the case later: it comes back when no other is open. Moves on."""
        entry = self._need_case()
        here = self.current
        if entry.judgement.get("decision") == SKIPPED:
            self._decide("skip", None, entry.case)
            return f"{here} is open again"
        self._decide("skip", SKIPPED, entry.case)
        self._onward()
        return f"{here} comes back later"

    def cannot_tell(self, reason: str) -> str:
        """Say that the case cannot be judged, and why; an empty reason takes that back."""
        entry, why = self._need_case(), reason.strip()
        if not why:
            if entry.judgement.get("decision") != CANNOT_TELL:
                raise ActionRefused("Give the reason why it cannot be told.")
            self._decide("cannot_tell", None, entry.case, reason=None)
            return "cannot tell is taken back"
        self._decide("cannot_tell", CANNOT_TELL, entry.case, reason=why)
        return "cannot tell; Enter confirms"

    def flag(self) -> str:
        """Flag the case, or take the flag off."""
        flagged = not self._need_case().judgement.get("flag")
        self._change("flag", judgement=self._judge(flag=True if flagged else None))
        return "flagged" if flagged else "not flagged"

    def note(self, text: str) -> str:
        """Keep a note with the case; an empty text takes it away."""
        self._change("note", judgement=self._judge(note=text.strip() or None))
        return "note kept" if text.strip() else "note removed"

    def confirm(self) -> Confirmed:
        """Confirm the case as it stands, and open the next open one. A draft is accepted by it.

        Without a decision, or answerable without a mark, the first call says what is missing.
        """
        self._writable()
        entry = self._need_case()
        decision = self._decision(entry)
        missing = self._missing(entry, decision)
        warned = (self.current, missing)
        if missing and self._warned != warned:
            self._warned = warned
            return Confirmed(False, missing)
        if decision is None:
            raise ActionRefused(missing)
        here, now = self.current, self._now()
        seconds = round(min(IDLE_SECONDS, max(0.0, now - self._opened[here])), 1)
        judgement = self._judge(
            decision=decision,
            confirmed=True,
            by=self.annotator,
            at=timestamp(now),
            seconds=seconds,
            blind=self.blind and here not in self._unblinded,
            seed=self.seed,
            row_order=self.row_order,
            support_not_found=True if missing else None,
            rows=self._judged_rows() or None,
        )
        case = entry.case
        accepted = is_draft(case) and not self.second
        if accepted:
            case = {**case, "tags": [tag for tag in case["tags"] if tag != DRAFT]}
        if decision == ANSWERABLE and case.get("answerable") is not True:
            case = {**case, "answerable": True}
        self._commit("confirm", Entry(case, judgement, entry.letter))
        self._seconds.append(seconds)
        self._progress = None
        following = self._onward()
        said = self._said(here, decision, bool(missing))
        return Confirmed(True, said + ("; the draft is accepted" if accepted else ""), following)

    # -- inside --------------------------------------------------------------------------------

    def _decide(self, action: str, decision: str | None, case: dict[str, Any], **more: Any) -> None:
        letter = more.pop("letter", self.letter)
        judgement = self._judge(confirmed=False, **more)
        judgement["decision"] = decision
        self._commit(action, Entry(case, judgement, letter))

    def _decision(self, entry: Entry) -> str | None:
        """What Enter would confirm: the decision made, else what the marks or the set say."""
        decided = entry.judgement.get("decision")
        if decided is not None and decided != SKIPPED:
            return str(decided)
        if entry.case.get("gold_supports") or entry.case.get("answerable") is True:
            return ANSWERABLE
        return UNANSWERABLE if entry.case.get("answerable") is False else None

    def _missing(self, entry: Entry, decision: str | None) -> str:
        if decision is None:
            return "Nothing is decided: mark a row, x unanswerable, s later, or c cannot tell."
        if decision == ANSWERABLE and not entry.case.get("gold_supports"):
            return "No row is marked. Enter again: answerable, support not found."
        return ""

    def _judged_rows(self) -> list[dict[str, Any]]:
        """The pool as it was judged: grade 0 a row read and not marked, null one never shown."""
        return [
            {
                "key": row.chunk.key,
                "rel_path": row.chunk.rel_path,
                "heading_path": heading(row.chunk.heading_path),
                "grade": (row.grade or USUAL_GRADE) if row.marked else 0 if row.seen else None,
                **({"origin": row.chunk.origin} if row.chunk.origin else {}),
            }
            for row in self.rows()
        ]

    def _said(self, case_id: str, decision: str, not_found: bool) -> str:
        unread = sum(row["grade"] is None for row in self.entry(case_id).judgement.get("rows", ()))
        text = f"{case_id} {decision.replace('_', ' ')}"
        text += ", support not found" if not_found else ""
        return text + (f"; {unread} rows were not read" if unread else "")

    def _onward(self) -> str | None:
        following = next_open(self.visible, self._briefs, self.current)
        if following is not None:
            self._go(following)
        return following
