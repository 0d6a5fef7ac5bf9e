"""Chat logs in OpenAI's form: a list of messages a line, or a request with its response."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from formats.shared.dialogue import DialogueMessage, cases_of, message_of, turns_of
from formats.shared.item import Ids, ImportedCase, ImportOptions, Notes
from formats.shared.rows import iter_rows, unpacked
from formats.traces.feedback import Ratings, ratings_beside
from records.results import TestResult

NAME = "openai"

ABOUT = "chat logs: lines of {messages: [{role, content}]}, or requests with their responses"

LISTS = ("data", "conversations", "logs")

IDS = ("conversation_id", "conversation", "session_id", "thread_id", "id")

_TAKEN = {"messages", "request", "response", "body", "choices", "feedback", *IDS}


class _Log(NamedTuple):
    """A line: its place, its own fields, and what was said, with a hash of each beginning."""

    path: Path
    line: int | None
    fields: dict[str, Any]
    messages: list[DialogueMessage]
    begins: list[bytes]


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each question of a user, the questions of one line as turns of a conversation.

    A line that is a prefix of another, as in logs of single requests, is dropped. Results of tools
    are kept as searches. ``feedback`` of a message, or of the line for its last message, is kept as
    feedback. All lines are held in memory."""
    logs = [log for source in sources for log in _logs(unpacked(source, options.scratch), notes)]
    begun = {begin for log in logs for begin in log.begins[:-1]}
    seen: set[bytes] = set()
    ids = Ids()
    items: list[ImportedCase] = []
    ratings = Ratings(notes)
    rated: dict[str, TestResult] = {}
    for log in logs:
        if log.begins[-1] in begun or log.begins[-1] in seen:
            notes.rows["lines that another line continues or repeats"] += 1
            continue
        seen.add(log.begins[-1])
        turns = turns_of(log.messages, notes)
        if not turns:
            notes.left_out["conversations without a question"] += 1
            continue
        own = next((log.fields[name] for name in IDS if log.fields.get(name)), None)
        name = ids.make(turns[0].question) if own is None else str(own)
        if own is None:
            notes.changed["conversations without an id, named by a hash of the question"] += 1
        rest = {name: value for name, value in log.fields.items() if name not in _TAKEN}
        notes.carried.update(list(rest))
        run = options.run_id or log.path.stem
        turns[-1].feedback = turns[-1].feedback or log.fields.get("feedback")
        for turn, item in zip(
            turns, cases_of(turns, name, log.path, log.line, run, rest), strict=True
        ):
            place = str(len(items))
            if item.answers:
                rated[place] = item.answers[0].result
            for told in ratings_beside(turn.feedback):
                ratings.add(replace(told, span=place))
            items.append(item)
    ratings.attach(rated, {}, options.key_of_ids)
    yield from items


def _logs(path: Path, notes: Notes) -> Iterator[_Log]:
    for row in iter_rows(path, notes, LISTS):
        notes.rows["lines"] += 1
        raw = _messages(row.fields)
        if raw is None:
            notes.problem(path, row.line, f"{row.where}messages", "is missing or no list")
            continue
        messages, begins = [], []
        digest = hashlib.sha256()
        for number, item in enumerate(raw):
            message = message_of(item)
            if message is None:
                place = f"{row.where}messages[{number}]"
                notes.problem(path, row.line, place, "has no known role, or no text")
                continue
            messages.append(message)
            digest.update(orjson.dumps([message.role, message.text]))
            begins.append(digest.digest())
        if begins:
            yield _Log(path, row.line, row.fields, messages, begins)


def _messages(fields: dict[str, Any]) -> list[Any] | None:
    """The messages of a line: its own, or those of its request and the first choice behind them."""
    request = fields.get("request", fields)
    body = request.get("body", request) if isinstance(request, dict) else {}
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list):
        return None
    response = fields.get("response", fields)
    reply = response.get("body", response) if isinstance(response, dict) else {}
    choices = reply.get("choices") if isinstance(reply, dict) else None
    answers = [
        choice["message"]
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, dict) and isinstance(choice.get("message"), dict)
    ]
    return [*messages, *answers[:1]]
