"""Reads a trace: question, answer, searches, what the answer saw, calls of tools, session.

One set of rules for the spans of any source. The structure of the spans decides, never the name
that a framework gives to a step. An answer that is not certain is unknown, and says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from formats.traces.spans import (
    AGENT,
    CHAT,
    GUARD,
    QUERY,
    REFERENCES,
    RERANKER,
    RETRIEVAL,
    TOOL,
    TOOL_NAMES,
    Span,
    documents_of,
    given_out,
    has_content,
    has_documents,
    kind_of,
    messages_of,
    session_of,
    value_of,
)
from formats.traces.values import (
    Call,
    Message,
    is_label,
    is_literal,
    is_sentence,
    last_question,
    messages_in,
    only_text,
    opened,
    question_in,
    reply_text,
    result_text,
    structured,
    texts_within,
)
from records.passage_fields import TEXTS
from records.tool_calls import MOST_NAME, MOST_TOOL_TEXT, ToolCall, agent_handed_to

AnswerState = Literal["read", "none", "unknown", "not captured", "by reference", "incomplete"]
"""``none``: contents were captured, and no answer came. ``unknown``: something came, and nothing
says for certain that it is the answer. The rest: why nothing can be read."""

REPEATED = "spans that are repeated"
OTHER_CONTENT = "spans with the id of another one, which is kept"
HIDDEN = frozenset({TOOL, RETRIEVAL, RERANKER, GUARD})
"""Marks around a model's words that are no answer to the user."""

_NAMED_QUESTION = re.compile(
    r"(?:^|\n)\W*(?:user(?:'s)? )?(?:question|query|input)\W*:\s*(.+?)(?:\n\W*answer\W*:?\s*)?$",
    re.IGNORECASE | re.DOTALL,
)
_REACT = re.compile(r"^\s*Thought:.*\bAnswer:\s*", re.DOTALL)
_DUNDER = re.compile(r"__\w+__")
_CUT = re.compile(r"\.\.\.['\")\]}]*$")
_LEAST_CUT = 10
"""Characters of an answer that must be there before it is cut, to know it again."""
_LEAST_PASSAGE = 4
"""Characters of a passage that is looked for in a prompt."""
_BEGINNING = 200
"""Characters of a passage or a result that are enough to know it again in a prompt."""


@dataclass(slots=True)
class TracedSearch:
    """One search: its span, the tool that it was made by, its query and the documents in order.

    ``span``: None where only messages tell of it.
    """

    span: Span | None
    tool: str | None
    query: str | None
    documents: list[dict[str, Any]]


@dataclass(slots=True)
class TracedCall:
    """A call of a tool, with its span and its logged result.

    ``span``: None where only messages report the call.
    """

    call: ToolCall
    span: Span | None = None
    value: Any = None


@dataclass(slots=True)
class Trace:
    """The content of one trace. ``root``: the outermost span that tells something of the answer.

    ``writer``: the call of the model that wrote the answer.
    ``earlier``: messages before the question, as role and text. ``spans`` in order of time.
    ``dropped``: spans that came again, by kind.
    """

    spans: list[Span]
    root: Span | None = None
    question: str | None = None
    answer: str | None = None
    state: AnswerState = "unknown"
    session: str | None = None
    writer: Span | None = None
    shown: list[str] = field(default_factory=list)
    """Results of tools in the prompt of the answer, of this turn or an earlier one."""
    folded_prompt: str | None = None
    weight: float = 1.0
    is_cut: bool = False
    """Whether the question was cut out of a prompt with passages."""
    earlier: list[tuple[str, str]] = field(default_factory=list)
    searches: list[TracedSearch] = field(default_factory=list)
    reranked: list[dict[str, Any]] = field(default_factory=list)
    calls: list[TracedCall] = field(default_factory=list)
    handoffs: list[str] = field(default_factory=list)
    """The agents that took over, in order."""
    kinds: dict[int, str] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def tools(self) -> list[ToolCall]:
        """The calls of tools, in order of time."""
        return [traced.call for traced in self.calls]

    @property
    def prompt(self) -> str | None:
        """The model's input when it wrote the answer, with single blanks; None where that was not
        captured. Put together when it is asked for: most traces need none."""
        if self.folded_prompt is None and self.writer is not None:
            self.folded_prompt = _prompt_of(self.writer)
        return self.folded_prompt or None

    def of_kind(self, kind: str) -> list[Span]:
        """The spans of a kind, in order of time."""
        return [span for span in self.spans if self.kinds[id(span)] == kind]


