"""The whole way with a bot over one PDF, by commands: connect, label, run, worse, the gate."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.bots.one_pdf import HEADER, QUESTIONS, TEXTS, view
from tests.bots.serving import BotServer

import init_repo
from records.metrics import load_metrics

SCRIPTS = Path(init_repo.__file__).parent


def run(folder: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    command = [sys.executable, str(SCRIPTS / script), *words]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=300)


def label(folder: Path, url: str) -> None:
    """Mark, as a person does, the passage that answers each question."""
    words = ["--plain", "--api-url", url, "--profile", "rules"]
    env = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    with subprocess.Popen(
        [sys.executable, str(SCRIPTS / "label_eval.py"), *words],
        env=env,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as labeller:
        assert labeller.stdin
        assert labeller.stdout
        said = ""
        guard = threading.Timer(60, labeller.kill)  # a line that never comes ends the test
        guard.start()
        for name, (_, page, _) in QUESTIONS.items():
            row, shown = None, False
            while row is None:
                line = labeller.stdout.readline()
                assert line, said
                said += line
                shown = shown or line.startswith(f"{name} (")  # rows before are of another question
                start = re.escape(TEXTS[page][:25])
                row = (
                    re.match(rf"\[.\] +(\d+) rules\.pdf(?:, page \d+)?: .*{start}", line)
                    if shown
                    else None
                )
            labeller.stdin.write(f"{row[1]}\nl\n")
            labeller.stdin.flush()
        assert "saved" in labeller.communicate("q\n", timeout=60)[0]
        guard.cancel()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder made by init, with the questions and no label."""
    assert CliRunner().invoke(init_repo.main, [str(tmp_path)]).exit_code == 0
    lines = [
        json.dumps({"id": name, "question": q}) + "\n" for name, (q, _, _) in QUESTIONS.items()
    ]
    (tmp_path / "rag-eval" / "eval_set.jsonl").write_text("".join(lines), "utf-8")
    (tmp_path / "rag-eval" / "eval" / "gates.toml").write_text(
        '[gates.run]\nerror_share = "<= 0.02"\n'
    )
    return tmp_path


def test_from_connect_to_a_gate_that_fails(repository: Path) -> None:
    """Worse passages give a lower recall. All twelve questions are about one document, which is
    fixed: each has its own quote, so there are twelve cases to tell by."""
    results = repository / "rag-eval" / "eval" / "results"
    good, worse = view(), view(worse=True)
    with BotServer({("POST", "/ask"): good}) as bot, BotServer({("POST", "/ask"): worse}) as second:
        done = run(repository, "connect_bot.py", f"{bot.url}/ask", "--name", "rules", "--yes")
        assert done.returncode == 0, done.stderr
        label(repository, bot.url)
        again = ("connect_bot.py", f"{bot.url}/ask", "--name", "rules", "--yes", "--force")
        done = run(repository, *again)
        assert "3 of 3 gold files were retrieved; 3 of these 3 quotes match." in done.stderr
        for name, url in (("good", bot.url), ("worse", second.url)):
            words = ("--api-url", url, "--profile", "rules", "--run-id", name, "--store-full-text")
            assert run(repository, "run_eval.py", *words).returncode == 0
            for script in ("score_retrieval.py", "score_abstention.py"):
                assert run(repository, script, "--run", name).returncode == 0
    means = {
        name: load_metrics(results / name / "metrics.json")["sections"]["retrieval"]["mean"]
        for name in ("good", "worse")
    }
    assert means["good"]["evidence_recall@5"] == 1.0
    assert means["worse"]["evidence_recall@5"] == 0.0  # no question has its page among the last 5
    done = run(repository, "gate_run.py", "--run", "worse", "--baseline", "good")
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stdout.split())
    assert "evidence_recall@5: 1.000 → 0.000" in said
    assert "12 cases, each by itself, of 1 document" in said
    assert "All verdicts are on this document; other documents may differ." in said
    assert "Gate FAILED" in said
    assert json.loads((results / "worse" / "gate.json").read_bytes())["passed"] is False


def test_a_label_is_the_sentence_that_answers_and_no_running_header(repository: Path) -> None:
    with BotServer({("POST", "/ask"): view()}) as bot:
        words = ("connect_bot.py", f"{bot.url}/ask", "--name", "rules", "--yes")
        assert run(repository, *words).returncode == 0
        label(repository, bot.url)
    lines = (repository / "rag-eval" / "eval_set.jsonl").read_text("utf-8").splitlines()
    for line, (_, page, _) in zip(lines, QUESTIONS.values(), strict=True):
        (support,) = json.loads(line)["gold_supports"]
        assert (support["rel_path"], support["heading_path"]) == ("rules.pdf", "")
        (snippet,) = support["snippets"]
        assert snippet in TEXTS[page]
        assert snippet not in HEADER
