"""Run folders, atomic files, resume, locked metrics; real processes where they are promised."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

import storage
from records.metrics import load_metrics
from storage import ResultsWriter, RetrievedChunk, RunConfig, StorageError, TestResult

SCRIPTS = Path(storage.__file__).parent


def child(code: str, *args: str, **extra: Any) -> subprocess.Popen[bytes]:
    program = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n{textwrap.dedent(code)}"
    return subprocess.Popen([sys.executable, "-c", program, *args], **extra)


def result(case_id: str, repeat: int = 0, **fields: Any) -> TestResult:
    return TestResult(test_case_id=case_id, question="?", repeat=repeat, **fields)


def test_texts_are_cut_to_200_characters_unless_stored_in_full(tmp_path: Path) -> None:
    long = RetrievedChunk(chunk_id="c", text="ä" * 500)
    for full, length in ((False, 200), (True, 500)):
        writer = ResultsWriter(tmp_path, f"run-{full}", store_full_text=full)
        writer.write_result(result("a", retrieved=[long]))
        (back,) = storage.iter_results(writer.finish(["a"]))
        (chunk,) = back.chunks()
        assert len(chunk.text or "") == length
        assert chunk.truncated is (not full)
    assert long.cut().cut().text_length == 500  # cutting twice keeps the true length


def test_results_appear_complete_in_set_order_and_the_last_line_wins(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, "run")
    for case_id, repeat, answer in (("b", 1, "x"), ("a", 0, "old"), ("b", 0, "y"), ("a", 0, "new")):
        writer.write_result(result(case_id, repeat, answer=answer))
        assert not (tmp_path / "run/results.jsonl").exists()
    path = writer.finish(["a", "missing", "b"])
    found = [(r.test_case_id, r.repeat, r.answer) for r in storage.iter_results(path)]
    assert found == [("a", 0, "new"), ("b", 0, "y"), ("b", 1, "x")]
    assert not (tmp_path / "run/results.partial.jsonl").exists()


def test_a_run_is_written_in_a_few_lines(tmp_path: Path) -> None:
    """As the agent guide of an earlier harness has it: settings by name, the commit, no run id."""
    code = """
        from storage import ResultsWriter, TestResult, RunConfig

        writer = ResultsWriter(output_dir="eval/results", run_id="run_20240115_001")
        config = RunConfig(k=5, folder_mode="on_with_fallback")
        writer.write_config(config, eval_set_commit_hash="abc123")

        result = TestResult(test_case_id="test_001")
        writer.write_result(result, store_full_text=False)
    """
    assert child(code, cwd=tmp_path).wait() == 0
    folder = tmp_path / "eval/results/run_20240115_001"
    raw = json.loads((folder / "config.json").read_text())
    assert raw["run_id"] == "run_20240115_001"
    assert raw["retriever"] == {"k": 5, "folder_mode": "on_with_fallback"}
    assert raw["dataset"] == {"git_commit": "abc123"}
    assert not {"k", "folder_mode"} & raw.keys()
    config = storage.read_config(folder)
    assert config.config_hash == storage.config_hash(config) == raw["config_hash"]
    assert json.loads((folder / "results.partial.jsonl").read_text())["test_case_id"] == "test_001"


def test_a_configuration_that_names_neither_k_nor_folder_mode_keeps_its_bytes(
    tmp_path: Path,
) -> None:
    ResultsWriter(tmp_path, "run").write_config(RunConfig("run", retriever={"k": 3}, seed=1))
    raw = json.loads((tmp_path / "run/config.json").read_text())
    digest = raw.pop("config_hash")
    empty: dict[str, Any] = {name: {} for name in ("answerer", "api", "dataset", "index", "judge")}
    assert raw == empty | {
        "finished": None,
        "retriever": {"k": 3},
        "run": {},
        "run_id": "run",
        "schema": 1,
        "seed": 1,
        "started": None,
        "tool_version": "",
    }
    assert digest == storage.config_hash(RunConfig("other", k=3, seed=1))


def test_an_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    ResultsWriter(tmp_path, "run").write_config(RunConfig("run"))
    with pytest.raises(StorageError, match="exists"):
        ResultsWriter(tmp_path, "run")
    ResultsWriter(tmp_path, "run", resume=True)


@each_row("run_id", ["", "a/b", "..", "-x", "a" * 101, "a\nb"])
def test_a_run_id_is_a_folder_name(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(StorageError, match="run id"):
        ResultsWriter(tmp_path, run_id)
    assert list(tmp_path.iterdir()) == []


def test_kill_9_while_writing_loses_no_acknowledged_line(tmp_path: Path) -> None:
    code = """
        from storage import ResultsWriter, TestResult
        writer = ResultsWriter(sys.argv[1], "run")
        for n in range(100_000):
            writer.write_result(TestResult(test_case_id=f"q{n}", answer="word " * 50))
            print(n, flush=True)
    """
    process = child(code, str(tmp_path), stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(300):
        last = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = ResultsWriter(tmp_path, "run", resume=True).reopen(lambda r: True)
    assert {(f"q{n}", 0) for n in range(last + 1)} <= kept


def test_kill_9_while_replacing_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    code = """
        from pathlib import Path
        import storage
        n = 0
        while True:
            n += 1
            storage.replace_json(Path(sys.argv[1]), {"schema": 1, "n": n, "pad": [n] * 20_000})
            print(n, flush=True)
    """
    for rounds in (1, 3, 8):
        process = child(code, str(path), stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(rounds):
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        value = storage.read_json(path)
        assert value["n"] >= last
        assert value["pad"] == [value["n"]] * 20_000


def test_sections_written_by_many_processes_are_all_there(tmp_path: Path) -> None:
    code = """
        from pathlib import Path
        import storage
        for n in range(5):
            storage.update_metrics(Path(sys.argv[1]), f"{sys.argv[2]}{n}", {"n": n}, {})
    """
    children = [child(code, str(tmp_path), name) for name in "abcd"]
    assert [process.wait() for process in children] == [0, 0, 0, 0]
    sections = load_metrics(tmp_path / "metrics.json")["sections"]
    assert set(sections) == {f"{name}{n}" for name in "abcd" for n in range(5)}


def test_metrics_json_is_canonical(tmp_path: Path) -> None:
    """A metric is a line, sorted; what says nothing is left out: no mean, nothing failed, the usual
    method. Means by slice stand beside it."""
    values = {
        "mean": {"b": 1 / 3, "a": -0.0, "c": None},
        "ci95": {"b": (0.1, 0.61), "a": (0.0, 0.5), "c": None},
        "n": {"b": 3, "a": 2, "c": 0},
        "failed": {"b": 0, "a": 1, "c": 3},
        "method": {"b": "wilson", "a": "wilson"},
        "clusters": {"b": 3, "a": 2},
        "by": {"tag": {"x": {"n": 1, "mean": {"b": 1.0}}}},
        "options": {"k": [1, 3], "seed": 0},
    }
    path = storage.update_metrics(tmp_path, "retrieval", values, {"run_id": "r", "cases": 3})
    assert path.read_text() == textwrap.dedent(
        """\
        {
          "cases": 3,
          "run_id": "r",
          "schema": 2,
          "sections": {
            "retrieval": {
              "metrics": {
                "a": {"ci95": [0.0, 0.5], "failed": 1, "mean": 0.0, "n": 2},
                "b": {"ci95": [0.1, 0.61], "clusters": 3, "mean": 0.333333, "n": 3},
                "c": {"failed": 3}
              },
              "options": {"k": [1, 3], "seed": 0},
              "usual": {"clusters": 2, "method": "wilson"}
            }
          }
        }
        """
    )
    (tmp_path / "slices.json").unlink()
    assert load_metrics(path)["sections"]["retrieval"]["by"] == {}


def test_slices_of_other_numbers_are_not_read(tmp_path: Path) -> None:
    """As when an older metrics.json is taken from git: slices.json stays that of the newer one."""
    values = {"mean": {"a": 0.5}, "ci95": {"a": None}, "n": {"a": 2}}
    by = {"tag": {"x": {"n": 1, "mean": {"a": 1.0}}}}
    path = storage.update_metrics(tmp_path, "one", values | {"by": by}, {})
    older = path.read_bytes()
    storage.update_metrics(tmp_path, "one", values | {"mean": {"a": 0.75}, "by": by}, {})
    assert load_metrics(path)["sections"]["one"]["by"] == by
    path.write_bytes(older)
    assert load_metrics(path)["sections"]["one"]["by"] == {}


def test_a_section_is_read_as_it_was_written(tmp_path: Path) -> None:
    section = {
        "mean": {"a": 0.5, "b": None},
        "ci95": {"a": [0.25, 0.75], "b": None},
        "n": {"a": 2, "b": 0},
        "not_applicable": {"a": 0, "b": 2},
        "failed": {"a": 0, "b": 0},
        "definitions": {"a": "x/a@1", "b": "x/b@1"},
        "method": {"a": "wilson"},
        "clusters": {"a": 2},
        "marks": {},
        "by": {"tag": {"x": {"n": 1, "mean": {"a": 1.0}}}},
        "turn_loss": {"a": {"mean": 0.25}},
        "stability": {"repeats": 2, "metrics": {"a": {"n": 1, "within": 0.5}}},
        "options": {"seed": 0},
    }
    path = tmp_path / "metrics.json"
    storage.update_metrics(tmp_path, "x", section, {"cases": 2})
    assert load_metrics(path) == {"schema": 2, "cases": 2, "sections": {"x": section}}
    storage.update_metrics(tmp_path, "y", {"mean": {}, "n": {}}, {"cases": 2})
    assert load_metrics(path)["sections"]["x"] == section


@each_row("value", [float("nan"), float("inf")])
def test_no_number_that_is_none_reaches_a_file(tmp_path: Path, value: float) -> None:
    with pytest.raises(StorageError, match="finite"):
        storage.update_metrics(tmp_path, "x", {"mean": value}, {})
    assert not (tmp_path / "metrics.json").exists()


def test_an_unknown_schema_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text('{"schema": 9, "sections": {}}')
    with pytest.raises(StorageError, match="schema 2, the file says 9"):
        storage.update_metrics(tmp_path, "x", {}, {})
    assert json.loads(path.read_text())["schema"] == 9
    results = tmp_path / "results.jsonl"
    results.write_text('{"schema": 9, "test_case_id": "a"}\n')
    with pytest.raises(StorageError, match="schema 1, the line says 9"):
        list(storage.iter_results(results))


def test_bad_result_lines_have_their_number(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(
        b'{"test_case_id":"a"}\n{"test_case_id":5}\n\n{"x":1}\n{"schema":7,"test_case_id":"b"}\n'
        b'{"test_case_id":"a"}{"test_case_id":"b"}\n'
    )
    found: list[storage.Problem] = []
    assert [r.test_case_id for r in storage.iter_results(path, found.append)] == ["a"]
    places = [(problem.line, problem.field) for problem in found]
    assert places == [(2, ""), (4, ""), (5, "schema"), (6, "")]


def test_a_misspelt_run_gets_a_proposal(tmp_path: Path) -> None:
    for name in ("k3", "k10", "nightly"):
        (tmp_path / name).mkdir()
    for typed, proposal in (("nigthly", "'nightly'"), ("lastest", "'latest'"), ("K10", "'k10'")):
        with pytest.raises(storage.StorageError, match=f"Did you mean {proposal}"):
            storage.find_run(tmp_path, typed)
    with pytest.raises(storage.StorageError, match=r"the newest are: k10, k3, nightly\.$"):
        storage.find_run(tmp_path, "something-else")


def test_find_run(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no complete run"):
        storage.find_run(tmp_path, "latest")
    for place, name in enumerate(["one", "two", "three"]):
        path = ResultsWriter(tmp_path, name).finish([])
        os.utime(path, (place, place))
    (tmp_path / "three/results.jsonl").unlink()
    assert storage.find_run(tmp_path, "latest").name == "two"
    assert storage.find_run(tmp_path, "one").name == "one"
    assert storage.find_run(tmp_path, str(tmp_path / "three")).name == "three"
    with pytest.raises(StorageError, match=r"the newest are: one, three, two"):
        storage.find_run(tmp_path, "four")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_run_that_leads_elsewhere_is_not_found_nor_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    ResultsWriter(tmp_path / "runs", "one").finish([])
    (tmp_path / "runs" / "one" / "scores").symlink_to(tmp_path / "elsewhere")
    for run in ("one", "latest", str(tmp_path / "runs" / "one")):
        with pytest.raises(StorageError, match=r"one/scores: is a link to .*, outside of"):
            storage.find_run(tmp_path / "runs", run)
    for resume in (False, True):
        with pytest.raises(StorageError, match="one/scores: is a link to"):
            ResultsWriter(tmp_path / "runs", "one", resume=resume)


def test_the_config_hash_covers_what_can_change_a_result_and_nothing_else() -> None:
    def hashed(**fields: Any) -> str:
        return storage.config_hash(RunConfig("r", **fields))

    base = hashed(dataset={"sha256": "x"}, retriever={"k": 5})
    assert hashed(dataset={"sha256": "x", "path": "elsewhere"}, retriever={"k": 5}) == base
    same = RunConfig("other", dataset={"sha256": "x"}, retriever={"k": 5}, started="now")
    same.run, same.api = {"concurrency": 9}, {"url": "http://elsewhere"}
    assert storage.config_hash(same) == base
    assert hashed(dataset={"sha256": "y"}, retriever={"k": 5}) != base
    assert hashed(dataset={"sha256": "x"}, retriever={"k": 6}) != base
    assert hashed(dataset={"sha256": "x"}, retriever={"k": 5}, seed=1) != base


def test_the_profile_is_in_the_config_hash() -> None:
    """By its bytes; by its name where those are not known."""

    def hashed(**api: Any) -> str:
        return storage.config_hash(RunConfig("r", api=api))

    assert hashed(profile="mybot", profile_sha256="a") == hashed(profile="copy", profile_sha256="a")
    kinds = [{}, {"profile": "mybot"}, {"profile": "other"}]
    kinds += [{"profile": "mybot", "profile_sha256": sha} for sha in "ab"]
    assert len({hashed(**api) for api in kinds}) == len(kinds)


def test_git_commit_of_a_file(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], capture_output=True, text=True
        )
        return done.stdout.strip()

    path = tmp_path / "set.jsonl"
    path.write_text("one\n")
    assert storage.git_commit(path) is None
    git("init", "-q")
    git("add", "set.jsonl")
    git("commit", "-q", "-m", "first")
    commit = git("rev-parse", "HEAD")
    assert storage.git_commit(path) == commit
    path.write_text("two\n")
    assert storage.git_commit(path) == f"{commit}+changes"


def test_a_read_only_folder_is_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "metrics.json"
    with pytest.raises(StorageError, match="cannot be written"):
        storage.replace_bytes(missing, b"x")


def test_replacing_keeps_mode_and_follows_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    storage.replace_bytes(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@given(st.binary(max_size=300), st.binary(max_size=300).filter(lambda tail: b"\n" not in tail))
def test_a_torn_tail_is_cut_and_nothing_else(
    tmp_path_factory: Any, head: bytes, tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("torn") / "x.jsonl"
    whole = head + b"\n" if head else b""
    path.write_bytes(whole + tail)
    assert storage.cut_torn_tail(path) == len(tail)
    assert path.read_bytes() == whole


def test_a_million_results_are_read_as_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    line = b'{"schema":1,"test_case_id":"q","retrieved":[{"chunk_id":"c","text":"%b"}]}\n' % (
        b"x" * 40
    )
    with open(path, "wb") as file:
        for _ in range(1000):
            file.write(line * 1000)
    code = """
        import resource
        from pathlib import Path
        import storage
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        next(storage.iter_results(Path(sys.argv[1])))
        before = peak()
        n = sum(1 for _ in storage.iter_results(Path(sys.argv[1])))
        print(n, peak() - before)
    """
    process = child(code, str(path), stdout=subprocess.PIPE)
    count, grown = map(int, process.communicate()[0].split())
    assert count == 1_000_000
    unit = 1024 if sys.platform == "darwin" else 1
    assert grown < 10_000 * unit  # 10 MB for a file of 115 MB


def test_a_lock_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "metrics.json"
    with pytest.raises(storage.StorageError, match="cannot be locked"), storage.locked(path):
        pass


def test_errors_of_the_work_under_a_lock_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), storage.locked(tmp_path / "metrics.json"):
        (tmp_path / "absent").read_bytes()


# -- a run that is opened again ---------------------------------------------------------------


def test_reopening_keeps_what_is_good_and_drops_a_torn_line(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, "run")
    writer.write_result(result("a"))
    writer.write_result(result("b", status="error", error=storage.ErrorInfo("timeout")))
    writer.close()
    with open(tmp_path / "run/results.partial.jsonl", "ab") as file:
        file.write(b'{"test_case_id":"c","quest')
    again = ResultsWriter(tmp_path, "run", resume=True)
    assert again.reopen(lambda r: r.status == "ok") == {("a", 0)}
    again.write_result(result("b"))
    found = [(r.test_case_id, r.status) for r in storage.iter_results(again.finish(["a", "b"]))]
    assert found == [("a", "ok"), ("b", "ok")]


def test_a_finished_run_is_reopened_only_for_what_is_dropped(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, "run")
    for case_id in "ab":
        writer.write_result(result(case_id))
    path = writer.finish("ab")
    again = ResultsWriter(tmp_path, "run", resume=True)
    assert again.reopen(lambda r: True) == {("a", 0), ("b", 0)}
    assert path.exists()
    assert again.finish("ab") == path
    assert len(list(storage.iter_results(path))) == 2
    third = ResultsWriter(tmp_path, "run", resume=True)
    assert third.reopen(lambda r: r.test_case_id == "a") == {("a", 0)}
    assert not path.exists()  # half a run must not look like a whole one


@each_row(
    ("line", "told"),
    [
        (b'{"test_case_id":7}\n', "not a result line"),
        (b'{"test_case_id":"c","schema":9}\n', "schema: this version reads schema 1"),
    ],
)
def test_a_line_that_is_no_result_is_refused_before_anything_is_asked(
    tmp_path: Path, line: bytes, told: str
) -> None:
    writer = ResultsWriter(tmp_path, "run")
    writer.write_result(result("a"))
    writer.close()
    partial = tmp_path / "run/results.partial.jsonl"
    with open(partial, "ab") as file:
        file.write(line)
    before = partial.read_bytes()
    again = ResultsWriter(tmp_path, "run", resume=True)
    with pytest.raises(StorageError, match=rf"results\.partial\.jsonl:2: .*{told}") as refused:
        again.reopen(lambda r: True)
    assert "delete the line: its case is asked again" in refused.value.message
    assert partial.read_bytes() == before


@each_row("finished", [False, True])
@each_row("damage", [b"\0", b"\xff", b"{"])
def test_what_a_damaged_line_held_is_asked_again(
    tmp_path: Path, damage: bytes, finished: bool
) -> None:
    writer = ResultsWriter(tmp_path, "run")
    for case_id in "abc":
        writer.write_result(result(case_id))
    path = tmp_path / "run" / ("results.jsonl" if finished else "results.partial.jsonl")
    if finished:
        writer.finish("abc")
    else:
        writer.close()
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage * (len(second) - 1) + b"\n" + third)
    again = ResultsWriter(tmp_path, "run", resume=True)
    assert again.reopen(lambda r: True) == {("a", 0), ("c", 0)}
    assert again.damaged_lines == 1
    again.write_result(result("b"))
    assert [r.test_case_id for r in storage.iter_results(again.finish("abc"))] == ["a", "b", "c"]
    third_time = ResultsWriter(tmp_path, "run", resume=True)
    assert len(third_time.reopen(lambda r: True)) == 3
    assert third_time.damaged_lines == 0
