"""label_eval.py as a user runs it: real processes, a real HTTP server, real files."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import storage
from label_store.plan import Plan

if TYPE_CHECKING:
    from tests.conftest import FakeBot

SCRIPT = Path(__file__).resolve().parents[2] / "eval" / "scripts" / "label_eval.py"
Record = dict[str, Any]
CASES: list[Record] = [
    {"id": "a", "question": "Where is A?", "x": 1},
    {"id": "b", "question": "Where is B?", "category": "factual"},
    {"id": "c", "question": "Where is C?"},
]


class Tool:
    """The script, run in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.set = folder / "eval_set.jsonl"
        self.write(CASES)

    def write(self, cases: list[Record]) -> None:
        self.set.write_text("".join(json.dumps(case) + "\n" for case in cases))

    def cases(self) -> dict[str, Record]:
        return {case["id"]: case for case in map(json.loads, self.set.read_text().splitlines())}

    def words(self, *words: str) -> list[str]:
        return [
            *(sys.executable, str(SCRIPT), "--eval-set", str(self.set)),
            *("--labels-dir", str(self.folder / "labels")),
            *("--results-dir", str(self.folder / "results"), *words),
        ]

    @property
    def env(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RAG_EVAL_")}
        return kept | {"RAG_EVAL_CONFIG": str(self.folder / "none.toml")}

    def run(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*words),
            input=typed,
            capture_output=True,
            text=True,
            env=self.env,
            timeout=120,
        )

    def make_run(self, name: str = "r1") -> None:
        writer = storage.ResultsWriter(self.folder / "results", name, store_full_text=True)
        for case in CASES:
            found: list[storage.RetrievedChunk | str] = [
                storage.RetrievedChunk(
                    f"c{n}", rel_path=f"f{n}.md", heading_path="H", text=f"Text {n}.", score_final=s
                )
                for n, s in enumerate((0.9, 0.9 if case["id"] == "b" else 0.1, 0.05))
            ]
            writer.write_result(
                storage.TestResult(str(case["id"]), str(case["question"]), retrieved=found)
            )
        writer.finish(["a", "b", "c"])


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path)


def test_labels_from_a_bot(tool: Tool, fake_bot: FakeBot) -> None:
    done = tool.run("--plain", "--api-url", fake_bot.url, "--k", "7", typed="1\n\nx\n\nq\n")
    assert done.returncode == 0, done.stderr
    assert "a: a answerable" in done.stdout
    assert tool.cases()["a"]["gold_supports"][0]["rel_path"] == "notes/a.md"
    assert tool.cases()["a"]["x"] == 1
    assert tool.cases()["b"]["answerable"] is False
    assert json.dumps(CASES[2]) in tool.set.read_text().splitlines()
    assert fake_bot.asked["Where is A?"] == 1
    assert fake_bot.seen[0].json()["k"] == 7
    storage.read_cases(tool.set, tool.folder / "labels")


def test_a_probe_asks_the_bot_something_else(tool: Tool, fake_bot: FakeBot) -> None:
    done = tool.run("--plain", "--api-url", fake_bot.url, typed="probe other words k=50\nq\n")
    assert fake_bot.asked["other words"] == 1
    assert any(exchange.json().get("k") == 50 for exchange in fake_bot.seen)
    assert "new rows" in done.stdout


def test_a_bot_that_is_away_is_said_and_editing_goes_on(tool: Tool) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    done = tool.run("--plain", "--api-url", url, typed="edit tags x\nadd f.md > H\n\nq\n")
    assert done.returncode == 0, done.stderr
    assert "No chunks: connection" in done.stdout
    assert tool.cases()["a"]["tags"] == ["x"]
    assert tool.cases()["a"]["gold_supports"] == [{"rel_path": "f.md", "heading_path": "H"}]


def test_labels_from_a_run(tool: Tool) -> None:
    tool.make_run()
    done = tool.run("--plain", "--from-run", "latest", "--no-blind", typed="1\n\nq\n")
    assert done.returncode == 0, done.stderr
    assert "chunks from: run r1" in done.stdout
    assert "(rank 1) f0.md > H: Text 0." in done.stdout
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
    done = tool.run("--plain", "--from-run", "r1", "--inspect", typed="1\nx\nsave\nq\n")
    assert done.stdout.count("Read-only") >= 3
    assert "(rank 1)" in done.stdout
    assert sorted(tool.folder.rglob("*")) == before


