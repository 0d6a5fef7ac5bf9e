"""What Textual calls the keys that the labeller uses."""

from __future__ import annotations


def textual_name(key: str) -> str:
    """The name of a one-character key, written out by hand for the signs that the table uses."""
    names = {
        "?": "question_mark",
        "/": "slash",
        ";": "semicolon",
        "(": "left_parenthesis",
        ")": "right_parenthesis",
        ".": "full_stop",
        "+": "plus",
        "=": "equals_sign",
        "-": "minus",
        "'": "apostrophe",
        "<": "less_than_sign",
        ">": "greater_than_sign",
        "@": "at",
        "&": "ampersand",
        "}": "right_curly_bracket",
        "{": "left_curly_bracket",
    }
    return names.get(key, key)
