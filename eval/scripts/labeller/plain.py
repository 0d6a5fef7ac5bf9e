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

from labeller import edits, marks
from labeller.actions import LineCommand, actions_of, added_actions
from labeller.conversation import conversation_text
from labeller.fetching import Fetcher, deliver, prefetch, query_and_k
from labeller.rows import ChunkRow, sentences_of
from labeller.session import Session, present_view
from labeller.store import LabelStore
from labeller.supports import open_words
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
        self.session, self.store, self.source, self._wait = session, store, source, wait
        self._terminal = LineTerminal(stdin, stdout, SHORT_HELP if prompt else "")
        self._came = threading.Event()
        source.listen(self._came.set)

    def run(self) -> int:
        """Read lines until ``q`` or the end of the input. The caller closes store and source."""
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
        chunk, text = row.chunk, " ".join(row.chunk.text.split())
        if len(text) <= EXCERPT:
            self.session.see(row.number)
        else:
            text = text[: EXCERPT - 1] + "…"
        needs = ",".join(map(str, row.parts)) or ("0" if row.marked else " ")
        grade = "" if row.grade is None else f" grade {row.grade:g}"
        rank = "" if row.rank is None else f" (rank {row.rank})"
        where = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
        where += f", page {chunk.page}" if chunk.page else ""
        return f"[{needs}]{grade} {row.label:>3}{rank} {where}: {text}"

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
        probe, had = (self.session.current, query), len(self.session.rows())
        problems: list[str] = []

        def ready() -> bool:
            arrived = deliver(self.session, self.source)
            problems.extend(each.problem for each in arrived if (each.case_id, each.query) == probe)
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

    def _do(self, line: str) -> str:
        words = line.split()
        if not words or words == ["ok"]:
            return self.session.confirm()
        name, _, rest = line.partition(" ")
        if command := all_commands().get(name):
            return command.do(self, rest.strip()) or ""
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
        if need := _NEED.fullmatch(word):
            self.session.open_need(None if need[1] == "'" else int(need[1]))
            return
        mark = _MARK.fullmatch(word)
        assert mark is not None
        label, how, number, grade = mark.groups()
        row = self.session.view.row_by_label(label).number
        if how:
            self.session.on_row(row, marks.group if how == "'" else marks.share, int(number))
        if grade:
            self.session.on_row(row, marks.grade, int(grade))
        if not how and not grade:
            self.session.on_row(row, marks.toggle)


def number_in(text: str, noun: str) -> int:
    """The number that a text is, of something on the screen. Refuses any other text."""
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise ActionRefused(f"Write the number of the {noun}.")
    return int(text)


def _row(plain: PlainLabeller, text: str) -> ChunkRow:
    if not text:
        raise ActionRefused("Write the row's number.")
    return plain.session.view.row_by_label(text)


def _show(plain: PlainLabeller, rest: str) -> None:
    if not rest:
        plain.show_case()
        return
    row = _row(plain, rest)
    plain.session.see(row.number)
    plain.say(f"row {row.label}: {row.chunk.rel_path} > {row.chunk.heading_path}")
    plain.say(row.chunk.text)


def _sentences(plain: PlainLabeller, rest: str) -> None:
    row = _row(plain, rest)
    plain.session.see(row.number)
    for sentence in sentences_of(row, plain.session.case):
        plain.say(f"{'*' if sentence.picked else ' '} {sentence.index + 1} {sentence.text}")


def _read_on(plain: PlainLabeller, rest: str) -> str:
    for row in plain.session.rows():
        if not row.seen:
            _show(plain, row.label)
            return ""
    return "All rows are read."


def _supports(plain: PlainLabeller, rest: str) -> str:
    for view in plain.session.supports():
        rows = ", ".join(view.rows) or "no row"
        location = " > ".join(filter(None, (view.rel_path, view.heading_path)))
        needs = ",".join(map(str, view.parts)) or "0"
        plain.say(f"{view.index + 1} [{needs}] {location} ({view.state}: {rows})")
        for snippet in view.snippets:
            plain.say(f"    {snippet}")
    return plain.session.view.needs_words()


def _tools(plain: PlainLabeller, rest: str) -> str:
    """List the calls, or label one of them: ``T 2`` expects it, ``T 2 x`` forbids it."""
    session = plain.session
    rows = edits.tool_rows(session.case, session.pool.calls.get(session.current, ()))
    number, _, sign = rest.partition(" ")
    if not number:
        for place, row in enumerate(rows, 1):
            plain.say(f"{place} [{row.label or ' '}] {row.text()}")
        return "" if rows else "The bot reports no call of a tool."
    if number == "0":
        return session.revise(edits.expect_none)
    place = number_in(number, "call")
    if not 1 <= place <= len(rows):
        raise ActionRefused(f"There is no call {place}.")
    return session.revise(edits.forbid if sign.strip() == "x" else edits.expect, rows[place - 1])


def _pick(plain: PlainLabeller, rest: str) -> str:
    row, _, number = rest.partition(" ")
    if not number.strip():
        raise ActionRefused("Write pick ROW SENTENCE.")
    index = number_in(number.strip(), "sentence") - 1
    return plain.session.on_row(_row(plain, row).number, marks.pick, index)


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


def _fetch(plain: PlainLabeller, rest: str) -> None:
    case_id = plain.session.current
    plain.session.pool.forget(case_id)
    plain.source.refetch(case_id, str(plain.session.case.get("question") or ""))
    plain.await_chunks()
    plain.show_rows()


