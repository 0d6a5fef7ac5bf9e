"""Whatever JSON a bot sends: a checked result that can be written, or an error of a known kind."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from clients.http import KINDS, CallError
from clients.mapping import CHUNK_FIELDS, REFERENCE_FIELDS, AnswerMap, build_result
from clients.profile import load_profile
from records.checked_results import RESULT_FIELDS
from records.errors import StorageError
from records.results import TestResult

PROFILES = Path(__file__).parents[2] / "eval" / "profiles"
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
JSON = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


DEFAULT = (PROFILES / "default.toml").read_text()


def answer_map(folder: Path, text: str) -> AnswerMap:
    (folder / "p.toml").write_text(text, encoding="utf-8")
    return load_profile("p", folder).answer


def likely(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that have the right keys and anything as their values."""
    return st.dictionaries(st.sampled_from(names), JSON, max_size=6)


ANSWERS = JSON | st.builds(
    lambda top, chunks, references: top | {"retrieved": chunks, "references": references},
    likely((*RESULT_FIELDS, "index", "retriever", "error")),
    st.lists(likely(CHUNK_FIELDS) | st.text(max_size=3), max_size=3),
    st.lists(likely(REFERENCE_FIELDS), max_size=3),
)


@pytest.mark.parametrize("name", ["default", "openai_chat", "documents"])
@given(payload=ANSWERS, retrieval_only=st.booleans())
def test_any_json_is_a_result_or_known_error(name: str, payload: Any, retrieval_only: bool) -> None:
    answer = load_profile(name, PROFILES).answer
    failed = None
    try:
        fields = answer.fields(payload, retrieval_only=retrieval_only)
        result = build_result(fields, "case", "question?")
    except CallError as error:
        failed = error
    if failed is not None:
        assert failed.kind in KINDS
        assert not failed.retryable
        return
    answer.found_facts(payload)
    written = orjson.dumps(result.to_dict())
    read = msgspec.json.decode(written, type=TestResult)
    assert [chunk.chunk_id for chunk in read.chunks()] == [
        chunk.chunk_id for chunk in result.chunks()
    ]
    assert all(0 <= time < math.inf for time in read.latency_ms.values())
    assert all((chunk.rank or 0) >= 1 for chunk in read.chunks())
    assert read.confidence is None or 0 <= read.confidence <= 1


def test_seconds_become_milliseconds(tmp_path: Path) -> None:
    answer = answer_map(tmp_path, 'latency_unit = "s"\n' + DEFAULT)
    payload = {"answer": "a", "retrieved": [], "latency_ms": {"total": 1.5, "generate": None}}
    result = build_result(answer.fields(payload), "case", "q")
    assert result.latency_ms == {"total": 1500.0}
    with pytest.raises(CallError, match="is not a time"):  # 1e308 s are more ms than a float holds
        build_result(answer.fields(payload | {"latency_ms": {"total": 1e308}}), "case", "q")


@each_row("length", [-1, -(2**62)])
def test_a_text_of_less_than_no_characters_is_a_mapping_error(length: int) -> None:
    chunks = [{"chunk_id": "a"}, {"chunk_id": "b", "text": "t", "text_length": length}]
    with pytest.raises(CallError, match=rf"^retrieved\[1\]\.text_length: {length}; ") as caught:
        build_result({"answer": "a", "retrieved": chunks}, "case", "q")
    assert caught.value.kind == "mapping"


def test_an_empty_text_has_no_characters() -> None:
    chunks = [{"chunk_id": "a", "text": ""}, {"chunk_id": "b", "text_length": 0}]
    result = build_result({"answer": "a", "retrieved": chunks}, "case", "q")
    assert [chunk.text_length for chunk in result.chunks()] == [0, 0]


@each_row("confidence", [-0.01, 1.01, 87, math.inf, math.nan])
def test_a_confidence_of_another_scale_is_a_mapping_error(confidence: float) -> None:
    fields = {"answer": "a", "retrieved": [], "confidence": confidence}
    with pytest.raises(CallError, match=r"confidence: .* from 0 to 1") as caught:
        build_result(fields, "case", "q")
    assert caught.value.kind == "mapping"


@each_row("confidence", [0, 0.5, 1, None])
def test_a_confidence_from_0_to_1_is_kept(confidence: float | None) -> None:
    fields: dict[str, Any] = {"answer": "a", "retrieved": [], "confidence": confidence}
    assert build_result(fields, "case", "q").confidence == confidence


def test_a_constant_fills_a_field(tmp_path: Path) -> None:
    text = DEFAULT.replace('cost_usd = "cost_usd"\n', "")
    answer = answer_map(tmp_path, text + "[constant]\ncost_usd = 0.25\n")
    result = build_result(answer.fields({"answer": "a", "retrieved": []}), "case", "q")
    assert result.cost_usd == 0.25


def test_facts_that_cannot_be_computed_are_no_facts(tmp_path: Path) -> None:
    text = DEFAULT.replace('index = "index"', 'index = "merge(index, `{}`)"')
    answer = answer_map(tmp_path, text)
    assert answer.found_facts({"index": 5}) == {}
    assert answer.found_facts({"index": {"a": 1}}) == {"index": {"a": 1}}


def test_an_expression_that_fails_is_a_mapping_error(tmp_path: Path) -> None:
    text = DEFAULT.replace('answer = "answer"', "answer = \"join('', answer)\"")
    answer = answer_map(tmp_path, text)
    with pytest.raises(CallError, match="an expression of the profile failed") as caught:
        answer.fields({"answer": 5, "retrieved": []})
    assert caught.value.kind == "mapping"