def message_in_prompt(trace: Trace, text: str) -> bool:
    """Whether a text, or its beginning, was in the input of the model that wrote the answer."""
    return trace.prompt is not None and _folded(text)[:_BEGINNING] in trace.prompt


def joined_spans(spans: Iterable[Span], dropped: Counter[str]) -> list[Span]:
    """Spans with the log records that belong to them as events, in order of time; once each.

    ``dropped``: counts by kind those that are not once there.

    What was written when a span began (Logfire does so) gives way to the whole span.
    """
    once: dict[tuple[Any, ...], Span] = {}
    logs: list[Span] = []
    ended = set()
    for span in spans:
        if span.is_log:
            logs.append(span)
        elif span.attributes.get("logfire.span_type") != "pending_span":
            place = (span.id, span.name, span.start, *span.attributes)
            first = once.setdefault(place, span)
            if first is not span:
                dropped[REPEATED if first.says_as(span) else OTHER_CONTENT] += 1
            ended |= set() if span.is_open else {span.id}
    once = {p: span for p, span in once.items() if not (span.is_open and span.id in ended)}
    by_id = {span.id: span for span in once.values()}
    alone: dict[str, Span] = {}
    for log in logs:
        owner = by_id.get(log.id) or alone.setdefault(log.id, log)
        if owner is not log:
            owner.events.extend(log.events)
            owner.known_messages.clear()
    ordered = [*once.values(), *alone.values()]
    _hang_below_trace(ordered)
    return sorted(ordered, key=lambda span: (span.start, span.end))


def _hang_below_trace(spans: Sequence[Span]) -> None:
    """Put what has no parent below the span that is the whole trace, where there is one: Langfuse
    and the OpenAI Agents SDK list it beside the spans, often without its times."""
    ids = {name for span in spans[:1] for name in (f"trace:{span.trace}", span.trace)}
    whole = next((span for span in spans if span.id in ids), None)
    if whole is None:
        return
    for span in spans:
        if span is not whole and not span.parent:
            span.parent = whole.id
    if not whole.end:
        whole.start = whole.start or min((span.start for span in spans if span.start), default=0)
        whole.end = max(span.end for span in spans)


