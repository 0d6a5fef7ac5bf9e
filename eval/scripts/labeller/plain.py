"""Line mode: the same session for screen readers, dumb terminals, pipes and scripts.

Prints the question and its chunks, reads a line such as ``2 '' 7``, ``x`` or ``u``, and prints one
line that says what was done, after it is in the journal. An empty line confirms. The commands are
one table, from which lines are obeyed and the help is printed; they are the keys of the screen.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Final, TextIO

from labeller import edits, marks, tools
from labeller.actions import LineCommand, actions_of, added_actions
from labeller.case_state import CaseState, EditResult
from labeller.conversation import conversation_text
from labeller.fetching import Fetcher, deliver, prefetch, query_and_k
from labeller.needs import open_words
from labeller.rows import ChunkRow, sentences_of
from labeller.session import Session, present_view
from labeller.store import LabelStore
from labeller.worklist import WorkQueue
from terminal.actions import ActionRefused
from terminal.line_mode import LineTerminal

SHORT_HELP: Final = "marks (2 '' 7), Enter ok, x, s, ; 2 shows, . reads on, u, q, ? help"
EXCERPT: Final = 110
CHUNK_SECONDS: Final = 10.0
"""The longest wait for the chunks of the question that is asked about; then they come later."""
_MARK = re.compile(r"([.,]?\d+|\+\d+)(?:(['&])(\d+))?(?:=([0-3]))?")
_NEED = re.compile(r"'(\d+|')")


class PlainLabeller:
    """One line session. `prompt` says whether a person sits at the other end."""

    def __init__(
        self,
        session: Session,
        store: LabelStore,
        source: Fetcher,
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
        """Carry out one line, and report the result or the refusal."""
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
        self.store.remember(present_view(self.session))

    def say(self, text: str) -> None:
        """Print foreign or own text, made safe, at once."""
        self._terminal.say(text)

    # -- what is shown -------------------------------------------------------------------------

    def show_case(self) -> None:
        """Print the current question and its chunks."""
        session = self.session
        if not session.current:
            self.say("There is no case; o QUESTION adds one.")
            return
        self.await_chunks()
        position, total = session.queue.position_and_total
        brief = session.summary
        flag = ", flagged" if brief.flagged else ""
        for line in conversation_text(session.messages_before())[0].splitlines():
            self.say(line)
        self.say(f"{brief.id} ({position}/{total}, {brief.status}{flag}) {brief.question}")
        self.show_rows()

    def show_rows(self) -> None:
        """Print a line a chunk, and the needs of the case."""
        session = self.session
        if session.problem:
            self.say(f"No chunks: {session.problem}")
        elif session.current not in session.pool:
            self.say("The chunks are not here yet; ; looks again.")
        for row in session.rows():
            self.say(self._row_line(row))
        if session.view.needs():
            self.say(f"needs: {session.view.needs()}")

    def _row_line(self, row: ChunkRow) -> str:
        text = " ".join(row.chunk.text.split())
        if len(text) <= EXCERPT:
            self.session.see(row.number)
        else:
            text = text[: EXCERPT - 1] + "…"
        needs = ",".join(map(str, row.parts)) or ("0" if row.marked else " ")
        mark = f"[{needs}]"
        grade = "" if row.grade is None else f" grade {row.grade:g}"
        rank = "" if row.rank is None else f" (rank {row.rank})"
        where = " > ".join(part for part in (row.chunk.rel_path, row.chunk.heading_path) if part)
        where += f", page {row.chunk.page}" if row.chunk.page else ""
        return f"{mark}{grade} {row.label:>3}{rank} {where}: {text}"

    def await_chunks(self) -> None:
        """Wait until the current question's chunks, or why there are none, have come."""
        session = self.session
        prefetch(session, self.source)

        def ready() -> bool:
            deliver(session, self.source)
            return session.current in session.pool or bool(session.problem)

        self._until(ready)

    def await_probe(self, query: str) -> str:
        """Wait for the chunks of a probe; says how many are new."""
        case_id, had = self.session.current, len(self.session.rows())
        problems: list[str] = []

        def ready() -> bool:
            for arrival in deliver(self.session, self.source):
                if arrival.case_id == case_id and arrival.query == query:
                    problems.append(arrival.problem)
            return bool(problems)

        self._until(ready)
        if not problems:
            return "nothing is here yet"
        if problems[0]:
            return problems[0]
        self.show_rows()
        return f"{len(self.session.rows()) - had} new rows"

    def _until(self, ready: Callable[[], bool]) -> None:
        """Wait until it is ready; give up when nothing comes for a while."""
        self._came.clear()
        while not ready() and self._came.wait(self._wait):
            self._came.clear()
        ready()

    # -- what is done --------------------------------------------------------------------------

    def _do(self, line: str) -> str:
        words = line.split()
        if not words or words == ["ok"]:
            return self.session.confirm()
        name, _, rest = line.partition(" ")
        if command := all_commands().get(name):
            return command.do(self, rest.strip())
        if name == "n":
            raise ActionRefused("n is the next hit on the screen: l is the next question here.")
        words = [word for word in words if word != "ok"]
        for word in words:
            if not _MARK.fullmatch(word) and not _NEED.fullmatch(word):
                old = re.fullmatch(r"[.,+]?\d+[a-zA-Z](=[0-3])?", word)
                hint = "Needs have numbers: 7'2 puts row 7 into need 2." if old else "? lists them."
                raise ActionRefused(f"{word!r} is not a command; {hint}")
        with self.session.ledger.one_step():
            for word in words:
                try:
                    self._mark(word)
                except ActionRefused as refusal:
                    more = f" This line was ignored ({word})." if len(words) > 1 else ""
                    raise ActionRefused(f"{refusal}{more}") from None
            needs = self.session.view.needs()
            answer = f"needs: {needs}" if needs else "nothing is marked"
            if self.session.layout.open != 1:
                answer += f"; {open_words(self.session.layout)}"
            if line.split()[-1] == "ok":
                answer += f". {self.session.confirm()}"
        return answer

    def _mark(self, word: str) -> None:
        """Do one word of a line of marks: `7`, `7'2`, `7&2`, `7=3`, or `'2`, which opens a need."""
        need = _NEED.fullmatch(word)
        if need:
            self.session.open_need(None if need[1] == "'" else int(need[1]))
            return
        mark = _MARK.fullmatch(word)
        assert mark is not None
        label, how, number, grade = mark.groups()
        row = self.session.view.row_by_label(label).number
        if how == "'":
            self.session.on_row(row, marks.group, int(number))
        elif how == "&":
            self.session.on_row(row, marks.share, int(number))
        if grade:
            self.session.on_row(row, marks.grade, int(grade))
        if not how and not grade:
            self.session.on_row(row, marks.toggle)


