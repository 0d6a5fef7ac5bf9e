"""Where things go: all or nothing, nothing overwritten, bounded memory; and hostile sources."""

from __future__ import annotations

import csv
import gzip
import io
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.score_lines import write_lines

import storage
from formats import all_formats, core_formats, csv_sheet, directions
from formats.shared.item import Notes

ROWS = [{"id": "a", "question": "Q?", "answer": "A.", "relevant_docs": ["d"]}]


def test_the_formats_that_are_there(desk: Any) -> None:
    assert {name: directions(module) for name, module in core_formats().items()} == {
        "csv": ["export"],
        "deepeval": ["import"],
        "json": ["import", "export"],
        "langfuse": ["import"],
        "langsmith": ["import"],
        "openai": ["import"],
        "otel": ["import"],
        "promptfoo": ["import"],
        "ragas": ["import"],
    }
    listed = desk.convert("--list").stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(all_formats())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to do"),
        (["import", "csv", "x", "-o", "y"], "csv has no import; formats with one: "),
        (["export", "otel", "-o", "y"], "otel has no export"),
        (["import", "json", "x"], "say where to"),
        (["import", "json", "-o", "y"], "name the file"),
        (["export", "csv", "x", "-o", "y"], "an export takes no files"),
        (["import", "json", "x", "-o", "y", "--run", "r"], "--run means nothing for an import"),
        (
            ["export", "csv", "-o", "y", "--set", "one_file=true"],
            "--set one_file means nothing for an export",
        ),
        (["import", "nonsense", "x", "-o", "y"], "'nonsense' is not one of"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(desk: Any, words: list[str], said: str) -> None:
    done = desk.convert(*words, ok=False)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


def test_an_export_names_the_path_that_was_typed(desk: Any) -> None:
    desk.take("json", desk.rows("rows.jsonl", ROWS))
    target = str(desk.folder / "rows.json")
    words = ["--eval-set", str(desk.folder / "out/eval_set.jsonl"), "--run", "none", "-o", target]
    done = desk.convert("export", "json", *words, ok=False)
    assert done.exit_code == 2
    assert done.stderr == f"Error: {target}: name a file that ends in .jsonl.\n"


def test_nothing_is_overwritten_without_force(desk: Any) -> None:
    source = desk.rows("rows.jsonl", ROWS)
    desk.take("json", source)
    before = {path: path.read_bytes() for path in desk.folder.rglob("*") if path.is_file()}
    words = ["import", "json", source, "--output", str(desk.folder / "out")]
    done = desk.convert(*words, ok=False)
    assert done.exit_code == 2
    assert "results/rows: is there already" in done.stderr
    assert "eval_set.jsonl: is there" not in done.stderr  # the same bytes are no conflict
    assert {p: p.read_bytes() for p in desk.folder.rglob("*") if p.is_file()} == before
    (desk.folder / "out/results/rows/metrics.json").write_text("{}")
    desk.convert(*words, "--force")
    # scores of the answers that were there before do not survive their answers
    assert not (desk.folder / "out/results/rows/metrics.json").exists()


def test_another_systems_answers_join_the_same_set(desk: Any) -> None:
    desk.take("json", desk.rows("one.jsonl", ROWS))
    desk.take("json", desk.rows("two.jsonl", [ROWS[0] | {"answer": "B."}]))
    assert desk.results("one")[0]["answer"] == "A."
    assert desk.results("two")[0]["answer"] == "B."


def test_other_files_of_the_folder_stay(desk: Any) -> None:
    desk.file("out/labels/notes.txt", "mine")
    desk.take("json", desk.rows("rows.jsonl", ROWS))
    assert desk.text("out/labels/notes.txt") == "mine"


def test_an_export_is_not_overwritten_either(desk: Any) -> None:
    desk.take("json", desk.rows("rows.jsonl", ROWS))
    target = desk.file("t.csv", "mine")
    words = ["--eval-set", str(desk.folder / "out/eval_set.jsonl"), "--run", "none", "-o", target]
    done = desk.convert("export", "csv", *words, ok=False)
    assert (done.exit_code, desk.text("t.csv")) == (2, "mine")
    desk.convert("export", "csv", *words, "--force")
    assert desk.text("t.csv") != "mine"


def test_one_file_holds_the_labels(desk: Any) -> None:
    desk.take("json", desk.rows("rows.jsonl", ROWS), more=["--set", "one_file=true"])
    assert desk.cases()[0]["relevant_docs"] == ["d"]
    assert not (desk.folder / "out/labels").exists()


def test_a_run_id_of_ones_own(desk: Any) -> None:
    desk.take("json", desk.rows("rows.jsonl", ROWS), more=["--run-id", "night"])
    config = storage.read_config(desk.folder / "out/results/night")
    assert config.dataset["sha256"] == storage.sha256_file(desk.folder / "out/eval_set.jsonl")
    assert config.dataset["labels_sha256"]
    assert config.run["imported"] == {"format": "json", "files": ["rows.jsonl"]}
    assert config.run["selected"] == config.dataset["cases"] == len(desk.cases())
    said = desk.refused("json", desk.rows("rows.jsonl", ROWS), more=["--run-id", "../x"])
    assert "use letters, digits" in said


def test_the_report_says_what_stderr_says(desk: Any) -> None:
    source = desk.rows("rows.jsonl", [ROWS[0] | {"odd": 1}])
    out = str(desk.folder / "out")
    done = desk.convert("import", "json", source, "-o", out)
    assert done.stdout == f"{out}/eval_set.jsonl\n{out}/results/rows\n"
    report = desk.convert("import", "json", source, "-o", out, "--force", "--json")
    assert "kept under metadata, which no script reads: odd: 1\n" in done.stderr
    told = json.loads(report.stdout)
    assert (told["schema"], told["direction"], told["format"]) == (1, "import", "json")
    assert told["made"] == done.stdout.split()
    assert told["kept"] == {"odd": 1}


def test_the_name_of_a_field_steers_no_terminal(desk: Any) -> None:
    source = desk.rows("rows.jsonl", [ROWS[0] | {"\x1b]0;T\x07": 1}])
    done = desk.convert("import", "json", source, "-o", str(desk.folder / "out"))
    assert "no script reads: �]0;T�: 1\n" in done.stderr


def test_duplicate_ids_name_both_lines(desk: Any) -> None:
    path = desk.rows("rows.jsonl", [ROWS[0], {"id": "b", "question": "x"}, ROWS[0]])
    assert f"{path}:3: id: 'a' is also the id of line 1" in desk.refused("json", path)


def test_fields_of_a_case_are_checked(desk: Any) -> None:
    rows = [
        {"id": "a", "question": "Q?", "answerable": "perhaps"},
        {"id": "b", "question": "Q?", "relevance_grades": {"d": "high"}},
        {"id": "", "question": "Q?"},
        {"id": ["x"], "question": "Q?"},
        {"id": "c\x00", "question": "Q?"},
    ]
    path = desk.rows("rows.jsonl", rows)
    said = desk.refused("json", path)
    for number, field in enumerate(["answerable", "relevance_grades", "id", "id", "id"], 1):
        assert f"{path}:{number}: {field}" in said


def test_many_problems_end_the_reading(desk: Any) -> None:
    said = desk.refused("json", desk.rows("rows.jsonl", [{"question": 1}] * 5000))
    assert "1000 problems; nothing was written." in said


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b'{"question": "x"\n', ":1: column"),
        ("a.jsonl", b'{"question": NaN}\n', "write null"),
        ("a.jsonl", b'["x"]\n', "is not a JSON object"),
        ("a.jsonl", b'{"question": "\\ud800"}\n', "not JSON"),
        ("a.jsonl", b'{"question": "\xff"}\n', "not JSON"),
        ("a.json", b"[" * 100_000, "not JSON"),
        ("a.json", b'"text"', "has no list of rows"),
        ("a.json", b"", "not JSON"),
        ("a.jsonl", b"", "has no case"),
        ("a.csv", b"question,question\nx,y\n", "is the name of two columns"),
        ("a.csv", b"question\nx,y\n", ":2: has 2 cells"),
        ("a.csv", b'question\n"open', "cannot be read as UTF-8 CSV"),
        ("a.csv", b"question\n\xff\n", "cannot be read as UTF-8 CSV"),
        ("a.jsonl.gz", b"no gzip", "cannot be unpacked"),
    ],
)
def test_hostile_sources_are_sentences(desk: Any, name: str, content: bytes, said: str) -> None:
    assert said in desk.refused("json", desk.file(name, content))