def test_a_second_session_says_who_holds_the_set(tool: Tool) -> None:
    first = subprocess.Popen(
        tool.words("--plain"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=tool.env,
    )
    assert first.stdin is not None
    assert first.stdout is not None
    first.stdout.readline()
    done = tool.run("--plain", typed="x\nq\n")
    assert f"process {first.pid}" in done.stdout
    assert "Read-only" in done.stdout
    first.communicate("q\n")
    assert tool.run("--plain", typed="q\n").stdout.count("Read-only") == 0


def test_a_second_annotator_and_agreement(tool: Tool) -> None:
    tool.make_run()
    # First pass: a = {f0, f1}, b unanswerable, c = {f0}. Maria: a = {f0}, b = {f2}, c = {f0}.
    # Rows are named by what they show, since both see their own shuffle.
    label(tool, {"a": ["f0", "f1"], "b": [], "c": ["f0"]})
    before = tool.set.read_bytes()
    label(tool, {"a": ["f0"], "b": ["f2"], "c": ["f0"]}, "--annotator", "maria")
    assert tool.set.read_bytes() == before
    done = tool.run("--agreement", "--json")
    assert done.returncode == 0, done.stderr
    (pair,) = json.loads(done.stdout)["pairs"]
    # State: (ans, ans) (un, ans) (ans, ans): raw 2/3; p_e = (2*3 + 1*0)/9 = 2/3; kappa 0.
    assert pair["state"]["raw"] == pytest.approx(2 / 3)
    assert pair["state"]["kappa"] == pytest.approx(0)
    # Marks over 9 rows: both 2 (a f0, c f0), only first 1 (a f1), only Maria 1 (b f2), neither 5.
    # p_o = 7/9; p_e = (3*3 + 6*6)/81 = 5/9; kappa = (2/9)/(4/9) = 1/2; Dice 2/3; Jaccard 1/2.
    assert pair["marks"]["n"] == 9
    assert pair["marks"]["kappa"] == pytest.approx(1 / 2)
    assert pair["marks"]["positive"] == pytest.approx(2 / 3)
    assert pair["marks"]["overlap"] == pytest.approx(1 / 2)
    shown = tool.run("--agreement")
    assert "A = gold, B = maria: 3 cases by both" in shown.stdout
    assert "b: state: A = unanswerable, B = answerable" in shown.stdout
    ordered = tool.run("--plain", "--from-run", "r1", "--order", "disagreement", typed="p\nq\n")
    assert "b (1/3" in ordered.stdout
    settled = tool.run(
        "--plain", typed="go b\nadj maria\nadj maria 1 b\nadj maria 2 b\nadj maria done\nq\n"
    )
    assert "b is settled with maria" in settled.stdout
    assert tool.cases()["b"]["gold_supports"][0]["rel_path"] == "f2.md"


def label(tool: Tool, marks: dict[str, list[str]], *words: str) -> None:
    """Read every row, mark those of the named files, confirm; no file means unanswerable."""
    shown = tool.run("--plain", "--from-run", "r1", *words, typed="go a\ngo b\ngo c\nq\n").stdout
    typed, case = [], ""
    labels: dict[str, dict[str, str]] = {}
    for line in shown.splitlines():
        if line[:3] in ("a (", "b (", "c ("):
            case = line[0]
        elif line.startswith("[") and case:
            number, name = line[line.index("]") + 1 :].split()[:2]
            labels.setdefault(case, {})[name.removesuffix(".md")] = number
    for case, names in marks.items():
        typed.append(f"go {case}")
        typed.append(" ".join(labels[case][name] for name in names) if names else "x")
        typed.append("")
    done = tool.run("--plain", "--from-run", "r1", *words, typed="\n".join([*typed, "q", ""]))
    assert done.returncode == 0, done.stderr


def test_a_recheck_asks_a_share_of_the_decided_cases_again(tool: Tool) -> None:
    tool.make_run()
    assert "none can come again" in tool.run("--plain", "--recheck", "50").stderr
    label(tool, {"a": ["f0"], "b": [], "c": ["f1"]})
    before = tool.set.read_bytes()
    done = tool.run(
        "--plain", "--from-run", "r1", "--recheck", "50", typed="progress\nx\n\nx\n\nq\n"
    )
    assert "0 of 2 done" in done.stdout, "half of three, rounded up; and no label shows"
    assert tool.set.read_bytes() == before
    found = json.loads(tool.run("--agreement", "--json").stdout)
    assert found["annotators"] == {"gold": 3, "recheck": 2}


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_saves_and_lets_go(tool: Tool, name: str) -> None:
    child = subprocess.Popen(
        tool.words("--plain"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=tool.env,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("edit tags x\n")
    child.stdin.flush()
    for line in child.stdout:
        if "tags changed" in line:
            break
    child.send_signal(getattr(signal, name))
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert tool.cases()["a"]["tags"] == ["x"]


def test_agreement_needs_two(tool: Tool) -> None:
    done = tool.run("--agreement")
    assert done.returncode == 2
    assert "--annotator NAME" in done.stderr


def test_validate(tool: Tool) -> None:
    done = tool.run("--validate")
    assert (done.returncode, done.stdout) == (0, "")
    assert "3 cases, nothing wrong" in done.stderr
    folder = tool.folder / "labels" / "judgements"
    folder.mkdir(parents=True)
    (folder / "maria.jsonl").write_text('{"case_id": "zzz"}\nnot json\n')
    done = tool.run("--validate")
    assert done.returncode == 2
    assert "one judgement is of no case of the set ('zzz')" in done.stderr
    assert "--labels-dir" in done.stderr
    assert "maria.jsonl:2" in done.stderr
    tool.write([*CASES, {"id": "a", "question": ""}])
    done = tool.run("--validate")
    assert done.returncode == 2
    assert "eval_set.jsonl:4" in done.stderr


def test_stats(tool: Tool) -> None:
    tool.write([*CASES, {"id": "d", "question": "?", "gold_supports": [{"rel_path": "x.md"}]}])
    found = json.loads(tool.run("--stats", "--json").stdout)
    assert found["cases"] == 4
    assert found["status"]["labelled"] == 1
    assert found["by_category"]["factual"]["open"] == 1
    shown = tool.run("--stats").stdout
    assert "supports per labelled case" in shown
    assert "1.00" in shown


def test_export_qrels(tool: Tool) -> None:
    tool.write([{"id": "d", "question": "?", "gold_supports": [{"rel_path": "x.md", "grade": 2}]}])
    assert tool.run("--export-qrels", "doc").stdout == "d 0 x.md 2\n"


def test_a_full_screen_needs_a_terminal(tool: Tool) -> None:
    done = tool.run(typed="")
    assert done.returncode == 2
    assert "stdin is no terminal" in done.stderr
    assert "--plain" in done.stderr
    main, side = pty.openpty()
    child = subprocess.run(
        tool.words(), stdin=side, stdout=side, stderr=subprocess.PIPE, env=tool.env, timeout=60
    )
    os.close(main)
    os.close(side)
    assert child.returncode == 2
    assert b"stderr is no terminal" in child.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stats", "--agreement"), "choose one of"),
        (("--plain", "--json"), "--json goes with"),
        (("--plain", "--annotator", "../x"), "up to 64 letters"),
        (("--plain", "--annotator", "gold"), "leave the option out"),
        (("--serve", "--plain"), "leave --plain out"),
        (("--plain", "--from-run", "none"), "no such folder"),
        (("--plain", "--from-run", "r1", "--api-url", "demo"), "choose one of --from-run and"),
        (("--plain", "--api-url", "http://127.0.0.1:9", "--profile", "none"), "profile"),
        (("--plain", "--order", "failing"), "no complete run"),
        (("--plain", "--order", "nonsense"), "nonsense"),
    ],
)
def test_bad_usage_is_one_sentence(tool: Tool, words: tuple[str, ...], said: str) -> None:
    before = tool.set.read_bytes()
    done = tool.run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert tool.set.read_bytes() == before


def test_a_missing_set(tool: Tool) -> None:
    tool.set.unlink()
    done = tool.run("--plain")
    assert done.returncode == 2
    assert "no such file" in done.stderr


def test_labels_that_cannot_be_saved_end_with_2_and_are_kept(tool: Tool) -> None:
    tool.set.chmod(0o444)
    done = tool.run("--plain", typed="edit tags x\nq\n")
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
    typed = (
        "".join(f"edit reference_answer {n} {'long ' * 60}\n" for n in range(4)) + "f\nsave\nq\n"
    )
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


async def browse(port: int) -> None:
    """What a browser does: show the screen, flag the case, leave."""
    import aiohttp

    seen = b""
    async with aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{port}/ws?width=80&height=24"
        async with client.ws_connect(url) as socket_:
            for wanted, key in ((b"Where is A?", "f"), (b"flagged", "q")):
                while wanted not in seen:
                    message = await socket_.receive()
                    assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT)
                    if message.type == aiohttp.WSMsgType.BINARY:
                        seen += message.data
                await socket_.send_json(["stdin", key])
            while (await socket_.receive()).type not in (
                aiohttp.WSMsgType.CLOSE,
                aiohttp.WSMsgType.CLOSED,
                aiohttp.WSMsgType.CLOSING,
            ):
                pass


