"""Takes the pictures of docs/tour.md: real screens and real output over two runs of the demo.

    make pictures

Two lexical runs of the embedded bot are made in FOLDER (else in a temporary one); runs that are
there are used again, and `run` keeps its picture. Textual draws the screens, which are driven by
keys, rich the output of scripts, an installed Chromium the pages. The same runs give the same
bytes; the times in `run` are those of this machine.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "eval" / "scripts"
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 110, 34
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FONTS = "'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace"

SETTINGS = "--api-url demo --set lexical_only=true --store-full-text --labels"
BASE = f"run_eval.py {SETTINGS} --run-id large"
"""The run that the next one is compared with. It has no picture."""


@dataclass(frozen=True)
class Step:
    """One picture: what is typed, and on a full screen the keys that are pressed then."""

    name: str
    command: str
    keys: tuple[str, ...] | None = None
    before: tuple[str, ...] = ()
    """What must have run before it, without a picture."""

    @property
    def file(self) -> str:
        return f"{self.name}.{'png' if self.command.startswith('report_run.py') else 'svg'}"


STEPS = (
    Step("label", "label_eval.py --from-run large --case generator-return", ("j", "j", "j", "j")),
    Step("run", f"run_eval.py {SETTINGS} --set chunk_size=400 --run-id small"),
    Step("score", "score_retrieval.py --run small"),
    Step(
        "report",
        "report_run.py --run small --format html",
        before=("eval_suite.py --run large", "eval_suite.py --run small"),
    ),
    Step(
        "compare",
        "compare_runs.py large small --sections retrieval,groundedness,abstention --set flips=1",
    ),
    Step("browse", "browse_runs.py small", ("F", "j", "enter")),
    Step("changes", "report_run.py --run small --baseline large --format html"),
)


def normalised(svg: str, name: str) -> str:
    """An SVG of rich that fetches no font, with ids that are the picture's own."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(font-family:) Fira Code, monospace", rf"\1 {FONTS}", svg)
    svg = re.sub(r"\bterminal-\d+", name, svg)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


def drawn(ansi: str, title: str, name: str) -> str:
    """What a script printed, as an SVG."""
    from rich.console import Console
    from rich.text import Text

    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    lines = Text.from_ansi(ansi.rstrip()).split("\n", allow_blank=True)
    while lines and not lines[0].plain.strip():  # where a bar of progress was
        lines.pop(0)
    for line in lines:
        for part in line.divide(range(COLUMNS, len(line), COLUMNS)):  # as a terminal breaks it
            console.print(part, soft_wrap=True)
    console.print()  # rich cuts the last line at its foot
    return normalised(console.export_svg(title=title, unique_id=name), name)


def printed(command: str, home: Path) -> str:
    """Run a script in a terminal's width; what it prints, with colours. Exits when it fails."""
    script, *words = shlex.split(command)
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"}
    environment |= {"TTY_INTERACTIVE": "0", "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / script), *words],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def screen(step: Step) -> str:
    """Start a full-screen script in this process, press the keys, and draw what it shows."""
    import browse_runs
    import label_eval
    from labeller import label_options
    from terminal.app import TerminalApp

    drawings: list[str] = []

    async def drive(app: TerminalApp) -> None:
        async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
            for key in ("", *(step.keys or ())):
                await pilot.press(*filter(None, [key]))
                await pilot.pause(1.0)  # chunks and runs are read in threads
            drawings.append(app.export_screenshot(title=step.command))

    def run(app: TerminalApp, **_: Any) -> None:
        asyncio.run(drive(app))

    script, *words = shlex.split(step.command)
    main = {"label_eval.py": label_eval.main, "browse_runs.py": browse_runs.main}[script]
    with (
        mock.patch.object(TerminalApp, "run", run),
        mock.patch.object(label_options, "_check_terminal"),
        mock.patch.object(browse_runs, "check_terminal"),
    ):
        main(words, standalone_mode=False)
    return normalised(drawings[0], step.name)


def photograph(page: Path, picture: Path) -> None:
    """The top of a page as a PNG. Exits with a sentence when there is no browser."""
    browser = os.environ.get("RAG_EVAL_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if browser is None:
        sys.exit("No Chromium was found: install one, or name it in RAG_EVAL_CHROMIUM")
    with tempfile.TemporaryDirectory() as profile:
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += [f"--user-data-dir={profile}", "--window-size=1200,1000"]
        words += [f"--screenshot={picture}", page.as_uri()]
        subprocess.run(words, check=True, capture_output=True, timeout=120)
    print(f"{picture}: {picture.stat().st_size // 1024} kB")


def take(step: Step, home: Path) -> None:
    """Take one picture, after what it needs."""
    runs = home / "eval" / "results"
    for command in step.before:
        if not (runs / shlex.split(command)[2] / "suite.json").exists():
            printed(command, home)
    picture = PICTURES / step.file
    if picture.suffix == ".png":
        printed(step.command, home)
        photograph(runs / "small" / "report.html", picture)
        return
    if step.name == "run" and (runs / "small").exists():
        return
    text = printed(step.command, home) if step.keys is None else ""
    svg = drawn(text, step.command, step.name) if text else screen(step)
    picture.write_text(svg, encoding="utf-8")
    print(f"{picture}: {picture.stat().st_size // 1024} kB")


def take_all(home: Path) -> None:
    """Take all pictures of the runs in `home`, which are made if they are missing."""
    shutil.copy(ROOT / "eval_set.jsonl", home)
    shutil.copytree(ROOT / "eval" / "labels", home / "eval" / "labels", dirs_exist_ok=True)
    settings = {name for name in os.environ if name.startswith("RAG_EVAL_")}
    for name in settings - {"RAG_EVAL_CHROMIUM"}:
        del os.environ[name]
    os.environ |= {"RAG_EVAL_HOME": str(home), "RAG_EVAL_CONFIG": os.devnull}
    os.environ["RAG_EVAL_RESULTS_DIR"] = "eval/results"  # scripts print it: no path of a machine
    os.chdir(home)
    sys.path.insert(0, str(SCRIPTS))
    if not (home / "eval" / "results" / "large").exists():
        printed(BASE, home)
    for step in STEPS:
        take(step, home)


if __name__ == "__main__":
    if sys.argv[1:]:
        take_all(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as folder:
            take_all(Path(folder))
