"""The words of line mode: one table, from which lines are obeyed and the help is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from labeller.edits import EDITABLE
from labeller.ports import Refused

if TYPE_CHECKING:
    from labeller.plain import Plain

SHORT_HELP: Final = "marks (2 7b), Enter ok, x, s, show 2, u, q, ? help"


@dataclass(frozen=True)
class Word:
    """A command: what may follow it, what it does in one sentence, and the doing."""

    usage: str
    help: str
    do: Callable[[Plain, str], str]


def run_words(plain: Plain, name: str, rest: str) -> str:
    """Do a command of the table; returns what to say, ``""`` for what has said it already."""
    return COMMANDS[name].do(plain, rest)


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise Refused(f"Write the number of the {what}.")
    return int(text)


def _row(plain: Plain, text: str) -> int:
    if not text:
        raise Refused("Write the row's number.")
    return plain.session.row_by_label(text).number


def _two(text: str, usage: str) -> tuple[str, str]:
    first, _, second = text.partition(" ")
    if not first or not second.strip():
        raise Refused(f"Write {usage}.")
    return first, second.strip()


def _show(plain: Plain, rest: str) -> str:
    if not rest:
        plain.show_case()
        return ""
    row = plain.session.row(_row(plain, rest))
    plain.session.see(row.number)
    plain.say(f"row {row.label}: {row.chunk.rel_path} > {row.chunk.heading_path}")
    plain.say(row.chunk.text)
    return ""


def _sentences(plain: Plain, rest: str) -> str:
    number = _row(plain, rest)
    plain.session.see(number)
    for sentence in plain.session.sentences(number):
        plain.say(f"{'*' if sentence.picked else ' '} {sentence.index + 1} {sentence.text}")
    return ""


def _pick(plain: Plain, rest: str) -> str:
    row, sentence = _two(rest, "pick ROW SENTENCE")
    return plain.session.pick(_row(plain, row), _number(sentence, "sentence") - 1)


def _grade(plain: Plain, rest: str) -> str:
    row, grade = _two(rest, "g ROW 0-3")
    return plain.session.grade(_row(plain, row), _number(grade, "grade"))


def _group(plain: Plain, rest: str) -> str:
    row, letter = _two(rest, "m ROW LETTER")
    return plain.session.group(_row(plain, row), letter)


def _share(plain: Plain, rest: str) -> str:
    row, letter = _two(rest, "also ROW LETTER")
    return plain.session.share(_row(plain, row), letter)


def _supports(plain: Plain, rest: str) -> str:
    for view in plain.session.supports():
        rows = ", ".join(view.rows) or "no row"
        place = " > ".join(part for part in (view.rel_path, view.heading_path) if part)
        plain.say(f"{view.index + 1} [{view.letters}] {place} ({view.state}: {rows})")
        for snippet in view.snippets:
            plain.say(f"    {snippet}")
    return plain.session.needs_words()


def _add(plain: Plain, rest: str) -> str:
    path, _, place = rest.partition(" > ")
    return plain.session.add_support(path, place)


def _head(plain: Plain, rest: str) -> str:
    number, _, place = rest.partition(" ")
    return plain.session.set_heading(_number(number, "support") - 1, place)


def _edit(plain: Plain, rest: str) -> str:
    name, _, text = rest.partition(" ")
    kinds = {field: kind for field, kind, _ in EDITABLE}
    if name not in kinds:
        raise Refused(f"Write edit FIELD TEXT; the fields are: {', '.join(kinds)}.")
    value = text.split("|") if kinds[name] == "lines" else text
    return plain.session.edit({name: value})


def _probe(plain: Plain, rest: str) -> str:
    words = rest.split()
    k = next((w[2:] for w in words if w.startswith("k=") and w[2:].isdigit()), None)
    query = " ".join(word for word in words if not word.startswith("k="))
    query = query or str(plain.session.case.get("question") or "")
    if not plain.session.current:
        raise Refused("There is no case.")
    plain.source.probe(plain.session.current, query, int(k) if k else None)
    return plain.await_probe(query)


def _fetch(plain: Plain, rest: str) -> str:
    case_id = plain.session.current
    plain.session.forget_chunks(case_id)
    plain.source.refetch(case_id, str(plain.session.case.get("question") or ""))
    plain.await_chunks()
    plain.show_rows()
    return ""


def _go(plain: Plain, rest: str) -> str:
    if plain.session.knows(rest):
        plain.session.goto(rest)
    else:
        plain.session.goto_number(_number(rest, "question"))
    return ""


def _silently(move: Callable[[Plain], object]) -> Callable[[Plain, str], str]:
    def do(plain: Plain, rest: str) -> str:
        move(plain)
        return ""

    return do


def _filter(plain: Plain, rest: str) -> str:
    said = plain.session.set_filter(rest)
    for brief in plain.session.briefs()[:20]:
        plain.say(
            f"{brief.id} {brief.status}{' flagged' if brief.flagged else ''} {brief.question}"
        )
    return said


def _progress(plain: Plain, rest: str) -> str:
    p = plain.session.progress()
    said = (
        f"{p.done} of {p.total} done: {p.labelled} labelled, {p.unanswerable} unanswerable, "
        f"{p.cannot_tell} cannot tell; {p.open} open, {p.skipped} later, {p.flagged} flagged"
    )
    if p.seconds_each is not None and p.seconds_left is not None:
        said += f"; {p.seconds_each:.0f} s each, {p.seconds_left / 60:.0f} min left"
    return said


def _blind(plain: Plain, rest: str) -> str:
    if rest not in ("on", "off"):
        raise Refused("Write blind on or blind off.")
    return plain.session.set_blind(rest == "on")


def _delete(plain: Plain, rest: str) -> str:
    if rest != plain.session.current:
        raise Refused(f"Write delete {plain.session.current} to delete it.")
    return plain.session.delete_case()


def _settle(plain: Plain, rest: str) -> str:
    """``adj NAME`` lists, ``adj NAME 2 union`` chooses, ``adj NAME done`` confirms."""
    words = rest.split()
    if not words:
        raise Refused(f"Write adj NAME; at hand: {', '.join(plain.session.annotators) or 'none'}.")
    name = words[0]
    if words[1:] == ["done"]:
        return plain.session.adjudicated(name)
    if len(words) == 3:
        return plain.session.adjudicate(name, _number(words[1], "disagreement") - 1, words[2])
    items = plain.session.disagreements(name)
    for item in items:
        plain.say(f"{item.index + 1} {item.text}: A {item.a}, B {item.b}; {item.choice or '?'}")
    return f"{len(items)} disagreements; adj {name} 1 a|b|union|neither, then adj {name} done"


def _conflicts(plain: Plain, rest: str) -> str:
    words = rest.split()
    known = plain.store.conflicts
    if len(words) == 2:
        place = _number(words[0], "conflict") - 1
        if not 0 <= place < len(known):
            raise Refused(f"There is no conflict {words[0]}.")
        return plain.store.resolve(known[place], words[1])
    for number, conflict in enumerate(known, start=1):
        plain.say(f"{number} {conflict.case_id}: {', '.join(conflict.fields)}")
        plain.say(f"  mine:   {conflict.mine}")
        plain.say(f"  theirs: {conflict.theirs}")
    return f"{len(known)} conflicts" + ("; conflicts 1 mine|theirs settles one" if known else "")


def _help(plain: Plain, rest: str) -> str:
    plain.say("Rows: 2 marks, 7b puts row 7 into group b, 3=2 grades; 2 7b ok confirms as well.")
    plain.say("Groups: rows of one letter are needed together; another letter is an alternative.")
    plain.say("An empty line confirms and goes on.")
    for name, word in COMMANDS.items():
        plain.say(f"{(name + ' ' + word.usage).strip():<28} {word.help}")
    return ""


COMMANDS: Final[dict[str, Word]] = {
    "ok": Word("", "Confirm, as an empty line does.", lambda p, r: p.session.confirm().message),
    "x": Word("", "Unanswerable, or not after all.", lambda p, r: p.session.unanswerable()),
    "a": Word("", "Answerable, or open again.", lambda p, r: p.session.answerable()),
    "s": Word("", "Judge later.", lambda p, r: p.session.skip()),
    "f": Word("", "Flag, or take the flag off.", lambda p, r: p.session.flag()),
    "c": Word("REASON", "Cannot tell, and why.", lambda p, r: p.session.cannot_tell(r)),
    "note": Word("TEXT", "Keep a note; without a text remove it.", lambda p, r: p.session.note(r)),
    "u": Word("", "Undo.", lambda p, r: p.session.undo()),
    "U": Word("", "Redo.", lambda p, r: p.session.redo()),
    "show": Word("[ROW]", "Print the question again, or the whole text of a row.", _show),
    "g": Word("ROW 0-3", "Grade a row.", _grade),
    "m": Word("ROW LETTER", "Move a row to a group.", _group),
    "also": Word("ROW LETTER", "Put a row into one more group, or out of it.", _share),
    "M": Word("", "New marks join a new group.", lambda p, r: p.session.next_group()),
    "short": Word("ROW", "Shorten its heading.", lambda p, r: p.session.shorten(_row(p, r))),
    "long": Word("ROW", "Lengthen its heading.", lambda p, r: p.session.lengthen(_row(p, r))),
    "re": Word("ROW", "Anchor its support here.", lambda p, r: p.session.reanchor(_row(p, r))),
    "sup": Word("", "List the supports and what is needed.", _supports),
    "add": Word("PATH > HEADING", "Add a support that no row shows.", _add),
    "head": Word("SUPPORT HEADING", "Give a support another heading.", _head),
    "drop": Word(
        "SUPPORT",
        "Remove a support.",
        lambda p, r: p.session.remove_support(_number(r, "support") - 1),
    ),
    "sent": Word("ROW", "List the sentences of a row.", _sentences),
    "pick": Word("ROW SENTENCE", "Pick a sentence as a snippet, or drop it.", _pick),
    "fact": Word("TEXT", "Add an expected key fact.", lambda p, r: p.session.key_fact(r)),
    "probe": Word("[QUERY] [k=N]", "Fetch rows for another query, or more of them.", _probe),
    "fetch": Word("", "Fetch the rows again.", _fetch),
    "edit": Word("FIELD TEXT", "Set a field; | parts the items of a list.", _edit),
    "json": Word("", "Print the record.", lambda p, r: p.session.record_text()),
    "new": Word("QUESTION", "Add a case.", lambda p, r: p.session.add_case(r)),
    "copy": Word("", "Add a copy of this case.", lambda p, r: p.session.duplicate_case()),
    "delete": Word("ID", "Delete this case; u brings it back.", _delete),
    "n": Word("", "Next question.", _silently(lambda p: p.session.next())),
    "p": Word("", "Previous question.", _silently(lambda p: p.session.previous())),
    "open": Word("", "Next open question.", _silently(lambda p: p.session.next_open())),
    "back": Word("", "The question before.", _silently(lambda p: p.session.back())),
    "go": Word("ID or NUMBER", "Go to a question.", _go),
    "filter": Word("WORDS", "status:open flag tag:x category:x; empty shows all.", _filter),
    "order": Word("NAME", "Order of the questions.", lambda p, r: p.session.set_order(r)),
    "rows": Word("ORDER", "shuffled, rank or path.", lambda p, r: p.session.set_row_order(r)),
    "blind": Word("on|off", "Hide or show ranks.", _blind),
    "adj": Word("NAME [N CHOICE|done]", "Settle disagreements with an annotator.", _settle),
    "conflicts": Word("[N mine|theirs]", "Changes that clash with the file's.", _conflicts),
    "progress": Word("", "Counts, pace and time left.", _progress),
    "save": Word("", "Write the set now.", lambda p, r: p.store.save()),
    "?": Word("", "This help.", _help),
}
