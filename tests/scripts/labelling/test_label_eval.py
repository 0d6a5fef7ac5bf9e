"""label_eval.py as a user runs it: labels, checks, counts, what is refused; real files."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fake_bot import FakeBot
from tests.processes import refused
from tests.scripts.labelling.conftest import Tool

import label_eval
import storage
from labeller.label_options import LabelOptions
from records import errors

Record = dict[str, Any]


def test_labels_from_a_bot(tool: Tool, fake_bot: FakeBot) -> None:
    done = tool.run("--plain", "--api-url", fake_bot.url, "--k", "7", typed="1\n\nx\n\nq\n")
    assert done.returncode == 0, done.stderr
    assert "a: Saved as answerable." in done.stdout
    assert tool.cases()["a"]["gold_supports"][0]["rel_path"] == "notes/a.md"
    assert tool.cases()["a"]["x"] == 1
    assert tool.cases()["b"]["answerable"] is False
    assert json.dumps(tool.CASES[2]) in tool.set.read_text().splitlines()
    assert fake_bot.asked["Where is A?"] == 1
    assert fake_bot.seen[0].json()["k"] == 7
    assert done.stderr.endswith(f"\nNext: run_eval.py --api-url {fake_bot.url}\n")
    storage.read_cases(tool.set, tool.folder / "labels")


def test_lines_with_other_names_are_written_back_under_these(tool: Tool, fake_bot: FakeBot) -> None:
    cases: list[Record] = [
        {"case_id": "a", "query": "Where is A?", "user_roles": ["employee"]},
        {"id": "b", "query": "Where is B?", "case_id": 7},
        {"case_id": "c", "query": "Where is C?"},
    ]
    tool.write(cases)
    typed = "1\n\nx\n\ne question Where was C?\no Where is D?\nq\n"
    done = tool.run("--plain", "--api-url", fake_bot.url, typed=typed)
    assert done.returncode == 0, done.stderr
    a, b, c, d = map(json.loads, tool.set.read_text().splitlines())
    assert list(a)[:3] == ["case_id", "query", "user_roles"]
    assert (a["answerable"], a["gold_supports"][0]["rel_path"]) == (True, "notes/a.md")
    assert b == cases[1] | {"answerable": False}
    assert c == {"case_id": "c", "query": "Where was C?"}
    assert list(d)[:2] == ["case_id", "query"]
    assert d["query"] == "Where is D?"
    assert fake_bot.asked["Where is A?"] == 1
    assert len(storage.read_cases(tool.set)) == 4
    untouched = tool.set.read_bytes()
    assert tool.run("--plain", typed="e tags x\nu\nq\n").returncode == 0
    assert tool.set.read_bytes() == untouched


def test_a_probe_asks_the_bot_something_else(tool: Tool, fake_bot: FakeBot) -> None:
    done = tool.run("--plain", "--api-url", fake_bot.url, typed="p other words k=50\nq\n")
    assert fake_bot.asked["other words"] == 1
    assert any(exchange.json().get("k") == 50 for exchange in fake_bot.seen)
    assert "new rows" in done.stdout


@pytest.mark.parametrize("address", ["bob:PASS-WORD@host", "http://bob:PASS-WORD@host:999999"])
def test_what_is_no_address_ends_with_2_and_no_login_is_repeated(tool: Tool, address: str) -> None:
    done = tool.run("--plain", "--api-url", address, typed="q\n")
    assert done.returncode == 2
    assert "write http://HOST[:PORT], or demo." in done.stderr
    assert "PASS-WORD" not in done.stdout + done.stderr


def test_the_next_command_has_no_login_and_no_key_of_the_address(tool: Tool) -> None:
    url = "http://bob:PASS-WORD@127.0.0.1:1/chat?key=KEY-WORD"
    done = tool.run("--plain", "--api-url", url, "--profile", "default", typed="q\n")
    next_command = "Next: run_eval.py --api-url http://127.0.0.1:1/chat --profile default"
    assert done.stderr.splitlines()[-1] == next_command
    assert not [word for word in ("PASS-WORD", "KEY-WORD") if word in done.stdout + done.stderr]


def test_labels_from_a_run(tool: Tool) -> None:
    tool.make_run()
    done = tool.run("--plain", "--from-run", "latest", "--set", "blind=false", typed="1\n\nq\n")
    assert done.returncode == 0, done.stderr
    assert "chunks from: run r1" in done.stdout
    assert "(rank 1) f0.md > H: Text 0." in done.stdout
    counts = "1 of 3 done: 1 labelled, 0 unanswerable, 0 cannot tell; 2 open, 0 later, 0 flagged."
    assert done.stderr.splitlines()[-2:] == [counts, "Next: eval_suite.py --run latest"]
    judged = json.loads((tool.folder / "labels" / "judgements" / "gold.jsonl").read_text())
    assert judged["blind"] is False
    assert [row["grade"] for row in judged["rows"]] == [2, 0, 0]


def test_what_teaches_most_comes_first(tool: Tool) -> None:
    tool.make_run()
    done = tool.run("--plain", "--from-run", "r1", "--order", "uncertain", typed="q\n")
    assert "b (1/3, open)" in done.stdout


def test_inspecting_writes_nothing(tool: Tool) -> None:
    tool.make_run()
    before = sorted(tool.folder.rglob("*"))
    done = tool.run("--plain", "--from-run", "r1", "--set", "inspect=true", typed="1\nx\nsave\nq\n")
    assert done.stdout.count("Read-only") >= 3
    assert "(rank 1)" in done.stdout
    assert done.returncode == 0
    assert sorted(tool.folder.rglob("*")) == before


@pytest.fixture
def on_a_read_only_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be opened to be written: what os.open says on such a disk."""
    plainly = os.open

    def read_only_open(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, "Read-only file system", path)
        return plainly(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", read_only_open)


@pytest.mark.usefixtures("on_a_read_only_disk")
def test_labels_on_a_read_only_disk_end_with_2(tool: Tool) -> None:
    words = ["--eval-set", str(tool.set), "--labels-dir", str(tool.folder / "labels"), "--plain"]
    done = CliRunner().invoke(label_eval.main, words, input="x\n\nq\n")
    assert done.stdout.count("Read-only file system") >= 3
    assert "NOT SAVED: 2 changes were refused: " in done.stderr
    assert done.exit_code == 2
    assert tool.cases() == {case["id"]: case for case in tool.CASES}


def test_a_second_session_says_who_holds_the_set(tool: Tool) -> None:
    first = started(tool)
    assert first.stdout is not None
    first.stdout.readline()
    done = tool.run("--plain", typed="x\nq\n")
    assert f"process {first.pid}" in done.stdout
    assert "Read-only" in done.stdout
    assert done.returncode == 2
    assert "NOT SAVED: 1 change was refused: gold on " in done.stderr
    assert tool.run("--plain", typed="n\np\nq\n").returncode == 0  # nothing to be saved
    first.communicate("q\n")
    assert tool.run("--plain", typed="q\n").stdout.count("Read-only") == 0


def started(tool: Tool) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    words = tool.words("--plain")
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=tool.env)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_saves_and_lets_go(tool: Tool, name: str) -> None:
    child = started(tool)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("e tags x\n")
    child.stdin.flush()
    for line in child.stdout:
        if "tags changed" in line:
            break
    child.send_signal(getattr(signal, name))
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert tool.cases()["a"]["tags"] == ["x"]


