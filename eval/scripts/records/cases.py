"""The model of a case (a line of eval_set.jsonl): its fields, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from records.conversations import TurnOrder
from records.errors import Problem
from records.jsonl import Decode, whole
from records.lines import (
    BOM,
    MAX_LINE,
    Block,
    Report,
    holds,
    iter_blocks,
    iter_lines,
    lines_at,
    parse_object,
    repeat_keys,
)
from records.tool_calls import AnyTool, ToolOrder, expected_tool, tool_problems

Category = Literal[
    "factual", "reasoning", "multi_hop", "recency/conflict", "general", "adversarial"
]

Outcome = Literal["success", "no_citation", "uncertain", "no_results", "blocked", "clarify"]

RecencyRule = Literal["cite_newer", "cite_both", "acknowledge_both"]

Finding = tuple[str, str]
"""A field's name and its fault."""


class GoldSupport(msgspec.Struct, gc=False, omit_defaults=True):
    """A passage that supports the answer, by its place: it survives another chunking.

    ``grade`` is a relevance above 0 (3 when absent); ``date`` (ISO) orders supports for recency
    rules; ``quote`` may hold prefix, exact and suffix of the passage. ``page`` is the place
    of a support with neither heading nor quote: a sheet, counted from 1.
    """

    rel_path: str
    heading_path: str = ""
    snippets: list[str] = msgspec.field(default_factory=list)
    grade: float | None = None
    date: str | None = None
    quote: dict[str, Any] | None = None
    page: int | str | None = None


class GoldFact(msgspec.Struct, gc=False, omit_defaults=True):
    """A fact that contexts and answer should contain, in any of its wordings.

    ``vital``: a good answer must hold it; false: it is welcome ("okay" in TREC RAG).
    """

    fact: str
    aliases: list[str] = msgspec.field(default_factory=list)
    vital: bool = True


class ChatMessage(msgspec.Struct, gc=False):
    """A message before a question: by the ``user``, the ``assistant`` or the ``system``."""

    role: str
    content: str


class TestCase(msgspec.Struct, omit_defaults=True):
    """One question with its labels. ``answerable`` None means: not labelled yet.

    ``group``: what cases have in common that hang together. ``turn`` counts the questions of a
    ``conversation`` from 1. ``standalone`` false: the question cannot be understood without what
    came before; ``question_alone`` is the same question made whole. ``history``: what always comes
    before a question that belongs to no conversation. ``expected_tools``: the calls that answer it,
    an empty list: none; ``tool_order``: whether their order counts.
    """

    __test__ = False  # pytest: not a test class

    id: str
    question: str
    answerable: bool | None = None
    category: Category | None = None
    difficulty: str | None = None
    expected_key_facts: list[str] = msgspec.field(default_factory=list)
    reference_answer: str | None = None
    gold_supports: list[GoldSupport] = msgspec.field(default_factory=list)
    required_support_groups: list[list[int]] | None = None
    recency_conflict_rule: RecencyRule | None = None
    group: str | int | None = None
    conversation: str | None = None
    turn: int | None = None
    standalone: bool | None = None
    question_alone: str | None = None
    history: list[ChatMessage] | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    vaults: list[str] = msgspec.field(default_factory=list)
    folders: list[str] = msgspec.field(default_factory=list)
    query_type: str | None = None
    user_roles: list[str] = msgspec.field(default_factory=list)
    relevant_docs: list[str] = msgspec.field(default_factory=list)
    relevance_grades: dict[str, float] = msgspec.field(default_factory=dict)
    relevant_chunks: list[str] = msgspec.field(default_factory=list)
    chunk_relevance_grades: dict[str, float] = msgspec.field(default_factory=dict)
    gold_contexts: list[str] = msgspec.field(default_factory=list)
    gold_facts: list[GoldFact] = msgspec.field(default_factory=list)
    expected_chunks: list[str] = msgspec.field(default_factory=list)
    expected_claims: list[str] = msgspec.field(default_factory=list)
    expected_citations: list[str] = msgspec.field(default_factory=list)
    forbidden_claims: list[str] = msgspec.field(default_factory=list)
    expected_outcome: Outcome | None = None
    required_flags: list[str] = msgspec.field(default_factory=list)
    forbidden_flags: list[str] = msgspec.field(default_factory=list)
    min_citations: int | None = None
    latency_budget_ms: dict[str, float] | float | None = None
    attack_category: str | None = None
    leak_category: str | None = None
    expected_tools: list[AnyTool] | None = None
    forbidden_tools: list[AnyTool] = msgspec.field(default_factory=list)
    max_tool_calls: int | None = None
    tool_order: ToolOrder | None = None

    def reference_text(self) -> str:
        """The reference answer, else the key facts as a text; empty when there is neither."""
        return self.reference_answer or "; ".join(self.expected_key_facts)

    def whole_question(self) -> str | None:
        """The question in a form that can be read by itself; None when the set has none."""
        return self.question_alone or (None if self.standalone is False else self.question)


