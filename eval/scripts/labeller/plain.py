"""Line mode: the same session for screen readers, dumb terminals, pipes and scripts.

Prints the question and its chunks, reads a line such as ``2 7b``, ``x`` or ``u``, and prints one
line that says what was done, after it is in the journal. An empty line confirms.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Final, TextIO

from labeller.plain_words import COMMANDS, SHORT_HELP, run_words
from labeller.ports import Refused, Source, Store, deliver, prefetch
from labeller.rows import Row
from labeller.session import Session
from terminal.safe_text import display

EXCERPT: Final = 110
CHUNK_SECONDS: Final = 10.0
"""The longest wait for the chunks of the question that is asked about; then they come later."""
_MARK = re.compile(r"(\.?\d+|\+\d+)([a-zA-Z])?(?:=([0-3]))?")


class Plain:
    """One line session. `prompt` says whether a person sits at the other end."""

    session: Session
    store: Store
    source: Source

    def __init__(
        self,
        session: Session,
        store: Store,
        source: Source,
        stdin: TextIO,
        stdout: TextIO,
        *,
        prompt: bool,
        wait: float = CHUNK_SECONDS,
    ) -> None:
        self.session, self.store, self.source = session, store, source
        self._in, self._out, self._prompt, self._wait = stdin, stdout, prompt, wait
        self._came = threading.Event()
        self._shown = ""
        source.listen(self._came.set)

    def run(self) -> int:
        """Read lines until ``q`` or the end of the input; returns the exit code.

        Closing store and source is the caller's.
        """
        for notice in self.store.notices:
            self.say(notice)
        self.say(f"chunks from: {self.source.describe()}")
        self.show_case()
        while True:
            if self._prompt:
                self._out.write(f"{SHORT_HELP}> ")
                self._out.flush()
            line = self._in.readline()
            if not line or line.strip() in ("q", "quit"):
                break
            self.obey(line.strip())
        return 0

    def obey(self, line: str) -> None:
        """Do what one line says, and say what was done; a refusal is said in the same way."""
        before = self.session.current
        problem = self.store.problem
        try:
            said = self._do(line)
        except Refused as refusal:
            said = str(refusal)
        if said:
            self.say(f"{before or '-'}: {said}")
        if self.store.problem and self.store.problem != problem:
            self.say(self.store.problem)
        if self.session.current != before:
            self.show_case()
        self.store.remember(self.session.view())

    def say(self, text: str) -> None:
        """Print foreign or own text, made safe, at once."""
        self._out.write(display(text) + "\n")
        self._out.flush()

    # -- what is shown -------------------------------------------------------------------------

    def show_case(self) -> None:
        """Print the current question and its chunks."""
        session = self.session
        if not session.current:
            self.say("There is no case; new QUESTION adds one.")
            return
        self.await_chunks()
        place, total = session.place
        brief = session.brief(session.current)
        flag = ", flagged" if brief.flagged else ""
        self.say(f"{brief.id} ({place}/{total}, {brief.status}{flag}) {brief.question}")
        self.show_rows()

    def show_rows(self) -> None:
        """Print a line a chunk, and what the case needs."""
        session = self.session
        problem = session.chunks_problem()
        if problem:
            self.say(f"No chunks: {problem}")
        elif not session.has_chunks():
            self.say("The chunks have not come yet; show looks again.")
        for row in session.rows():
            self.say(self._row_line(row))
        for query, why in session.lost_probes():
            self.say(f'The rows of the search "{query}" are not here: {why}')
        if session.needs():
            self.say(f"needs: {session.needs()}")

    def _row_line(self, row: Row) -> str:
        text = " ".join(row.chunk.text.split())
        if len(text) <= EXCERPT:
            self.session.see(row.number)
        else:
            text = text[: EXCERPT - 1] + "…"
        mark = f"[{row.letters or ('*' if row.marked else ' ')}]"
        grade = "" if row.grade is None else f" grade {row.grade:g}"
        rank = "" if row.rank is None else f" (rank {row.rank})"
        where = " > ".join(part for part in (row.chunk.rel_path, row.chunk.heading_path) if part)
        return f"{mark}{grade} {row.label:>3}{rank} {where}: {text}"

    def await_chunks(self) -> None:
        """Wait until the current question's chunks, or why there are none, have come."""
        prefetch(self.session, self.source)
        session = self.session
        self._until(
            lambda: (
                (session.has_chunks() and not session.recalling()) or bool(session.chunks_problem())
            )
        )

    def await_probe(self, query: str) -> str:
        """Wait for the chunks of a probe; says how many are new."""
        case_id, had = self.session.current, len(self.session.rows())
        problems: list[str] = []
        done = threading.Event()

        def arrived() -> bool:
            return done.is_set()

        def take() -> None:
            for arrival in deliver(self.session, self.source):
                if arrival.case_id == case_id and arrival.query == query:
                    problems.append(arrival.problem)
                    done.set()

        self._until(arrived, take)
        if not done.is_set():
            return "nothing has come yet"
        if problems[0]:
            return problems[0]
        self.show_rows()
        return f"{len(self.session.rows()) - had} new rows"

    def _until(self, ready: Callable[[], bool], take: Callable[[], object] | None = None) -> None:
        take = take or (lambda: deliver(self.session, self.source))
        take()
        while not ready():
            self._came.clear()
            take()
            if ready() or not self._came.wait(self._wait):
                break
        take()

    # -- what is done --------------------------------------------------------------------------

    def _do(self, line: str) -> str:
        words = line.split()
        if not words or words == ["ok"]:
            return self.session.confirm().message
        name, _, rest = line.partition(" ")
        if name in COMMANDS:
            return run_words(self, name, rest.strip())
        words = [word for word in words if word != "ok"]
        marks = [_MARK.fullmatch(word) for word in words]
        if not all(marks):
            raise Refused(f"{name!r} is no command; ? lists them.")
        with self.session.one_step():
            for word, mark in zip(words, marks, strict=False):
                assert mark is not None
                try:
                    self._mark(*mark.groups())
                except Refused as refusal:
                    more = f" Nothing of this line is done ({word})." if len(words) > 1 else ""
                    raise Refused(f"{refusal}{more}") from None
            needs = self.session.needs()
            said = f"needs: {needs}" if needs else "nothing is marked"
            if line.split()[-1] == "ok":
                said += f"; {self.session.confirm().message}"
        return said

    def _mark(self, label: str, letter: str | None, grade: str | None) -> None:
        number = self.session.row_by_label(label).number
        if letter:
            self.session.group(number, letter)
        if grade:
            self.session.grade(number, int(grade))
        if not letter and not grade:
            self.session.toggle(number)
