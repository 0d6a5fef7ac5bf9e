"""Traces of a bot, made for the tests, and a folder in which they are watched."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DAY = 86_400
START = 1_772_323_200
"""2026-03-01 00:00 UTC in seconds."""

NOW = (START + 40 * DAY) * 1_000_000
"""The time of a look, in microseconds: 40 days later."""

REFUSAL = "I could not find this in the documents."


def span(
    trace: str, name: str, parent: str, begin: float, lasted: float, **attributes: Any
) -> dict[str, Any]:
    """A span as OTLP writes it; ``__`` in a name of an attribute stands for a dot."""

    def typed(value: Any) -> dict[str, Any]:
        kind = {int: "intValue", float: "doubleValue"}.get(type(value), "stringValue")
        return {kind: str(value) if kind == "intValue" else value}

    return {
        "traceId": trace,
        "spanId": f"{trace}.{name}",
        "parentSpanId": f"{trace}.{parent}" if parent else "",
        "name": name,
        "startTimeUnixNano": str(int(begin * 1e9)),
        "endTimeUnixNano": str(int((begin + lasted) * 1e9)),
        "attributes": [
            {"key": key.replace("__", "."), "value": typed(value)}
            for key, value in attributes.items()
        ],
    }


def trace(
    name: str,
    *,
    at: float = START,
    question: str = "How is a crane greased?",
    answer: str | None = "With oil, once a week.",
    passages: tuple[str, ...] = ("A crane is greased with oil, once a week.",),
    session: str | None = None,
    lasted: float = 1.0,
) -> list[dict[str, Any]]:
    """The spans of one answer, the outermost last, as exporters send them."""
    documents = {
        f"retrieval__documents__{n}__document__{key}": value
        for n, text in enumerate(passages)
        for key, value in (("id", f"c{n}"), ("content", text))
    }
    more = {} if session is None else {"session__id": session}
    out = {} if answer is None else {"output__value": answer}
    return [
        span(name, "retrieve", "root", at, 0.1, openinference__span__kind="RETRIEVER",
             input__value=question, **documents, **more),
        span(name, "root", "", at, lasted, openinference__span__kind="CHAIN",
             input__value=question, **out, **more),
    ]  # fmt: skip


def otlp(*spans: dict[str, Any]) -> str:
    """One line as the collector's file exporter writes it."""
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}) + "\n"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of hashed ids, which is else made in the user's folder."""
    monkeypatch.setattr("watching.summary.key_of_ids", lambda: b"k" * 64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "traces"
    path.mkdir()
    return path


@pytest.fixture
def look(tmp_path: Path, folder: Path) -> Callable[..., Any]:
    """A look at the folder of traces."""
    from watching.watch import Watch, WatchOptions, watch

    def take(now: int = NOW, **wishes: Any) -> Watch:
        options = WatchOptions(folder, index=tmp_path / "index.sqlite", **wishes)
        return watch(options, now)

    return take


def planted(rng: random.Random) -> Iterator[tuple[str, str]]:
    """200 private values, each with the words around it; what must not be written comes first."""

    def letters(n: int, alphabet: str = string.ascii_letters + string.digits) -> str:
        return "".join(rng.choices(alphabet, k=n))

    def digits(n: int) -> str:
        return letters(n, string.digits)

    names = ["jane.roe", "m.huber", "li_wei", "o'neil", "anna+test"]
    for n in range(20):
        email = (
            f"{names[n % 5]}{n}@{['example.com', 'corp-mail.io', 'uni.ac.uk', 'mail.test'][n % 4]}"
        )
        yield email, f"write to {email}, please"
        phones = (f"+49 30 {digits(7)}", f"+1-202-555-01{n:02d}", f"(415) 555-{digits(4)}")
        phone = (*phones, f"0171 {digits(7)}")[n % 4]
        yield phone, f"call me at {phone} after six"
        card = f"4{digits(3)} {digits(4)} {digits(4)} {digits(4)}" if n % 2 else f"5{digits(15)}"
        yield card, f"my card is {card}"
        iban = f"DE{digits(2)} {digits(4)} {digits(4)} {digits(4)} {digits(4)} {digits(2)}"
        yield iban, f"pay to {iban} today"
        ssn = f"{rng.randint(100, 665)}-{rng.randint(10, 99)}-{digits(4)}"
        yield ssn, f"social security number {ssn}"
        host = f"8.{rng.randint(1, 250)}.{rng.randint(1, 250)}.{rng.randint(1, 250)}"
        yield host, f"my address is {host} at home"
        tokens = (
            f"ghp_{letters(36)}",
            f"sk-proj-{letters(40)}",
            f"xoxb-{digits(12)}-{letters(24)}",
        )
        token = (*tokens, f"AKIA{letters(16, string.ascii_uppercase + string.digits)}")[n % 4]
        yield token, f"it fails with {token} in the header"
        password = f"{letters(5, string.ascii_lowercase)}{digits(2)}!"
        yield password, f"the password is {password} and it fails"
        login = f"{letters(6, string.ascii_lowercase)}:{letters(9)}"
        yield login, f"connect to postgres://{login}@db.local/main"
        jwt = f"eyJ{letters(20)}.{letters(40)}.{letters(30)}"
        yield jwt, f"Authorization: Bearer {jwt}"
