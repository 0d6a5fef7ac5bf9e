"""What do a kill and a power cut cost? Real commands, replayed from their system calls.

    python bench/crash_replay.py              # 120 states of each command tried
    python bench/crash_replay.py --quick      # 25 states of each
    python bench/crash_replay.py --tiny       # only to see that it runs

Each command runs once under strace. After every call, bench/disk_model.py gives what may be on the
disk if the process is killed then, or if the power goes. In all of these states we count what was
acknowledged (answers and verdicts in a file, labels said to be kept, results that were there) and
is lost, and how long ago that was. A sample of the states, evenly spread, is made on the disk: the
same command (with --resume where there is one) must end well, with everything there, and ask for
nothing that was not lost.

Ends with 1 when a kill loses anything, a power cut more than the last five seconds, or a command
does not go on. Without strace there is nothing to replay, which is said in one sentence.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from disk_model import Step, Tree, digest, read_trace, read_tree, replay, trace, write_tree
from measuring import SCRIPTS, print_table, say

HERE = Path(__file__).resolve()
sys.path.insert(0, str(SCRIPTS))
MOST_LOST_S = 5.0
CASES = [f"q{number:04d}" for number in range(24)]
SHORT_S, LAST_S = 0.02, 6.5
"""So long takes an answer below /short, and the last one below /slow: what came before that must be
on the disk by then."""
STARTED_AGAIN_S = 90.0
"""A machine is not up again sooner after a power cut."""
MARK = re.compile(rb"q\d{4}")
JUDGED = ("--model", "judge-1", "--set", "revision=r1", "--metrics", "groundedness")


class Served(BaseHTTPRequestHandler):
    """A bot and a judge. Below /slow an answer takes half a second, and the last case longer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    log: ClassVar[Path]

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "judge-1"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        case_id = body.get("case_id") or self._judged(body)
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(f"{self.path} {case_id} {body.get('flavour', '')}\n")
        if "/slow" in self.path:
            time.sleep(LAST_S if case_id == CASES[-1] else 0.5)
        elif "/short" in self.path:
            time.sleep(SHORT_S)
        self._send(self._verdicts(body, case_id) if "messages" in body else reply_to(case_id))

    def _judged(self, body: dict[str, Any]) -> str:
        cases = re.findall(r"q\d{4}", body["messages"][-1]["content"])
        return cases[-1] if cases else ""

    def _verdicts(self, body: dict[str, Any], case_id: str) -> dict[str, Any]:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        reply: dict[str, Any] = {}
        for name, part in schema.get("properties", {}).items():
            empty = {"boolean": False, "array": [], "integer": 1, "number": 1}
            reply[name] = part.get(
                "enum", [part.get("const", empty.get(part.get("type"), "text"))]
            )[0]
        if "verdicts" in reply:
            entry = {"context": "c1", "quote": answer_to(case_id), "reason": ""}
            reply["verdicts"] = [{"id": "1", "verdict": "supported"} | entry]
        message = {"role": "assistant", "content": json.dumps(reply)}
        usage = {"prompt_tokens": 5000, "completion_tokens": 50, "total_tokens": 5050}
        choice = {"message": message, "finish_reason": "stop"}
        return {"model": "judge-1", "choices": [choice], "usage": usage}

    def _send(self, payload: dict[str, Any]) -> None:
        data = json.dumps(payload).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # who asked was killed
            self.close_connection = True

    def log_message(self, *words: Any) -> None: ...


def answer_to(case_id: str) -> str:
    return f"The fee of {case_id} is 15 euros."


def reply_to(case_id: str) -> dict[str, Any]:
    """What the bot says."""
    chunk = {"chunk_id": f"c-{case_id}", "text": answer_to(case_id)}
    return {"answer": answer_to(case_id), "retrieved": [chunk]}


def serve(log: str) -> None:
    """Answer until the process ends; the address goes to stdout."""
    Served.log = Path(log)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    server.daemon_threads = True
    server.handle_error = lambda request, address: None  # type: ignore[method-assign]
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()


