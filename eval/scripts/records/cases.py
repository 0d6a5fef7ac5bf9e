"""What a case is (a line of eval_set.jsonl): its fields, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_type_hints

import msgspec

Category = Literal[
    "factual", "reasoning", "multi_hop", "recency/conflict", "general", "adversarial"
]
Outcome = Literal["success", "no_citation", "uncertain", "no_results", "blocked"]
RecencyRule = Literal["cite_newer", "cite_both", "acknowledge_both"]
Finding = tuple[str, str]
"""A field's name and what is wrong with it."""


class GoldSupport(msgspec.Struct, gc=False, omit_defaults=True):
    """A passage that supports the answer, by where it stands: it survives another chunking.

    ``grade`` is a relevance above 0 (3 when absent); ``date`` (ISO) orders supports for recency
    rules; ``quote`` may hold prefix, exact and suffix of the passage.
    """

    rel_path: str
    heading_path: str = ""
    snippets: list[str] = msgspec.field(default_factory=list)
    grade: float | None = None
    date: str | None = None
    quote: dict[str, Any] | None = None


class GoldFact(msgspec.Struct, gc=False, omit_defaults=True):
    """A fact that contexts should hold, in any of its wordings."""

    fact: str
    aliases: list[str] = msgspec.field(default_factory=list)


class TestCase(msgspec.Struct, omit_defaults=True):
    """One question with its labels. ``answerable`` None means: nobody has said yet."""

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


CATEGORIES: tuple[str, ...] = get_args(Category)
_HINTS = get_type_hints(TestCase)
_NULL_MEANS_ABSENT = {name for name, hint in _HINTS.items() if type(None) not in get_args(hint)}
_REQUIRED = ("id", "question")
ALIASES = {"case_id": "id", "query": "question"}
"""Other names that a set may use for the two fields that every case has."""
_CHOICES = {"category": CATEGORIES, "recency_conflict_rule": get_args(RecencyRule)}
_CHOICES["expected_outcome"] = get_args(Outcome)
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
        (name, f"is missing; every case needs {_article(name)}")
        for name in _REQUIRED
        if name not in raw
    ]
    known: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in _HINTS or (value is None and name in _NULL_MEANS_ABSENT - set(_REQUIRED)):
            continue
        problems = list(_type_problems(name, value))
        findings.extend(problems)
        if not problems:
            known[name] = value
    case = msgspec.convert({"id": "?", "question": "?"} | known, TestCase)
    unsure = "gold_supports" in raw and raw["gold_supports"] and not case.gold_supports
    for field, message in check_case(case):
        if not (unsure and field.startswith("required_support_groups")):
            findings.append((field, message))
    return (None if findings else case), findings


def _article(name: str) -> str:
    return "an id of its own" if name == "id" else f"a {name}"


def _type_problems(name: str, value: Any) -> Iterator[Finding]:
    """Type errors of one field; the items of a list are looked at one by one."""
    choices = _CHOICES.get(name)
    if choices and isinstance(value, str):
        if value not in choices:
            yield name, f"{value!r} is unknown; use one of: {', '.join(choices)}"
        return
    hint = _HINTS[name]
    if isinstance(value, list) and (item_hint := _item_hint(hint)) is not None:
        for place, item in enumerate(value):
            yield from _convert_problem(f"{name}[{place}]", item, item_hint)
        return
    yield from _convert_problem(name, value, hint)


def _item_hint(hint: Any) -> Any:
    """The type of a list's items; None when the field is no list."""
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
        wanted = " or ".join(_NOUNS.get(name, name) for name in parts[1].split(" | "))
        return f"is {_NOUNS.get(parts[3], parts[3])}; write {wanted}"
    if "missing required field" in message:
        return f"lacks {parts[1]!r}; add it"
    return f"{message[0].lower()}{message[1:]}; correct the value"


def check_case(case: TestCase) -> Iterator[Finding]:
    """What no type can say: empty texts, indices out of range, grades that are no gain."""
    for name in _REQUIRED:
        text = getattr(case, name)
        if not text.strip():
            yield name, "is empty; write some text"
        elif "\x00" in text:
            yield name, "holds a NUL character; remove it"
    for place, gold in enumerate(case.gold_supports):
        if not gold.rel_path.strip() or "\x00" in gold.rel_path:
            yield f"gold_supports[{place}].rel_path", "is empty or holds NUL; name the note's path"
        if gold.grade is not None and not 0 < gold.grade < math.inf:
            yield f"gold_supports[{place}].grade", "must be above 0; remove a support without value"
        if not all(snippet.strip() for snippet in gold.snippets):
            yield f"gold_supports[{place}].snippets", "one is empty; remove it"
    for place, fact in enumerate(case.gold_facts):
        if not all(text.strip() for text in (fact.fact, *fact.aliases)):
            yield f"gold_facts[{place}]", "the fact or an alias is empty; write some text"
    if case.min_citations is not None and case.min_citations < 0:
        yield "min_citations", "is below 0; write 0 or more"
    yield from _budget_problems(case.latency_budget_ms)
    if case.required_support_groups is not None:
        yield from _group_problems(case.required_support_groups, len(case.gold_supports))
    for name in ("relevance_grades", "chunk_relevance_grades"):
        for key, grade in getattr(case, name).items():
            if not math.isfinite(grade):
                yield f"{name}[{key!r}]", f"is {grade}; write a number (0 or less: not relevant)"


def _budget_problems(budget: dict[str, float] | float | None) -> Iterator[Finding]:
    named = budget if isinstance(budget, dict) else {"total": 1.0 if budget is None else budget}
    for name, bound in named.items():
        if name not in _BUDGETS:
            yield f"latency_budget_ms.{name}", f"is unknown; use one of: {', '.join(_BUDGETS)}"
        elif not 0 < bound < math.inf:
            yield f"latency_budget_ms.{name}", f"is {bound:g}; write milliseconds above 0"


def _group_problems(groups: list[list[int]], supports: int) -> Iterator[Finding]:
    for place, group in enumerate(groups):
        field = f"required_support_groups[{place}]"
        if not group:
            yield field, "is empty; list indices into gold_supports or remove the group"
        for index in group:
            if not 0 <= index < supports:
                allowed = f"0 to {supports - 1}" if supports else "none: gold_supports is empty"
                yield field, f"index {index} is out of range; allowed: {allowed}"
