"""A set and results in parts are the same data as in one file, wherever the parts lie."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import convert_data
from records import file_access, jsonl, shards
from records.asked import count_results
from records.blocks import BlockReader, line_at
from records.cases import ignore, iter_cases
from records.clusters import read_clusters
from records.cutting import write_parts
from records.editing import read_bytes
from records.errors import StorageError
from records.file_access import allow_addresses
from records.files import sha256_file
from records.labels import has_turns, read_cases
from records.results import TestResult, iter_results, read_results, tells_searches
from records.runs import ResultsWriter, find_run, results_file
from records.shards import open_lines, parts_of, size_of

CASES = 30


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def eval_set(tmp_path: Path) -> Path:
    cases = [{"id": f"q{n:02}", "question": "?" * (n + 1)} for n in range(CASES)]
    return write(tmp_path / "set.jsonl", cases)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Every third case has two repeats, and q07 no result."""
    rows = [
        {"test_case_id": f"q{n:02}", "answer": "é" * n, "repeat": repeat}
        for n in range(CASES)
        if n != 7
        for repeat in range(2 if n % 3 == 0 else 1)
    ]
    return write(tmp_path / "results" / "run" / "results.jsonl", rows).parent


def convert(*words: object) -> Result:
    result = CliRunner().invoke(convert_data.main, list(map(str, words)), standalone_mode=False)
    return result


def test_split_and_join_give_the_same_bytes(run: Path, eval_set: Path, tmp_path: Path) -> None:
    whole = (run / "results.jsonl").read_bytes(), eval_set.read_bytes()
    folder = tmp_path / "cut"
    words = ("--run", run, "--eval-set", eval_set, "--output", folder)
    result = convert("split", *words, "--shards", 4)
    assert result.output.split() == [str(run / "results"), str(folder)]
    assert not (run / "results.jsonl").exists()
    assert results_file(run) == run / "results"
    for parts, text in ((run / "results", whole[0]), (folder, whole[1])):
        names = [f"part-{n:05}.jsonl" for n in range(4)]
        assert sorted(path.name for path in parts.iterdir()) == names
        assert b"".join((parts / name).read_bytes() for name in names) == text
        assert sha256_file(parts) == hashlib.sha256(text).hexdigest()
        with open_lines(parts) as file:
            assert file.read() == text
            file.seek(100)
            assert file.read(300) == text[100:400]
    # cut alike: the cases of each part of the results stand in the part of the set
    for name in names:
        of_part = {r.test_case_id for r in iter_results(run / "results" / name)}
        assert of_part <= {c.id for c in iter_cases(folder / name, ignore)}
    back = tmp_path / "back.jsonl"
    convert("join", "--run", run, "--eval-set", folder, "--output", back)
    assert ((run / "results.jsonl").read_bytes(), back.read_bytes()) == whole
    assert not (run / "results").exists()


def test_readers_take_parts_as_they_take_a_file(run: Path, eval_set: Path, tmp_path: Path) -> None:
    single = run / "results.jsonl"
    expected = (
        list(iter_results(single)),
        [(offset, r.answer) for offset, r in read_results(single, ("answer",))],
        count_results(single),
        read_cases(eval_set),
        read_clusters(eval_set).sentence,
    )
    offsets = [offset for offset, _ in expected[1]]
    lines = [line_at(single, offset) for offset in offsets]
    folder = tmp_path / "cut"
    convert("split", "--run", run, "--eval-set", eval_set, "--output", folder, "--shards", 5)
    parts = results_file(run)
    assert expected == (
        list(iter_results(parts)),
        [(offset, r.answer) for offset, r in read_results(parts, ("answer",))],
        count_results(parts),
        read_cases(folder),
        read_clusters(folder).sentence,
    )
    assert [line_at(parts, offset) for offset in offsets] == lines
    picked = [r.answer for _, _, r in jsonl.read(parts, TestResult, at=offsets[::-1])]
    assert picked == [answer for _, answer in expected[1]][::-1]
    feed, read = BlockReader(parts), []
    while block := feed.read(90):
        read += block
    assert read == list(zip(offsets, lines, strict=True))
    assert feed.ended
    assert find_run(run.parent, "latest") == run


def test_parts_in_a_store_are_read_by_fsspec(run: Path, eval_set: Path, tmp_path: Path) -> None:
    whole, cases = (run / "results.jsonl").read_bytes(), read_cases(eval_set)
    folder = tmp_path / "cut"
    words = ("--run", run, "--eval-set", eval_set, "--output", folder, "--shards", 3)
    convert("split", *words, "--address", "memory://bucket/night")
    assert [path.name for path in (run / "results").iterdir()] == ["shards.json"]
    listed = json.loads((run / "results" / "shards.json").read_bytes())["parts"]
    assert [part["address"] for part in listed] == [
        f"memory://bucket/night/results/part-{n:05}.jsonl" for n in range(3)
    ]
    assert sha256_file(run / "results") == hashlib.sha256(whole).hexdigest()
    assert read_cases(folder) == cases
    convert("join", "--run", run)
    assert (run / "results.jsonl").read_bytes() == whole