class World:
    """What commands read that is not at stake: a set, a profile, a bot, a judge, traces."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.log = folder / "asked.log"
        self.log.touch()
        self.eval_set = folder / "set.jsonl"
        cases = [
            {"id": c, "question": f"What is the fee of {c}?", "relevant_chunks": [f"c-{c}"]}
            for c in CASES
        ]
        self.eval_set.write_text("".join(json.dumps(case) + "\n" for case in cases))
        (folder / "labels").mkdir()
        (folder / "bot.toml").write_text(
            '[request]\npath = "/"\n[request.body]\nquestion = "{question}"\n'
            'case_id = "{case_id}"\n[response]\nanswer = "answer"\nretrieved = "retrieved"\n'
        )
        self.data = ("--eval-set", str(self.eval_set), "--labels-dir", str(folder / "labels"))

    def asked(self) -> int:
        """Requests so far."""
        return len(self.log.read_bytes().splitlines())

    def asked_since(self, before: int) -> Counter[str]:
        """The cases that bot or judge were asked about."""
        lines = self.log.read_text().splitlines()[before:]
        return Counter(line.split()[1] for line in lines if len(line.split()) > 1)

    def finished_run(self, results: Path) -> None:
        """A run with full texts, made without the bot."""
        from storage import ResultsWriter, RetrievedChunk, RunConfig, TestResult

        writer = ResultsWriter(results, "r", store_full_text=True)
        writer.write_config(RunConfig("r"))
        for case in CASES:
            text = answer_to(case)
            chunk = RetrievedChunk(
                f"c-{case}", text=text, rel_path=f"{case}.md", heading_path="H", rank=1
            )
            writer.write_result(
                TestResult(case, f"What is the fee of {case}?", answer=text, retrieved=[chunk])
            )
        writer.finish(CASES)


class Played:
    """A command, what is at stake in its folder, and how it goes on."""

    name: ClassVar[str]
    script: ClassVar[str]
    at_stake: ClassVar[str]
    """A pattern of the files whose lines hold what was acknowledged."""
    said = b""

    def __init__(self, world: World) -> None:
        self.world = world

    def prepare(self, root: Path) -> None:
        """Fill the folder before the command begins."""

    def words(self, root: Path) -> list[str]:
        raise NotImplementedError

    def held(self, tree: Tree) -> set[str]:
        """The cases of which a state has what was acknowledged."""
        cases: set[str] = set()
        for name, data in tree.items():
            if data and re.fullmatch(self.at_stake, name):
                for line in data.splitlines(keepends=True):
                    cases |= cases_of(line)
        return cases

    def acknowledged(self, step: Step, held: set[str]) -> set[str]:
        """The cases that count as done from here on: those written, where nothing is said."""
        return held

    def goes_on(self, root: Path, tree: Tree) -> str:
        """Start the command again: what is wrong with its end, "" for nothing."""
        raise NotImplementedError

    def again(self, root: Path, *more: str, said: bytes = b"") -> tuple[int, str]:
        return called(self.script, [*self.words(root), *more], said)

    def asks_for_the_lost(self, before: int, tree: Tree) -> str:
        """What was asked although it was there; "" for nothing."""
        asked = self.world.asked_since(before)
        twice = {case for case in asked if asked[case] > 1 or case in self.held(tree)} - {""}
        return f"asked again: {', '.join(sorted(twice))}" if twice else ""


_known: dict[bytes, set[str]] = {}


def cases_of(line: bytes) -> set[str]:
    if line not in _known:
        cases: set[str] = set()
        try:
            json.loads(line)
            cases = (
                {mark.decode() for mark in MARK.findall(line)} if line.endswith(b"\n") else cases
            )
        except ValueError:
            pass
        _known[line] = cases
    return _known[line]


class Run(Played):
    name, script = "run", "run_eval"
    at_stake = r"r/(results\.partial\.jsonl|results\.jsonl)"

    def words(self, root: Path) -> list[str]:
        slow = "slow" if root.name == "root" else "quick"
        words = [
            "--api-url",
            f"{self.world.url}/{slow}",
            "--profile",
            str(self.world.folder / "bot.toml"),
        ]
        words += ["--results-dir", str(root), "--run-id", "r", "--set", "concurrency=2"]
        return [*words, *self.world.data]

    def goes_on(self, root: Path, tree: Tree) -> str:
        before = self.world.asked()
        code, told = self.again(root, *(["--resume"] if "r/config.json" in tree else []))
        if code:
            return f"exit {code}: {told[-300:]}"
        if results_in(root / "r") != {case: answer_to(case) for case in CASES}:
            return "other results"
        return self.asks_for_the_lost(before, tree)


class Judge(Played):
    name, script = "judge", "judge_answers"
    at_stake = r"results/r/verdicts\.jsonl|cache/judge_cache\.jsonl"

    def prepare(self, root: Path) -> None:
        self.world.finished_run(root / "results")

    def words(self, root: Path) -> list[str]:
        slow = "slow" if root.name == "root" else "quick"
        words = ["--judge", f"{self.world.url}/{slow}/v1", *JUDGED, "--set", "concurrency=2"]
        words += ["--results-dir", str(root / "results"), "--run", "r"]
        return [*words, "--cache-dir", str(root / "cache"), *self.world.data]

    def goes_on(self, root: Path, tree: Tree) -> str:
        before = self.world.asked()
        code, told = self.again(root)
        if code:
            return f"exit {code}: {told[-300:]}"
        lines = (root / "results/r/verdicts.jsonl").read_text().splitlines()
        verdicts = {
            line["case_id"]: line["verdicts"][0]["verdict"]
            for line in map(json.loads, lines)
            if "case_id" in line  # others describe a judging run
        }
        if verdicts != dict.fromkeys(CASES, "supported"):
            return "other verdicts"
        return self.asks_for_the_lost(before, tree)


class Label(Played):
    """Notes on cases by lines; every third is followed by saving."""

    name, script = "label", "label_eval"
    at_stake = r"set\.jsonl\.journal|labels/judgements/gold\.jsonl"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        world.finished_run(world.folder / "labelled")
        self.said = b"".join(
            f"go {case}\nnote fee of {case}\n{'save' if number % 3 == 2 else ''}\n".encode()
            for number, case in enumerate(CASES)
        )

    def prepare(self, root: Path) -> None:
        shutil.copy(self.world.eval_set, root / "set.jsonl")

    def words(self, root: Path) -> list[str]:
        words = ["--plain", "--from-run", "r", "--results-dir", str(self.world.folder / "labelled")]
        return [*words, "--eval-set", str(root / "set.jsonl"), "--labels-dir", str(root / "labels")]

    def held(self, tree: Tree) -> set[str]:
        """A journal names each case as it is opened; what counts is the note."""
        lines = b"".join(
            data or b"" for name, data in tree.items() if re.fullmatch(self.at_stake, name)
        )
        return {
            note.group(1).decode()
            for line in lines.splitlines(keepends=True)
            if cases_of(line)
            for note in re.finditer(rb"fee of (q\d{4})\"", line)
        }

    def acknowledged(self, step: Step, held: set[str]) -> set[str]:
        return {said.decode() for said in re.findall(rb"(q\d{4}): note kept", step.data)}

    def goes_on(self, root: Path, tree: Tree) -> str:
        code, told = self.again(root, said=b"save\nq\n")
        if code:
            return f"exit {code}: {told[-300:]}"
        if not self.held(tree) <= self.held(read_tree(root)):
            return "a note is gone"
        whole = [json.loads(line)["id"] for line in (root / "set.jsonl").read_text().splitlines()]
        return "" if whole == CASES else "another set"


PLAYS = (Run, Judge, Label)


def results_in(folder: Path) -> dict[str, str | None]:
    """The answers of a finished run."""
    from storage import StorageError, iter_results, results_file

    try:
        return {result.test_case_id: result.answer for result in iter_results(results_file(folder))}
    except (OSError, StorageError):
        return {}


def called(script: str, words: list[str], said: bytes) -> tuple[int, str]:
    """Run a script in a fork of this process, which has loaded it: exit code and output."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
        given.write(said)
        given.seek(0)
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                os.dup2(given.fileno(), 0)
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                signal.alarm(120)
                importlib.import_module(script).main(words, prog_name=f"{script}.py")
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            except BaseException as error:
                print(f"Traceback: {error!r}", file=sys.stderr)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read().decode(errors="replace")


