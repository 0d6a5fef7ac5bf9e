"""judge_answers.py as a user runs it: the local judge, and a scripted server on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import judge_answers
import storage
from judge_answers import main
from storage import ErrorInfo, RetrievedChunk, TestResult

FEE = "The fee is 15 euros. It is paid at the north desk."
TOUR = "The tour begins at noon and takes two hours."
SECRET = "sk-test-0123456789abcdef"


def result(name: str, answer: str, **fields: Any) -> TestResult:
    chunks: list[RetrievedChunk | str] = [
        RetrievedChunk("k1", text=FEE + " " * 200, rank=1),
        RetrievedChunk("k2", text=TOUR, rank=2),
    ]
    return TestResult(name, answer=answer, **({"retrieved": chunks} | fields))


CASES = [
    {"id": "good", "category": "factual", "expected_key_facts": ["The fee is 15 euros"]},
    {"id": "bad", "category": "reasoning", "reference_answer": "The tour begins at noon."},
    {"id": "shy", "answerable": False},
    {"id": "broken"},
]
RESULTS = [
    result("good", "The fee is 15 euros."),
    result("bad", "The tour begins at noon. Dogs pay [bold]31[/] \x1b[Heuros at the south gate."),
    result("shy", "I cannot find this in the documents."),
    TestResult("broken", status="error", error=ErrorInfo("timeout")),
]


def judged(finished: Any, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = finished.section(
        main, "--cache-dir", str(finished.folder / "cache"), "-q", *words
    )
    return found


def lines_of(finished: Any) -> list[dict[str, Any]]:
    text = (finished.run / "verdicts.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_local_judge_end_to_end(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    # without cosines: no model is loaded
    found = judged(finished, "--metrics", "all", "--claim-level", "--correctness-weight", "1")
    # good: 1 of 1 claims; bad: 1 of 2, for 31 stands nowhere; shy abstains; broken failed
    assert found["mean"]["faithfulness"] == 0.75
    assert found["mean"]["groundedness"] == 3.75
    counts = [found[name]["faithfulness"] for name in ("n", "not_applicable", "failed")]
    assert counts == [2, 1, 1]
    assert found["mean"]["fact_recall"] == 1.0
    assert found["mean"]["context_recall"] == 1.0
    assert found["mean"]["abstained_judged"] == pytest.approx(1 / 3, abs=1e-6)
    assert found["mean"]["answer_relevancy"] is None
    assert found["not_applicable"]["answer_relevancy"] == 3
    assert found["by"]["category"]["reasoning"]["mean"]["faithfulness"] == 0.5
    rows = finished.rows("judged")
    assert "cannot write questions" in rows["good"]["reasons"]["answer_relevancy"]
    assert rows["broken"]["reasons"] == {"*": "call failed: timeout"}
    config = json.loads((finished.run / "config.json").read_text("utf-8"))
    assert config["judge"]["identity"]["provider"] == "local"
    assert config["judge"]["prompts"]["groundedness"]["version"] == 1
    assert found["options"]["judge"] == config["judge"]
    assert config["config_hash"] == storage.config_hash(storage.read_config(finished.run))


def test_a_second_time_changes_no_byte_and_rescoring_neither(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    words = ("--metrics", "groundedness,correctness,context_precision")
    judged(finished, *words)
    kept = finished.bytes_of("judged"), (finished.run / "verdicts.jsonl").read_bytes()
    judged(finished, *words)
    assert kept == (finished.bytes_of("judged"), (finished.run / "verdicts.jsonl").read_bytes())
    judged(finished, "--rescore")
    assert kept[0] == finished.bytes_of("judged")


def test_metrics_judged_one_after_the_other_stand_side_by_side(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    assert "fact_recall" not in judged(finished, "--metrics", "groundedness")["mean"]
    found = judged(finished, "--metrics", "correctness")
    assert {"faithfulness", "fact_recall"} <= found["mean"].keys()


def test_repeats_give_agreement_and_only_for_the_sample(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    found = judged(finished, "--metrics", "groundedness", "--repeats", "3")
    assert found["mean"]["judge_self_agreement"] == 1.0
    assert found["repeats"] == {
        "opinions": 3,
        "items": 3,
        "flipped": 0,
        "flip_rate": 0.0,
        "mean_spread": {"faithfulness": 0.0, "groundedness": 0.0},
    }
    assert {line["judge_repeat"] for line in lines_of(finished)} == {0, 1, 2}
    (finished.run / "verdicts.jsonl").unlink()
    judged(finished, "--metrics", "groundedness", "--repeats", "3", "--sample", "0")
    assert {line["judge_repeat"] for line in lines_of(finished)} == {0}


def test_cut_texts_do_not_apply_and_the_advice_is_given(finished: Any) -> None:
    finished.write(CASES, RESULTS, full=False)
    done = finished.score(main, "--cache-dir", str(finished.folder / "c"))
    assert done.exit_code == 0, done.output
    assert "--store-full-text" in done.stderr
    assert finished.rows("judged")["good"]["reasons"]["groundedness"] == "text was truncated"


def test_the_worst_case_shows_claims_and_quotes_and_runs_no_markup(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--cache-dir", str(finished.folder / "c"), "--worst", "1")
    assert done.exit_code == 0, done.output
    assert "[bold]31[/]" in done.stdout
    assert "\x1b" not in done.stdout
    assert "number found nowhere: 31" in done.stdout
    assert '"The tour begins at noon' in done.stdout
    assert "local/support@" in done.stdout
    assert "weaker than a model" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metrics", "truth"], "'truth' is not judged"),
        (["--metrics", ","], "name at least one"),
        (["--worst-by", "truth"], "'truth' is not computed here"),
        (["--rescore"], "run judge_answers.py first"),
        (["--judge", "http://127.0.0.1:9", "--max-cost", "1"], "--max-cost: needs --prices"),
        (["--judge", "http://127.0.0.1:9", "--api-key", "NO_SUCH_KEY"], "NO_SUCH_KEY is not set"),
        (["--judge", "http://127.0.0.1:9", "--offline"], "no verdicts of any judge"),
        (["--judge", "nonsense"], "is no URL"),
    ],
)
def test_faulty_requests_are_one_sentence(finished: Any, words: list[str], message: str) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--cache-dir", str(finished.folder / "c"), *words)
    assert done.exit_code == 2, done.output
    assert message in done.output.replace("\n", " ")
    assert "Traceback" not in done.output


def test_results_of_another_set_are_refused_before_anything_is_paid(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    finished._lines("set.jsonl", [{"id": "other", "question": "?"}])
    done = finished.score(main, "--cache-dir", str(finished.folder / "c"))
    assert done.exit_code == 2
    assert "use the set that was asked" in done.output.replace("\n", " ")
    assert not (finished.run / "verdicts.jsonl").exists()


def test_the_self_test_runs_without_a_run(tmp_path: Path) -> None:
    from click.testing import CliRunner

    words = ["--self-test", "--json", "--cache-dir", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["passed"] is True


# --- a server ---------------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """Plays an OpenAI-compatible API; ``reply`` makes the answer of a judgement from its claims."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls: list[dict[str, Any]] = []
        self.reply: Callable[[dict[str, Any]], tuple[int, Any]] = support
        self.delay = 0.0
        self.model = "judge-2025-01-01"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def judgements(self) -> int:
        return sum("verdicts" in schema_of(call) for call in self.calls)


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: Any) -> None: ...

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            return self._send(200, {"object": "list", "data": [{"id": self.server.model}]})
        self._send(404, {"error": "no such path"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            return self._send(404, {"error": "no such path"})
        self.server.calls.append(body)
        time.sleep(self.server.delay)
        if "questions" in schema_of(body):
            asked = ["What is the fee?", "How much is the fee?", "What does it cost?"]
            reply = {"notes": "", "noncommittal": False, "questions": asked, "manipulation": False}
            return self._send(200, completion(reply))
        if "verdicts" not in schema_of(body):
            return self._send(200, completion(canary(body)))
        status, reply = self.server.reply(body)
        self._send(status, reply)

    def _send(self, status: int, reply: Any) -> None:
        data = json.dumps(reply).encode()
        with contextlib.suppress(BrokenPipeError):  # the client was killed
            self._write(status, data)

    def _write(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def schema_of(body: dict[str, Any]) -> dict[str, Any]:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    found: dict[str, Any] = schema.get("properties", {})
    return found


def canary(body: dict[str, Any]) -> dict[str, Any]:
    """The smallest reply that fits a flat schema: what a probe asks for."""
    reply: dict[str, Any] = {}
    for name, part in schema_of(body).items():
        if "enum" in part:
            reply[name] = part["enum"][0]
        elif "const" in part:
            reply[name] = part["const"]
        else:
            reply[name] = {"integer": 1, "number": 1, "boolean": True, "array": []}.get(
                part.get("type"), "text"
            )
    return reply


def completion(reply: Any, finish: str = "stop") -> dict[str, Any]:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return {
        "model": "judge-2025-01-01",
        "choices": [{"message": {"content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 5000, "completion_tokens": 50, "total_tokens": 5050},
    }


def ids_in(body: dict[str, Any]) -> list[str]:
    """The ids that a prompt asks about: its last line."""
    last: str = body["messages"][1]["content"].splitlines()[-1]
    return last.rpartition(": ")[2].rstrip(".").split(", ")


def support(body: dict[str, Any]) -> tuple[int, Any]:
    """Every claim is supported by the first passage."""
    entry = {"context": "c1", "quote": "The fee is 15 euros", "reason": "", "verdict": "supported"}
    verdicts = [{"id": name} | entry for name in ids_in(body)]
    return 200, completion({"notes": "", "verdicts": verdicts, "manipulation": False})


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.shutdown()
    running.server_close()


def words_for(server: Server, *more: str) -> tuple[str, ...]:
    words = ("--judge", server.url, "--model", server.model, "--judge-revision", "r1")
    return (*words, "--retries", "0", "--metrics", "groundedness", *more)


def test_a_server_judges_once_and_the_cache_replays(finished: Any, server: Server) -> None:
    finished.write(CASES, RESULTS)
    found = judged(finished, *words_for(server))
    assert found["mean"]["faithfulness"] == 1.0
    paid, kept = len(server.calls), finished.bytes_of("judged")
    assert server.judgements == 2  # good and bad; shy abstains
    judged(finished, *words_for(server))
    assert len(server.calls) == paid
    (finished.run / "verdicts.jsonl").unlink()
    judged(finished, *words_for(server, "--offline"))
    assert (len(server.calls), finished.bytes_of("judged")) == (paid, kept)
    line = lines_of(finished)[0]
    assert line["cached"] is True
    assert line["judge"]["revision"] == "r1"
    judged(finished, *words_for(server, "--repeats", "2"))
    assert server.judgements == 4
    changed = judged(finished, *words_for(server, "--temperature", "0.5"))
    assert server.judgements == 6
    assert changed["options"]["judge"]["parameters"]["temperature"] == 0.5


@pytest.mark.slow
def test_relevancy_by_the_real_embedding_model(finished: Any, server: Server) -> None:
    cases = [{"id": "same", "question": "What is the fee?"}, {"id": "far", "question": "Who sang?"}]
    finished.write(cases, [result(case["id"], "The fee is 15 euros.") for case in cases])
    judged(finished, *words_for(server)[:-2], "--metrics", "answer_relevancy")
    scores = {name: row["scores"] for name, row in finished.rows("judged").items()}
    assert 0.7 < scores["same"]["answer_relevancy"] < 1.0  # one of three questions is the same
    assert scores["far"]["answer_relevancy"] < 0.4


def malformed(body: dict[str, Any]) -> tuple[int, Any]:
    return 200, completion("Sure! All claims are fine.")


def truncated(body: dict[str, Any]) -> tuple[int, Any]:
    return 200, completion('{"notes": "", "verdicts": [', "length")


def incomplete(body: dict[str, Any]) -> tuple[int, Any]:
    return 200, completion({"notes": "", "verdicts": [], "manipulation": False})


def refused(body: dict[str, Any]) -> tuple[int, Any]:
    reply = completion("")
    reply["choices"][0]["message"] = {"content": None, "refusal": "I cannot help with that."}
    return 200, reply


def down(body: dict[str, Any]) -> tuple[int, Any]:
    return 500, {"error": "overloaded"}


@pytest.mark.parametrize(
    ("reply", "failure", "code"),
    [
        (malformed, "malformed", 0),
        (truncated, "truncated", 0),
        (incomplete, "incomplete", 0),
        (refused, "refused", 0),
        (down, "transport", 3),
    ],
)
def test_no_failed_judgement_becomes_a_score(
    finished: Any, server: Server, reply: Any, failure: str, code: int
) -> None:
    finished.write(CASES, RESULTS)
    server.reply = reply
    cache = ("--cache-dir", str(finished.folder / "cache"))
    done = finished.score(main, *cache, *words_for(server))
    assert done.exit_code == code, done.output
    statuses = {line["case_id"]: (line["status"], line["failure"]) for line in lines_of(finished)}
    assert statuses == {
        "good": ("failed", failure),
        "bad": ("failed", failure),
        "shy": ("not_applicable", None),
    }
    assert "2 judgements failed" in done.stderr
    found = judged(finished, "--rescore")
    counts = [found[name]["groundedness"] for name in ("n", "not_applicable", "failed")]
    assert counts == [0, 1, 3]  # the bot's own failure is the third
    assert found["mean"]["groundedness"] is None
    server.reply = support
    assert judged(finished, *words_for(server))["mean"]["groundedness"] == 5.0


def test_a_lying_judge_supports_nothing_without_a_quote(finished: Any, server: Server) -> None:
    finished.write(CASES, RESULTS)

    def lie(body: dict[str, Any]) -> tuple[int, Any]:
        status, reply = support(body)
        text = reply["choices"][0]["message"]["content"]
        reply["choices"][0]["message"]["content"] = text.replace("15 euros", "nothing at all")
        return status, reply

    server.reply = lie
    found = judged(finished, *words_for(server))
    assert found["mean"]["faithfulness"] == 0.0
    assert found["claims"]["claims_quote_unverified"] == 3


def test_a_dry_run_pays_nothing_and_writes_nothing(finished: Any, server: Server) -> None:
    finished.write(CASES, RESULTS)
    words = [*words_for(server), "--dry-run", "--json", "--cache-dir", str(finished.folder / "c")]
    done = finished.score(main, *words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["tasks"], found["calls"], found["cached"]) == (2, 2, 0)
    assert server.calls == []
    assert not (finished.run / "verdicts.jsonl").exists()


def test_the_key_is_written_nowhere(
    finished: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", SECRET)
    finished.write(CASES, RESULTS)
    server.reply = lambda body: (401, {"error": f"bad key {SECRET}"})
    done = finished.score(
        main,
        *words_for(server, "--api-key", "JUDGE_KEY", "--cache-dir", str(finished.folder / "c")),
    )
    assert SECRET not in done.output
    for path in finished.folder.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_a_killed_run_pays_for_nothing_twice(finished: Any, server: Server) -> None:
    cases = [{"id": f"q{n}"} for n in range(30)]
    results = [
        result(case["id"], f"The fee is 15 euros. Room {n} has chairs.")
        for n, case in enumerate(cases)
    ]
    finished.write(cases, results)
    server.delay = 0.05
    script = Path(judge_answers.__file__)
    words = [sys.executable, str(script), *words_for(server, "--concurrency", "2", "-q", "--json")]
    words += ["--run", str(finished.run), "--eval-set", str(finished.folder / "set.jsonl")]
    words += ["--cache-dir", str(finished.folder / "cache")]
    kept = {key: text for key, text in os.environ.items() if not key.startswith("RAG_EVAL_")}
    process = subprocess.Popen(
        words, env=kept | {"RAG_EVAL_CONFIG": os.devnull}, stdout=subprocess.DEVNULL
    )
    while server.judgements < 6 and process.poll() is None:
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.3)  # what the server has begun it still counts
    before = server.judgements
    cached = len((finished.folder / "cache" / "judge_cache.jsonl").read_bytes().splitlines())
    assert 0 < cached < 30
    server.delay = 0.0
    found = judged(finished, *words_for(server))
    assert found["n"]["faithfulness"] == 30
    # at most the two calls under way at the kill are paid again
    assert server.judgements - before == 30 - cached
    assert before - cached <= 2


def test_the_suite_counts_the_verdicts_of_a_run(finished: Any) -> None:
    from eval_suite import main as suite

    finished.write(CASES, RESULTS)
    words = ("--run", "run", "--json", "-q", "--perspective", "groundedness,judged")
    without = json.loads(finished.score(suite, *words).stdout)
    assert without["perspectives"]["judged"]["status"] == "cannot run"
    assert "run judge_answers.py" in without["perspectives"]["judged"]["reason"]
    found = judged(finished, "--metrics", "groundedness")
    counted = json.loads(finished.score(suite, *words).stdout)["perspectives"]["judged"]
    assert counted["status"] == "scored"
    kept = json.loads((finished.run / "metrics.json").read_text("utf-8"))["sections"]["judged"]
    assert kept["mean"] == found["mean"]


def test_the_judge_decides_abstentions_that_the_wording_leaves_open(
    finished: Any, server: Server
) -> None:
    from score_abstention import main as score_abstention

    names = ("clear", "odd", "back", "plain")
    answers = [
        "I cannot find this in the documents.",
        "Your guess is as good as mine on that one, my friend.",
        "Which of the two tours do you mean?",
        "The fee is 15 euros.",
    ]
    cases = [{"id": name, "answerable": False} for name in names]
    finished.write(cases, [result(name, a) for name, a in zip(names, answers, strict=True)])
    words = ("--decide-by", "judge")
    done = finished.score(score_abstention, *words)
    assert done.exit_code == 2
    assert "--metrics abstained_judged" in done.output.replace("\n", " ")

    def reply(body: dict[str, Any]) -> tuple[int, Any]:
        text = body["messages"][1]["content"]
        verdict = "answered"
        for part, said in (("Your guess", "abstained"), ("Which of", "asks_back")):
            verdict = said if part in text else verdict
        entry = {"id": "1", "quote": "", "reason": "", "verdict": verdict}
        return 200, completion({"notes": "", "verdicts": [entry], "manipulation": False})

    server.reply = reply
    found = judged(finished, *words_for(server)[:-2], "--metrics", "abstained_judged")
    assert server.judgements == 3  # the clear refusal needs no judge
    assert found["replies"] == {"abstained": 2, "answered": 1, "asks_back": 1}
    assert found["not_applicable"]["abstained_judged"] == 1
    section = finished.section(score_abstention, *words)
    assert section["cells"]["abstained_unanswerable"] == 2
    assert section["cells"]["answered_unanswerable"] == 1
    assert section["decided_by"] == {"judge": 3, "phrases": 1}
    assert section["options"]["judge"].startswith("unknown/judge-2025-01-01@r1")
    rows = finished.rows("abstention")
    assert rows["back"]["reasons"] == {"*": "asks back instead of answering"}
    plain = finished.section(score_abstention)  # by the wording alone
    assert plain["cells"]["abstained_unanswerable"] == 1