# -- the commands ----------------------------------------------------------------------------------


Do = Callable[[PlainLabeller, str], str]
"""Does a command with what follows it; the answer."""


def number_in(text: str, noun: str) -> int:
    """The number that a text is, of something on the screen. Refuses any other text."""
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise ActionRefused(f"Write the number of the {noun}.")
    return int(text)


def _row(plain: PlainLabeller, text: str) -> int:
    if not text:
        raise ActionRefused("Write the row's number.")
    return plain.session.view.row_by_label(text).number


def _on_case(change: Callable[[CaseState], EditResult]) -> Do:
    """A command that changes the case."""
    return lambda plain, rest: plain.session.do(change)


def _with_text(change: Callable[[CaseState, str], EditResult]) -> Do:
    """A command that changes the case by what follows."""
    return lambda plain, rest: plain.session.do(change, rest)


def _on_row(change: Callable[[CaseState, ChunkRow], EditResult]) -> Do:
    """A command that changes the row that follows."""
    return lambda plain, rest: plain.session.on_row(_row(plain, rest), change)


def _show(plain: PlainLabeller, rest: str) -> str:
    if not rest:
        plain.show_case()
        return ""
    row = plain.session.view.row(_row(plain, rest))
    plain.session.see(row.number)
    plain.say(f"row {row.label}: {row.chunk.rel_path} > {row.chunk.heading_path}")
    plain.say(row.chunk.text)
    return ""


def _sentences(plain: PlainLabeller, rest: str) -> str:
    row = plain.session.view.row(_row(plain, rest))
    plain.session.see(row.number)
    for sentence in sentences_of(row, plain.session.case):
        plain.say(f"{'*' if sentence.picked else ' '} {sentence.index + 1} {sentence.text}")
    return ""


def _read_on(plain: PlainLabeller, rest: str) -> str:
    for row in plain.session.rows():
        if not row.seen:
            return _show(plain, row.label)
    return "All rows are read."


