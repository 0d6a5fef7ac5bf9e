"""Golden traces of Vercel's AI SDK: ``python vercel_cells.py APP.INSTRUMENTATION FILE``.

The agent itself is vercel_app.mjs; GOLDEN_HOME names the folder with its node_modules.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import model
import shop
from capture import fixed_requests, write_lines

APP = Path(__file__).with_name("vercel_app.mjs")


def otel(target: Path) -> None:
    """The SDK's own spans over OpenTelemetry."""
    turns = [
        {"question": turn.question, "thread": turn.thread, "answer": turn.answer}
        for turn in shop.TURNS
    ]
    queries = [query for turn in shop.TURNS for query in turn.queries]
    given = {
        "address": model.serve(),
        "model": model.NAME,
        "instructions": shop.INSTRUCTIONS,
        "turns": turns,
        "found": {query: shop.as_text(shop.search(query)) for query in queries},
    }
    home = Path(os.environ["GOLDEN_HOME"])
    script = Path(shutil.copy(APP, home))
    done = subprocess.run(
        ["node", str(script)],
        input=json.dumps(given),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["answer"] for row in rows] == [turn.answer for turn in shop.TURNS], rows
    write_lines(target, fixed_requests([row["request"] for row in rows]))


if __name__ == "__main__":
    otel(Path(sys.argv[2]))