class Outcome:
    """What the replay of one command came to."""

    def __init__(self) -> None:
        self.states = self.tried = 0
        self.by_kill: set[str] = set()
        self.by_cut: set[str] = set()
        self.most = 0
        self.oldest_s = 0.0
        self.faults: Counter[str] = Counter()

    def count(self, kind: str, lost: dict[str, float], now: float) -> None:
        """Note what one state has lost: cases, and when they were acknowledged."""
        self.states += 1
        if kind == "kill":
            self.by_kill |= set(lost)
        elif lost:
            self.by_cut |= set(lost)
            self.most = max(self.most, len(lost))
            self.oldest_s = max(self.oldest_s, now - min(lost.values()))

    @property
    def sound(self) -> bool:
        return not self.by_kill and self.oldest_s <= MOST_LOST_S and not self.faults


def play(played: Played, folder: Path, tries: int, env: dict[str, str]) -> Outcome:
    """Trace a command, look at every state, try some of them."""
    root = folder / "root"
    root.mkdir(parents=True)
    played.prepare(root)
    start = read_tree(root)
    begin = time.time()
    command = [sys.executable, str(SCRIPTS / f"{played.script}.py"), *played.words(root)]
    trace(command, folder / "trace", env, played.said)
    steps = list(read_trace(folder / "trace", root))
    outcome = Outcome()
    since = dict.fromkeys(played.held(start), begin - 3600)
    places: dict[bytes, tuple[int, str]] = {}
    for number, kind, tree in replay(steps, root, start):
        step = steps[number]
        held = played.held(tree)
        if kind == "kill":
            for case in played.acknowledged(step, held):
                since.setdefault(case, step.at)
        following = steps[min(number + 1, len(steps) - 1)].at
        lost = {case: at for case, at in since.items() if case not in held}
        outcome.count(kind, lost, following)
        places.setdefault(digest(tree), (number, kind))
    chosen = spread(sorted(places.values()), tries)
    for number, kind, tree in replay(steps, root, start):
        if (number, kind) in chosen:
            chosen.remove((number, kind))
            again = folder / "again"
            write_tree(tree, again, STARTED_AGAIN_S)
            if fault := played.goes_on(again, tree):
                outcome.faults[f"{kind}: {fault}"] += 1
            outcome.tried += 1
            shutil.rmtree(again)
    say(f"{played.name}: {outcome.states:,} states, {outcome.tried} tried")
    return outcome