def test_faults_name_the_part_and_its_line(eval_set: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    convert("split", "--run", "none", "--eval-set", eval_set, "--output", folder, "--shards", 3)
    second = folder / "part-00001.jsonl"
    lines = second.read_text().splitlines(keepends=True)
    third = folder / "part-00002.jsonl"
    second.write_text("".join([lines[0], '{"id": "q00", "question": "?"}\n', "[]\n"]))
    with pytest.raises(StorageError) as caught:
        read_cases(folder)
    first = folder / "part-00000.jsonl"
    assert [str(problem) for problem in caught.value.problems] == [
        f"{second}:2: id: 'q00' is also the id of line 1 of {first}; give it another",
        f"{second}:3: is not a JSON object; a line is one case in {{…}}",
    ]
    second.unlink()
    with pytest.raises(StorageError, match=r"cut: lacks part-00001\.jsonl; restore it"):
        read_cases(folder)
    with pytest.raises(StorageError, match="is a set in parts, which cannot be edited"):
        read_bytes(folder)
    first.unlink()
    third.unlink()
    with pytest.raises(StorageError, match=r"is a folder without part-00000\.jsonl"):
        read_cases(folder)


def test_what_cannot_be_cut_is_refused_and_nothing_lost(
    run: Path, eval_set: Path, tmp_path: Path
) -> None:
    other = write(tmp_path / "other.jsonl", [{"id": "zz", "question": "?"}])
    words = ("--run", run, "--eval-set", other, "--output", tmp_path / "cut", "--shards", 3)
    refused = convert("split", *words)
    assert isinstance(refused.exception, StorageError)
    assert "other.jsonl: lacks cases of the run" in refused.exception.message
    assert sorted(path.name for path in run.iterdir()) == ["results.jsonl"]
    assert not (tmp_path / "cut").exists()
    assert "nothing to do" in str(convert("split", "--run", "none", "--shards", 2).exception)
    assert "it is not split" in str(convert("join", "--run", run).exception)
    convert("split", "--run", run, "--shards", 2)
    assert "is split already" in str(convert("split", "--run", run, "--shards", 3).exception)
    assert "--map means nothing for a join" in str(convert("join", "--map", "x").exception)


def test_a_run_is_cut_when_it_is_finished_and_goes_on_where_it_was(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, "r", shards=3)
    order = [f"q{n}" for n in range(9)]
    for name in reversed(order[:-1]):
        writer.write_result(TestResult(name, answer="a"))
    assert writer.finish(order) == tmp_path / "r" / "results"
    assert [part.size > 0 for part in parts_of(tmp_path / "r" / "results")] == [True] * 3
    again = ResultsWriter(tmp_path, "r", shards=3, resume=True)
    assert again.reopen(lambda result: True) == {(name, 0) for name in order[:-1]}
    again.write_result(TestResult("q8", answer="late"))
    assert not (tmp_path / "r" / "results").exists()  # the partial file holds all by now
    again.finish(order)
    assert [r.test_case_id for r in iter_results(tmp_path / "r" / "results")] == order
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["results"]


def test_one_case_is_never_cut_in_two(tmp_path: Path) -> None:
    lines = [(b"%d\n" % n, "long" if n < 8 else f"q{n}") for n in range(10)]
    first = write_parts(tmp_path / "parts", lines, 20, 5)
    assert first == ["long", "q8", "q9"]  # 8 of the 10 lines are one case's
    assert size_of(tmp_path / "parts") == 20


def test_no_conversation_is_cut(tmp_path: Path) -> None:
    """Ten conversations of three turns in seven parts, which would end within some of them."""
    ids = [f"q{n:02}" for n in range(30)]
    cases = [
        {"id": name, "question": "?", "conversation": f"c{n // 3}", "turn": n % 3 + 1}
        for n, name in enumerate(ids)
    ]
    eval_set = write(tmp_path / "set.jsonl", cases)
    answers = [{"test_case_id": name, "answer": "a"} for name in ids]
    run = write(tmp_path / "run" / "results.jsonl", answers).parent
    folder = tmp_path / "cut"
    convert("split", "--run", run, "--eval-set", eval_set, "--output", folder, "--shards", 7)
    for part in sorted(folder.iterdir()):
        assert next(iter_cases(part, ignore)).turn == 1
    assert read_cases(folder) == read_cases(eval_set)
    assert len(list(folder.iterdir())) > 4


def test_what_a_part_tells_the_whole_tells(tmp_path: Path) -> None:
    """Searches and turns stand in the last part alone; a key in a text is no key. The first line
    puts the key of the searches across the edge of two blocks of 1 MiB: 2**20 - 5 bytes before."""
    plain = {"test_case_id": "q0", "answer": 'not "searches":[{'}
    for number, (case, result) in enumerate(
        [({"id": "q0"}, plain), ({"id": "q1", "conversation": "c", "turn": 1}, {"searches": [{}]})]
    ):
        for name, row in (("set", case), ("results", result)):
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            text = json.dumps(row, separators=(",", ":")) + "\n"
            (folder / f"part-0000{number}.jsonl").write_text(text)
        assert has_turns(tmp_path / "set") is tells_searches(tmp_path / "results") is bool(number)
    edge = (1 << 20) - 5
    one_file = tmp_path / "results.jsonl"
    one_file.write_text(" " * (edge - 1) + '{"searches":[{}]}\n')
    assert tells_searches(one_file)
    one_file.write_text("")
    assert not tells_searches(one_file)


def listed(folder: Path, *addresses: str, size: int = 3) -> Path:
    folder.mkdir(exist_ok=True)
    parts = [{"address": address, "size": size} for address in addresses]
    (folder / "shards.json").write_text(json.dumps({"schema": 1, "parts": parts}))
    return folder


class Opened(Exception):
    """Something was opened that must not be."""


@pytest.fixture
def nothing_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: str) -> None:
        raise Opened(address)

    monkeypatch.setattr(shards, "file_system", refuse)
    monkeypatch.setattr(file_access, "_NAMED", set())


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/internal?x=1",
        "http://169.254.169.254/latest/meta-data",
        "https://user:PASS-WORD@host/x",
        "file:///etc/passwd",
        "local:///etc/passwd",
        "/etc/passwd",
        "../../secret.jsonl",
        "s3://other/night/part-00000.jsonl",
        "s3://bucket/nightly/part-00000.jsonl",
        "s3://bucket/night/../other/part-00000.jsonl",
        "s3://bucket/night/%2e%2e/other/part-00000.jsonl",
        "simplecache::http://host/x",
        "zip://x::s3://bucket/night/x",
        "s3://bucket/night/a::http://host/x",
    ],
)
def test_a_list_of_parts_is_not_believed(tmp_path: Path, address: str, nothing_opens: None) -> None:
    """A folder that somebody hands over must not make a script open a file or call a host."""
    folder = listed(tmp_path / "run", address)
    allow_addresses(["s3://bucket/night/", "", " "])
    for read in (parts_of, size_of, sha256_file, read_cases):
        with pytest.raises(StorageError, match="that you have not named; if it is yours") as caught:
            read(folder)
    assert "PASS-WORD" not in str(caught.value)
    assert "x=1" not in str(caught.value)