class _Tree:
    """The spans of a trace with what is around each."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._by_id = {span.id: span for span in spans}
        self.kinds = {id(span): kind_of(span) for span in spans}
        self.around = {id(span): self._ancestors(span) for span in spans}

    def _ancestors(self, span: Span) -> list[Span]:
        """The spans around a span, the nearest first."""
        around: list[Span] = []
        inner, passed = span, {span.id}
        while inner.parent and (outer := self._by_id.get(inner.parent)) is not None:
            if outer.id in passed:
                break
            passed.add(outer.id)
            around.append(outer)
            inner = outer
        return around

    def kind(self, span: Span) -> str:
        return self.kinds[id(span)]

    def earlier(self, span: Span) -> list[Span]:
        """The spans that began no later than a span, in order of time."""
        return [other for other in self._by_id.values() if other.start <= span.start]

    def is_hidden(self, span: Span) -> bool:
        """Whether a span is within a tool, a retrieval or a guardrail, or is one."""
        return any(self.kind(outer) in HIDDEN for outer in (span, *self.around[id(span)]))


def read_trace(spans: Iterable[Span]) -> Trace:
    """Read the spans of one trace, in any order."""
    dropped: Counter[str] = Counter()
    ordered = joined_spans(spans, dropped)
    tree = _Tree(ordered)
    trace = Trace(ordered, kinds=tree.kinds, dropped=dropped)
    roots = [span for span in ordered if span.is_root]
    tops = _tops(ordered, tree)
    trace.root = tops[0] if tops else (roots[0] if roots else None)
    trace.session = next((name for span in ordered if (name := session_of(span))), None)
    trace.weight = max((span.weight for span in roots), default=1.0)
    trace.searches = list(_searches(ordered, tree))
    trace.reranked = next(
        (rows for span in reversed(trace.of_kind(RERANKER)) if (rows := documents_of(span))), []
    )
    for traced in _tools(ordered, tree):
        if (agent := agent_handed_to(traced.call)) is None:
            trace.calls.append(traced)
        else:
            trace.handoffs.append(agent)
    _read_question(trace, tops, tree)
    is_open = any(span.is_open and (span.is_root or tree.kind(span)) for span in ordered)
    if not roots or is_open:
        trace.state = "incomplete"
        return trace
    _read_answer(trace, tops, tree)
    return trace


def _tops(spans: Sequence[Span], tree: _Tree) -> list[Span]:
    """The outermost spans that tell what was asked or answered: agents first, by time."""
    tellers = [
        span
        for span in spans
        if tree.kind(span) in (AGENT, CHAT, "") and not tree.is_hidden(span) and has_content(span)
    ]
    told = {id(span) for span in tellers}
    tops = [s for s in tellers if not any(id(outer) in told for outer in tree.around[id(s)])]
    rank = {AGENT: 0, CHAT: 1, "": 2}
    return sorted(tops, key=lambda span: rank[tree.kind(span)])  # stable: in order of time


def _read_question(trace: Trace, tops: Sequence[Span], tree: _Tree) -> None:
    """The user's words: of the outermost span that tells them, else of the first chat."""
    chats = [span for span in trace.of_kind(CHAT) if not tree.is_hidden(span)]
    for span in (*tops, *chats):
        messages = messages_of(span, "in")
        is_first = tree.kind(span) != CHAT and len(messages) == 1
        if is_first and len(held := messages_in(value_of(span, "in"))) > 1:
            messages = held  # instrumentation may write the first alone beside the whole list
        text = last_question(messages)
        if text is None and not messages:
            value = value_of(span, "in")
            text = question_in(value) or (only_text(value) if tree.kind(span) == AGENT else None)
        if text is None:
            continue
        asked = max((n for n, m in enumerate(messages) if m.text == text), default=0)
        trace.earlier = [
            (m.role, m.text) for m in messages[:asked] if m.role in ("user", "assistant")
        ]
        trace.question = text
        if tree.kind(span) == CHAT:
            trace.question = _as_given(span, text, tree) or _without_passages(trace, text)
        return
    # What a search service was asked is its question: nothing is around it.
    root = trace.root
    if not tops and root is not None and tree.kind(root) == RETRIEVAL:
        trace.question = _query_of(root)


def _as_given(chat: Span, prompt: str, tree: _Tree) -> str | None:
    """What an earlier step that is no model was given and a prompt ends with: the user's words."""
    end = prompt.split()[-1]
    is_plain = end.isascii() and end.isprintable() and not {*end} & {'"', "\\", "'"}
    for span in tree.earlier(chat):
        if tree.kind(span) not in (AGENT, "") or tree.is_hidden(span):
            continue
        if is_plain and not any(end in v for v in span.attributes.values() if isinstance(v, str)):
            continue  # spares opening what cannot hold it
        for text in texts_within(value_of(span, "in")):
            if len(text) >= _LEAST_CUT and text != prompt and prompt.endswith(text):
                return text
    return None


def _without_passages(trace: Trace, prompt: str) -> str:
    """The question in a prompt: cut only where a passage of the trace stands in the prompt."""
    passages = [
        text
        for search in trace.searches
        for row in search.documents
        if len(text := text_of_document(row)) >= _LEAST_PASSAGE and text in prompt
    ]
    if not passages:
        return prompt
    trace.is_cut = True
    rest = prompt
    for text in sorted(passages, key=len, reverse=True):
        rest = rest.replace(text, "\n\n")
    if named := _NAMED_QUESTION.search(rest.strip()):
        return named[1].strip()
    lines = {line.strip() for line in rest.splitlines()}
    queries = [search.query for search in trace.searches if search.query in lines]
    return str(queries[0]) if queries else rest.strip().rpartition("\n\n")[2].strip() or prompt


def text_of_document(row: Mapping[str, Any]) -> str:
    """The text of a retrieved document; "" without one."""
    return next((str(row[name]) for name in TEXTS if isinstance(row.get(name), str)), "")


