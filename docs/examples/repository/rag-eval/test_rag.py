"""The gate as a test: `pytest rag-eval/test_rag.py` after `make -C rag-eval run`."""

import subprocess
from pathlib import Path


def test_the_bot_is_no_worse() -> None:
    here = Path(__file__).parent
    gate = subprocess.run(["make", "-C", here, "gate"], capture_output=True, text=True)
    assert gate.returncode == 0, gate.stdout + gate.stderr
