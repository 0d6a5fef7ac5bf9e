"""The whole way with a bot over one PDF, by commands: connect, label, run, worse, the gate."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.bots.one_pdf import HEADER, QUESTIONS, TEXTS, view
from tests.bots.serving import BotServer
from tests.processes import call_in_one_process

import init_repo
from records.metrics import load_metrics

SCRIPTS = Path(init_repo.__file__).parent


def run(folder: Path, *calls: Sequence[str]) -> list[str]:
    """What scripts print, called in turn by one process, and how the last ends; others end well."""
    ended = call_in_one_process(SCRIPTS, calls, folder)
    assert {code for code, _, _ in ended[:-1]} <= {0}, ended
    return [*(out + err for _, out, err in ended), str(ended[-1][0])]


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
                pattern = rf"\[.\] +(\d+) rules\.pdf(?:, page \d+)?: .*{start}"
                row = re.match(pattern, line) if shown else None
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
    """A label is the sentence that answers and no running header. Worse passages give a lower
    recall. All twelve questions are about one document, which is fixed: each has its own quote, so
    there are twelve cases to tell by."""
    results = repository / "rag-eval" / "eval" / "results"
    good, worse = view(), view(worse=True)
    with BotServer({("POST", "/ask"): good}) as bot, BotServer({("POST", "/ask"): worse}) as second:
        connect = ("connect_bot", f"{bot.url}/ask", "--name", "rules", "--yes")
        assert run(repository, connect)[-1] == "0"
        label(repository, bot.url)
        calls: list[Sequence[str]] = [(*connect, "--force")]
        for name, url in (("good", bot.url), ("worse", second.url)):
            words = ("--api-url", url, "--profile", "rules", "--run-id", name, "--store-full-text")
            calls += [("run_eval", *words)]
            calls += [(script, "--run", name) for script in ("score_retrieval", "score_abstention")]
        gate = ("gate_run", "--run", "worse", "--baseline", "good")
        connected, *_, shown, code = run(repository, *calls, gate)
    lines = (repository / "rag-eval" / "eval_set.jsonl").read_text("utf-8").splitlines()
    for line, (_, page, _) in zip(lines, QUESTIONS.values(), strict=True):
        (support,) = json.loads(line)["gold_supports"]
        assert (support["rel_path"], support["heading_path"]) == ("rules.pdf", "")
        (snippet,) = support["snippets"]
        assert snippet in TEXTS[page]
        assert snippet not in HEADER
    assert "3 of 3 gold files were retrieved, 3 of them at the labelled place." in connected
    means = {
        name: load_metrics(results / name / "metrics.json")["sections"]["retrieval"]["mean"]
        for name in ("good", "worse")
    }
    assert means["good"]["evidence_recall@5"] == 1.0
    assert means["worse"]["evidence_recall@5"] == 0.0  # no question has its page among the last 5
    assert code == "1", shown
    shown = " ".join(shown.split())
    assert "✗ retrieval.evidence_recall@5 no worse 0.000 1.000 −1.000" in shown
    assert "2 primary metrics on 12 cases" in shown
    assert "All verdicts are on this document; other documents may differ." in shown
    assert "Gate FAILED" in shown
    assert json.loads((results / "worse" / "gate.json").read_bytes())["passed"] is False