CATEGORIES: tuple[str, ...] = get_args(Category)

SET_ONLY = ("conversation", "turn", "standalone", "question_alone", "history")
"""Fields that cases are asked with; they are in the set, never in a label file."""

DRAFT = "draft"
"""The tag of a case that no person has accepted yet: its gold is a proposal."""

ROLES = ("user", "assistant", "system")

_HINTS = get_type_hints(TestCase)

_NULL_MEANS_ABSENT = {name for name, hint in _HINTS.items() if type(None) not in get_args(hint)}

_REQUIRED = {"id": "an id of its own", "question": "a question"}

ALIASES = {"case_id": "id", "query": "question"}
"""Other names that a set may use for the two fields that every case has."""

_CHOICES = {"category": CATEGORIES, "recency_conflict_rule": get_args(RecencyRule)}

_CHOICES |= {"expected_outcome": get_args(Outcome), "tool_order": get_args(ToolOrder)}

_BUDGETS: tuple[str, ...] = ("retrieve", "generate", "guardrail_input", "guardrail_output", "total")

_BUDGETS += ("p50", "p95", "p99", "max")

_NOUNS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def canonical(raw: dict[str, Any]) -> dict[str, Any]:
    """The line of a set with the names of this toolkit: ``id`` for ``case_id``, ``question`` for
    ``query``. An alias beside the name that it stands for is an unknown key and stays.
    """
    names = {alias: name for alias, name in ALIASES.items() if alias in raw and name not in raw}
    return {names.get(key, key): value for key, value in raw.items()} if names else raw


