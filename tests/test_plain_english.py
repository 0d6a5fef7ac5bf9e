"""The words that people meet are plain English: no fixed phrase of ours, short sentences."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import options
from options import commands

SCRIPTS_DIR = Path(options.__file__).resolve().parents[1]
ROOT = SCRIPTS_DIR.parents[1]
PHRASES = re.compile(
    r"\b(?:(?:is|are) told|laid to|held against|looks alike|as it is|nobody|somebody"
    r"|for want of)\b",
    re.IGNORECASE,
)
WORDS_AS_DATA = {
    "ragmetrics/claims.py",
    "ragmetrics/text/gold_quotes.py",
    "ragmetrics/text/negation.py",
}
"""Word lists of negation, which hold such words as what they look for."""
DOCUMENTS: tuple[str, ...] = ()
"""Hand-written documents under the rule, such as "README.md", "EVAL.md" and "docs"."""
MOST_WORDS = 17
"""Words of a sentence, on average."""
GUARD = 'if __name__ == "__main__":'
NAMES = sorted(path.stem for path in SCRIPTS_DIR.glob("*.py") if GUARD in path.read_text("utf-8"))
_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\"'`(-])|\n\s*\n")
_SHOWN = re.compile(r"^(?: {4,}|\||```|#|\s*- |.*\bpython eval/scripts/).*$", re.MULTILINE)


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every string of a module; of an f-string what stands in it."""
    parts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            own = [part for part in node.values if isinstance(part, ast.Constant)]
            parts |= {id(part) for part in own}
            yield node.lineno, "{}".join(str(part.value) for part in own)
        elif isinstance(getattr(node, "value", None), str) and id(node) not in parts:
            assert isinstance(node, ast.Constant)
            yield node.lineno, str(node.value)


def found_in(text: str) -> list[str]:
    return [match[0] for match in PHRASES.finditer(" ".join(text.split()))]


def sentences(text: str) -> list[int]:
    """The words of each sentence of a text, without tables, code, headings and examples."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found = [
        len(re.findall(r"[\w'’/.*-]*\w", sentence))
        for sentence in _END.split(_SHOWN.sub("", prose))
    ]
    return [count for count in found if count > 2]


def help_texts(name: str) -> Iterator[str]:
    """What a script says of itself, and each of its options."""
    command = importlib.import_module(name).main
    yield commands.docstring(command.callback).partition("\nExamples:")[0]
    for param in command.params:
        if isinstance(param, click.Option) and param.help:
            yield f"{param.help}\n\n"


def documents() -> list[Path]:
    """The files of ``DOCUMENTS``; of a folder every page."""
    return [
        path
        for name in DOCUMENTS
        for path in (
            sorted((ROOT / name).glob("*.md")) if (ROOT / name).is_dir() else [ROOT / name]
        )
    ]


def test_no_fixed_phrase_in_the_strings_of_the_scripts() -> None:
    used = [
        f"{path.relative_to(SCRIPTS_DIR)}:{line}: {phrase}"
        for path in sorted(SCRIPTS_DIR.rglob("*.py"))
        if path.relative_to(SCRIPTS_DIR).as_posix() not in WORDS_AS_DATA
        for line, text in texts_of(path.read_text("utf-8"))
        for phrase in found_in(text)
    ]
    assert not used, "\n".join(used)


def test_no_fixed_phrase_in_the_documents() -> None:
    used = [
        f"{path.relative_to(ROOT)}: {phrase}"
        for path in documents()
        for phrase in found_in(path.read_text("utf-8"))
    ]
    assert not used, "\n".join(used)


def test_a_planted_sentence_is_found() -> None:
    source = '''
def one(name):
    """What the user\n    is told."""
    return f"{name}: nobody asked; the file stays as it is", "Somebody did. " "Held against it."
'''
    assert [phrase for _, text in texts_of(source) for phrase in found_in(text)] == [
        "is told",
        "nobody",
        "as it is",
        "Somebody",
        "Held against",
    ]
    assert not found_in("Everybody is toldless, and anybody may lay it to rest.")


def test_words_as_data_hold_such_words() -> None:
    for name in WORDS_AS_DATA:
        assert found_in((SCRIPTS_DIR / name).read_text("utf-8")), f"{name} needs no exception"


def test_sentences_of_help_are_short() -> None:
    counts = [count for name in NAMES for text in help_texts(name) for count in sentences(text)]
    print(f"help: {len(counts)} sentences, {sum(counts) / len(counts):.1f} words on average")
    assert sum(counts) / len(counts) <= MOST_WORDS


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_sentences_of_documents_are_short(path: Path) -> None:
    counts = sentences(path.read_text("utf-8"))
    print(f"{path.name}: {len(counts)} sentences, {sum(counts) / len(counts):.1f} words on average")
    assert sum(counts) / len(counts) <= MOST_WORDS


def test_words_are_counted_by_the_sentence() -> None:
    """Three sentences of 4, 3 and 4 words; the example and the table do not count."""
    text = "Ask a bot first. Then score it:\n\n    python x.py\n\n| a | b |\n\nIt prints one line."
    assert sentences(text) == [4, 3, 4]
