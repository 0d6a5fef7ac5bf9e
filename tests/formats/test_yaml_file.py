"""YAML by the rules of version 1.2, held against js-yaml, which promptfoo reads its files with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from formats.shared.rows import read_yaml
from storage import StorageError

JS_YAML = {
    "a: [Who wrote A?, Who wrote B?]": {"a": ["Who wrote A?", "Who wrote B?"]},
    "a: {q: Who?, r: 1}": {"a": {"q": "Who?", "r": 1}},
    "a: [?x, b]": {"a": ["?x", "b"]},
    "a: [what? yes, b]": {"a": ["what? yes", "b"]},
    "a: [x?\n]": {"a": ["x?"]},
    "[a?\n  b]": ["a? b"],
    "[a ?, b]": ["a ?", "b"],
    "[a ? b : c]": [{"a ? b": "c"}],
    "[??, b]": ["??", "b"],
    "[a?:b]": ["a?:b"],
    "[x?#y]": ["x?#y"],
    "[http://x?y=1]": ["http://x?y=1"],
    "[What? : x]": [{"What?": "x"}],
    "{a?: 1}": {"a?": 1},
    "{?a: 1}": {"?a": 1},
    "{q: ?x}": {"q": "?x"},
    # before a space it is still the mark of a key
    "a: [? k : v]": {"a": [{"k": "v"}]},
    "a: {? k : v}": {"a": {"k": "v"}},
    "{? a, b: 1}": {"a": None, "b": 1},
    "[? a, b]": [{"a": None}, "b"],
    # outside of brackets nothing is new
    "?a: 1": {"?a": 1},
    "a: ?b": {"a": "?b"},
    "- ?b": ["?b"],
}
"""Written by js-yaml 4 (``JSON.stringify(load(text))``)."""
REFUSED = ("[?]", "[a, ?]", "{q: ?}", "{q: ?, b: 1}", '["a"?]', '{"a"?: 1}')
"""What js-yaml 4 refuses, too."""


@each_row(("text", "value"), JS_YAML.items())
def test_question_marks_are_read_as_by_js_yaml(tmp_path: Path, text: str, value: Any) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text(text, encoding="utf-8")
    assert read_yaml(path) == value


@each_row("text", REFUSED)
def test_what_is_no_yaml_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text(f"\n\n{text}", encoding="utf-8")
    with pytest.raises(StorageError, match=r"tests\.yaml:3: "):
        read_yaml(path)


@each_row("text", ['"a\\ud800b"', '"\\udc00": 1', '- ["\\ud83d"]'])
def test_half_a_character_is_refused_since_no_file_can_hold_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text(f"\n\n{text}", encoding="utf-8")
    with pytest.raises(StorageError, match=r"tests\.yaml:3: contains half of a character"):
        read_yaml(path)