def _read_answer(trace: Trace, tops: Sequence[Span], tree: _Tree) -> None:
    """The answer by the rules above, and the prompt before it."""
    names = {span.name for span in trace.spans}
    outermost = max(
        (span for span in tops if tree.kind(span) != CHAT), key=lambda s: s.end, default=None
    )
    several = [span for span in tops if tree.kind(span) == AGENT]
    agents = [(s, text) for s in several if len(several) > 1 and (text := given_out(s))]
    if len(agents) > 1:  # routers and judges say a word beside the one that answers
        agents = [(s, text) for s, text in agents if not is_label(text)] or agents
        outermost = max((span for span, _ in agents), key=lambda span: span.end)
    writers = [
        (span, text)
        for span in sorted(trace.of_kind(CHAT), key=lambda span: span.end, reverse=True)
        if not tree.is_hidden(span) and (text := given_out(span))
    ]
    answer = given_out(outermost) if outermost is not None else None
    if len({_folded(text) for _, text in agents}) > 1:
        trace.answer = None  # nothing says which of them answers
    elif (reply := _structured_reply(outermost)) is not None:
        trace.answer = reply
    elif answer is not None and not _is_name(answer, names):
        trace.answer = _uncut(answer, [text for _, text in writers])
    else:
        trace.answer = _of_schema(trace, tree) or _of_writer(trace, outermost, writers)
        if trace.answer is None and not writers and outermost is not None:
            text = only_text(value_of(outermost, "out"), value_of(outermost, "in"))
            is_words = text is not None and is_sentence(text) and not _is_name(text, names)
            trace.answer = text if is_words else None
    trace.state = "read" if trace.answer is not None else _state_without(trace, outermost, tree)
    if trace.answer is not None:
        trace.answer = _REACT.sub("", trace.answer)
        chats = [span for span in trace.of_kind(CHAT) if not tree.is_hidden(span)]
        _read_prompt(trace, trace.answer, sorted(chats, key=lambda span: -span.end))


def _structured_reply(outermost: Span | None) -> str | None:
    """The answer in the reply by a schema that an agent of LangChain gives out."""
    value = value_of(outermost, "out") if outermost is not None else None
    return reply_text(value.get("structured_response")) if isinstance(value, dict) else None


def _of_schema(trace: Trace, tree: _Tree) -> str | None:
    """The answer that the last call of a model gives a tool which is the schema of the reply: no
    span ran it, and no tool ran later."""
    chats = [span for span in trace.of_kind(CHAT) if not tree.is_hidden(span)]
    last = max(chats, key=lambda span: span.end, default=None)
    ran = [traced.span for traced in trace.calls if traced.span is not None]
    if last is None or not ran or any(span.start >= last.end for span in ran):
        return None
    said = messages_of(last, "out") or messages_in(value_of(last, "out"))
    calls = {call.name: call.arguments for message in said for call in message.calls}
    if len(calls) != 1 or not calls.keys().isdisjoint(call.name for call in trace.tools):
        return None
    return reply_text(next(iter(calls.values())))


def _is_name(text: str, names: Iterable[str]) -> bool:
    """Whether a text is the name of a step and no answer."""
    text = text.strip()
    is_step = text in names and not re.search(r"\s", text)
    return is_step or bool(_DUNDER.fullmatch(text)) or is_literal(text)


def _of_writer(
    trace: Trace, outermost: Span | None, writers: Sequence[tuple[Span, str]]
) -> str | None:
    """What the model said last, when the outermost span gave out nothing, or just that."""
    if not writers:
        return None
    text = writers[0][1]
    value = None if outermost is None else value_of(outermost, "out")
    if value is None and (outermost is None or not messages_of(outermost, "out")):
        return None if is_label(text) or _is_about(trace, writers) else text
    said = _folded(_REACT.sub("", text))
    given = [_folded(part) for part in texts_within(value)]
    is_given = any(said in part or _folded(text) in part or _ends_in(part, said) for part in given)
    return text if is_given and is_sentence(text) else None


def _is_about(trace: Trace, writers: Sequence[tuple[Span, str]]) -> bool:
    """Whether what a model said last may judge, name or translate an answer that came before it:
    it was not given the passages that an earlier reply was written from, or that reply."""
    (last, said), *earlier = writers
    others = [(span, text) for span, text in earlier if text != said]
    if not others:
        return False
    found = [text_of_document(row) for search in trace.searches for row in search.documents]
    found += [tool.result or "" for tool in trace.tools]
    begins = [_folded(text)[:_BEGINNING] for text in found if len(text) >= _LEAST_PASSAGE]
    given = _prompt_of(last)
    asked = "\n".join(_folded(m.text) for m in _input_messages(last) if m.role != "assistant")
    for span, text in others:
        held = [begin for begin in begins if begin in _prompt_of(span)]
        if held and not any(begin in given for begin in held):
            return True
        is_before_search = any(
            search.span is not None and search.span.start >= span.end for search in trace.searches
        )
        if not is_before_search and len(text) >= _LEAST_CUT and _folded(text) in asked:
            return True
    return False


