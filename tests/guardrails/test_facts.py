"""What is passed over because of a cheap fact of a text: never anything that would be masked."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.hostile_texts import CONTROLS, MARKUP, WIDE
from tests.rows import each_row

from guardrails import blot as blotting
from guardrails import pii, secrets
from guardrails.blot import blot
from guardrails.facts import TextFacts, facts_of

DATA = Path(os.environ.get("RAG_EVAL_DATA", ""))
SETS = ("secrets_fixtures", "secrets_rules", "pii_presidio_cases", "pii_presidio_synth")


class NoFacts(TextFacts):
    """The same text when nothing is known of it: no pattern is passed over, at no place."""

    has_many_digits = has_local_number = has_country_code = True
    has_four_numbers = has_colon_groups = True

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.low = None
        self.long_words = text

    def matches(self, pattern: re.Pattern[str], *begins: str) -> Iterator[re.Match[str]]:
        return pattern.finditer(self.text)


def found(text: str) -> Any:
    return blot(text), blot(text, is_id=True), [*secrets.find_secrets(text)], [*pii.find_pii(text)]


def found_without_facts(text: str, find: Callable[[str], Any] = found) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for module in (blotting, secrets, pii):
            patch.setattr(module, "facts_of", NoFacts)
        patch.setattr(secrets, "_DRAWN", re.compile(""))
        return find(text)


PRIVATE = (
    *("jane@corp.example", "https://u:pw1234@db.io/x", "DE89 3704 0044 0532 0130 00"),
    *("MT84MALT011000012345MTLCAST001S", "123-45-6789", "4111 1111 1111 1111", "8.8.8.8"),
    *("2001:db8::ff00:42:8329", "::1", "fe80::1:2", "+49 30 901820", "(555) 123-4567", "01 23"),
    *("0170/1234567", "+1 (2)3 4.5 6-7", "AKIAIOSFODNN7EXAMPLE", "password = hunter2x"),
    *("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghij12", "PASSWORD=hunter2x"),
    *("api_key: 'Zx81kQ0pLm4Tn7Rs'", "Bearer abcdefgh9", "login bob password hunter2x"),
    *("Basic YWxhZGRpbjpvcGVu", "-p hunter2x", "pa\u017f\u017fword = hunter2x", "to\u212aen=abc12"),
    *("datadog key 0123456789abcdef0123456789abcdef", "ghp_" + "a1B2" * 9),
    *("hf_" + "abcd" * 8 + "ab", "$1$abcdefgh$" + "a" * 22, "root:$6$abcdefghijk:"),
    *("x = A1b2C3d4E5f6G7h8I9j0K1l2", "define('DB_PASSWORD', 'x9y8z7')"),
    *('secret: "a#b$c!d%e^f&g*h(i)"', "sk-ant-api03-" + "x1" * 25),
    "-----BEGIN PRIVATE KEY-----\nMIIBVgIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
    *("3f2a9c1d5e6b7a8c9d0e1f2a3b4c5d6e", "\uff11\uff12\uff13-\uff14\uff15-6789"),
    *("2026-03-04T12:00:00Z", "std::io::prelude", "face::b", "the token is used"),
    "basic mechanics",
)
GLUE = (" ", "", "\n", ": ", "=", "\u00a0", "\u2028", "\t", "x", "1", ".", "é", "-", '"', "`")


def pieces() -> st.SearchStrategy[str]:
    """A private detail or a part of one, in capitals or small letters, or any sign at all."""
    whole = st.sampled_from((*PRIVATE, *CONTROLS, *MARKUP, *WIDE))
    part = st.tuples(whole, st.integers(0, 9), st.integers(0, 9)).map(
        lambda t: t[0][t[1] : len(t[0]) - t[2]]
    )
    changed = st.tuples(whole, st.sampled_from((str.upper, str.lower, str.title))).map(
        lambda pair: pair[1](pair[0])
    )
    return st.one_of(whole, part, changed, st.sampled_from(GLUE), st.text(max_size=6))


@settings(max_examples=400)
@given(st.lists(pieces(), max_size=7).map("".join))
@example("the \u017fecret: hunter2x!")
@example("a:b:c dead/beef::1 x::y")
def test_no_fact_hides_what_would_be_found(text: str) -> None:
    assert found(text) == found_without_facts(text)


@each_row("text", PRIVATE)
def test_each_private_detail_alone_and_in_a_sentence(text: str) -> None:
    for whole in (text, f"Please note {text}, and answer.", f"é{text}\u017f"):
        assert found(whole) == found_without_facts(whole)


@pytest.mark.skipif(not DATA.name, reason="RAG_EVAL_DATA names no folder of open data")
@each_row("name", SETS)
def test_no_fact_hides_what_is_in_sets_of_secrets_and_personal_data(name: str) -> None:
    texts = list(dict.fromkeys(_texts(name)))
    assert len(texts) > 40
    assert sum(bool(blot(text)[1]) for text in texts) > 20
    assert [t for t in texts if blot(t) != found_without_facts(t, blot)] == []


def _texts(name: str) -> Iterator[str]:
    for path in sorted((DATA / name).glob("data.jsonl*")):
        data = path.read_bytes()
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
            yield from _strings(orjson.loads(line))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    inner = value.values() if isinstance(value, dict) else value
    for item in inner if isinstance(value, dict | list) else ():
        yield from _strings(item)


@cache
def _book() -> Any:
    return secrets._book()


@each_row("form", _book().forms)
def test_what_a_form_needs_is_in_all_that_it_matches(form: Any) -> None:
    @settings(max_examples=15)
    @given(st.from_regex(form.regex))
    def holds(text: str) -> None:
        match = form.regex.search(text)
        assert match is None or facts_of(text).has(*form.needs)

    holds()


@settings(max_examples=60)
@given(st.from_regex(_book().tokens))
def test_a_token_has_no_blank(text: str) -> None:
    match = _book().tokens.search(text)
    assert match is None or (not re.search(r"\s", match[0]) and len(match[0]) >= 14)
    assert match is None or _book().grouped.match(text, match.start())[0] == match[0]


def test_letters_that_equal_others_only_by_case_are_all_known() -> None:
    """Python's own matching is asked for each letter of Unicode."""
    ascii_letter = re.compile("[a-z]", re.IGNORECASE)
    odd = {c for c in map(chr, range(128, 0x110000)) if ascii_letter.fullmatch(c)}
    assert all(TextFacts(letter).low is None for letter in odd)
    others = (c for c in map(chr, range(128, 0x110000)) if c not in odd)
    assert all(len(letter.lower()) == 1 for letter in others)
