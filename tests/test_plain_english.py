"""Help, messages and docstrings are plain English: no fixed phrase of ours, short sentences.

tests/test_documents.py has the same rules for documents.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import click
from tests.prose import FIXED_PHRASES, sentences

import options
from options import commands

SCRIPTS_DIR = Path(options.__file__).resolve().parents[1]
ROOT = SCRIPTS_DIR.parents[1]
WORDS_AS_DATA = {
    "ragmetrics/claims.py",
    "ragmetrics/text/gold_quotes.py",
    "ragmetrics/text/negation.py",
}
"""Word lists of negation, which hold such words as what they look for."""
MOST_WORDS = 17
"""Words of a sentence, on average."""
GUARD = 'if __name__ == "__main__":'
NAMES = sorted(path.stem for path in SCRIPTS_DIR.glob("*.py") if GUARD in path.read_text("utf-8"))


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
    return [match[0] for match in FIXED_PHRASES.finditer(" ".join(text.split()))]


def help_texts(name: str) -> Iterator[str]:
    """What a script says of itself, and each of its options."""
    command = importlib.import_module(name).main
    yield commands.docstring(command.callback).partition("\nExamples:")[0]
    for param in command.params:
        if isinstance(param, click.Option) and param.help:
            yield f"{param.help}\n\n"


def test_no_fixed_phrase_in_the_strings_of_the_scripts() -> None:
    used = [
        f"{path.relative_to(SCRIPTS_DIR)}:{line}: {phrase}"
        for path in sorted(SCRIPTS_DIR.rglob("*.py"))
        if path.relative_to(SCRIPTS_DIR).as_posix() not in WORDS_AS_DATA
        for line, text in texts_of(path.read_text("utf-8"))
        for phrase in found_in(text)
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
    counts = [
        len(words) for name in NAMES for text in help_texts(name) for words in sentences(text)
    ]
    print(f"help: {len(counts)} sentences, {sum(counts) / len(counts):.1f} words on average")
    assert sum(counts) / len(counts) <= MOST_WORDS


WOODEN = re.compile(
    r"\b(?:stands?|stood|what|of which|tells?|told|lies|bears?|holds?|held|that which|once more"
    r"|in one go|be had|laid)\b",
    re.IGNORECASE,
)
"""Words that made first sentences read like a translation."""


def first_sentences(source: str) -> Iterator[str]:
    """The first sentence of each public class and function, and of the module."""
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if getattr(node, "name", "").startswith("_"):
            continue
        if text := ast.get_docstring(node):
            yield re.split(r"(?<=[.!?:])\s", " ".join(text.split()))[0]
        if isinstance(node, (ast.Module, ast.ClassDef)):
            nodes += node.body


def test_first_sentences_of_docstrings_are_plain_and_short() -> None:
    flagged = [
        f"{path.relative_to(SCRIPTS_DIR)}: {sentence}"
        for path in sorted(SCRIPTS_DIR.rglob("*.py"))
        for sentence in first_sentences(path.read_text("utf-8"))
        if WOODEN.search(sentence) or len(sentence.split()) > 25
    ]
    assert not flagged, "\n".join(flagged)


def test_a_wooden_first_sentence_is_found() -> None:
    source = 'class Row:\n    """What is told of a row. It stands here."""\n'
    assert [bool(WOODEN.search(text)) for text in first_sentences(source)] == [True]