def test_excel_and_python_habits_are_taken(desk: Any) -> None:
    """A byte order mark, CRLF, JSON lines under the name .json, gzip, numbers past 64 bits."""
    desk.take("json", desk.file("a.csv", b"\xef\xbb\xbfquestion,id\r\nQ?,1\r\n"), out="a")
    lines = b'\xef\xbb\xbf{"question": "Q?"}\n{"question": "R?"}\n'
    desk.take("json", desk.file("b.json", lines), out="b")
    packed = gzip.compress(b'{"question": "Q?", "n": 123456789012345678901234567890}\n')
    desk.take("json", desk.file("c.jsonl.gz", packed), out="c")
    assert [len(desk.cases(name)) for name in "abc"] == [1, 2, 1]
    assert desk.cases("c")[0]["metadata"]["n"] == 1.2345678901234568e29


def test_the_table_for_spreadsheets(desk: Any) -> None:
    rows = [
        {"id": "=1+1", "question": "@cmd", "answer": '=HYPERLINK("x")', "tags": ["a", "b"]},
        {"id": "b", "question": "plain", "answer": "-5", "answerable": True},
        {"id": "c", "question": "unasked"},
    ]
    desk.take("json", desk.rows("rows.jsonl", rows))
    scores = [
        {"case_id": "=1+1", "repeat": 0, "scores": {"x": -0.5, "y": None}},
        {"case_id": "b", "repeat": 0, "scores": {"x": 1.0, "y": 2}},
    ]
    write_lines(desk.folder / "out/results/rows", "own", scores)
    report = desk.give("csv", "t.csv", run="rows")
    data = (desk.folder / "t.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfid,question,")
    table = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert [row["id"] for row in table] == ["'=1+1", "b", "c"]
    assert [row["question"] for row in table] == ["'@cmd", "plain", "unasked"]
    assert [row["answer"] for row in table] == ['\'=HYPERLINK("x")', "'-5", ""]
    assert [row["own.x"] for row in table] == ["-0.5", "1.0", ""]  # numbers stay numbers
    assert [row["own.y"] for row in table] == ["", "2.0", ""]
    assert (table[0]["tags"], table[1]["answerable"]) == ("a; b", "true")
    assert list(report["changed"].values()) == [4]


