"""Judgements and ranked lists of our cases, as TREC and BEIR write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from urllib.parse import quote

from converting.judged import Ranked, order_key
from converting.notes import Notes
from converting.stored import Stored, StoredCase
from ragmetrics.matching import DEFAULT_GRADE
from storage import RetrievedChunk, TestCase

BREAKS = re.compile(r"\r\n|[\t\n\r\x0b\x0c]")
GRADE_FIELDS = {
    "doc": {"relevant_docs", "relevance_grades", "gold_supports"},
    "chunk": {"relevant_chunks", "chunk_relevance_grades"},
}


class Exporter:
    """What both formats need of a case. Documents are names: of notes, or of chunks."""

    def __init__(self, stored: Stored, notes: Notes) -> None:
        self._by_doc = stored.match == "doc"
        self._notes = notes

    def grades(self, case: TestCase) -> dict[str, int]:
        """The grade of each judged document, as the scorers count it.

        By document: relevance_grades and relevant_docs, else the paths of gold_supports. Names
        without a grade get the usual 3. qrels hold whole numbers: others are rounded, never to 0
        or below when they are above.
        """
        if self._by_doc:
            grades = dict.fromkeys(case.relevant_docs, DEFAULT_GRADE) | case.relevance_grades
            if not grades:
                for support in case.gold_supports:
                    grade = support.grade or DEFAULT_GRADE
                    grades[support.rel_path] = max(grade, grades.get(support.rel_path, 0))
                if grades:
                    self._notes.changed["cases whose gold_supports stand as whole files"] += 1
        else:
            grades = dict.fromkeys(case.relevant_chunks, DEFAULT_GRADE)
            grades |= case.chunk_relevance_grades
        return {name: self._whole(grade) for name, grade in grades.items()}

    def _whole(self, grade: float) -> int:
        if grade == int(grade):
            return int(grade)
        self._notes.changed["grades that are no whole numbers, rounded"] += 1
        return max(1, round(grade)) if grade > 0 else math.floor(grade)

    def ranking(self, one: StoredCase) -> list[tuple[str, float]]:
        """The ranked documents of the first answer as words, with scores that keep the order."""
        if not one.results:
            return []
        result = one.results[0]
        if result.status != "ok":
            self._notes.left_out["failed calls"] += 1
            return []
        rows: dict[str, float | None] = {}
        for chunk in result.chunks():
            name = self._name(chunk)
            word = self.one_word(name) if name else ""
            if not name:
                self._notes.left_out["retrieved chunks without an id"] += 1
            elif word in rows:
                self._notes.left_out["further chunks of a document in one list"] += 1
            else:
                rows[word] = chunk.score_final
        return self._scored(rows)

    def _scored(self, rows: dict[str, float | None]) -> list[tuple[str, float]]:
        """The bot's own scores when trec_eval would keep the order by them, else descending ones.

        trec_eval sorts by score and then by name, both downwards, and looks at no rank.
        """
        scored = [
            Ranked(name, "", score)
            for name, score in rows.items()
            if score is not None and math.isfinite(score)
        ]
        if len(scored) == len(rows) and scored == sorted(scored, key=order_key, reverse=True):
            return [(row.document, row.score) for row in scored]
        self._notes.changed["lists whose scores do not follow their ranks, scored n to 1"] += 1
        return [(name, float(len(rows) - place)) for place, name in enumerate(rows)]

    def texts(self, one: StoredCase) -> Iterator[tuple[str, str]]:
        """Name and text of each retrieved passage that has both."""
        for result in one.results:
            for chunk in result.chunks():
                name = self._name(chunk)
                if name and chunk.text:
                    if chunk.truncated:
                        self._notes.changed["passages that the run holds cut"] += 1
                    yield name, chunk.text

    def _name(self, chunk: RetrievedChunk) -> str:
        if not self._by_doc:
            return chunk.chunk_id
        return (chunk.rel_path if chunk.doc_id is None else chunk.doc_id) or ""

    def one_word(self, name: str) -> str:
        """A name without blanks, which part the columns: percent-encoded where it has some."""
        if name.encode().split() == [name.encode()]:
            return name
        self._notes.changed["names with blanks, percent-encoded (import with --decode-names)"] += 1
        return quote(name, safe="/-_.~#:")

    def one_field(self, name: str) -> str:
        """A name without line ends, which part the rows of a table."""
        if "\n" not in name and "\r" not in name:
            return name
        self._notes.changed["names with line ends, percent-encoded"] += 1
        return quote(name, safe="/-_.~#: ")

    def one_line(self, text: str) -> str:
        """A question on one line, without tabs."""
        line = BREAKS.sub(" ", text)
        if line != text:
            self._notes.changed["questions with line breaks or tabs, on one line"] += 1
        return line
