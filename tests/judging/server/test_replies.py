"""What is taken off a reply, what is mended, and what is sent back to the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.rows import each_row

from clients.http import finish
from judging.replies import BadReply, SchemaChecker, _parse_object, _surely_fits
from judging.trial import CANARY

OBJECT = {"a": 1, "quote": "one, } two ```, ] </think>"}
TEXT = json.dumps(OBJECT)


@each_row(
    ("text", "repaired"),
    [
        (TEXT, False),
        (f"\n  {TEXT}\n", False),
        (f"```json\n{TEXT}\n```", True),
        (f"```\n{TEXT}\n```", True),
        (f"<think>Is {{it}} so? {{}}</think>\n{TEXT}", False),
        (f"It is so.\n</think>\n\n{TEXT}", False),  # the template had opened the thoughts
        (f"<think>x</think>```json\n{TEXT}\n```", True),
        (TEXT[:-1] + ",}", True),
        (TEXT[:-1] + " ,\n }", True),
    ],
)
def test_one_object_is_found(text: str, repaired: bool) -> None:
    assert _parse_object(text) == (OBJECT, repaired)


@each_row(
    ("text", "said"),
    [
        ("", "empty"),
        ("<think>never ends", "no valid JSON"),
        ("<think>ends</think>", "empty"),
        (f"Here it is: {TEXT}", "no valid JSON"),
        (f"{TEXT}\n{TEXT}", "more than one"),
        (f"{TEXT} and so on", "more than one"),
        (f"```json\n{TEXT}\n```\n```json\n{TEXT}\n```", "no valid JSON|more than one"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": -Infinity}', "Infinity is no JSON"),
        ('{"a": 1e400}', "too large"),
        ('{"a": 1, "a": 2}', "comes twice"),
        ('{"b": {"a": 1, "a": 1}}', "comes twice"),
        ("[1]", "no object"),
        ('"text"', "no object"),
        ("{'a': 1}", "no valid JSON"),
        ('{"a": 1 // why\n}', "no valid JSON"),
        ('{"a": [1, 2', "no valid JSON"),
        ('{"a": "cut', "no valid JSON"),
        ('{"a": , }', "no valid JSON"),
        ('{"a": "\\ud83d"}', "no file can hold"),
        ('{"a": 99999999999999999999999}', "no file can hold"),
        ('{"a":' * 5000, "no valid JSON|nested too deeply"),
    ],
)
def test_nothing_is_guessed(text: str, said: str) -> None:
    with pytest.raises(BadReply, match=said) as caught:
        _parse_object(text)
    assert caught.value.kind == "malformed"


def test_prose_around_the_object_only_where_nothing_helps_the_model() -> None:
    text = f"Sure! Here it is:\n```json\n{TEXT}\n```\nAnything else?"
    assert _parse_object(text, extract=True) == (OBJECT, False)
    with pytest.raises(BadReply):
        _parse_object(text)
    with pytest.raises(BadReply, match="more than one"):
        _parse_object(f"First {TEXT}, or rather {TEXT}.", extract=True)


def test_control_characters_in_strings_are_mended() -> None:
    """Some grammars let a model write line breaks as they are; the words are the same."""
    text = '{"notes": "one\ntwo\t\x01", "list": [1,]}'
    assert _parse_object(text) == ({"notes": "one\ntwo\t\x01", "list": [1]}, True)
    assert _parse_object('{"a": "b\nc"}') == ({"a": "b\nc"}, True)
    for bad in ('{"a": "b\nc", "a": 1}', '{"a": "b\nc", "d": NaN}', '{"a": "b\nc"}{}', '{"a": "\n'):
        with pytest.raises(BadReply):
            _parse_object(bad)


@each_row(
    "text", ['{"a": "' + '\\"' * 200_000, "```\n" + " " * 300_000 + "x", "```\n{" + "\n" * 300_000]
)
def test_long_nonsense_is_read_in_one_pass(text: str) -> None:
    """Patterns that start anew at each character would take minutes here."""
    with pytest.raises(BadReply, match="no valid JSON"):
        _parse_object(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values))
def test_every_object_comes_back_as_it_was(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    assert _parse_object(text) == (value, False)
    assert _parse_object(f"```json\n{text}\n```") == (value, True)
    assert _parse_object(f"Well: {text} That is all.", extract=True) == (value, False)


@given(st.dictionaries(st.text(), json_values, min_size=1))
def test_commas_inside_strings_survive_the_mending(value: dict[str, Any]) -> None:
    assert _parse_object(json.dumps(value)[:-1] + ",}") == (value, True)


@given(st.text())
def test_any_text_is_an_object_or_a_bad_reply(text: str) -> None:
    try:
        value, _ = _parse_object(text, extract=True)
    except BadReply:
        return
    assert isinstance(value, dict)


def test_schema_problems_name_the_place() -> None:
    schema = {
        "type": "object",
        "properties": {"v": {"type": "array", "items": {"enum": ["yes", "no"]}}},
        "required": ["v"],
    }
    check = SchemaChecker().problems
    assert check({"v": ["yes", "no"]}, schema) == []
    assert check({}, schema) == ["the object: 'v' is a required property"]
    assert check({"v": ["yes", 5]}, schema) == ["v[1]: 5 is not one of ['yes', 'no']"]
    assert len(check({"v": list(range(50))}, schema)) == 5


ITEM = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "maxLength": 2},
        "v": {"type": "string", "enum": ["yes", "no"]},
    },
    "required": ["id", "v"],
    "additionalProperties": False,
}
FORM = {
    "type": "object",
    "properties": {"flag": {"type": "boolean"}, "list": {"type": "array", "items": ITEM}},
    "required": ["list"],
}
words: st.SearchStrategy[Any] = st.sampled_from(
    ["yes", "no", "maybe", "id", "", 1, True, None, 0.5, [], {}]
)
near_items = st.dictionaries(st.sampled_from(["id", "v", "w"]), words)
near_forms = st.fixed_dictionaries(
    {},
    optional={
        "flag": words,
        "list": st.lists(near_items | st.fixed_dictionaries({"id": st.text(), "v": words})) | words,
        "more": words,
    },
)
further = st.sampled_from(
    [
        *({}, {"minItems": 1}, {"maxItems": 1}, {"items": {}}, {"items": True}),
        *({"items": ITEM | {"minProperties": 3}}, {"uniqueItems": True}),
    ]
)


@given(near_forms, further)
def test_the_short_way_accepts_nothing_that_jsonschema_refuses(value: Any, more: Any) -> None:
    """An independent implementation: whatever surely fits has no errors there."""
    listed = {"type": "array", "items": ITEM} | more
    schema = FORM | {"properties": {"flag": {"type": "boolean"}, "list": listed}}
    if _surely_fits(schema)(value):
        assert Draft202012Validator(schema).is_valid(value)


def test_the_short_way_is_taken_for_what_judges_are_asked(good: Any) -> None:
    assert _surely_fits(FORM)({"flag": True, "list": [{"id": "1", "v": "no"}]})
    assert _surely_fits(CANARY.schema)({"wet": "no", "code": "zq-17-umber"})
    assert not _surely_fits(FORM)({"list": [{"id": "1", "v": "maybe"}]})
    assert not _surely_fits(FORM | {"maxProperties": 0})({"list": []})
    assert not _surely_fits({"type": "array", "items": True})([1]), "left to the full validator"


def reasked(fake_judge: Any) -> list[list[dict[str, str]]]:
    return [body["messages"] for body in fake_judge.chats()]


def test_a_re_ask_shows_the_reply_and_what_is_wrong(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    bad = '<think>hm</think>{"verdicts": [{"id": "1", "verdict": "maybe"}]}'
    fake_judge.script("ships", fake_judge.says(bad), fake_judge.says(good))
    one = task()
    verdict = finish(judge().ask(one))
    assert verdict.data == good
    assert (verdict.asks, verdict.attempts) == (2, 2)
    first, second = reasked(fake_judge)
    assert first == list(one.messages)
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": bad.partition("</think>")[2]}
    assert second[3]["role"] == "user"
    assert "verdicts[0].verdict: 'maybe' is not one of" in second[3]["content"]


def test_the_third_try_knows_the_second_reply_only(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    one_id = {"verdicts": [{"id": "1", "verdict": "supported"}]}
    fake_judge.script("ships", fake_judge.says(""), fake_judge.says(one_id), fake_judge.says(good))
    verdict = finish(judge().ask(task()))
    assert (verdict.ok, verdict.asks) == (True, 3)
    _, second, third = reasked(fake_judge)
    assert second[2]["content"] == "(an empty reply)"
    assert "empty" in second[3]["content"]
    assert len(third) == 4
    assert json.loads(third[2]["content"]) == one_id
    assert "give ids 1 and 2 once each" in third[3]["content"]


def test_tokens_of_all_asks_are_added(fake_judge: Any, judge: Any, task: Any, good: Any) -> None:
    usages: list[dict[str, Any]] = [
        {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
        {"prompt_tokens": 120, "completion_tokens": 7, "total_tokens": 127},
    ]
    usages[1] |= {"prompt_tokens_details": {"cached_tokens": 64}}
    says = fake_judge.says
    fake_judge.script("ships", says("?", usage=usages[0]), says(good, usage=usages[1]))
    usage = finish(judge().ask(task())).usage
    # 100 + 120, 5 + 7, 105 + 127; only the second answer tells of cached tokens
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (220, 12, 232)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (64, None)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0}, {"prompt_tokens": "many"}, []])
def test_missing_usage_stays_unknown(
    fake_judge: Any, judge: Any, task: Any, good: Any, usage: Any
) -> None:
    fake_judge.script("ships", fake_judge.says(good, usage=usage))
    verdict = finish(judge().ask(task()))
    assert verdict.ok
    assert verdict.usage.prompt_tokens is None


def test_the_bound_of_a_cut_prompt(fake_judge: Any, judge: Any, task: Any, good: Any) -> None:
    """800 characters are at least 100 tokens; what was cached may be counted apart."""
    text = "ships " + "xy" * ((800 - 6 - 17) // 2) + "."  # the system message has 17 characters
    system = {"role": "system", "content": "You judge claims."}
    messages = (system, {"role": "user", "content": text})
    for tokens, cached, kind in [
        (100, 0, None),
        (99, 0, "prompt_truncated"),
        (99, 50, "prompt_truncated"),
        (20, 80, None),
    ]:
        usage = {"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": cached}}
        fake_judge.script("ships", fake_judge.says(good, usage=usage))
        assert finish(judge().ask(task(messages=messages))).failure == kind, tokens


def test_a_run_of_one_character_is_few_tokens(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    table = "ships\n" + "-" * 2000 + " " * 2000
    fake_judge.script("ships", fake_judge.says(good, usage={"prompt_tokens": 60}))
    assert finish(judge().ask(task(messages=({"role": "user", "content": table},) * 2))).ok


def test_advice_is_given_once_and_fails_nothing(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    one = task(advice=lambda reply: ["the quote of 1 is not in its chunk"])
    verdict = finish(judge().ask(one))
    assert verdict.data == good
    assert verdict.asks == 2
    assert "the quote of 1" in reasked(fake_judge)[1][3]["content"]


def test_a_worse_second_reply_does_not_spoil_the_first(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    for worse in (fake_judge.says("no"), fake_judge.fails(500), fake_judge.fails(400)):
        fake_judge.script("ships", fake_judge.says(good), worse)
        verdict = finish(judge().ask(task(advice=lambda reply: ["look again"])))
        assert (verdict.ok, verdict.data, verdict.raw) == (True, good, json.dumps(good))
        assert verdict.attempts > 1, "what the worse one took is counted"