def respelled(record: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """The reverse of ``canonical``: the record with the names that the line ``like`` uses."""
    names = {
        name: alias
        for alias, name in ALIASES.items()
        if alias in like and name not in like and alias not in record
    }
    return {names.get(key, key): value for key, value in record.items()} if names else record


def case_from_dict(raw: dict[str, Any]) -> tuple[TestCase | None, list[Finding]]:
    """A case from parsed JSON, or every problem of its fields. Unknown keys are left alone."""
    raw = canonical(raw)
    findings = [
        (name, f"is missing; every case needs {needed}")
        for name, needed in _REQUIRED.items()
        if name not in raw
    ]
    recognised: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in _HINTS or (value is None and name in _NULL_MEANS_ABSENT - set(_REQUIRED)):
            continue
        problems = list(_type_problems(name, value))
        findings.extend(problems)
        if not problems:
            recognised[name] = value
    case = msgspec.convert({"id": "?", "question": "?"} | recognised, TestCase)
    unsure = "gold_supports" in raw and raw["gold_supports"] and not case.gold_supports
    for field, message in check_case(case):
        if not (unsure and field.startswith("required_support_groups")):
            findings.append((field, message))
    return (None if findings else case), findings


def _type_problems(name: str, value: Any) -> Iterator[Finding]:
    """Type errors of one field; the items of a list are looked at one by one."""
    choices = _CHOICES.get(name)
    if choices and isinstance(value, str):
        if value not in choices:
            yield name, f"{value!r} is unknown; use one of: {', '.join(choices)}"
        return
    hint = _HINTS[name]
    if isinstance(value, list) and (item_hint := _item_hint(hint)) is not None:
        for index, item in enumerate(value):
            yield from _convert_problem(f"{name}[{index}]", item, item_hint)
        return
    yield from _convert_problem(name, value, hint)


def _item_hint(hint: Any) -> Any:
    """The type of a list's items; None when the field is not a list."""
    for option in (hint, *get_args(hint)):
        if getattr(option, "__origin__", None) is list:
            return get_args(option)[0]
    return None


def _convert_problem(field: str, value: Any, hint: Any) -> Iterator[Finding]:
    try:
        msgspec.convert(value, hint, strict=True)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        yield field + path.rstrip("`"), _in_words(message)


def _in_words(message: str) -> str:
    """msgspec's ``Expected `str`, got `int` `` as a sentence with the remedy."""
    parts = message.split("`")
    if message.startswith("Expected") and len(parts) >= 4:
        nouns = " or ".join(_NOUNS.get(name, name) for name in parts[1].split(" | "))
        return f"is {_NOUNS.get(parts[3], parts[3])}; write {nouns}"
    if "missing required field" in message:
        return f"lacks {parts[1]!r}; add it"
    return f"{message[0].lower()}{message[1:]}; correct the value"


def check_case(case: TestCase) -> Iterator[Finding]:
    """Check the rules that no type can express: empty texts, indices out of range, grades that are
    no gain."""
    for name in _REQUIRED:
        text = getattr(case, name)
        if not text.strip():
            yield name, "is empty; write some text"
        elif "\x00" in text:
            yield name, "contains a NUL character; remove it"
    for index, gold in enumerate(case.gold_supports):
        if not gold.rel_path.strip() or "\x00" in gold.rel_path:
            yield f"gold_supports[{index}].rel_path", "is empty or holds NUL; name the note's path"
        if gold.grade is not None and not 0 < gold.grade < math.inf:
            yield f"gold_supports[{index}].grade", "must be above 0; remove a support without value"
        if not all(snippet.strip() for snippet in gold.snippets):
            yield f"gold_supports[{index}].snippets", "one is empty; remove it"
    for index, fact in enumerate(case.gold_facts):
        if not all(text.strip() for text in (fact.fact, *fact.aliases)):
            yield f"gold_facts[{index}]", "the fact or an alias is empty; write some text"
    if case.min_citations is not None and case.min_citations < 0:
        yield "min_citations", "is below 0; write 0 or more"
    yield from _budget_problems(case.latency_budget_ms)
    yield from _tool_problems(case)
    if case.required_support_groups is not None:
        yield from _group_problems(case.required_support_groups, len(case.gold_supports))
    yield from _turn_problems(case)
    for name in ("relevance_grades", "chunk_relevance_grades"):
        for key, grade in getattr(case, name).items():
            if not math.isfinite(grade):
                yield f"{name}[{key!r}]", f"is {grade}; write a number (0 or less: not relevant)"


def _tool_problems(case: TestCase) -> Iterator[Finding]:
    """What is wrong with the calls that a case expects, forbids or allows."""
    expected = case.expected_tools or []
    yield from tool_problems("expected_tools", expected)
    yield from tool_problems("forbidden_tools", case.forbidden_tools)
    banned = {tool.name for tool in map(expected_tool, case.forbidden_tools) if not tool.arguments}
    for index, tool in enumerate(map(expected_tool, expected)):
        if tool.name in banned:
            yield f"expected_tools[{index}]", f"{tool.name!r} is forbidden too; keep one of them"
    if case.max_tool_calls is not None and case.max_tool_calls < len(expected):
        least = f"at least {len(expected)}, as many as expected_tools" if expected else "0 or more"
        yield "max_tool_calls", f"is {case.max_tool_calls}; write {least}"
    if case.tool_order is not None and case.expected_tools is None:
        yield "tool_order", "needs expected_tools; name the calls or remove it"


def _turn_problems(case: TestCase) -> Iterator[Finding]:
    """What is wrong with the place of one case in its conversation; see also TurnOrder."""
    if case.conversation is not None:
        if not case.conversation.strip():
            yield "conversation", "is empty; write the conversation's id or leave the field out"
        if case.turn is None:
            yield "turn", "is missing, but conversation is given; number its questions from 1"
        if case.history is not None:
            yield "history", "is given together with conversation; keep one of them"
    elif case.turn is not None:
        yield "conversation", "is missing, but turn is given; write the conversation's id"
    if case.turn is not None and case.turn < 1:
        yield "turn", f"is {case.turn}; turns count from 1"
    if case.question_alone is not None and not case.question_alone.strip():
        yield "question_alone", "is empty; write the question in a form that can be read by itself"
    for index, message in enumerate(case.history or ()):
        if message.role not in ROLES:
            yield (
                f"history[{index}].role",
                f"{message.role!r} is unknown; use one of: {', '.join(ROLES)}",
            )
        if not message.content.strip():
            yield f"history[{index}].content", "is empty; write the message or remove it"


def _budget_problems(budget: dict[str, float] | float | None) -> Iterator[Finding]:
    named = budget if isinstance(budget, dict) else {"total": 1.0 if budget is None else budget}
    for name, bound in named.items():
        if name not in _BUDGETS:
            yield f"latency_budget_ms.{name}", f"is unknown; use one of: {', '.join(_BUDGETS)}"
        elif not 0 < bound < math.inf:
            yield f"latency_budget_ms.{name}", f"is {bound:g}; write milliseconds above 0"


def _group_problems(groups: list[list[int]], supports: int) -> Iterator[Finding]:
    for index, group in enumerate(groups):
        field = f"required_support_groups[{index}]"
        if not group:
            yield field, "is empty; list indices into gold_supports or remove the group"
        for index in group:
            if not 0 <= index < supports:
                allowed = f"0 to {supports - 1}" if supports else "none: gold_supports is empty"
                yield field, f"index {index} is out of range; allowed: {allowed}"


Labels = dict[str, dict[str, Any]]
"""Fields from label files, by case id."""

_ID, _QUESTION = attrgetter("id"), attrgetter("question")

_NOT_EMPTY = ("gold_supports", "gold_facts", "forbidden_tools")

_CONVERSATION = attrgetter("conversation")

_NOT_NULL = (
    *("required_support_groups", "min_citations", "latency_budget_ms"),
    *("conversation", "turn", "question_alone", "history"),
    *("expected_tools", "max_tool_calls", "tool_order"),
)
"""With the two above, all that check_case looks at besides grades, which JSON keeps finite."""


def iter_cases(path: Path, report: Report, labels: Labels | None = None) -> Iterator[TestCase]:
    """The cases of a set, one at a time; lines with problems are reported and left out.

    Of a repeated id, which is reported at the end, every case is given.
    """
    return chain.from_iterable(iter_case_blocks(path, report, labels, whole(TestCase)))


def tells_places(path: Path) -> bool:
    """Whether a line of the set may have gold supports: whether it holds their name at all."""
    return holds(path, b'"gold_supports"')


def iter_case_blocks(
    path: Path,
    report: Report,
    labels: Labels | None,
    decode: Decode[TestCase],
) -> Iterator[list[TestCase]]:
    """The same in lists of neighbours, a block of the file each.

    Sound lines are decoded a block at a time; a block in which anything is odd is read again line
    by line.
    """
    blank = True
    ids: list[str] = []
    order = TurnOrder()
    for block in iter_blocks(path):
        blank = blank and block.data.isspace()
        cases = None if labels else _sound_cases(block, decode)
        if cases is None:
            cases = list(_checked_cases(report, labels, ids, block))
        else:
            ids.extend(map(_ID, cases))
        if any(map(_CONVERSATION, cases)):
            for case in cases:
                order.add(case.conversation, case.turn, case.group)
        else:
            order.leave()
        yield cases
    if len(set(ids)) < len(ids):
        _report_repeats(path, report)
    if order.problems:
        _report_turns(path, report, labels or {})
    if blank:
        report(Problem(str(path), None, "", "contains no cases; write one JSON object a line"))


def _sound_cases(block: Block, decode: Decode[TestCase]) -> list[TestCase] | None:
    """The cases of a block; None when a line needs a closer look."""
    data = block.data
    if b"\r" in data or len(data) > MAX_LINE or data.startswith(BOM):
        return None
    if b"\\" in data and b"\\u0000" in data:
        return None
    try:
        cases = decode(block.lines)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not _say_little(cases) and any(any(check_case(case)) for case in cases):
        return None
    return None if repeat_keys(block.lines) else cases


def _say_little(cases: list[TestCase]) -> bool:
    """True when the cases have nothing in which check_case could find a problem."""
    present = type(cases[0]).__struct_fields__ if cases else ()  # the same for all, see ``Lean``
    lists = [attrgetter(name) for name in _NOT_EMPTY if name in present]
    values = [attrgetter(name) for name in _NOT_NULL if name in present]
    return (
        all(map(str.strip, map(_ID, cases)))
        and all(map(str.strip, map(_QUESTION, cases)))
        and not any(any(map(field, cases)) for field in lists)
        and all(list(map(field, cases)).count(None) == len(cases) for field in values)
    )


def _report_repeats(path: Path, report: Report) -> None:
    """Report each line whose id an earlier line has."""
    first: dict[str, int] = {}
    for number, line in iter_lines(path, ignore):
        identity = canonical(parse_object(path, number, line, ignore) or {}).get("id")
        if (
            isinstance(identity, str)
            and (first_number := first.setdefault(identity, number)) != number
        ):
            message = f"{identity!r} is also the id of line {first_number}; give it another"
            report(Problem(str(path), number, "id", message))


def _report_turns(path: Path, report: Report, labels: Labels) -> None:
    """Report each turn that does not stand behind the one before it, with its line."""
    order = TurnOrder()
    for number, line in iter_lines(path, ignore):
        raw = canonical(parse_object(path, number, line, ignore) or {})
        group = raw.get("group", labels.get(str(raw.get("id")), {}).get("group"))
        order.add(raw.get("conversation"), raw.get("turn"), group)
        for field, message in order.problems:
            report(Problem(str(path), number, field, message))
        order.problems.clear()


def ignore(problem: Problem) -> None:
    """The ``report`` of a second look: its problems are known already."""


def _checked_cases(
    report: Report,
    labels: Labels | None,
    ids: list[str],
    block: Block,
) -> Iterator[TestCase]:
    """The sound cases of a block, with every problem of the others reported."""
    path = block.path
    for number, line in lines_at(path, report, block.start, block.end, lines=block.before):
        raw = parse_object(path, number, line, report)
        if raw is None:
            continue
        raw = canonical(raw)
        extra = labels.get(str(raw.get("id"))) if labels else None
        case, findings = case_from_dict(raw | extra if extra else raw)
        both = (name for name in extra or () if raw.get(name) not in (None, [], {}))
        findings += [(name, "a label file has it too; keep it in one place") for name in both]
        for field, message in findings:
            report(Problem(str(path), number, field, message))
        identity = raw.get("id")
        if isinstance(identity, str):
            ids.append(identity)
        if case is not None:
            yield case
