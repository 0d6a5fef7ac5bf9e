"""Rubric files: what is read, what is refused and where, what a verdict is worth."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.rows import each_row

from records import rubrics
from records.rubrics import Rubric, find, of_prompt, read_rubric
from storage import StorageError

GOOD = """\
ask = "Is it kind?"
reads = ["answer", "question"]
target = "kind"

[scale]
"unkind" = "It hurts."
"fair" = "It does not hurt."
"kind" = "It comforts."

[[examples]]
answer = "Go away."
verdict = "unkind"

[[examples]]
answer = "Come in."
verdict = "kind"
"""


def write(folder: Path, text: str, name: str = "kindness") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, "utf-8")
    return path


def refused(folder: Path, text: str, name: str = "kindness") -> str:
    with pytest.raises(StorageError) as caught:
        read_rubric(write(folder, text, name))
    return caught.value.message


def test_a_file_is_read_as_it_stands(tmp_path: Path) -> None:
    rubric = read_rubric(write(tmp_path, GOOD))
    assert (rubric.metric, rubric.target) == ("rubrics.kindness", "kind")
    assert rubric.labels == ("unkind", "fair", "kind")
    assert rubric.reads == ("question", "answer")  # in the order of READS
    assert [example.verdict for example in rubric.examples] == ["unkind", "kind"]
    assert of_prompt({"rubric": rubric.to_dict()}) == rubric


def test_yes_and_no_stand_in_one_order(tmp_path: Path) -> None:
    text = 'ask = "?"\nreads = ["answer"]\ntarget = "yes"\n'
    short = read_rubric(write(tmp_path, f'{text}scale = "yes/no"\n'))
    long = read_rubric(write(tmp_path, f'{text}[scale]\nyes = "So."\nno = "Not so."\n'))
    assert short.labels == long.labels == ("no", "yes")
    assert short.quoted == ("yes",)


@each_row(
    ("direction", "target", "good"),
    [
        ("higher", "fair", ["fair", "kind"]),
        ("higher", "kind", ["kind"]),
        ("lower", "fair", ["unkind", "fair"]),
        ("lower", "unkind", ["unkind"]),
    ],
)
def test_the_target_and_the_direction_say_what_is_good(
    direction: rubrics.Direction, target: str, good: list[str]
) -> None:
    scale = (("unkind", "a"), ("fair", "b"), ("kind", "c"))
    rubric = Rubric("k", "?", ("answer",), scale, target, direction)
    assert [label for label in rubric.labels if rubric.reaches(label)] == good
    assert not rubric.reaches("quote_unverified")
    assert [rubric.rank(label) for label in (*rubric.labels, "quote_unverified")] == [1, 2, 3, None]


@each_row(
    ("old", "new", "said"),
    [
        ('ask = "Is it kind?"\n', "", "kindness.toml: ask: is missing"),
        ('target = "kind"', 'target = "best"', ":3: target: must be one of unkind, fair, kind"),
        ('"answer", "question"', '"question"', ':2: reads: must have "answer"'),
        ('"answer", "question"', '"answer", "secrets"', ":2: reads: must be a list of question,"),
        ('"fair" = "It does not hurt."', '"fair" = 3', ":7: scale.fair: must be a text"),
        ('"fair"', '"cannot_tell"', ":7: scale.cannot_tell: is part of"),
        ('"fair"', '"a\\nb"', ':7: scale."a\\nb": a label has'),
        ('verdict = "kind"', 'verdict = "great"', ":16: examples[2].verdict: must be one of"),
        ('answer = "Come in."\n', "", ":14: examples[2].answer: is missing"),
        ('answer = "Come in."', 'answer = "x"\nurl = "http://x"', "examples[2].url: is unknown"),
        ("[scale]", 'direction = "up"\n[scale]', ":5: direction: must be one of higher, lower"),
        ("[scale]", 'server = "http://x"\n[scale]', ":5: server: is unknown"),
        ("[scale]", "schema = 2\n[scale]", ":5: schema: must be 1"),
        ('ask = "Is it kind?"', f'ask = "{"a" * 4001}"', ":1: ask: has 4,001 characters"),
        ('ask = "Is it kind?"', "ask = ", "kindness.toml: cannot be used"),
    ],
)
def test_a_bad_file_is_named_with_line_and_key(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in GOOD
    assert said in refused(tmp_path, GOOD.replace(old, new))


@each_row("name", ["Kind", "a.b", "mean_rank", "x_turn", "kind ness"])
def test_a_name_that_could_be_another_metric_is_refused(tmp_path: Path, name: str) -> None:
    assert "the name must have only lower-case letters" in refused(tmp_path, GOOD, name)


def test_a_name_finds_the_teams_file_first_and_never_leaves_the_folder(tmp_path: Path) -> None:
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    own.mkdir()
    shipped.mkdir()
    write(shipped, GOOD)
    write(tmp_path, GOOD, "outside")
    assert find("kindness", (own, shipped))[1].parent == shipped
    write(own, GOOD)
    find.cache_clear()
    assert find("kindness", (own, shipped))[1].parent == own
    for name in ("../outside", str(tmp_path / "outside"), "kindnes"):
        with pytest.raises(StorageError, match="no such rubric"):
            find(name, (own, shipped))


def test_the_shipped_rubrics_are_sound_and_have_an_example_of_each_verdict() -> None:
    folder = (Path(__file__).parents[2] / "eval" / "rubrics",)
    assert rubrics.names(folder) == ["complete", "helpful", "tone"]
    for name in rubrics.names(folder):
        rubric, _ = find(name, folder)
        assert {example.verdict for example in rubric.examples} == set(rubric.labels)


def test_the_version_changes_with_all_that_numbers_depend_on_and_the_question_does_not() -> None:
    scale = (("no", "a"), ("yes", "b"))
    rubric = Rubric("k", "?", ("answer",), scale, "yes")
    other_target = msgspec.structs.replace(rubric, target="no")
    assert rubric.version != other_target.version
    assert rubric.prompt_bytes() == other_target.prompt_bytes()
    for change in ({"ask": "!"}, {"reads": ("answer", "tools")}, {"direction": "lower"}):
        changed = msgspec.structs.replace(rubric, **change)
        assert changed.version != rubric.version
