"""eval_suite.py --plugin: metrics of your own, and plugins that fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eval_suite
from eval_suite import main
from storage import TestResult

EXAMPLE = Path(eval_suite.__file__).parents[2] / "docs" / "examples" / "custom_metric.py"
HEAD = "from ragmetrics.metric import Metric\n"
ROW = "METRICS = [Metric('m', 'custom', 'm', 'x', 'x', function=f)]\n"


def plugin(finished: Any, text: str) -> str:
    path: Path = finished.folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_the_documented_plugin_works(finished: Any, suite: Any, case: Any, targets: Any) -> None:
    """The answer has 8 words with its mark, and does not name its source."""
    references = [{"rel_path": "cats.md"}]
    done = TestResult("q", answer="Cats sleep for most of the day [1].")
    named = json.loads(json.dumps(done.to_dict())) | {"references": references}
    finished.write([case("q"), case("r")], [done, TestResult("r", answer=None)])
    lines = [json.dumps(named), json.dumps(TestResult("r").to_dict())]
    (finished.run / "results.jsonl").write_text("\n".join(lines) + "\n")
    aim = targets("t.toml", '[custom]\nanswer_words = "<= 5"\n')
    found = suite("--plugin", str(EXAMPLE), "--targets", aim, "--sections", "custom")
    section = found["sections"]["custom"]
    assert section["mean"] == {"answer_words": 8.0, "names_its_source": 0.0}
    assert section["definitions"]["answer_words"] == "custom/answer_words@1"
    assert section["not_applicable"] == {"answer_words": 1, "names_its_source": 1}
    assert found["targets"][0]["verdict"] == "too few to say"
    assert found["targets"][0]["higher_is_better"] is False


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('bad\\nluck')", "the plugin raised ValueError: bad"),
        ("raise SystemExit(0)", "the plugin raised SystemExit: 0"),
        ("return float('nan')", "the plugin returned float 'nan', no number"),
        ("return 'x'", "the plugin returned str 'x', no number"),
        ("return 1.5", "the plugin returned 1.5, outside its range 0.0 to 1.0"),
    ],
)
def test_a_plugin_that_fails_gives_no_score(
    finished: Any, body: str, reason: str, case: Any, result: Any
) -> None:
    finished.write([case("q")], [result("q")])
    path = plugin(finished, f"{HEAD}def f(case, result):\n    {body}\n{ROW}")
    done = finished.score(main, "--plugin", path, "--sections", "custom")
    assert done.exit_code == 0, done.output
    row = finished.rows("custom")["q"]
    assert row["scores"] == {"m": None}
    assert row["status"] == "failed"
    assert row["reasons"] == {"m": reason}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def f(:\n", "cannot be loaded (SyntaxError"),
        ("raise SystemExit\n", "cannot be loaded (SystemExit"),
        ("import sys\nsys.exit(0)\n", "cannot be loaded (SystemExit: 0"),
        ("import no_such_module\n", "cannot be loaded (ModuleNotFoundError"),
        ("x = 1\n", "has no METRICS"),
        ("METRICS = [1]\n", "must contain Metric rows"),
        (f"{HEAD}METRICS = [Metric('m', 'c', 'm', 'x', 'x')]\n", "each with a function"),
        (
            f"{HEAD}f = max\nMETRICS = [Metric('mrr', 'c', 'm', 'x', 'x', function=f)]\n",
            "'mrr' exists already",
        ),
    ],
)
def test_a_faulty_plugin_is_refused(
    finished: Any, text: str, says: str, case: Any, result: Any
) -> None:
    finished.write([case("q")], [result("q")])
    done = finished.score(main, "--plugin", plugin(finished, text))
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())
    assert finished.score(main, "--plugin", "/no/such.py").exit_code == 2