def _ends_in(part: str, text: str) -> bool:
    """Whether a text that was cut (``...``), also one in a printed object, ends with the beginning
    of another."""
    end = _CUT.search(part)
    cut = part[: end.start()].rstrip() if end else ""
    at = cut.rfind(text[:_LEAST_CUT]) if len(text) >= _LEAST_CUT else -1
    return at >= 0 and text.startswith(cut[at:])


def _uncut(answer: str, texts: Sequence[str]) -> str:
    """The whole of an answer that was cut at its end, where the model's words show it."""
    if not answer.endswith(("...", "…")):
        return answer
    begin = answer.removesuffix("...").removesuffix("…")
    whole = (_REACT.sub("", text) for text in texts)
    return next((text for text in whole if text.startswith(begin)), answer)


def _state_without(trace: Trace, outermost: Span | None, tree: _Tree) -> AnswerState:
    """Why there is no answer."""
    tellers = [
        span
        for span in trace.spans
        if tree.kind(span) in (AGENT, CHAT, "") and not tree.is_hidden(span)
    ]
    if any(
        value_of(span, "out") is not None or messages_of(span, "out")
        for span in tellers
        if span is outermost or tree.kind(span) == CHAT
    ):
        return "unknown"
    if trace.question is not None:
        return "none"
    is_referred = any(name in span.attributes for span in trace.spans for name in REFERENCES)
    events = (event for span in trace.spans for _, event in span.events)
    is_referred = is_referred or any(name in event for event in events for name in REFERENCES)
    return "by reference" if is_referred else "not captured"


def _read_prompt(trace: Trace, answer: str, chats: Sequence[Span]) -> None:
    """What the model that wrote the answer was given.

    A model may also hand its answer to a tool that ends the run.
    """
    folded = _folded(answer)
    for span in chats:
        calls = (call for message in messages_of(span, "out") for call in message.calls)
        handed = [text for call in calls for text in texts_within(call.arguments)]
        all_said = [_folded(text) for text in (given_out(span) or "", *handed)]
        if any(said and (said in folded or folded in said) for said in all_said):
            trace.writer = span
            shown = (m.text for m in _input_messages(span) if m.role == "tool")
            trace.shown = [text for text in shown if text.strip()]
            return


def _input_messages(span: Span) -> list[Message]:
    """The messages that a model was given."""
    return messages_of(span, "in") or messages_in(value_of(span, "in"))


def _prompt_of(span: Span) -> str:
    """All that a model was given, with single blanks."""
    parts = [message.text for message in _input_messages(span)]
    return "\n".join(map(_folded, (*parts, *texts_within(value_of(span, "in")))))


def _folded(text: str) -> str:
    return " ".join(text.split())


def _searches(spans: Sequence[Span], tree: _Tree) -> Iterator[TracedSearch]:
    """The retrievals and tools in the order in which they began.

    A search that instrumentation reports several times is counted once. The inner one counts where
    a tool, or a retrieval without documents, contains another search. The outer one counts where
    the inner retrieval has the same documents or none."""
    # A tool that gives back no passages is no search: see the calls of tools.
    searching = [span for span in spans if tree.kind(span) in (RETRIEVAL, TOOL)]
    retrieving = {id(span) for span in searching if tree.kind(span) == RETRIEVAL}
    around_one = {id(o) for s in searching if id(s) in retrieving for o in tree.around[id(s)]}
    telling = retrieving | around_one
    # The passages in the value of any other tool are read by their places, over all of its calls.
    documents = {
        id(span): documents_of(span) if id(span) in telling or has_documents(span) else []
        for span in searching
    }
    ids = {id(span) for span in searching}
    holders = {id(outer) for span in searching for outer in tree.around[id(span)]}
    for span in searching:
        around = tree.around[id(span)]
        outer_lists = [documents[id(o)] for o in around if id(o) in ids and documents[id(o)]]
        rows = documents[id(span)]
        is_told = (
            rows in outer_lists
            if rows
            else id(span) in holders
            or bool(outer_lists and span.failed is None and tree.kind(span) == RETRIEVAL)
        )
        if not is_told and (rows or tree.kind(span) == RETRIEVAL):
            holder = next((o for o in around if tree.kind(o) == TOOL), span)
            yield TracedSearch(span, _tool_name(holder), _query_of(span), rows)


