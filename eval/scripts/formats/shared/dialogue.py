"""Messages of a conversation, in the shapes that tools log them in, as the turns of our cases."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from formats.shared.item import ImportedCase, Notes, SystemAnswer, passages, passages_in
from formats.shared.rows import SourceRow
from formats.traces.values import calls_in, structured, words_in
from records.results import RetrievedChunk, Search, SearchedChunk, TestResult, union_of

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "agent": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}


@dataclass
class DialogueMessage:
    """One side's message. ``role``: user, assistant, system or tool. ``calls``: what an assistant
    called tools with, by the id of the call: name and query. ``passages``: what it was shown;
    ``feedback``: what the user said of it."""

    role: str
    text: str
    calls: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    answers_call: str = ""
    passages: Sequence[RetrievedChunk] = ()
    feedback: Any = None


@dataclass
class DialogueTurn:
    """A question with the messages up to the next one."""

    question: str
    answer: str | None = None
    searches: list[Search] = field(default_factory=list)
    passages: Sequence[RetrievedChunk] = ()
    feedback: Any = None


def history_of(value: Any) -> list[dict[str, str]] | None:
    """A case's fixed history, from messages under usual names; None when it is none."""
    items = structured(value)
    if not isinstance(items, list):
        return None
    messages = [message_of(item) for item in items]
    if any(message is None or message.role == "tool" for message in messages):
        return None
    return [{"role": message.role, "content": message.text} for message in messages if message]


def message_of(raw: Any) -> DialogueMessage | None:
    """A message of an OpenAI-style, ragas or DeepEval list; None for anything else."""
    if not isinstance(raw, dict):
        return None
    role = _ROLES.get(str(raw.get("role") or raw.get("type") or raw.get("speaker") or "").lower())
    if role is None:
        return None
    content = next(
        (raw[name] for name in ("content", "text", "message") if raw.get(name) is not None), ""
    )
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in content)
        content = "\n".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        return None
    called = raw.get("tool_call_id") or raw.get("name") or ""
    shown = raw.get("retrieval_context")
    texts = [text for text in shown if isinstance(text, str)] if isinstance(shown, list) else []
    calls = {
        call.id or call.name: (call.name, words_in(call.arguments, "in"))
        for call in calls_in(raw.get("tool_calls"))
    }
    return DialogueMessage(
        *(role, content, calls, str(called), passages(texts)),
        raw.get("feedback"),
    )


def turns_in(
    row: SourceRow, field: str, items: Iterable[Any], tells: str, notes: Notes
) -> list[DialogueTurn]:
    """The questions of the messages in a field of a row. ``tells``: what each of them must say."""
    messages = []
    for number, item in enumerate(items):
        if (message := message_of(item)) is None:
            where = f"{row.where}{field}[{number}]"
            notes.problem(row.path, row.line, where, f"is no {tells}")
        else:
            messages.append(message)
    return turns_of(messages, notes)


def turns_of(messages: Sequence[DialogueMessage], notes: Notes) -> list[DialogueTurn]:
    """The questions of a conversation, each with the last answer before the next one.

    What tools gave back between a question and its answer are its searches. Messages of the system,
    and what was said before the first question, have no place.
    """
    turns: list[DialogueTurn] = []
    calls: dict[str, tuple[str, str | None]] = {}
    for message in messages:
        if message.role == "user":
            if turns and turns[-1].answer is None and not turns[-1].searches:
                notes.changed["questions in several messages, joined"] += 1
                turns[-1].question += f"\n{message.text}"
            else:
                turns.append(DialogueTurn(message.text))
        elif message.role == "system":
            notes.left_out["messages of the system"] += 1
        elif not turns:
            notes.left_out["messages before the first question"] += 1
        elif message.role == "tool":
            tool, query = calls.get(message.answers_call, (message.answers_call, None))
            chunks = [SearchedChunk(**_fields(chunk)) for chunk in _passages(message.text, notes)]
            turns[-1].searches.append(Search(query, tool or None, retrieved=[*chunks]))
        else:
            calls |= message.calls
            if message.text.strip():
                if turns[-1].answer is not None:
                    notes.left_out["answers before the last one to a question"] += 1
                turns[-1].answer = message.text
                turns[-1].passages = message.passages or turns[-1].passages
                turns[-1].feedback = message.feedback
    return turns


def _fields(chunk: RetrievedChunk) -> dict[str, Any]:
    return {name: getattr(chunk, name) for name in RetrievedChunk.__struct_fields__}


def _passages(text: str, notes: Notes) -> list[RetrievedChunk]:
    """What a tool gave back: passages in JSON, else its text as one of them, named by its hash."""
    value = structured(text)
    if isinstance(value, dict | list):
        return passages_in(value, notes)
    if not text.strip():
        return []
    name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return passages([text], [name])


def rest_of(row: SourceRow, taken: Collection[str], notes: Notes) -> dict[str, Any]:
    """The fields of a row that are not taken and have a value; counted as kept under metadata."""
    rest = {
        name: value
        for name, value in row.fields.items()
        if name not in taken and value not in (None, "", [], {})
    }
    notes.carried.update(list(rest))
    return rest


def cases_of(
    turns: Sequence[DialogueTurn],
    conversation: str,
    path: Path,
    line: int | None,
    run: str,
    rest: Mapping[str, Any],
) -> Iterator[ImportedCase]:
    """A case for each turn, with the answer that the log has; ``rest`` goes to the first one.

    The log's own answers stood in the history of what followed: they were asked live. A single
    question is a case by itself.
    """
    for number, turn in enumerate(turns, 1):
        case: dict[str, Any] = {"id": conversation, "question": turn.question}
        if len(turns) > 1:
            case |= {"id": f"{conversation}-{number}"}
            case |= {"conversation": conversation, "turn": number}
        if number == 1 and rest:
            case["metadata"] = dict(rest)
        item = ImportedCase(case, path, line)
        if turn.answer is not None or turn.passages or turn.searches:
            item.answers.append(_answer_of(turn, case, run))
        yield item


def _answer_of(turn: DialogueTurn, case: Mapping[str, Any], run: str) -> SystemAnswer:
    result = TestResult(str(case["id"]), turn.question, answer=turn.answer)
    result.asked_with = "live" if "turn" in case else None
    result.retrieved = [*turn.passages]
    if turn.searches:
        result.searches = turn.searches
        brought = [n for n, search in enumerate(turn.searches, 1) if search.retrieved]
        if brought and not turn.passages:
            lists = [chunks for _, chunks in result.searched() if chunks]
            result.retrieved = [*union_of(lists)]
            if len(brought) == 1:
                result.retrieved_from_search = brought[0]
            else:
                result.seen = "union"
    has_retrieved = bool(turn.passages or turn.searches)
    return SystemAnswer(run, result, has_retrieved=has_retrieved)