async def knock(port: int) -> None:
    """The page and its WebSocket are refused to other names and to pages of other addresses."""
    import aiohttp

    url, here = f"http://127.0.0.1:{port}", f"127.0.0.1:{port}"
    headers = [
        ({"Host": f"rebound.example:{port}"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": here, "Origin": "http://other.example"}, 403),
        ({"Host": here, "Origin": "null"}, 403),
        ({"Host": here, "Origin": f"https://{here}"}, 403),
        ({"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}, 200),
        ({"Host": f"[::1]:{port}"}, 200),
    ]
    async with aiohttp.ClientSession() as client:
        for given, code in headers:
            async with client.get(url, headers=given) as reply:
                assert reply.status == code, given
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(f"{url}/ws", headers={"Origin": "http://other.example"})
        assert refused.value.status == 403


def test_a_browser_on_this_machine_gets_the_same_app(tool: Tool) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = subprocess.Popen(
        tool.words("--serve", "--port", str(port)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=tool.env,
    )
    try:
        page = b""
        while not page:
            assert child.poll() is None, child.communicate()[0]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as reply:
                    page = reply.read()
            except OSError:
                time.sleep(0.05)
        assert b"<html" in page.lower()
        asyncio.run(knock(port))
        asyncio.run(browse(port))
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    judged = (tool.folder / "labels" / "judgements" / "gold.jsonl").read_text()
    assert json.loads(judged)["flag"] is True


def test_help_loads_nothing_slow(tool: Tool) -> None:
    code = (
        "import runpy, sys\n"
        "sys.argv = [sys.argv[1], '--help']\n"
        "sys.path.insert(0, sys.argv[0].rpartition('/')[0])\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit:\n    pass\n"
        "print('LOADED', *sorted(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SCRIPT)], capture_output=True, text=True, env=tool.env
    )
    loaded = set(done.stdout.partition("LOADED")[2].split())
    assert "click" in loaded
    assert loaded.isdisjoint(
        {"textual", "requests", "numpy", "sklearn", "torch", "sentence_transformers", "rich"}
    )


def plan(**fields: Any) -> Plan:
    names = Plan.__dataclass_fields__
    return Plan(**(dict.fromkeys(names) | fields))  # type: ignore[arg-type]


def test_the_keymap_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('mark = "m"\n')
    assert plan(keymap=path).keys() == {"mark": "m"}
    path.write_text("mark = 5\n")
    with pytest.raises(storage.StorageError, match="write the key as text"):
        plan(keymap=path).keys()
    path.write_text("mark = \n")
    with pytest.raises(storage.StorageError, match="cannot be used"):
        plan(keymap=path).keys()
    with pytest.raises(storage.StorageError, match="no such file"):
        plan(keymap=tmp_path / "none.toml").keys()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--keymap", "keys.toml"), "Error: keymap: `nope` is no action; the actions are: "),
        (("--theme", "plaid"), "Error: theme 'plaid' is unknown"),
    ],
)
def test_keymap_and_theme_faults_are_said_once(
    tool: Tool, words: tuple[str, ...], said: str
) -> None:
    (tool.folder / "keys.toml").write_text('nope = "x"\n')
    driver = {"TEXTUAL_DRIVER": "textual.drivers.headless_driver:HeadlessDriver"}
    done = subprocess.run(
        tool.words(*words),
        capture_output=True,
        text=True,
        env=tool.env | driver,
        cwd=tool.folder,
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(said)


def test_a_run_wins_over_an_api_of_the_settings(tool: Tool) -> None:
    tool.make_run()
    (tool.folder / "none.toml").write_text('api_url = "http://127.0.0.1:9"\n')
    done = tool.run("--plain", "--from-run", "r1", typed="q\n")
    assert done.returncode == 0, done.stderr
    assert "Text 0." in done.stdout


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert plan(plain=False).lines
    monkeypatch.setenv("TERM", "xterm")
    assert not plan(plain=False).lines
