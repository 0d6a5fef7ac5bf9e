"""Does a run over conversations keep its word when it is killed again and again?

    python bench/validate_turns.py            # 50 kills of each kind of bot, some minutes
    python bench/validate_turns.py --tiny     # 3 kills, seconds

Two bots on 127.0.0.1, one that is sent the history and one that holds it by session, give another
answer at each call and remember what they knew when they gave it. run_eval.py asks conversations
twice each, 8 at once, is ended by SIGKILL after a random number of calls, and is resumed. Ends with
1 unless every conversation is complete and in order, no turn was answered under the history of
another attempt, and no call was made twice whose answer stood on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from measuring import SCRIPTS, print_table, say

TURNS, REPEATS, CONCURRENCY = 4, 2, 8

Key = tuple[str, int]
"""Case id and repeat."""

Said = list[list[str]]
"""Questions and answers, in order."""


class Call(NamedTuple):
    """A call that the bot answered: to what, with which answer, and what it knew then."""

    key: Key
    answer: str
    before: Said


class EchoBot(ThreadingHTTPServer):
    """Answers after ``delay`` seconds. ``sessions``: it holds the conversations itself."""

    daemon_threads = True

    def __init__(self, *, sessions: bool, delay: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sessions, self.delay = sessions, delay
        self.calls: list[Call] = []
        self._memory: dict[str, Said] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answer(self, body: dict[str, Any]) -> dict[str, str]:
        """Another text at each call."""
        time.sleep(self.delay)
        with self._lock:
            texts = [message["content"] for message in body.get("history", ())]
            before: Said = [list(pair) for pair in zip(texts[::2], texts[1::2], strict=True)]
            if self.sessions:
                before = self._memory.setdefault(body.get("session", ""), [])
            text = f"{body['question']} was call {len(self.calls)}"
            key = (body["case_id"], int(body["repeat"]))
            self.calls.append(Call(key, text, [list(pair) for pair in before]))
            if self.sessions:
                before.append([body["question"], text])
        return {"answer": text}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked was killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: EchoBot

    def do_POST(self) -> None:
        """One question."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = json.dumps(self.server.answer(body)).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)
        except OSError:  # who asked was killed
            self.close_connection = True

    def log_message(self, *args: Any) -> None: ...