def test_tokens_have_a_price_unless_the_bot_names_the_cost(tmp_path: Path) -> None:
    prices = "[prices]\nprompt_tokens = 0.5\ncompletion_tokens = 2\n"
    answer = answer_map(tmp_path, DEFAULT + prices)

    def cost(**fields: Any) -> float | None:
        payload = {"answer": "a", "retrieved": []} | fields
        return build_result(answer.fields(payload), "case", "q").cost_usd

    # 1000 * 0.5 / 1e6 + 100 * 2 / 1e6 = 0.0007
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    assert cost(usage=usage) == pytest.approx(0.0007)
    assert cost(usage={"prompt_tokens": 1000}) == pytest.approx(0.0005)
    assert cost(usage=usage, cost_usd=0.1) == 0.1
    assert cost(usage={"words": 7}) is None
    assert cost() is None


@each_row(
    ("settings", "sent", "read"),
    [
        ({"heading_separator": "/"}, ("a.md", "/Plans/Free plan/"), ("a.md", "Plans > Free plan")),
        ({"heading_separator": " | "}, ("a.md", "Plans | A|B"), ("a.md", "Plans > A|B")),
        ({"heading_root": "Handbook"}, ("a.md", "Handbook > Plans"), ("a.md", "Plans")),
        ({"heading_root": "Handbook"}, ("a.md", "Plans > Handbook"), ("a.md", "Plans > Handbook")),
        ({"heading_root": "Book"}, ("a.md", "Books > Plans"), ("a.md", "Books > Plans")),
        ({"heading_root": "# A > B"}, ("a.md", "A > B > C"), ("a.md", "C")),
        ({"heading_root": "*"}, ("a.md", "Title of a > Plans"), ("a.md", "Plans")),
        ({"heading_separator": "/", "heading_root": "B"}, ("a.md", "/B/Plans/"), ("a.md", "Plans")),
        ({"path_root": "/srv/docs/"}, ("/srv/docs/x/a.md", "A"), ("x/a.md", "A")),
        ({"path_root": "docs"}, ("./docs/a.md", "A"), ("a.md", "A")),
        ({"path_root": "docs"}, ("docs2/a.md", "A"), ("docs2/a.md", "A")),
        ({"path_root": "/"}, ("/a.md", "A"), ("a.md", "A")),
        ({}, ("docs/a.md", "/A/B/"), ("docs/a.md", "/A/B/")),
    ],
)
def test_places_are_read_as_the_labels_write_them(
    tmp_path: Path, settings: dict[str, str], sent: tuple[str, str], read: tuple[str, str]
) -> None:
    lines = "".join(f"{name} = '{text}'\n" for name, text in settings.items())
    answer = answer_map(tmp_path, lines + DEFAULT)
    place = {"rel_path": sent[0], "heading_path": sent[1]}
    payload = {
        "answer": "a",
        "retrieved": [place | {"chunk_id": "c"}, "plain"],
        "references": [place | {"index": 1}],
    }
    fields = answer.fields(payload)
    for item in (fields["retrieved"][0], fields["references"][0]):
        assert (item["rel_path"], item["heading_path"]) == read
    assert fields["retrieved"][1] == {"chunk_id": "plain"}
    assert place == {"rel_path": sent[0], "heading_path": sent[1]}, "the answer stays as it came"


@each_row("name", ["heading_separator", "heading_root", "path_root"])
def test_an_empty_place_setting_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError, match=f"{name}: is empty"):
        answer_map(tmp_path, f"{name} = ''\n" + DEFAULT)


TRACED = """
schema = 1
latency_unit = "s"
[request]
path = "/ask"
body = { q = "{question}" }
[response]
answer = "a"
searches = "steps"
rewritten_query = "asked_as"
[search]
query = "q"
tool = "by"
start_ms = "at"
latency_ms = "took"
error = "fault"
retrieved = "hits"
[chunk]
chunk_id = "id"
text = "words"
"""


def test_searches_are_mapped_and_lend_the_passages_that_the_answer_saw(tmp_path: Path) -> None:
    """Times in seconds, searches out of order; the answer saw what both searches brought."""
    answer = answer_map(tmp_path, TRACED)
    steps = [
        {"q": "second", "at": 0.5, "took": 0.25, "hits": [{"id": "b", "words": "B"}]},
        {"q": "first", "at": 0.0, "by": "bm25", "hits": [{"id": "a", "words": "A"}]},
        {"q": "third", "at": 1.0, "fault": "no index"},
    ]
    payload = {"a": "yes", "asked_as": "what of plans?", "steps": steps}
    result = build_result(answer.fields(payload), "case", "and that?")
    assert result.rewritten_query == "what of plans?"
    first, second, third = (search for search, _ in result.searched())
    assert (first.query, first.tool, first.start_ms, first.latency_ms) == ("first", "bm25", 0, None)
    assert (second.start_ms, second.latency_ms) == (500.0, 250.0)
    assert (third.error, third.retrieved) == ("no index", [])
    assert [(chunk.chunk_id, chunk.rank) for chunk in result.chunks()] == [("a", 1), ("b", 2)]
    assert result.seen == "union"
    assert not result.retrieved_from_search


@each_row(
    ("searches", "complaint"),
    [
        ([7], "searches[0]: is neither an object nor a query"),
        ([{"retrieved": "x"}], "searches[0].retrieved: is not a list but str"),
        ([{"retrieved": [{}]}], "searches[0].retrieved[0]: has no id, path or text"),
        ([{"start_ms": -1}], "searches[0].start_ms: -1 is not a time"),
        ([{"latency_ms": "fast"}], "searches[0].latency_ms: Expected"),
    ],
)
def test_a_search_that_is_none_is_an_error_that_names_it(searches: Any, complaint: str) -> None:
    with pytest.raises(CallError) as caught:
        build_result({"answer": "", "searches": searches}, "case", "?")
    assert complaint in caught.value.message