def test_labels_that_cannot_be_saved_end_with_2_and_are_kept(tool: Tool) -> None:
    tool.set.chmod(0o444)
    done = tool.run("--plain", typed="e tags x\nq\n")
    assert done.returncode == 2
    assert "NOT SAVED" in done.stderr
    assert "tags" not in tool.cases()["a"]
    tool.set.chmod(0o644)
    done = tool.run("--plain", typed="save\nq\n")
    assert "1 case brought back" in done.stdout
    assert tool.cases()["a"]["tags"] == ["x"]


def test_a_full_disk_is_said_and_the_session_goes_on(tool: Tool) -> None:
    # A limit on the size of files stands for a full disk: writing on gives an error.
    limited = (
        "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900));"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "sys.argv = sys.argv[1:]; sys.path.insert(0, sys.argv[0].rpartition('/')[0]);"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    words = [sys.executable, "-c", limited, *tool.words("--plain")[1:]]
    typed = "".join(f"e reference_answer {n} {'long ' * 60}\n" for n in range(4)) + "f\nsave\nq\n"
    before = tool.set.read_bytes()
    done = subprocess.run(
        words, input=typed, capture_output=True, text=True, env=tool.env, timeout=60
    )
    assert done.returncode == 2, done.stderr
    assert "NOT SAVED" in done.stdout
    assert "a: flagged" in done.stdout, "the session went on"
    assert tool.set.read_bytes() == before or tool.cases()["a"]["reference_answer"].startswith("3 ")
    for line in (tool.folder / "eval_set.jsonl.journal").read_bytes().splitlines():
        json.loads(line)


def label_options(**fields: Any) -> LabelOptions:
    needed = (f.name for f in dataclasses.fields(LabelOptions) if f.default is dataclasses.MISSING)
    values: dict[str, Any] = dict.fromkeys(needed)
    return LabelOptions(**(values | {"screen": {}} | fields))


def test_validate(tool: Tool) -> None:
    done = tool.run("--validate")
    assert (done.returncode, done.stdout) == (0, "")
    assert "3 cases, nothing wrong" in done.stderr
    folder = tool.folder / "labels" / "judgements"
    folder.mkdir(parents=True)
    (folder / "maria.jsonl").write_text('{"case_id": "zzz"}\nnot json\n')
    said = refused(tool.run("--validate"))
    assert "one judgement is about no case of the set ('zzz')" in said
    assert "--labels-dir" in said
    assert "maria.jsonl:2" in said
    tool.write([*tool.CASES, {"id": "a", "question": ""}])
    assert "eval_set.jsonl:4" in refused(tool.run("--validate"))


def test_stats(tool: Tool) -> None:
    tool.write([*tool.CASES, {"id": "d", "question": "?", "gold_supports": [{"rel_path": "x.md"}]}])
    found = json.loads(tool.run("--stats", "--json").stdout)
    assert found["cases"] == 4
    assert found["status"]["labelled"] == 1
    assert found["by_category"]["factual"]["open"] == 1
    shown = tool.run("--stats").stdout
    assert "supports per labelled case" in shown
    assert "1.00" in shown


def test_a_full_screen_needs_a_terminal(tool: Tool) -> None:
    done = refused(tool.run(typed=""))
    assert "stdin is not a terminal" in done
    assert "--plain" in done
    main, side = pty.openpty()
    child = subprocess.run(
        tool.words(), stdin=side, stdout=side, stderr=subprocess.PIPE, env=tool.env, timeout=60
    )
    os.close(main)
    os.close(side)
    assert child.returncode == 2
    assert b"stderr is not a terminal" in child.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stats", "--validate"), "choose one of"),
        (("--plain", "--json"), "--json goes with"),
        (("--plain", "--from-run", "none"), "no such folder"),
        (("--plain", "--from-run", "r1", "--api-url", "demo"), "choose --from-run or"),
        (("--plain", "--api-url", "http://127.0.0.1:9", "--profile", "none"), "profile"),
        (("--plain", "--order", "failing"), "no complete run"),
        (("--plain", "--order", "nonsense"), "nonsense"),
    ],
)
def test_bad_usage_is_one_sentence(tool: Tool, words: tuple[str, ...], said: str) -> None:
    before = tool.set.read_bytes()
    assert said in refused(tool.run(*words))
    assert tool.set.read_bytes() == before


