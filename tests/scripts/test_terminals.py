"""What every script prints on a narrow and on a usual terminal, and how much of it at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.processes import call_script
from tests.rows import each_row
from tests.scripts import on_terminals

import options

SCRIPTS_DIR = Path(options.__file__).resolve().parents[1]
MOST_LINES = {60: 60, 80: 45}
"""Of a call without -v, by the terminal's columns: the same cells."""

SCORED = [
    *("retrieval", "searches", "context", "groundedness"),
    *("abstention", "pipeline", "conversations"),
]
CALLS: dict[str, str] = {
    **{f"score {name}": f"score_{name} --run new {{runs}}" for name in SCORED},
    "score, not applicable": "score_tools --run new {runs}",
    "score, worst": "score_retrieval --run new {runs} --worst 3 --by category -v",
    "score, mistake": "score_retrieval --run no-such-run-as-this-one {runs}",
    "safety": "score_safety --run new {runs}",
    "suite": "eval_suite --run new {runs} --sections retrieval,safety,pipeline,tools",
    "suite, baseline": "eval_suite --run new {runs} --sections retrieval,pipeline --baseline "
    "{home}/results/old",
    "compare": "compare_runs old new {runs}",
    "compare, all of it": "compare_runs old new {runs} -v",
    "gate": "gate_run --run new --baseline old {runs}",
    "track": "track_metrics {runs} --set source=runs",
    "report": "report_run --run new --baseline old {runs} --format md --output {home}/page",
    "judge": "judge_answers --run new {runs} --cache-dir {home}/cache",
    "judge, dry": "judge_answers --run old {runs} --cache-dir {home}/cache --dry-run",
    "calibrate": "calibrate_judge --run new {runs} --labels-file {home}/marks.jsonl",
    "statistics": "label_eval --stats",
    "formats": "convert_data --list",
    "export": "convert_data export csv --run new {runs} --output {home}/x.csv --force",
    "connect": "connect_bot http://127.0.0.1:1",
    "usage": "compare_runs --no-such-option-in-any-script-of-the-toolkit",
}
ENDS = {"score, mistake": 2, "suite, baseline": 1, "gate": 1, "connect": 3, "usage": 2}
"""Exit codes where 0 is not what is right: nothing to show, a mistake, or a regression."""

WHOLE = ("compare, all of it", "score, worst")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the embedded bot on some conversations of its set, judged and scored."""
    home = tmp_path_factory.mktemp("terminals")
    runs = ("--results-dir", str(home / "results"))
    for run, k in (("old", "10"), ("new", "1")):
        asked = f"--api-url demo --set lexical_only=true --k {k} --run-id {run} --labels"
        asked += " --store-full-text --filter tag=conversation --limit 24"
        judged = ("--cache-dir", str(home / "cache"))
        for name, words in (
            ("run_eval", asked.split()),
            ("judge_answers", ("--run", run, *judged)),
            ("eval_suite", ("--run", run, "--sections", ",".join((*SCORED, "judged")))),
        ):
            done = call_script(name, *runs, *words)
            assert done.returncode == 0, done.stderr
    claims = ({"case_id": "finally-return-turn-1", "claim_id": "1", "label": "supported"},)
    (home / "marks.jsonl").write_text("".join(json.dumps(claim) + "\n" for claim in claims))
    return home


@pytest.fixture(scope="module", params=[60, pytest.param(80, marks=pytest.mark.thorough)])
def columns(request: pytest.FixtureRequest) -> int:
    """The width of the terminal: what fits the narrow one is mostly what fits any."""
    width: int = request.param
    return width


@pytest.fixture(scope="module")
def printed(home: Path, columns: int) -> dict[str, tuple[str, int]]:
    """What the terminal got and the exit code, by call."""
    calls = []
    for call in CALLS.values():
        words = call.format(home=home, runs=f"--results-dir {home}/results").split()
        calls.append((columns, 24, words[0], words[1:]))
    return dict(zip(CALLS, on_terminals.outputs(calls, SCRIPTS_DIR), strict=True))


@pytest.mark.slow
@each_row("name", CALLS)
def test_no_line_is_wider_than_the_terminal(name: str, printed: Any, columns: int) -> None:
    text, code = printed[name]
    assert code == ENDS.get(name, 0), text
    assert "Traceback" not in text
    assert on_terminals.too_wide(text, columns) == []


@pytest.mark.slow
@each_row("name", [name for name in CALLS if name not in WHOLE])
def test_a_call_prints_what_two_screens_hold(name: str, printed: Any, columns: int) -> None:
    text, _ = printed[name]
    assert text.rstrip("\n").count("\n") < MOST_LINES[columns], text