class Killed:
    """Runs over one set with one bot, killed until there were enough kills."""

    def __init__(self, folder: Path, bot: EchoBot, conversations: int, seed: int) -> None:
        self._folder, self._bot, self._random = folder, bot, random.Random(seed)
        self._questions = {
            f"c{number:02d}-{turn}": f"question {turn} of {number}"
            for number in range(conversations)
            for turn in range(1, TURNS + 1)
        }
        self.kills = self.runs = self.paid_twice = self.lost = 0
        self.faults: list[str] = []
        self._write()

    def _write(self) -> None:
        lines = [
            {
                "id": case_id,
                "question": question,
                "conversation": case_id.partition("-")[0],
                "turn": int(case_id.partition("-")[2]),
            }
            for case_id, question in self._questions.items()
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self._folder / "set.jsonl").write_text(text, encoding="utf-8")
        brings = "session" if self._bot.sessions else "history"
        (self._folder / "bot.toml").write_text(
            '[request]\npath = "/"\n[request.body]\nquestion = "{question}"\n'
            f'case_id = "{{case_id}}"\nrepeat = "{{repeat}}"\n{brings} = "{{{brings}}}"\n'
            '[response]\nanswer = "answer"\n',
            encoding="utf-8",
        )

    def until(self, kills: int) -> None:
        """Begin runs, kill and resume them, and look at each that is finished."""
        while self.kills < kills:
            self.runs += 1
            run_id, resume = f"run-{self.runs}", False
            while not self._asked(run_id, kills, resume=resume):
                resume = (self._folder / "results" / run_id / "config.json").exists()
            self._check(self._lines(run_id, "results.jsonl"))

    def _asked(self, run_id: str, kills: int, *, resume: bool) -> bool:
        """Ask until the end, or until a kill; True at the end."""
        stored = set(self._lines(run_id, "results.partial.jsonl"))
        first = len(self._bot.calls)
        calls = self._random.randint(3, len(self._questions) * REPEATS // 2)
        words = [sys.executable, str(SCRIPTS / "run_eval.py")]
        words += ["--eval-set", str(self._folder / "set.jsonl"), "-q", "--run-id", run_id]
        words += ["--results-dir", str(self._folder / "results")]
        words += ["--profile", str(self._folder / "bot.toml")]
        words += ["--api-url", f"http://127.0.0.1:{self._bot.server_address[1]}"]
        words += ["--repeat", str(REPEATS), "--set", f"concurrency={CONCURRENCY}"]
        words += ["--resume"] if resume else []
        own = {k: v for k, v in os.environ.items() if not k.startswith("RAG_EVAL_")}
        own["RAG_EVAL_CONFIG"] = os.devnull
        process = subprocess.Popen(words, env=own, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            if self.kills < kills and len(self._bot.calls) - first >= calls:
                process.send_signal(signal.SIGKILL)
                process.wait()
                break
            time.sleep(0.002)
        ended = process.returncode == 0
        if not ended and process.returncode != -signal.SIGKILL:
            raise SystemExit(f"run_eval.py ended with {process.returncode}")
        self.kills += not ended
        time.sleep(2 * self._bot.delay)  # for what was under way
        new = self._bot.calls[first:]
        self.paid_twice += sum(call.key in stored for call in new)
        if not ended:
            after = self._lines(run_id, "results.partial.jsonl")
            self.lost += sum(after.get(call.key) != call.answer for call in new)
            self._check_together(after)
        return ended

    def _check_together(self, stored: dict[Key, str]) -> None:
        """What a kill left: of a session all turns or none, else no turn without those before."""
        for key in stored:
            conversation, _, turn = key[0].partition("-")
            needed = range(1, TURNS + 1 if self._bot.sessions else int(turn))
            if any((f"{conversation}-{number}", key[1]) not in stored for number in needed):
                self.faults.append(f"{key} stands there without the turns that belong to it")

    def _check(self, answers: dict[Key, str]) -> None:
        """A finished run: complete, in order, each answer given under the answers before it."""
        order = [(case_id, repeat) for case_id in self._questions for repeat in range(REPEATS)]
        if list(answers) != order:
            self.faults.append(f"{len(answers)} of {len(order)} lines, or out of order")
            return
        known = {call.answer: call.before for call in self._bot.calls}
        for (case_id, repeat), answer in answers.items():
            conversation, _, turn = case_id.partition("-")
            earlier = [f"{conversation}-{number}" for number in range(1, int(turn))]
            before = [[self._questions[each], answers[each, repeat]] for each in earlier]
            if known.get(answer) != before:
                self.faults.append(f"{case_id}, repeat {repeat}: answered under another history")

    def _lines(self, run_id: str, name: str) -> dict[Key, str]:
        """The answers of a file, by case and repeat, in order; whole lines alone."""
        path = self._folder / "results" / run_id / name
        data = path.read_bytes() if path.exists() else b""
        lines = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
        return {(line["test_case_id"], line["repeat"]): line["answer"] for line in lines}


def main() -> None:
    """Kill, resume, look; say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="of each bot")
    parser.add_argument("--conversations", type=int, default=30)
    parser.add_argument("--delay", type=float, default=0.02, help="seconds of an answer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiny", action="store_true", help="3 kills, 4 conversations")
    options = parser.parse_args()
    if options.tiny:
        options.kills, options.conversations, options.delay = 2, 4, 0.005
    rows, faults = [], []
    for name, sessions in (("history", False), ("session", True)):
        bot = EchoBot(sessions=sessions, delay=options.delay)
        with tempfile.TemporaryDirectory() as folder:
            killed = Killed(Path(folder), bot, options.conversations, options.seed)
            killed.until(1 if options.tiny and sessions else options.kills)
        bot.shutdown()
        bot.server_close()
        faults += [f"{name}: {fault}" for fault in killed.faults]
        faults += [f"{name}: {killed.paid_twice} calls paid twice"] if killed.paid_twice else []
        counts = (killed.kills, killed.runs, len(bot.calls), killed.lost, killed.paid_twice)
        rows.append([name, *counts, len(killed.faults)])
    columns = ["bot", "kills", "runs", "calls", "lost in a kill", "paid twice", "faults"]
    print_table(columns, rows)
    for fault in faults[:20]:
        say(fault)
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