def test_a_missing_set(tool: Tool) -> None:
    tool.set.unlink()
    assert "no such file" in refused(tool.run("--plain"))


def test_the_keymap_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('mark = "m"\n')
    assert label_options(screen={"keymap": path}).keys() == {"mark": "m"}
    path.write_text("mark = 5\n")
    with pytest.raises(errors.StorageError, match="write the key as text"):
        label_options(screen={"keymap": path}).keys()
    path.write_text("mark = \n")
    with pytest.raises(errors.StorageError, match="cannot be used"):
        label_options(screen={"keymap": path}).keys()
    with pytest.raises(errors.StorageError, match="no such file"):
        label_options(screen={"keymap": tmp_path / "none.toml"}).keys()


def test_keymap_and_theme_faults_are_said_once(tool: Tool) -> None:
    (tool.folder / "keys.toml").write_text('nope = "x"\n')
    env = tool.env | {"TEXTUAL_DRIVER": "textual.drivers.headless_driver:HeadlessDriver"}
    for setting, said in (
        ("keymap=keys.toml", "Error: keymap: `nope` is not an action; the actions are: "),
        ("theme=plaid", "Error: theme 'plaid' is unknown"),
    ):
        words = tool.words("--set", setting)
        done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=tool.folder)
        assert (done.returncode, done.stderr.startswith(said)) == (2, True), done.stderr


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert label_options(plain=False).lines
    monkeypatch.setenv("TERM", "xterm")
    assert not label_options(plain=False).lines


def test_two_sets_in_one_folder_keep_their_judgements_apart(tool: Tool) -> None:
    assert tool.run("--plain", typed="f\nq\n").returncode == 0
    second = tool.folder / "second.jsonl"
    second.write_text(json.dumps({"id": "a", "question": "Another?"}) + "\n")
    tool.set = second
    done = tool.run("--plain", typed="note mine\nq\n")
    assert "flagged" not in done.stdout
    folder = tool.folder / "labels" / "judgements"
    assert '"flag":true' in (folder / "gold.jsonl").read_text().replace(" ", "")
    (line,) = (folder / "second" / "gold.jsonl").read_text().splitlines()
    assert json.loads(line)["note"] == "mine"
    assert tool.run("--validate").returncode == 0
    tool.set = tool.folder / "eval_set.jsonl"
    assert tool.run("--validate").returncode == 0


def test_a_case_is_opened_by_its_id(tool: Tool) -> None:
    done = tool.run("--plain", "--case", "c", typed="q\n")
    assert "c (3/3, open) Where is C?" in done.stdout
    missing = refused(tool.run("--plain", "--case", "cc", typed="q\n"))
    assert "--case cc:" in missing
    assert "Did you mean 'c'?" in missing
    assert tool.run("--case", "a", "--validate").returncode == 2