def spread(places: list[tuple[int, str]], tries: int) -> set[tuple[int, str]]:
    """So many of them, evenly."""
    step = max(1.0, len(places) / tries)
    return {places[int(at * step)] for at in range(min(tries, len(places)))}


def environment() -> dict[str, str]:
    """Ours without the user's settings."""
    own = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    return own | {"RAG_EVAL_CONFIG": os.devnull, "NO_COLOR": "1"}


def preload() -> None:
    """What the scripts load, once for all forks."""
    rooms = ("clients.run", "judging.run", "judging.connect", "judging.show", "scorers.judged")
    rooms += ("scorers.show", "labeller.plain", "numpy", "requests")
    for name in (*{played.script for played in PLAYS}, *rooms, "rich.console", "rich.table"):
        importlib.import_module(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--states", type=int, default=120, help="states of each command to try")
    parser.add_argument("--only", metavar="NAME", help="one command, such as judge")
    parser.add_argument("--quick", action="store_true", help="25 states of each")
    parser.add_argument("--tiny", action="store_true", help="run alone, 3 states")
    parser.add_argument("--serve", metavar="LOG", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    if shutil.which("strace") is None:
        return say("skipped: strace is not installed, and without it there is nothing to replay.")
    tries = 3 if options.tiny else 25 if options.quick else options.states
    names = ("run",) if options.tiny else [played.name for played in PLAYS]
    os.environ.clear()
    os.environ.update(environment())
    preload()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        words = [sys.executable, str(HERE), "--serve", str(folder / "asked.log")]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            world = World(folder, server.stdout.readline().strip())
            outcomes = {
                played.name: play(
                    played(world), folder / played.script / played.name, tries, dict(os.environ)
                )
                for played in PLAYS
                if played.name in ([options.only] if options.only else names)
            }
            server.communicate()
    report(outcomes)


def report(outcomes: dict[str, Outcome]) -> None:
    """Print the table and what went wrong; end with 1 if anything did."""
    head = ("command", "states", "tried", "lost by a kill", "most lost by a power cut")
    rows = [
        (
            name,
            f"{outcome.states:,}",
            outcome.tried,
            len(outcome.by_kill),
            outcome.most,
            f"{outcome.oldest_s:.1f}" if outcome.most else "",
            sum(outcome.faults.values()),
        )
        for name, outcome in outcomes.items()
    ]
    print_table([*head, "the oldest, s before", "did not go on"], rows)
    for name, outcome in outcomes.items():
        for fault, times in outcome.faults.most_common(10):
            print(f"{name}: {times} x {fault}")
    sys.exit(0 if all(outcome.sound for outcome in outcomes.values()) else 1)


if __name__ == "__main__":
    main()
