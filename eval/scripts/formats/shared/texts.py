"""The meaning of a text in a table: a list or an object, in JSON or in Python's spelling."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import Any

import orjson

from records.lines import parse_json


def parsed(text: str) -> Any:
    """A list or object written as JSON or, as pandas and ragas write it into CSV, as Python.

    None for any other text.
    """
    text = text.strip()
    if text[:1] + text[-1:] not in ("[]", "{}"):
        return None
    try:
        return parse_json(text)
    except orjson.JSONDecodeError:
        try:
            texts = _numpy_texts(text)
            return orjson.loads(orjson.dumps(ast.literal_eval(text))) if texts is None else texts
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None


def _numpy_texts(text: str) -> list[str] | None:
    """The texts of a numpy array as it prints itself, without commas; None for anything else.

    Python would join them into one text. Raises SyntaxError for what is no Python.
    """
    if not re.search(r"[\'\"]\s+[\'\"]", text):
        return None
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except tokenize.TokenError as error:
        raise SyntaxError(str(error)) from None
    words = [token for token in tokens if token.string.strip()]
    inner = words[1:-1]
    if len(inner) < 2 or any(token.type != tokenize.STRING for token in inner):
        return None
    return [str(ast.literal_eval(token.string)) for token in inner]