def _tool_name(span: Span) -> str | None:
    named = (span.attributes.get(name) for name in TOOL_NAMES)
    name = next((name for name in named if isinstance(name, str) and name), span.name)
    return name.removesuffix(".__call__") or None


def _query_of(span: Span) -> str | None:
    query = span.attributes.get(QUERY)
    if isinstance(query, str) and query.strip():
        return query.strip()
    value = value_of(span, "in")
    text = question_in(value) or only_text(value)
    return text.strip() if text else None


def _tools(spans: Sequence[Span], tree: _Tree) -> Iterator[TracedCall]:
    """Each call of a tool once, though two instrumentations may tell it, one within the other.

    What it was called with is what its span was given by name, else what the model asked for.
    """
    asked, results = _calls(spans, tree)
    if not any(kind == TOOL for kind in tree.kinds.values()):
        yield from _told_tools(spans, tree)
    for span in spans:
        if tree.kind(span) != TOOL:
            continue
        name = _tool_name(span) or "tool"
        around = tree.around[id(span)]
        if any(tree.kind(outer) == TOOL and _tool_name(outer) == name for outer in around):
            continue
        call = next((call for call in asked if call.name == name), None)
        if call is not None:
            asked.remove(call)
        arguments = _arguments(value_of(span, "in"))
        if (
            call is not None
            and isinstance(call.arguments, dict)
            and not isinstance(arguments, dict)
        ):
            arguments = call.arguments  # a span may have them as a bare text, or their schema
        error = None if span.failed is None else span.failed or "failed"
        shown = results.get(call.id) if call is not None else None
        value = value_of(span, "out")
        result = result_text(value, shown)
        made = _call(name, arguments, result, error, span.milliseconds)
        yield TracedCall(made, span, shown if value is None else value)


def _told_tools(spans: Sequence[Span], tree: _Tree) -> Iterator[TracedCall]:
    """The calls that the messages of an agent tell, where no call has a span."""
    for span in (span for span in spans if tree.kind(span) in (AGENT, "")):
        messages = messages_of(span, "out") or messages_in(value_of(span, "out"))
        asked = max((n for n, message in enumerate(messages) if message.role == "user"), default=-1)
        results = [message.text for message in messages[asked + 1 :] if message.role == "tool"]
        calls = [call for message in messages[asked + 1 :] for call in message.calls]
        if calls:
            told = results if len(results) == len(calls) else [None] * len(calls)
            for call, result in zip(calls, told, strict=True):
                yield TracedCall(_call(call.name, call.arguments, result), None, result)
            return


def _call(
    name: str,
    arguments: Any,
    result: str | None,
    error: str | None = None,
    latency_ms: float | None = None,
) -> ToolCall:
    arguments = structured(arguments)
    if not isinstance(arguments, dict):
        arguments = {} if arguments in (None, "") else {"input": arguments}
    return ToolCall(name[:MOST_NAME], arguments, result, error, latency_ms).cut(MOST_TOOL_TEXT)


def _calls(spans: Sequence[Span], tree: _Tree) -> tuple[list[Call], dict[str, str]]:
    """What the model asked for, in order of time, each call once; and what it was told that the
    calls gave back, by the ids of the calls."""
    calls: list[Call] = []
    results: dict[str, str] = {}
    seen: set[str] = set()
    for span in spans:
        if tree.kind(span) != CHAT:
            continue
        said = messages_of(span, "out") or messages_in(value_of(span, "out"))
        given = messages_of(span, "in") or messages_in(value_of(span, "in"))
        results |= {m.answers: m.text for m in given if m.answers and m.text}
        inner = [call for message in said for call in message.calls]
        around = tree.around[id(span)]
        is_told = any(tree.kind(o) == CHAT and messages_of(o, "out") for o in around)
        calls += [call for call in inner if not (call.id in seen if call.id else is_told)]
        seen.update(call.id for call in inner)
    return calls, results


def _arguments(value: Any) -> Any:
    """What a tool was given, out of what LangChain's callbacks put around it; None for the schema
    of its arguments."""
    if isinstance(value, dict):
        if isinstance(value.get("input_str"), str):
            return opened(value["input_str"])
        if isinstance(value.get("properties"), dict) and "type" in value:
            return None
        if isinstance(value.get("kwargs"), dict) and not value.get("args"):
            return value["kwargs"]
    return value
