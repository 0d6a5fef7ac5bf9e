"""Line mode: the same session for screen readers, dumb terminals, pipes and scripts.

Prints the question and its chunks, reads a line such as ``2 7b``, ``x`` or ``u``, and prints one
line that says what was done, after it is in the journal. An empty line confirms. The commands are
one table, from which lines are obeyed and the help is printed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TextIO

from labeller.edits import EDITABLE
from labeller.ports import Source, Store, deliver, prefetch
from labeller.rows import ChunkRow
from labeller.session import Session
from terminal.actions import ActionRefused
from terminal.line_mode import LineTerminal

SHORT_HELP: Final = "marks (2 7b), Enter ok, x, s, show 2, u, q, ? help"
EXCERPT: Final = 110
CHUNK_SECONDS: Final = 10.0
"""The longest wait for the chunks of the question that is asked about; then they come later."""
_MARK = re.compile(r"(\.?\d+|\+\d+)([a-zA-Z])?(?:=([0-3]))?")


class PlainLabeller:
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
        self._wait = wait
        self._terminal = LineTerminal(stdin, stdout, SHORT_HELP if prompt else "")
        self._came = threading.Event()
        source.listen(self._came.set)

    def run(self) -> int:
        """Read lines until ``q`` or the end of the input; returns the exit code.

        Closing store and source is the caller's.
        """
        for notice in self.store.notices:
            self.say(notice)
        self.say(f"chunks from: {self.source.describe()}")
        self.show_case()
        for line in self._terminal.lines():
            self.obey(line)
        return 0

    def obey(self, line: str) -> None:
        """Do what one line says, and say what was done; a refusal is said in the same way."""
        before = self.session.current
        problem = self.store.problem
        try:
            answer = self._do(line)
        except ActionRefused as refusal:
            answer = str(refusal)
        if answer:
            self.say(f"{before or '-'}: {answer}")
        if self.store.problem and self.store.problem != problem:
            self.say(self.store.problem)
        if self.session.current != before:
            self.show_case()
        self.store.remember(self.session.view())

    def say(self, text: str) -> None:
        """Print foreign or own text, made safe, at once."""
        self._terminal.say(text)

    # -- what is shown -------------------------------------------------------------------------

    def show_case(self) -> None:
        """Print the current question and its chunks."""
        session = self.session
        if not session.current:
            self.say("There is no case; new QUESTION adds one.")
            return
        self.await_chunks()
        position, total = session.position
        brief = session.brief(session.current)
        flag = ", flagged" if brief.flagged else ""
        self.say(f"{brief.id} ({position}/{total}, {brief.status}{flag}) {brief.question}")
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

    def _row_line(self, row: ChunkRow) -> str:
        text = " ".join(row.chunk.text.split())
        if len(text) <= EXCERPT:
            self.session.read_to_end(row.number)
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
            return COMMANDS[name].do(self, rest.strip())
        words = [word for word in words if word != "ok"]
        marks = [_MARK.fullmatch(word) for word in words]
        if not all(marks):
            raise ActionRefused(f"{name!r} is no command; ? lists them.")
        with self.session.one_step():
            for word, mark in zip(words, marks, strict=False):
                assert mark is not None
                try:
                    self._mark(*mark.groups())
                except ActionRefused as refusal:
                    more = f" Nothing of this line is done ({word})." if len(words) > 1 else ""
                    raise ActionRefused(f"{refusal}{more}") from None
            needs = self.session.needs()
            answer = f"needs: {needs}" if needs else "nothing is marked"
            if line.split()[-1] == "ok":
                answer += f". {self.session.confirm().message}"
        return answer

    def _mark(self, label: str, letter: str | None, grade: str | None) -> None:
        number = self.session.row_by_label(label).number
        if letter:
            self.session.group(number, letter)
        if grade:
            self.session.grade(number, int(grade))
        if not letter and not grade:
            self.session.toggle(number)


# -- the commands ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _LineCommand:
    """A command: what may follow it, what it does in one sentence, and the doing."""

    usage: str
    help: str
    do: Callable[[PlainLabeller, str], str]


def _number(text: str, noun: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise ActionRefused(f"Write the number of the {noun}.")
    return int(text)


def _row(plain: PlainLabeller, text: str) -> int:
    if not text:
        raise ActionRefused("Write the row's number.")
    return plain.session.row_by_label(text).number


def _two(text: str, usage: str) -> tuple[str, str]:
    first, _, second = text.partition(" ")
    if not first or not second.strip():
        raise ActionRefused(f"Write {usage}.")
    return first, second.strip()


def _show(plain: PlainLabeller, rest: str) -> str:
    if not rest:
        plain.show_case()
        return ""
    row = plain.session.row(_row(plain, rest))
    plain.session.read_to_end(row.number)
    plain.say(f"row {row.label}: {row.chunk.rel_path} > {row.chunk.heading_path}")
    plain.say(row.chunk.text)
    return ""


def _sentences(plain: PlainLabeller, rest: str) -> str:
    number = _row(plain, rest)
    plain.session.read_to_end(number)
    for sentence in plain.session.sentences(number):
        plain.say(f"{'*' if sentence.picked else ' '} {sentence.index + 1} {sentence.text}")
    return ""


def _pick(plain: PlainLabeller, rest: str) -> str:
    row, sentence = _two(rest, "pick ROW SENTENCE")
    return plain.session.pick(_row(plain, row), _number(sentence, "sentence") - 1)


def _grade(plain: PlainLabeller, rest: str) -> str:
    row, grade = _two(rest, "g ROW 0-3")
    return plain.session.grade(_row(plain, row), _number(grade, "grade"))


def _group(plain: PlainLabeller, rest: str) -> str:
    row, letter = _two(rest, "m ROW LETTER")
    return plain.session.group(_row(plain, row), letter)


def _share(plain: PlainLabeller, rest: str) -> str:
    row, letter = _two(rest, "also ROW LETTER")
    return plain.session.share(_row(plain, row), letter)


def _supports(plain: PlainLabeller, rest: str) -> str:
    for view in plain.session.supports():
        rows = ", ".join(view.rows) or "no row"
        location = " > ".join(part for part in (view.rel_path, view.heading_path) if part)
        plain.say(f"{view.index + 1} [{view.letters}] {location} ({view.state}: {rows})")
        for snippet in view.snippets:
            plain.say(f"    {snippet}")
    return plain.session.needs_words()


def _add(plain: PlainLabeller, rest: str) -> str:
    path, _, headings = rest.partition(" > ")
    return plain.session.add_support(path, headings)


def _head(plain: PlainLabeller, rest: str) -> str:
    number, _, headings = rest.partition(" ")
    return plain.session.set_heading(_number(number, "support") - 1, headings)


def _edit(plain: PlainLabeller, rest: str) -> str:
    name, _, text = rest.partition(" ")
    kinds = {field: kind for field, kind, _ in EDITABLE}
    if name not in kinds:
        raise ActionRefused(f"Write edit FIELD TEXT; the fields are: {', '.join(kinds)}.")
    value = text.split("|") if kinds[name] == "lines" else text
    return plain.session.edit({name: value})


def _probe(plain: PlainLabeller, rest: str) -> str:
    words = rest.split()
    k = next((w[2:] for w in words if w.startswith("k=") and w[2:].isdigit()), None)
    query = " ".join(word for word in words if not word.startswith("k="))
    query = query or str(plain.session.case.get("question") or "")
    if not plain.session.current:
        raise ActionRefused("There is no case.")
    plain.source.probe(plain.session.current, query, int(k) if k else None)
    return plain.await_probe(query)


def _fetch(plain: PlainLabeller, rest: str) -> str:
    case_id = plain.session.current
    plain.session.forget_chunks(case_id)
    plain.source.refetch(case_id, str(plain.session.case.get("question") or ""))
    plain.await_chunks()
    plain.show_rows()
    return ""


def _go(plain: PlainLabeller, rest: str) -> str:
    if plain.session.knows(rest):
        plain.session.goto(rest)
    else:
        plain.session.goto_number(_number(rest, "question"))
    return ""


def _silently(move: Callable[[PlainLabeller], object]) -> Callable[[PlainLabeller, str], str]:
    def do(plain: PlainLabeller, rest: str) -> str:
        move(plain)
        return ""

    return do


def _filter(plain: PlainLabeller, rest: str) -> str:
    answer = plain.session.set_filter(rest)
    for brief in plain.session.briefs()[:20]:
        plain.say(
            f"{brief.id} {brief.status}{' flagged' if brief.flagged else ''} {brief.question}"
        )
    return answer


def _progress(plain: PlainLabeller, rest: str) -> str:
    p = plain.session.progress()
    answer = (
        f"{p.done} of {p.total} done: {p.labelled} labelled, {p.unanswerable} unanswerable, "
        f"{p.cannot_tell} cannot tell; {p.open} open, {p.skipped} later, {p.flagged} flagged"
    )
    if p.seconds_each is not None and p.seconds_left is not None:
        answer += f"; {p.seconds_each:.0f} s each, {p.seconds_left / 60:.0f} min left"
    return answer


def _blind(plain: PlainLabeller, rest: str) -> str:
    if rest not in ("on", "off"):
        raise ActionRefused("Write blind on or blind off.")
    return plain.session.set_blind(rest == "on")


def _delete(plain: PlainLabeller, rest: str) -> str:
    if rest != plain.session.current:
        raise ActionRefused(f"Write delete {plain.session.current} to delete it.")
    return plain.session.delete_case()


def _settle(plain: PlainLabeller, rest: str) -> str:
    """``adj NAME`` lists, ``adj NAME 2 union`` chooses, ``adj NAME done`` confirms."""
    words = rest.split()
    if not words:
        raise ActionRefused(
            f"Write adj NAME; at hand: {', '.join(plain.session.annotators) or 'none'}."
        )
    name = words[0]
    if words[1:] == ["done"]:
        return plain.session.adjudicated(name)
    if len(words) == 3:
        return plain.session.adjudicate(name, _number(words[1], "disagreement") - 1, words[2])
    items = plain.session.disagreements(name)
    for item in items:
        plain.say(f"{item.index + 1} {item.text}: A {item.a}, B {item.b}; {item.choice or '?'}")
    return f"{len(items)} disagreements; adj {name} 1 a|b|union|neither, then adj {name} done"


def _conflicts(plain: PlainLabeller, rest: str) -> str:
    words = rest.split()
    conflicts = plain.store.conflicts
    if len(words) == 2:
        index = _number(words[0], "conflict") - 1
        if not 0 <= index < len(conflicts):
            raise ActionRefused(f"There is no conflict {words[0]}.")
        return plain.store.resolve(conflicts[index], words[1])
    for number, conflict in enumerate(conflicts, start=1):
        plain.say(f"{number} {conflict.case_id}: {', '.join(conflict.fields)}")
        plain.say(f"  mine:   {conflict.mine}")
        plain.say(f"  theirs: {conflict.theirs}")
    return f"{len(conflicts)} conflicts" + (
        "; conflicts 1 mine|theirs settles one" if conflicts else ""
    )


def _help(plain: PlainLabeller, rest: str) -> str:
    plain.say("Rows: 2 marks, 7b puts row 7 into group b, 3=2 grades; 2 7b ok confirms as well.")
    plain.say("Groups: rows of one letter are needed together; another letter is an alternative.")
    plain.say("An empty line confirms and goes on.")
    for name, word in COMMANDS.items():
        plain.say(f"{(name + ' ' + word.usage).strip():<28} {word.help}")
    return ""


COMMANDS: Final[dict[str, _LineCommand]] = {
    "ok": _LineCommand(
        "", "Confirm, as an empty line does.", lambda p, r: p.session.confirm().message
    ),
    "x": _LineCommand("", "Unanswerable, or not after all.", lambda p, r: p.session.unanswerable()),
    "a": _LineCommand("", "Answerable, or open again.", lambda p, r: p.session.answerable()),
    "s": _LineCommand("", "Judge later.", lambda p, r: p.session.skip()),
    "f": _LineCommand("", "Flag, or take the flag off.", lambda p, r: p.session.flag()),
    "c": _LineCommand("REASON", "Cannot tell, and why.", lambda p, r: p.session.cannot_tell(r)),
    "note": _LineCommand(
        "TEXT", "Keep a note; without a text remove it.", lambda p, r: p.session.note(r)
    ),
    "u": _LineCommand("", "Undo.", lambda p, r: p.session.undo()),
    "U": _LineCommand("", "Redo.", lambda p, r: p.session.redo()),
    "show": _LineCommand("[ROW]", "Print the question again, or the whole text of a row.", _show),
    "g": _LineCommand("ROW 0-3", "Grade a row.", _grade),
    "m": _LineCommand("ROW LETTER", "Move a row to a group.", _group),
    "also": _LineCommand("ROW LETTER", "Put a row into one more group, or out of it.", _share),
    "M": _LineCommand("", "New marks join a new group.", lambda p, r: p.session.next_group()),
    "short": _LineCommand(
        "ROW", "Shorten its heading.", lambda p, r: p.session.shorten(_row(p, r))
    ),
    "long": _LineCommand(
        "ROW", "Lengthen its heading.", lambda p, r: p.session.lengthen(_row(p, r))
    ),
    "re": _LineCommand(
        "ROW", "Anchor its support here.", lambda p, r: p.session.reanchor(_row(p, r))
    ),
    "sup": _LineCommand("", "List the supports and what is needed.", _supports),
    "add": _LineCommand("PATH > HEADING", "Add a support that no row shows.", _add),
    "head": _LineCommand("SUPPORT HEADING", "Give a support another heading.", _head),
    "drop": _LineCommand(
        "SUPPORT",
        "Remove a support.",
        lambda p, r: p.session.remove_support(_number(r, "support") - 1),
    ),
    "sent": _LineCommand("ROW", "List the sentences of a row.", _sentences),
    "pick": _LineCommand("ROW SENTENCE", "Pick a sentence as a snippet, or drop it.", _pick),
    "fact": _LineCommand("TEXT", "Add an expected key fact.", lambda p, r: p.session.key_fact(r)),
    "probe": _LineCommand(
        "[QUERY] [k=N]", "Fetch rows for another query, or more of them.", _probe
    ),
    "fetch": _LineCommand("", "Fetch the rows again.", _fetch),
    "edit": _LineCommand("FIELD TEXT", "Set a field; | parts the items of a list.", _edit),
    "json": _LineCommand("", "Print the record.", lambda p, r: p.session.record_text()),
    "new": _LineCommand("QUESTION", "Add a case.", lambda p, r: p.session.add_case(r)),
    "copy": _LineCommand("", "Add a copy of this case.", lambda p, r: p.session.duplicate_case()),
    "delete": _LineCommand("ID", "Delete this case; u brings it back.", _delete),
    "n": _LineCommand("", "Next question.", _silently(lambda p: p.session.next())),
    "p": _LineCommand("", "Previous question.", _silently(lambda p: p.session.previous())),
    "open": _LineCommand("", "Next open question.", _silently(lambda p: p.session.next_open())),
    "back": _LineCommand("", "The question before.", _silently(lambda p: p.session.back())),
    "go": _LineCommand("ID or NUMBER", "Go to a question.", _go),
    "filter": _LineCommand("WORDS", "status:open flag tag:x category:x; empty shows all.", _filter),
    "order": _LineCommand("NAME", "Order of the questions.", lambda p, r: p.session.set_order(r)),
    "rows": _LineCommand(
        "ORDER", "shuffled, rank or path.", lambda p, r: p.session.set_row_order(r)
    ),
    "blind": _LineCommand("on|off", "Hide or show ranks.", _blind),
    "adj": _LineCommand("NAME [N CHOICE|done]", "Settle disagreements with an annotator.", _settle),
    "conflicts": _LineCommand("[N mine|theirs]", "Changes that clash with the file's.", _conflicts),
    "progress": _LineCommand("", "Counts, pace and time left.", _progress),
    "save": _LineCommand("", "Write the set now.", lambda p, r: p.store.save()),
    "?": _LineCommand("", "This help.", _help),
}
