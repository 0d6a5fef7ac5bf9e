"""What profiles can say beyond paths: helpers, cited numbers, variables, settings, streams."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fake_bot import Exchange, FakeBot
from tests.rows import each_row

import run_eval
from clients.bot import BotAnswer, ChatApi, Question
from clients.expressions import HELPERS, compile_path
from clients.http import CallError, RetryPolicy, finish
from clients.profile import Profile, _ProfileTable, fill, load_profile
from clients.run_plan import header_templates
from clients.streams import Stream, read_stream
from clients.templates import PLACEHOLDERS
from records.errors import StorageError

SMALL = """
[request]
path = "/ask"
[request.body]
question = "{question}"
[response]
answer = "answer"
"""


def load(folder: Path, text: str) -> Profile:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return load_profile(str(path), folder)


def ask(bot: FakeBot, profile: Profile, **fields: Any) -> BotAnswer:
    client = ChatApi(bot.url, profile, policy=RetryPolicy(timeout=60, retries=0))
    try:
        return finish(client.ask(Question("q1", "Why?", **fields)))
    finally:
        client.close()


def test_the_shipped_profile_explains_every_helper_and_placeholder() -> None:
    path = Path(__file__).parents[2] / "eval" / "profiles" / "default.toml"
    text = path.read_text("utf-8")
    assert [name for name in HELPERS if f"{name}(" not in text] == []
    assert [name for name in PLACEHOLDERS if f"{{{name}}}" not in text] == []
    assert [name for name in _ProfileTable.__struct_fields__ if name not in text] == []


@each_row(
    ("expression", "value", "expected"),
    [
        ("join(' > ', split(h, '/'))", {"h": "/A/ B /"}, "A > B"),
        ("join(' > ', [a, b, c])", {"a": "A", "b": None, "c": 3}, "A > 3"),
        ("replace(p, '.html', '.md')", {"p": "a/b.html"}, "a/b.md"),
        ("basename(p)", {"p": "C:\\docs\\b.md"}, "b.md"),
        ("basename(p)", {"p": "/docs/b/"}, "b"),
        ("trim(t)", {"t": " x\n"}, "x"),
        ("lines(t)", {"t": "a\n\n b \r\n"}, ["a", "b"]),
        ("before(t, ' (')", {"t": "Intro (0.8)"}, "Intro"),
        ("before(t, ' (')", {"t": "Intro"}, "Intro"),
        ("after(t, 'Sources:')", {"t": "Yes. Sources: a Sources: b"}, " a Sources: b"),
        ("after(t, 'Sources:')", {"t": "Yes."}, None),
        ("number(t)", {"t": "took 1,204 ms"}, 1204),
        ("number(t)", {"t": "-0.5"}, -0.5),
        ("number(t)", {"t": 7}, 7),
        ("number(t)", {"t": "none"}, None),
        ("marks(t)", {"t": "It is so [2], or so [1, 2] [x] 5."}, [2, 1]),
        *((f"{call}", {}, None) for call in ("split(t, '/')", "basename(t)", "number(t)")),
    ],
)
def test_helpers(expression: str, value: Any, expected: Any) -> None:
    assert compile_path(expression)(value) == expected


def test_an_unknown_function_is_told_when_the_profile_is_read(tmp_path: Path) -> None:
    text = SMALL.replace('answer = "answer"', "answer = \"join('', list[?slice(@)])\"")
    with pytest.raises(StorageError, match=r"no function slice\(\).*helpers are split"):
        load(tmp_path, text)


REFERENCES = SMALL + 'references = "cited"\nretrieved = "hits"\n[chunk]\nchunk_id = "id"\n'


@pytest.mark.parametrize(
    ("cited", "expected"),
    [
        ([2, 1], [(2, "b"), (1, "a")]),
        ([3], [(3, None)]),  # nothing was retrieved at place 3: it stays a number
        (["b"], [(1, "b")]),
        ([], []),
    ],
)
def test_citations_may_be_numbers_or_ids(
    tmp_path: Path, fake_bot: FakeBot, cited: list[Any], expected: list[Any]
) -> None:
    hits = [{"id": "a"}, {"id": "b"}]
    fake_bot.default = lambda it: it.reply({"answer": "x", "cited": cited, "hits": hits})
    result = ask(fake_bot, load(tmp_path, REFERENCES)).result
    assert [(one.index, one.chunk_id) for one in result.references or ()] == expected


VARIABLES = (
    SMALL.replace("[request.body]", '[request.query]\nkey = "${BOT_KEY}"\n[request.body]')
    + "[retrieval_only.body]\nscope = 'of ${TENANT}'\n"
)


def test_variables_of_a_request_are_sent_and_never_shown(tmp_path: Path, fake_bot: FakeBot) -> None:
    text = VARIABLES.replace('"{question}"', '"{question}"\ntenant = "${TENANT}/{case_id}"')
    profile, headers = fill(
        load(tmp_path, text), {"BOT_KEY": "abc123xyz", "TENANT": "a{k}b"}, {"X-Key": "${BOT_KEY}"}
    )
    seen: list[Exchange] = []

    def echo(exchange: Exchange) -> None:
        seen.append(exchange)
        exchange.reply({"answer": f"{exchange.handler.path} a{{k}}b"})

    fake_bot.default = echo
    client = ChatApi(fake_bot.url, profile, headers, RetryPolicy(5, 0))
    result = finish(client.ask(Question("q1", "Why?"))).result
    client.close()
    assert seen[0].handler.path == "/ask?key=abc123xyz"
    assert seen[0].handler.headers["X-Key"] == "abc123xyz"
    assert seen[0].json() == {"question": "Why?", "tenant": "a{k}b/q1"}
    assert result.answer == "/ask?key=[secret] [secret]"


def test_every_variable_that_is_not_set_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        fill(load(tmp_path, VARIABLES), {"BOT_KEY": "abc"})
    faults = [(one.field, one.message) for one in caught.value.problems]
    assert [field for field, _ in faults] == ["request.query.key", "retrieval_only.body.scope"]
    assert "fewer than 4 characters" in faults[0][1]
    assert faults[1][1] == "environment variable TENANT is not set; export it first"


def test_a_session_goes_on_in_a_conversation_alone(tmp_path: Path, fake_bot: FakeBot) -> None:
    profile = load(tmp_path, SMALL.replace('"{question}"', '"{question}"\ns = "{session_or_uuid}"'))
    assert profile.remembers
    for session in (None, None, "s-1", "s-1"):
        assert ask(fake_bot, profile, session=session).result.status == "ok"
    sent = [exchange.json()["s"] for exchange in fake_bot.seen]
    assert len(set(sent[:2])) == 2
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f-]{27}", each) for each in sent[:2])
    assert sent[2:] == ["s-1", "s-1"]


def test_each_question_has_a_session_of_its_own(tmp_path: Path, fake_bot: FakeBot) -> None:
    body = '"{question}"\nsession = "{run_id}/{uuid}"\nrun = "{run_id}"'
    profile = load(tmp_path, SMALL.replace('"{question}"', body))
    for run_id in ("monday", "monday", None):
        assert ask(fake_bot, profile, run_id=run_id).result.status == "ok"
    bodies = [exchange.json() for exchange in fake_bot.seen]
    assert re.fullmatch(r"monday/[0-9a-f]{8}-[0-9a-f-]{27}", bodies[0]["session"])
    assert bodies[0]["session"] != bodies[1]["session"]
    assert [body.get("run") for body in bodies] == ["monday", "monday", None]


SETTINGS = SMALL.replace('"{question}"', '"{question}"\ntop = "{top}"') + "[settings]\ntop = 5\n"


def test_settings_that_a_grid_may_set(tmp_path: Path, fake_bot: FakeBot) -> None:
    profile = load(tmp_path, SETTINGS)
    ask(fake_bot, profile)
    ask(fake_bot, profile.with_settings({"top": 9}))
    assert [exchange.json()["top"] for exchange in fake_bot.seen] == [5, 9]
    with pytest.raises(StorageError, match="no setting 'tpo'; it has: top"):
        profile.with_settings({"tpo": 1})


def test_a_run_sends_its_id_and_records_the_settings(tmp_path: Path, fake_bot: FakeBot) -> None:
    text = SETTINGS.replace('"{question}"', '"{question}"\nrun = "{run_id}"')
    profile = tmp_path / "mine.toml"
    profile.write_text(text, encoding="utf-8")
    (tmp_path / "set.jsonl").write_text('{"id": "q1", "question": "Why?"}\n')
    fake_bot.default = lambda it: it.reply({"answer": "So."})
    words = ["--api-url", fake_bot.url, "--profile", str(profile), "--run-id", "monday"]
    words += ["--eval-set", str(tmp_path / "set.jsonl"), "--results-dir", str(tmp_path)]
    done = CliRunner().invoke(run_eval.main, words)
    assert done.exit_code == 0, done.output
    assert fake_bot.seen[0].json() == {"question": "Why?", "run": "monday", "top": 5}
    config = json.loads((tmp_path / "monday" / "config.json").read_text())
    assert config["retriever"]["requested"]["settings"] == {"top": 5}


@each_row(
    ("text", "words"),
    [
        (SETTINGS.replace("top = 5", "top = 5\nk = 3"), "settings.k: cannot be the name"),
        (SETTINGS.replace("top = 5", "top = {a = 1}"), "settings.top: must be"),
        (SETTINGS.replace("{top}", "top"), 'settings.top: "{top}" is nowhere'),
        ('stream_last = "x"\n' + SMALL, "stream_last: needs stream"),
        ('stream = "ws"\n' + SMALL, "must be one of sse, ndjson"),
        ('path_cut = [["case"]]\n' + SMALL, ":1: path_cut: must be a text of steps: anchor, query"),
        ('stream = "sse"\nstream_delta = "a..b"\n' + SMALL, "stream_delta: 'a..b' is not a JMES"),
    ],
)
def test_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(StorageError, match=re.escape(words)):
        load(tmp_path, text)


SSE = (
    b': hello\n\nevent: sources\ndata: {"docs": [1]}\n\n'
    b'data: {"d": "On"}\r\n\r\ndata: {"d":\ndata: "e"}\n\nid: 7\ndata: plain\n\n'
    b'data: {"end": true}\n\ndata: [DONE]\n\n'
)
DELTA, END = compile_path("d"), compile_path("end")


def test_events_become_one_value() -> None:
    payload, first = read_stream(SSE, Stream("sse", DELTA, END))
    events = [{"event": "sources", "docs": [1]}, {"d": "On"}, {"d": "e"}, {"data": "plain"}]
    end = {"end": True}
    assert payload == {"text": "One", "events": [*events, end], "last": end}
    assert first == SSE.index(b"\r\n\r\n") + 4  # the empty line that ends the event with "On"


def test_a_stream_of_plain_words() -> None:
    """Words that look like numbers or lists are words; a JSON string is the text that it holds."""
    body = b'data: It \n\ndata: costs\n\ndata: " \\n"\n\ndata: 12\n\ndata: [1]\n\n'
    payload, _ = read_stream(body, Stream("sse", compile_path("data")))
    assert payload["text"] == "It costs \n12[1]"


def test_lines_of_json_become_one_value() -> None:
    body = b'{"d": "a"}\n\n{"d": "b"}\n{"end": 1, "n": 2}'
    payload, first = read_stream(body, Stream("ndjson", DELTA, END))
    assert (payload["text"], payload["last"], first) == ("ab", {"end": 1, "n": 2}, 11)


@each_row(
    ("body", "stream", "words"),
    [
        (SSE[: SSE.index(b'data: {"d":\n')], Stream("sse", DELTA, END), "broke off after 2 events"),
        (SSE.replace(b"[DONE]", b""), Stream("sse", DELTA, needs_mark=True), "broke off"),
        (b'{"answer": "x"}', Stream("sse", DELTA), "not an sse stream"),
        (b'data: {"d": "x', Stream("sse", DELTA), "an event is not JSON"),
        (b"", Stream("ndjson", DELTA), "not an ndjson stream"),
        (b'{"d": 1}\n{"d', Stream("ndjson", DELTA), "line 2 of the stream is not JSON"),
        (SSE + b'data: {"d": "x"}\n\n', Stream("sse", DELTA, END), "continues after its end mark"),
        (SSE + b"data: {}\n\n", Stream("sse", DELTA, needs_mark=True), "continues after its end"),
        (b'data: {"d": "caf\xe9"}\n\n', Stream("sse", DELTA), "bytes that are not UTF-8"),
    ],
)
def test_a_stream_that_broke_off_is_no_answer(body: bytes, stream: Stream, words: str) -> None:
    with pytest.raises(CallError, match=words) as caught:
        read_stream(body, stream)
    assert caught.value.kind == "malformed"


OVERLOADED = b'{"d": "Fine "}\n{"error": {"message": "overloaded", "code": 529}}\n'


def test_an_error_inside_a_stream_is_no_answer(tmp_path: Path, fake_bot: FakeBot) -> None:
    fake_bot.default = lambda exchange: exchange.raw(OVERLOADED)
    head = 'stream = "ndjson"\nstream_delta = "d"\n'
    text = head + SMALL.replace('answer = "answer"', 'answer = "text"')
    result = ask(fake_bot, load(tmp_path, text)).result
    assert (result.status, result.error and result.error.kind) == ("error", "bot_error")
    assert result.error is not None
    assert result.error.message == "event 2 of the stream: overloaded"
    mapped = text.replace('"text"', '"text"\nerror = "last.fault"')
    assert ask(fake_bot, load(tmp_path, mapped)).result.answer == "Fine "


def test_an_event_without_a_fault_may_have_the_field() -> None:
    body = b'{"d": "a", "error": null}\n{"d": "b", "error": false}\n{"d": "c", "error": {}}'
    assert read_stream(body, Stream("ndjson", DELTA))[0]["text"] == "abc"


def test_the_time_to_the_first_token_is_recorded(tmp_path: Path, fake_bot: FakeBot) -> None:
    """The first word comes 50 ms after the sources, the end 50 ms later: so 50 <= first < total."""
    parts = (b'data: {"docs": []}\n\n', b'data: {"d": "Yes"}\n\n', b'data: {"end": true}\n\n')

    def stream(exchange: Exchange) -> None:
        handler = exchange.handler
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for part in parts:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            handler.wfile.flush()
            time.sleep(0.05)
        handler.wfile.write(b"0\r\n\r\n")

    fake_bot.default = stream
    head = 'stream = "sse"\nstream_delta = "d"\nstream_last = "end"\n'
    text = head + SMALL.replace(
        'answer = "answer"', 'answer = "text"\nretrieved = "events[0].docs"'
    )
    result = ask(fake_bot, load(tmp_path, text)).result
    assert (result.answer, result.retrieved) == ("Yes", [])
    times = result.latency_ms
    assert 50 <= times["first_token"] < times["total"]
    assert fake_bot.seen[0].handler.headers["Accept"].startswith("text/event-stream")


def test_a_key_that_a_stream_repeats_is_taken_out(tmp_path: Path, fake_bot: FakeBot) -> None:
    head = 'stream = "ndjson"\nstream_delta = "d"\n'
    text = head + SMALL.replace('answer = "answer"', 'answer = "text"')
    text = text.replace('"{question}"', '"{question}"\nkey = "${BOT_KEY}"')
    profile, headers = fill(load(tmp_path, text), {"BOT_KEY": "canary-4711"})
    lines = [json.dumps({"d": part}) for part in ("My key: can", "ary-4711.")]
    fake_bot.default = lambda it: it.raw("\n".join(lines).encode())
    client = ChatApi(fake_bot.url, profile, headers, RetryPolicy(5, 0))
    assert finish(client.ask(Question("q1", "Why?"))).result.answer == "My key: [secret]."
    client.close()


def test_a_header_that_is_no_secret_is_written_as_it_is() -> None:
    templates = header_templates(["X-User-Id: u7", "Authorization=BOT_TOKEN"])
    assert templates == {"X-User-Id": "u7", "Authorization": "${BOT_TOKEN}"}
    for secret in ("Authorization: abc", "X-Id: 8f14e45fceea167a5a36dedd4bea2543"):
        with pytest.raises(StorageError, match="NAME=VARIABLE"):
            header_templates([secret])


AGENT = """
order = "reversed"
[request]
path = "/ask"
[request.body]
question = "{question}"
[response]
answer = "answer"
retrieved = "hits"
tools = "tool_calls(messages)"
[tools.find]
split = '\\n==\\n'
place = '^Note (?P<path>\\S+), (?P<heading>.+)$'
"""


def test_a_tool_of_a_profile_searches_and_lists_are_reversed(
    fake_bot: FakeBot, tmp_path: Path
) -> None:
    said = "Note rooms.md, Food\nWater is allowed.\n==\nNote loans.md, Fees\nTen cents a day."
    calls = [
        {"id": "1", "function": {"name": "find", "arguments": '{"query": "water"}'}},
        {"id": "2", "function": {"name": "transfer_to_clerk", "arguments": "{}"}},
    ]
    messages = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": said},
    ]
    hits = [{"chunk_id": "worst"}, {"chunk_id": "best"}]
    payload = {"answer": "So.", "hits": hits, "messages": messages}
    fake_bot.default = lambda it: it.reply(payload)
    result = ask(fake_bot, load(tmp_path, AGENT)).result
    assert [chunk.chunk_id for chunk in result.chunks()] == ["best", "worst"]
    search = (result.searches or [])[0]
    assert (search.tool, search.query) == ("find", "water")
    chunks = [chunk for chunk in search.retrieved if not isinstance(chunk, str)]
    places = [(chunk.rel_path, chunk.heading_path, chunk.text) for chunk in chunks]
    assert places == [  # reversed, as every list of this bot
        ("loans.md", "Fees", "Ten cents a day."),
        ("rooms.md", "Food", "Water is allowed."),
    ]
    assert result.handoffs == ["clerk"]
    assert [call.name for call in result.tools or ()] == ["find"]


@each_row(
    ("text", "named"),
    [
        (AGENT.replace("place = '", "plaec = '"), "tools.find.plaec"),
        (AGENT.replace("split = '", "split = '("), "tools.find.split"),
        (AGENT.replace('tools = "tool_calls(messages)"', ""), "response.tools"),
        (AGENT.replace('"reversed"', '"worst"'), "order"),
    ],
)
def test_faults_of_tools_and_order_are_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(StorageError) as raised:
        load(tmp_path, text)
    assert [each.field for each in raised.value.problems] == [named]
