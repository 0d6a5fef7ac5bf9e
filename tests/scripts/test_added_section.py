"""A section that is added to a copy of the toolkit by the recipe of CONTRIBUTING.md: its rows and
a line in the catalogue, a module of ``scorers``, a script. Every reader of runs has it then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import call_in_one_process

from records.runs import ROOT

CATALOGUE = '''
"""Metrics of brevity."""

from __future__ import annotations

from ragmetrics.catalogue.metric import Metric, MetricSection

ROWS = (Metric("one_word", "brevity", "the answer is one word", "an answer", "a test", headline=1),)
SECTION = MetricSection("brevity", "Brevity", ROWS, "score_brevity.py", worst_by="one_word")
'''
SCORER = '''
"""Scores brevity: whether an answer is one word."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragmetrics.catalogue.brevity import ROWS
from scorers.contract import ScoreRow, SectionScorer


@dataclass(frozen=True)
class BrevityScorer:
    section = "brevity"
    metrics = ROWS
    options: dict = field(default_factory=dict)

    def score(self, case, result):
        words = (result.answer or "").split()
        lengths = [*map(len, words)]
        return ScoreRow((float(len(words) == 1),)), {"last": words[-1], "lengths": lengths}


@dataclass(frozen=True)
class BrevityOptions:
    pass


SECTION = SectionScorer(options=BrevityOptions, scorer=lambda job, options: BrevityScorer())
'''
BROWSER = """
import sys
from pathlib import Path
from views.library import RunLibrary

library = RunLibrary(Path("results"), Path("set.jsonl"), None)
case = library.open("new").detail(("a", 0))
print(case.lines["brevity"].scores, case.lines["brevity"].evidence)
"""


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy, with two runs in which the answer to ``a`` is one word, then two."""
    folder = tmp_path_factory.mktemp("copy")
    scripts = folder / "eval" / "scripts"
    shutil.copytree(ROOT / "eval" / "scripts", scripts)  # with its compiled modules
    for path in (ROOT / "eval").glob("*.toml"):
        shutil.copy(path, folder / "eval")
    (scripts / "ragmetrics" / "catalogue" / "brevity.py").write_text(CATALOGUE)
    (scripts / "scorers" / "brevity.py").write_text(SCORER)
    text = (scripts / "score_context.py").read_text().replace('"context"', '"brevity"')
    (scripts / "score_brevity.py").write_text(text)
    catalogue = scripts / "ragmetrics" / "catalogue" / "__init__.py"
    text = catalogue.read_text().replace("    context,\n", "    brevity,\n    context,\n", 1)
    catalogue.write_text(
        text.replace("        CUSTOM,\n", "        brevity.SECTION,\n        CUSTOM,\n")
    )
    cases = [{"id": name, "question": f"About {name}?"} for name in "abcdefgh"]
    (folder / "set.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    for run, answer in (("old", "Yes."), ("new", "Oh \x1b[31myes.")):
        (folder / "results" / run).mkdir(parents=True)
        config = {"schema": 1, "run_id": run, "run": {"store_full_text": True}}
        (folder / "results" / run / "config.json").write_text(json.dumps(config))
        rows = [{"test_case_id": case["id"], "answer": answer, "retrieved": []} for case in cases]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "results" / run / "results.jsonl").write_text(text)
    return folder


def test_every_reader_of_runs_has_it(toolkit: Path) -> None:
    places = ("--eval-set", "set.jsonl", "--results-dir", "results")
    calls = (
        ("score_brevity", "--run", "old"),
        ("score_brevity", "--run", "new", "--worst", "1"),
        ("eval_suite", "--run", "new", "--json"),
        ("compare_runs", "old", "new", "--json"),
        ("report_run", "--run", "new"),
    )
    scripts = toolkit / "eval" / "scripts"
    own = {"RAG_EVAL_CONFIG": os.devnull}
    ended = call_in_one_process(scripts, [(*call, *places) for call in calls], toolkit, **own)
    assert [code for code, _, _ in ended] == [0] * len(calls), ended
    _, worst, suite, told, _ = (out for _, out, _ in ended)
    # the words "Oh" and "ESC[31myes." have 2 and 9 characters; for ESC stands U+FFFD
    assert "Answer\n  Oh \ufffd[31myes.\n  last: \ufffd[31myes.\n  lengths: 2, 9" in worst
    assert json.loads(suite)["sections"]["brevity"]["mean"] == {"one_word": 0.0}
    (row,) = json.loads(told)["comparisons"][0]["rows"]
    compared = (row["section"], row["metric"], row["base"], row["new"])
    assert compared == ("brevity", "one_word", 1.0, 0.0)
    assert "one_word" in (toolkit / "results" / "new" / "report.html").read_text()
    done = subprocess.run(
        [sys.executable, "-c", BROWSER],
        cwd=toolkit,
        env=os.environ | {"PYTHONPATH": str(scripts)},
        capture_output=True,
        text=True,
    )
    evidence = {"last": "\x1b[31myes.", "lengths": [2, 9]}
    assert done.stdout == f"{{'one_word': 0.0}} {evidence}\n", done.stderr