def _supports(plain: PlainLabeller, rest: str) -> str:
    for view in plain.session.supports():
        rows = ", ".join(view.rows) or "no row"
        location = " > ".join(part for part in (view.rel_path, view.heading_path) if part)
        needs = ",".join(map(str, view.parts)) or "0"
        plain.say(f"{view.index + 1} [{needs}] {location} ({view.state}: {rows})")
        for snippet in view.snippets:
            plain.say(f"    {snippet}")
    return plain.session.view.needs_words()


def _tools(plain: PlainLabeller, rest: str) -> str:
    """List the calls, or label one of them: ``T 2`` expects it, ``T 2 x`` forbids it."""
    session = plain.session
    rows = tools.tool_rows(session.case, session.pool.calls.get(session.current, ()))
    number, _, sign = rest.partition(" ")
    if not number:
        for place, row in enumerate(rows, 1):
            plain.say(f"{place} [{row.label or ' '}] {row.text()}")
        return "" if rows else "The bot reports no call of a tool."
    if number == "0":
        return session.revise(tools.expect_none)
    place = number_in(number, "call")
    if not 1 <= place <= len(rows):
        raise ActionRefused(f"There is no call {place}.")
    return session.revise(tools.forbid if sign.strip() == "x" else tools.expect, rows[place - 1])


def _pick(plain: PlainLabeller, rest: str) -> str:
    row, _, number = rest.partition(" ")
    if not number.strip():
        raise ActionRefused("Write pick ROW SENTENCE.")
    index = number_in(number.strip(), "sentence") - 1
    return plain.session.on_row(_row(plain, row), marks.pick, index)


def _drop(plain: PlainLabeller, rest: str) -> str:
    return plain.session.do(marks.remove_support, number_in(rest, "support") - 1)


def _add(plain: PlainLabeller, rest: str) -> str:
    path, _, headings = rest.partition(" > ")
    return plain.session.do(marks.add_support, path, headings)


def _head(plain: PlainLabeller, rest: str) -> str:
    number, _, headings = rest.partition(" ")
    return plain.session.do(marks.set_heading, number_in(number, "support") - 1, headings)


def _edit(plain: PlainLabeller, rest: str) -> str:
    name, _, text = rest.partition(" ")
    kinds = {field: kind for field, kind, _ in edits.EDITABLE}
    if name not in kinds:
        raise ActionRefused(f"Write edit FIELD TEXT; the fields are: {', '.join(kinds)}.")
    value = text.split("|") if kinds[name] == "lines" else text
    return plain.session.revise(edits.edit, {name: value})


def _probe(plain: PlainLabeller, rest: str) -> str:
    words, k = query_and_k(rest)
    query = words or str(plain.session.ledger.open.case.get("question") or "")
    plain.source.probe(plain.session.current, query, k)
    return plain.await_probe(query)


def _fetch(plain: PlainLabeller, rest: str) -> str:
    case_id = plain.session.current
    plain.session.pool.forget(case_id)
    plain.source.refetch(case_id, str(plain.session.case.get("question") or ""))
    plain.await_chunks()
    plain.show_rows()
    return ""


def _go(plain: PlainLabeller, rest: str) -> str:
    queue = plain.session.queue
    if rest in queue:
        queue.goto(rest)
    else:
        queue.goto_number(number_in(rest, "question"))
    return ""


def _move(move: Callable[[WorkQueue], object]) -> Do:
    """A command that opens another question, which is then shown."""

    def do(plain: PlainLabeller, rest: str) -> str:
        move(plain.session.queue)
        return ""

    return do


def _filter(plain: PlainLabeller, rest: str) -> str:
    queue = plain.session.queue
    answer = queue.set_filter(rest)
    for case_id in queue.visible[:20]:
        brief = queue.summaries[case_id]
        plain.say(f"{case_id} {brief.status}{' flagged' if brief.flagged else ''} {brief.question}")
    return answer


def _progress(plain: PlainLabeller, rest: str) -> str:
    p = plain.session.queue.progress()
    answer = p.says()
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