def test_parts_below_a_named_address_or_in_the_folder_are_opened(
    tmp_path: Path, nothing_opens: None
) -> None:
    folder = listed(tmp_path / "run", "s3://bucket/night/results/part-00000.jsonl")
    allow_addresses(["s3://bucket/night"])
    assert parts_of(folder)[0].address == "s3://bucket/night/results/part-00000.jsonl"
    with pytest.raises(Opened), open_lines(folder) as file:
        file.read()
    (folder / "own.jsonl").write_text("{}\n")
    with open_lines(listed(folder, "own.jsonl")) as file:
        assert file.read() == b"{}\n"
    (folder / "link.jsonl").symlink_to("/etc/hostname")
    with pytest.raises(StorageError, match="that you have not named"):
        parts_of(listed(folder, "link.jsonl"))
    with pytest.raises(StorageError, match="is not a list of parts"):
        parts_of(listed(folder, "own.jsonl", size=-3))


@pytest.mark.parametrize("by", ["environment", "config"])
def test_an_address_is_named_in_the_environment_or_the_config(
    run: Path, eval_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    words = ("--run", run, "--eval-set", eval_set)
    convert("split", *words, "--address", "memory://bucket/named")
    monkeypatch.setattr(file_access, "_NAMED", set())
    with pytest.raises(StorageError, match=r'addresses = \["memory://bucket/named/results"\]'):
        parts_of(run / "results")
    if by == "config":
        config = tmp_path / "config.toml"
        config.write_text('addresses = ["memory://bucket"]\n')
        monkeypatch.setenv("RAG_EVAL_CONFIG", str(config))
    else:
        monkeypatch.setenv("RAG_EVAL_ADDRESSES", "s3://other memory://bucket/named")
    assert convert("join", "--run", run).exception is None
    assert (run / "results.jsonl").exists()