def _go(plain: PlainLabeller, rest: str) -> None:
    queue = plain.session.queue
    if rest in queue:
        queue.goto(rest)
    else:
        queue.goto_number(number_in(rest, "question"))


def _filter(plain: PlainLabeller, rest: str) -> str:
    queue = plain.session.queue
    answer = queue.set_filter(rest)
    for case_id in queue.visible[:20]:
        brief = queue.summaries[case_id]
        plain.say(f"{case_id} {brief.status}{' flagged' if brief.flagged else ''} {brief.question}")
    return answer


def _progress(plain: PlainLabeller, rest: str) -> str:
    p = plain.session.queue.progress()
    if p.seconds_each is None or p.seconds_left is None:
        return p.says()
    return f"{p.says()}; {p.seconds_each:.0f} s each, {p.seconds_left / 60:.0f} min left"


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
    remedy = "; conflicts 1 mine|theirs settles one" if conflicts else ""
    return f"{len(conflicts)} conflicts{remedy}"


ROWS_HELP = """\
Rows: 2 7 marks both, for one need: either is enough. 2 '' 7 ok: 2 and 7, confirmed.
'2 opens need 2, '' a new one, '0 what is not required; marks join the open need.
7'2 puts row 7 into need 2 alone, 7&2 into need 2 as well, 7=3 grades it.
An empty line confirms and goes on."""


def _help(plain: PlainLabeller, rest: str) -> None:
    plain.say(ROWS_HELP)
    screen = {key: action.help for action in actions_of("main") for key in action.keys}
    for name, command in all_commands().items():
        plain.say(f"{f'{name} {command.usage}'.strip():<28} {command.help or screen[name]}")


Do = Callable[[PlainLabeller, str], str | None]

_ROWS: Final[dict[str, tuple[str, str, Do]]] = {
    "ok": ("", "Confirm, as an empty line does.", lambda p, r: p.session.confirm()),
    "x": ("", "", lambda p, r: p.session.do(edits.unanswerable)),
    "a": ("", "", lambda p, r: p.session.do(edits.answerable)),
    "s": ("", "", lambda p, r: p.session.skip()),
    "f": ("", "", lambda p, r: p.session.do(edits.flag)),
    "c": ("REASON", "Cannot tell, and why.", lambda p, r: p.session.do(edits.cannot_tell, r)),
    "note": (
        "TEXT",
        "Write a note; without a text, remove it.",
        lambda p, r: p.session.do(edits.note, r),
    ),
    "u": ("", "", lambda p, r: p.session.undo()),
    "U": ("", "", lambda p, r: p.session.redo()),
    ";": ("[ROW]", "Print the whole text of a row, or the question again.", _show),
    ".": ("", "Print the next unread row.", _read_on),
    "<": ("ROW", "", lambda p, r: p.session.on_row(_row(p, r).number, marks.shorten)),
    ">": ("ROW", "", lambda p, r: p.session.on_row(_row(p, r).number, marks.lengthen)),
    "@": ("ROW", "", lambda p, r: p.session.on_row(_row(p, r).number, marks.reanchor)),
    "w": ("", "", _supports),
    "T": ("[CALL [x]]", "List tool calls; expect one, x: forbid it; 0: expect none.", _tools),
    "P": ("PATH > HEADING", "", _add),
    "head": ("SUPPORT HEADING", "Give a support another heading.", _head),
    "drop": ("SUPPORT", "Remove a support.", _drop),
    "t": ("ROW", "List the sentences of a row.", _sentences),
    "pick": ("ROW SENTENCE", "Pick a sentence as a snippet, or drop it.", _pick),
    "fact": ("TEXT", "Add an expected key fact.", lambda p, r: p.session.revise(edits.key_fact, r)),
    "p": ("[QUERY] [k=N]", "Fetch rows for another query, or more of them.", _probe),
    "fetch": ("", "Fetch the rows again.", _fetch),
    "e": ("FIELD TEXT", "Set a field; | separates the items of a list.", _edit),
    "json": ("", "Print the record.", lambda p, r: edits.as_text(p.session.ledger.open.case)),
    "o": ("QUESTION", "", lambda p, r: p.session.add_case(r)),
    "O": ("", "", lambda p, r: p.session.duplicate_case()),
    "delete": ("ID", "Delete this case; u brings it back.", _delete),
    "l": ("", "", lambda p, r: p.session.queue.next()),
    "h": ("", "", lambda p, r: p.session.queue.previous()),
    "open": ("", "Next open question.", lambda p, r: p.session.queue.next_open()),
    "back": ("", "The question before.", lambda p, r: p.session.queue.back()),
    "go": ("ID or NUMBER", "Go to a question.", _go),
    "/": ("WORDS", "status:open flag tag:x category:x; empty shows all.", _filter),
    "order": ("NAME", "Order of the questions.", lambda p, r: p.session.queue.set_order(r)),
    "S": ("ORDER", "shuffled, rank or path.", lambda p, r: p.session.set_row_order(r)),
    "B": ("on|off", "Hide or show ranks.", _blind),
    "conflicts": ("[N mine|theirs]", "Conflicts with the file.", _conflicts),
    "progress": ("", "Counts, pace and time left.", _progress),
    "save": ("", "Write the set now.", lambda p, r: p.store.save()),
    "?": ("", "This help.", _help),
}
"""What follows a word, what the command does, and the doing, by the word."""

COMMANDS: Final = {word: LineCommand(*row) for word, row in _ROWS.items()}


def all_commands() -> dict[str, LineCommand[PlainLabeller]]:
    """The commands by their words, then those that extras add."""
    return COMMANDS | {each.word: each.line for each in added_actions()}