def _conflicts(plain: PlainLabeller, rest: str) -> str:
    words = rest.split()
    conflicts = plain.store.conflicts
    if len(words) == 2:
        index = number_in(words[0], "conflict") - 1
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
    plain.say(
        "Rows: 2 7 marks both, for one need: either is enough. 2 '' 7 ok: 2 and 7, confirmed."
    )
    plain.say("'2 opens need 2, '' a new one, '0 what is not required; marks join the open need.")
    plain.say("7'2 puts row 7 into need 2 alone, 7&2 into need 2 as well, 7=3 grades it.")
    plain.say("An empty line confirms and goes on.")
    screen = {key: action.help for action in actions_of("main") for key in action.keys}
    for name, command in all_commands().items():
        plain.say(f"{f'{name} {command.usage}'.strip():<28} {command.help or screen[name]}")
    return ""


COMMANDS: Final[dict[str, LineCommand[PlainLabeller]]] = {
    "ok": LineCommand("", "Confirm, as an empty line does.", lambda p, r: p.session.confirm()),
    "x": LineCommand("", "", _on_case(edits.unanswerable)),
    "a": LineCommand("", "", _on_case(edits.answerable)),
    "s": LineCommand("", "", lambda p, r: p.session.skip()),
    "f": LineCommand("", "", _on_case(edits.flag)),
    "c": LineCommand("REASON", "Cannot tell, and why.", _with_text(edits.cannot_tell)),
    "note": LineCommand("TEXT", "Write a note; without a text, remove it.", _with_text(edits.note)),
    "u": LineCommand("", "", lambda p, r: p.session.undo()),
    "U": LineCommand("", "", lambda p, r: p.session.redo()),
    ";": LineCommand("[ROW]", "Print the whole text of a row, or the question again.", _show),
    ".": LineCommand("", "Print the next unread row.", _read_on),
    "<": LineCommand("ROW", "", _on_row(marks.shorten)),
    ">": LineCommand("ROW", "", _on_row(marks.lengthen)),
    "@": LineCommand("ROW", "", _on_row(marks.reanchor)),
    "w": LineCommand("", "", _supports),
    "T": LineCommand(
        "[CALL [x]]", "List tool calls; expect one, x: forbid it; 0: expect none.", _tools
    ),
    "P": LineCommand("PATH > HEADING", "", _add),
    "head": LineCommand("SUPPORT HEADING", "Give a support another heading.", _head),
    "drop": LineCommand("SUPPORT", "Remove a support.", _drop),
    "t": LineCommand("ROW", "List the sentences of a row.", _sentences),
    "pick": LineCommand("ROW SENTENCE", "Pick a sentence as a snippet, or drop it.", _pick),
    "fact": LineCommand(
        "TEXT", "Add an expected key fact.", lambda p, r: p.session.revise(edits.key_fact, r)
    ),
    "p": LineCommand("[QUERY] [k=N]", "Fetch rows for another query, or more of them.", _probe),
    "fetch": LineCommand("", "Fetch the rows again.", _fetch),
    "e": LineCommand("FIELD TEXT", "Set a field; | separates the items of a list.", _edit),
    "json": LineCommand(
        "", "Print the record.", lambda p, r: edits.as_text(p.session.ledger.open.case)
    ),
    "o": LineCommand("QUESTION", "", lambda p, r: p.session.add_case(r)),
    "O": LineCommand("", "", lambda p, r: p.session.duplicate_case()),
    "delete": LineCommand("ID", "Delete this case; u brings it back.", _delete),
    "l": LineCommand("", "", _move(WorkQueue.next)),
    "h": LineCommand("", "", _move(WorkQueue.previous)),
    "open": LineCommand("", "Next open question.", _move(WorkQueue.next_open)),
    "back": LineCommand("", "The question before.", _move(WorkQueue.back)),
    "go": LineCommand("ID or NUMBER", "Go to a question.", _go),
    "/": LineCommand("WORDS", "status:open flag tag:x category:x; empty shows all.", _filter),
    "order": LineCommand(
        "NAME", "Order of the questions.", lambda p, r: p.session.queue.set_order(r)
    ),
    "S": LineCommand("ORDER", "shuffled, rank or path.", lambda p, r: p.session.set_row_order(r)),
    "B": LineCommand("on|off", "Hide or show ranks.", _blind),
    "conflicts": LineCommand("[N mine|theirs]", "Conflicts with the file.", _conflicts),
    "progress": LineCommand("", "Counts, pace and time left.", _progress),
    "save": LineCommand("", "Write the set now.", lambda p, r: p.store.save()),
    "?": LineCommand("", "This help.", _help),
}


def all_commands() -> dict[str, LineCommand[PlainLabeller]]:
    """The commands by their words, then those that extras add."""
    return COMMANDS | {each.word: each.line for each in added_actions()}