@given(st.text("=+-@\t\r\n\x0b \u00a0\u2003\ufeffa1'") | st.text())
@example("\x0b=1")
@example("\ufeff\u2003=1")
def test_no_text_can_be_a_formula(text: str) -> None:
    cell = csv_sheet._safe(text, Notes())
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r"))
    assert cell.removeprefix("'") == text.replace("\x00", "").removeprefix("'")


def test_results_of_unknown_cases_stop_an_export(desk: Any) -> None:
    desk.take("json", desk.rows("rows.jsonl", ROWS))
    path = desk.folder / "out/eval_set.jsonl"
    path.write_text(path.read_text().replace('"a"', '"z"'))
    words = ["--eval-set", str(path), "--results-dir", str(desk.folder / "out/results")]
    done = desk.convert("export", "csv", *words, "-o", str(desk.folder / "t.csv"), ok=False)
    assert done.exit_code == 2
    assert "1 results have no case" in done.stderr
    assert "'a' is not in" in done.stderr  # the label
    assert not (desk.folder / "t.csv").exists()


def test_an_unwritable_place_is_a_sentence(desk: Any) -> None:
    blocked = desk.file("file", "")
    done = desk.convert(
        "import", "json", desk.rows("rows.jsonl", ROWS), "-o", f"{blocked}/x", ok=False
    )
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr
