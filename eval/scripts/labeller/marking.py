"""Marks: which passages support the answer, in which group, with what grade and which snippets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labeller.anchors import heading, norm_path, segments
from labeller.entry import Entry
from labeller.probing import Probing
from labeller.snippets import Span, joined, trimmed, without
from labeller.supports import (
    USUAL_GRADE,
    Support,
    from_chunk,
    groups_of,
    letter_at,
    merged,
    short_name,
    spans_in,
    with_auto,
    with_spans,
    without_chunk,
    write_supports,
)
from labeller.views import Row
from terminal.actions import ActionRefused


class Marking(Probing):
    """Actions on the gold supports of the current case. Each is one step to undo."""

    def toggle(self, number: int) -> str:
        """Mark a row, or take its mark away."""
        row = self.row(number)
        if not row.marked:
            supports = self._marked(row)
            if supports == self._supports():
                raise ActionRefused(
                    f"Row {row.label} has no text of its own; its heading is a support."
                )
            self._set_supports("toggle", supports)
            return f"row {row.label} -> group {self._letters(number)}"
        others = self._others(row)
        self._set_supports("toggle", self._unmarked(row))
        return f"row {row.label} is not marked" + (
            f", nor is {', '.join(others)}" if others else ""
        )

    def toggle_range(self, first: int, last: int) -> str:
        """Mark all rows from `first` to `last`; when all are marked, take the marks away."""
        rows = [self.row(number) for number in range(min(first, last), max(first, last) + 1)]
        supports = self._supports()
        if all(row.marked for row in rows):
            for row in rows:
                supports = self._unmarked(row, supports)
            done = "not marked"
        else:
            for row in rows:
                supports = supports if row.marked else self._marked(row, supports)
            done = "marked"
        self._set_supports("toggle_range", supports)
        return f"rows {rows[0].label} to {rows[-1].label} are {done}"

    def grade(self, number: int, grade: int) -> str:
        """Grade a row 1 to 3, marking it if need be; 0 takes the mark away."""
        if not 0 <= grade <= 3:
            raise ActionRefused("A grade is 0, 1, 2 or 3.")
        row = self.row(number)
        if grade == 0:
            if not row.marked:
                raise ActionRefused(f"Row {row.label} is not marked.")
            return self.toggle(number)
        supports = self._supports() if row.marked else self._marked(row)
        for index in self._indices(row, supports):
            supports[index] = supports[index].having(grade=grade)
        self._set_supports("grade", supports)
        return f"row {row.label}: grade {grade}"

    def grade_step(self, number: int, step: int) -> str:
        """Grade a row one up or down; below 1 the mark goes."""
        row = self.row(number)
        now = 0 if not row.marked else USUAL_GRADE if row.grade is None else int(row.grade)
        return self.grade(number, max(0, min(3, now + step)))

    # -- groups --------------------------------------------------------------------------------

    def group(self, number: int, letter: str) -> str:
        """Put a row's support into one group, marking it if need be."""
        wanted = _letter(letter)
        row = self.row(number)
        supports = self._supports() if row.marked else self._marked(row)
        for index in self._indices(row, supports):
            supports[index] = replace(supports[index], letters=frozenset(wanted))
        self._set_supports("group", supports)
        return f"row {row.label} -> group {self._letters(number)}"

    def share(self, number: int, letter: str) -> str:
        """Add a marked row's support to one more group, or take it out of that group."""
        wanted = frozenset(_letter(letter))
        row = self._marked_row(number)
        supports = self._supports()
        for index in self._indices(row, supports):
            supports[index] = replace(supports[index], letters=supports[index].letters ^ wanted)
        if not groups_of(supports):
            raise ActionRefused("One group must hold something; unmark the row instead.")
        self._set_supports("share", supports)
        return f"row {row.label}: group {self._letters(number) or 'none, not required'}"

    def next_group(self) -> str:
        """Let the following marks of this case join a new group: an alternative (OR)."""
        letter = letter_at(len(groups_of(self._supports())))
        if letter == "A":
            raise ActionRefused("Group A is empty; mark its rows first.")
        if letter == self.letter:
            raise ActionRefused(f"Group {letter} is empty; mark its rows first.")
        self._change("next_group", letter=letter)
        return f"new marks join group {letter}: an alternative to those before"

    # -- anchors -------------------------------------------------------------------------------

    def shorten(self, number: int) -> str:
        """Shorten the heading of a row's support by its last segment; ``""`` is the whole file."""
        index, support = self._only(number)
        parts = segments(support.data.get("heading_path"))
        if not parts:
            raise ActionRefused("The support is the whole file already.")
        return self.set_heading(index, heading(parts[:-1]))

    def lengthen(self, number: int) -> str:
        """Lengthen the heading of a row's support by the next segment of the row's own heading."""
        index, support = self._only(number)
        own = segments(self.row(number).chunk.heading_path)
        parts = segments(support.data.get("heading_path"))
        if own[: len(parts)] != parts or len(own) == len(parts):
            raise ActionRefused("The support has the row's whole heading already.")
        return self.set_heading(index, heading(own[: len(parts) + 1]))

    def set_heading(self, support_index: int, heading_path: str) -> str:
        """Give a support another heading; supports that become the same are joined."""
        supports = self._supports()
        support = self._at(supports, support_index)
        supports[support_index] = support.having(heading_path=heading(heading_path))
        self._set_supports("set_heading", merged(supports))
        return f"support: {short_name(supports[support_index])}"

    def reanchor(self, number: int) -> str:
        """Give the support of a row that was found elsewhere the row's own path and heading."""
        row = self._marked_row(number)
        index, support = self._only(number)
        supports = self._supports()
        supports[index] = support.having(
            rel_path=row.chunk.rel_path, heading_path=heading(row.chunk.heading_path)
        )
        self._set_supports("reanchor", merged(supports))
        return f"support: {short_name(supports[index])}"

    def add_support(self, rel_path: str, heading_path: str = "") -> str:
        """Add a support by path and heading, for a passage that no query finds."""
        if not rel_path.strip():
            raise ActionRefused("A support needs the path of its file.")
        new = Support(
            {"rel_path": norm_path(rel_path), "heading_path": heading(heading_path)},
            frozenset(self.letter),
        )
        supports = self._supports()
        if any(support.anchor == new.anchor for support in supports):
            raise ActionRefused(f"{short_name(new)} is a support already.")
        self._set_supports("add_support", [*supports, new])
        return f"support added: {short_name(new)}"

    def remove_support(self, support_index: int) -> str:
        """Take a support away, whether a row shows it or not."""
        supports = self._supports()
        gone = self._at(supports, support_index)
        self._set_supports("remove_support", [s for s in supports if s is not gone])
        return f"support removed: {short_name(gone)}"

    # -- snippets ------------------------------------------------------------------------------

    def pick(self, number: int, sentence_index: int) -> str:
        """Pick a sentence of a row as a snippet, or drop it. Automatic snippets give way."""
        sentences = self.sentences(number)
        if not 0 <= sentence_index < len(sentences):
            raise ActionRefused(f"There is no sentence {sentence_index + 1}.")
        sentence = sentences[sentence_index]
        return self._pick("pick", number, (sentence.start, sentence.end))

    def select(self, number: int, start: int, end: int) -> str:
        """Pick the characters ``text[start:end]`` of a row as a snippet, or drop them."""
        span = trimmed(self.row(number).chunk.text, (max(0, start), max(0, end)))
        if span is None:
            raise ActionRefused("Nothing is selected.")
        return self._pick("select", number, span)

    def _pick(self, action: str, number: int, span: Span) -> str:
        row = self.row(number)
        supports = self._supports() if row.marked else self._marked(row)
        index = self._indices(row, supports)[0]
        support, text = supports[index], row.chunk.text
        spans = [] if support.auto or not row.marked else spans_in(support, text)
        covered = any(a <= span[0] and span[1] <= b for a, b in joined(text, spans))
        spans = without(spans, span) if covered else [*spans, span]
        supports[index] = with_spans(support, row.chunk, spans)
        self._set_supports(action, supports)
        count = len(spans_in(supports[index], text))
        unique = text.casefold().count(text[span[0] : span[1]].casefold()) == 1
        return f"row {row.label}: {count} snippet{'' if count == 1 else 's'}" + (
            "" if unique else "; not unique here"
        )

    # -- inside --------------------------------------------------------------------------------

    def _set_supports(self, action: str, supports: Sequence[Support]) -> None:
        """Write the supports; the first mark makes the case answerable and open to confirm."""
        entry = self._need_case()
        case = write_supports(entry.case, supports)
        if supports and case.get("answerable") is not True:
            case["answerable"] = True
        judgement = self._judge(decision="answerable" if supports else None, confirmed=False)
        judgement.setdefault("decision", None)
        letter = min(entry.letter, letter_at(len(groups_of(supports))))
        self._commit(action, Entry(case, judgement, letter))

    def _marked(self, row: Row, supports: list[Support] | None = None) -> list[Support]:
        """The supports with a row's passage added: to the one of its heading, or as a new one."""
        supports = self._supports() if supports is None else list(supports)
        new = from_chunk(row.chunk, self.case, self.letter)
        for index, support in enumerate(supports):
            if support.anchor == new.anchor:
                supports[index] = with_auto(support, row.chunk, self.case)
                return supports
        return [*supports, new]

    def _unmarked(self, row: Row, supports: list[Support] | None = None) -> list[Support]:
        """The supports without what a row gives them; one that rests on nothing else goes."""
        supports = self._supports() if supports is None else supports
        marking = {support.anchor for _, support in self._of_row(row)}
        out = []
        for support in supports:
            rest = without_chunk(support, row.chunk) if support.anchor in marking else support
            if rest is not None:
                out.append(rest)
        return out

    def _others(self, row: Row) -> list[str]:
        """Labels of rows that lose their mark together with `row`."""
        gone = {s.anchor for _, s in self._of_row(row) if without_chunk(s, row.chunk) is None}
        labels: list[str] = []
        for view, support in zip(self.supports(), self._supports(), strict=True):
            if support.anchor in gone:
                labels += [label for label in view.rows if label != row.label]
        return labels

    def _indices(self, row: Row, supports: Sequence[Support]) -> list[int]:
        """Which of `supports` mark the row; for a fresh mark the support of its own heading."""
        if row.marked:
            return [index for index, _ in self._of_row(row)]
        anchor = from_chunk(row.chunk, {}, "A").anchor
        return [index for index, support in enumerate(supports) if support.anchor == anchor]

    def _marked_row(self, number: int) -> Row:
        row = self.row(number)
        if not row.marked:
            raise ActionRefused(f"Row {row.label} is not marked.")
        return row

    def _only(self, number: int) -> tuple[int, Support]:
        return self._of_row(self._marked_row(number))[0]

    @staticmethod
    def _at(supports: Sequence[Support], index: int) -> Support:
        if not 0 <= index < len(supports):
            raise ActionRefused(f"There is no support {index + 1}.")
        return supports[index]

    def _letters(self, number: int) -> str:
        return self.row(number).letters


def _letter(letter: str) -> str:
    wanted = letter.strip().upper()
    if len(wanted) != 1 or not "A" <= wanted <= "Z":
        raise ActionRefused("A group is a letter.")
    return wanted
