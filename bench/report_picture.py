"""Takes the README's picture of a report, docs/pictures/report.png, by an installed Chromium.

    make demo
    python bench/report_picture.py eval/results/RUN/report.html

The browser is `chromium`, `google-chrome`, or what RAG_EVAL_CHROMIUM names. The page needs no
network.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "report.png"
SIZE = "1200,1000"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def take(page: Path, picture: Path) -> None:
    """The top of a page as a PNG. Exits with a sentence when there is no browser."""
    browser = os.environ.get("RAG_EVAL_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if browser is None:
        sys.exit("No Chromium was found: install one, or name it in RAG_EVAL_CHROMIUM")
    picture.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += [f"--user-data-dir={profile}", f"--window-size={SIZE}"]
        words += [f"--screenshot={picture}", page.resolve().as_uri()]
        subprocess.run(words, check=True, capture_output=True, timeout=120)
    print(f"{picture}: {picture.stat().st_size // 1024} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("page", type=Path, help="the report.html of a run")
    parser.add_argument("--output", type=Path, default=PICTURE, help="the PNG to write")
    options = parser.parse_args()
    take(options.page, options.output)
