"""A run folder from somebody who means harm, and every script that reads a run.

``python -m tests.hostile_runs`` calls scripts, each in a process of its own that is forked off with
little memory and little time, so that a fault ends at once. In: a JSON list of script, words and
working folder. Out: a line of JSON for each, with exit code, output and errors.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.processes import call_script

ROOT = Path(__file__).parents[1]
SECRET = "CANARY-7b1d"
"""What must be shown by no script, and copied by none."""

MEMORY, SECONDS = 3 * 2**30, 40
CASES = 8

Job = tuple[str, list[str], str]
"""Script, words, working folder."""


class Ended(NamedTuple):
    """How a script ended; a negative code is the signal that ended it."""

    code: int
    out: str
    err: str


def make_runs(folder: Path) -> None:
    """A set of eight cases in four conversations, and two runs that answered it."""
    from tests.scripts.conftest import FinishedRun

    from storage import RetrievedChunk, TestResult

    rows = [
        {
            "id": f"q{n}",
            "question": f"Where is {n}?",
            "answerable": True,
            "relevant_docs": [f"{n}.md"],
            "reference_answer": f"Thing {n} is in box {n}.",
            "expected_outcome": "success",
            "conversation": f"c{n // 2}",
            "turn": n % 2 + 1,
        }
        for n in range(CASES)
    ]
    for day, name in enumerate(("base", "new"), 1):
        results = []
        for n in range(CASES):
            path = "x.md" if name == "new" and n % 3 == 0 else f"{n}.md"
            chunk = RetrievedChunk("c", path, path, "H", text=f"Thing {n} is in box {n}.", rank=1)
            answer = f"Thing {n} is in box {n} [1]."
            results.append(TestResult(f"q{n}", f"Where is {n}?", answer=answer, retrieved=[chunk]))
        run = FinishedRun(folder, name)
        run.write(rows, results, config={"started": f"2026-01-0{day}T00:00:00+00:00"})
        run.configure(dataset={"path": "set.jsonl", "cases": CASES}, run={"selected": CASES})


def scoring(folder: Path) -> list[Job]:
    """What makes all files of the two runs."""
    jobs: list[Job] = []
    for run in ("base", "new"):
        words = [*of_runs(folder), *of_set(folder), "--run", run]
        sections = "retrieval,pipeline,abstention,context,groundedness"
        jobs += [
            ("eval_suite", [*words, "--sections", sections, "-q"], str(folder)),
            ("judge_answers", [*words, "--cache-dir", f"{folder}/cache", "-q"], str(folder)),
            ("report_run", [*words, "-q"], str(folder)),
        ]
    for run, baseline in (("base", "new"), ("new", "base")):
        words = [*of_runs(folder), "--run", run, "--baseline", baseline, "-q"]
        jobs.append(("gate_run", words, str(folder)))
    return jobs


def of_runs(folder: Path) -> list[str]:
    return ["--results-dir", f"{folder}/results"]


def of_set(folder: Path) -> list[str]:
    return ["--eval-set", f"{folder}/set.jsonl"]


def calls(folder: Path) -> dict[str, list[str]]:
    """Every script that reads a run, called on the run ``base``."""
    runs, base = of_runs(folder), ["--run", "base"]
    whole = [*runs, *of_set(folder), *base]
    cache = ["--cache-dir", f"{folder}/cache"]
    sections = "retrieval context groundedness abstention pipeline conversations searches tools"
    return {
        **{f"score_{name}": [*whole, "-q"] for name in [*sections.split(), "safety"]},
        "score_embedding": [*whole, *cache, "-q"],
        "eval_suite": [*whole, "--sections", "retrieval,pipeline"],
        "compare_runs": ["base", "new", *runs, "-v", "--markdown", f"{folder}/diff.md"],
        "compare_runs, as the new one": ["new", "base", *runs, "--fail-on", "worse"],
        "gate_run": [*runs, *base, "--baseline", "new"],
        "gate_run, as baseline": [*runs, "--run", "new", "--baseline", "base"],
        "report_run": [*runs, *base],
        "report_run, as baseline": [*runs, "--run", "new", "--baseline", "base"],
        "track_metrics": ["--set", "source=runs", *runs],
        "judge_answers": [*whole, *cache],
        "judge_answers, again": [*whole, *cache, "--rescore"],
        "calibrate_judge": [*whole, *cache],
        "convert_data, export": ["export", "json", *whole, "--output", f"{folder}/exported.jsonl"],
        "label_eval": ["--from-run", "base", *runs, *of_set(folder), "--plain"],
        "label_eval, in order": [
            *("--run", "base", "--from-run", "new", *runs, *of_set(folder)),
            *("--plain", "--order", "failing"),
        ],
        "run_eval": ["--resume", "--run-id", "base", *runs, *of_set(folder), "--api-url", NO_BOT],
    }


NO_BOT = "http://127.0.0.1:9"

Change = Callable[[Path, Path], None]
"""Makes a run hostile: its folder, and a folder outside of it."""


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)


def a_pipe(name: str) -> Change:
    def change(run: Path, outside: Path) -> None:
        remove(run / name)
        os.mkfifo(run / name)

    return change


def a_link(name: str, target: str) -> Change:
    def change(run: Path, outside: Path) -> None:
        remove(run / name)
        (run / name).symlink_to(target.format(outside=outside))

    return change


def without_end(name: str) -> Change:
    """Eight gigabytes without a line end, which take no room on the disk or in an archive."""

    def change(run: Path, outside: Path) -> None:
        remove(run / name)
        with open(run / name, "wb") as file:
            file.truncate(8 * 2**30)

    return change


def a_set(path: str) -> Change:
    def change(run: Path, outside: Path) -> None:
        config = json.loads((run / "config.json").read_bytes())
        config["dataset"]["path"] = path.format(outside=outside)
        (run / "config.json").write_text(json.dumps(config))

    return change


NAMES = (
    *("config.json", "results.jsonl", "metrics.json", "slices.json", "verdicts.jsonl"),
    *("scores", "scores/retrieval.jsonl", "scores/judged.jsonl", "suite.json", "gate.json"),
    *("report.html", "report.md", "results.partial.jsonl", "calibration.json"),
    *("metrics.json.lock", "pairs", "safety_results.jsonl", "traces", "unknown"),
)
"""Names below a run folder that scripts read or write."""

REFUSED: dict[str, Change] = {
    **{f"{name} is a pipe": a_pipe(name) for name in NAMES},
    **{f"{name} is a link to a device": a_link(name, "/dev/zero") for name in NAMES},
    **{f"{name} is a link to a file": a_link(name, "{outside}/secret.jsonl") for name in NAMES},
    **{
        f"{name} is a link to a folder": a_link(name, "{outside}/folder")
        for name in ("scores", "pairs", "traces")
    },
    **{
        f"{name} is a link to nothing yet": a_link(name, "{outside}/new")
        for name in ("gate.json", "report.html", "metrics.json.lock", "scores/context.jsonl")
    },
    "results.jsonl is a link to a pipe": a_link("results.jsonl", "{outside}/pipe"),
}
"""Changes for which no script uses the run."""

READ: dict[str, Change] = {
    f"{name} has no end": without_end(name)
    for name in ("config.json", "results.jsonl", "metrics.json", "scores/pipeline.jsonl")
}
"""Changes that some scripts stumble over, in a sentence."""

SETS: dict[str, Change] = {
    "the set is a device": a_set("/dev/zero"),
    "the set is a pipe": a_set("{outside}/pipe"),
    "the set is a file": a_set("{outside}/secret.jsonl"),
    "the set is above": a_set("../outside/secret.jsonl"),
    "the set is endless": a_set("/proc/self/mem"),
    "the set is below the root": a_set("proc/kmsg"),
    "the set is a sparse file": a_set("{outside}/endless"),
}
"""Changes after which all scripts go on without the set."""


COMMANDS = "\x1b]0;T\x07\x1b[31m\u202e\U000e0041\x9b\u2066\u200b"
"""What a terminal would obey, and what hides."""

_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]"
)


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal would obey, or not show."""
    return set(_OBEYED.findall(text))


KEPT = {"test_case_id", "status", "source", "schema", "started", "sha256", "path", "dataset"}
"""Members without which a run is no run."""


def with_commands(value: Any, key: str = "") -> Any:
    """A JSON value with commands behind every text."""
    if isinstance(value, dict) and key not in KEPT:
        return {name: with_commands(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [with_commands(item, key) for item in value]
    return value + COMMANDS if isinstance(value, str) and key not in KEPT else value


def name_commands(run: Path, outside: Path) -> None:
    """Names and texts of everything in a run have commands to a terminal in them."""
    results = [json.loads(line) for line in (run / "results.jsonl").read_bytes().splitlines()]
    text = "".join(json.dumps(with_commands(line)) + "\n" for line in results)
    (run / "results.jsonl").write_text(text)
    config = with_commands(json.loads((run / "config.json").read_bytes()))
    own = {f"k{COMMANDS}": COMMANDS}
    config |= {"answerer": own, "index": own, "api": {"source": "http", "url": COMMANDS}}
    config["run"]["stopped"] = COMMANDS
    (run / "config.json").write_text(json.dumps(config))
    metrics = json.loads((run / "metrics.json").read_bytes())
    metrics["run_id"] += COMMANDS
    metrics["sections"][f"evil{COMMANDS}"] = metrics["sections"]["retrieval"]
    (run / "metrics.json").write_text(json.dumps(metrics))
    for name in ("retrieval", "pipeline"):
        scores = (run / "scores" / f"{name}.jsonl").read_bytes()
        (run / "scores" / f"{name}{COMMANDS}.jsonl").write_bytes(scores)
    (run / f"own{COMMANDS}").write_text(COMMANDS)


def make_hostile(folder: Path, sound: Path, change: Change) -> Path:
    """A copy of the sound runs in which ``base`` is hostile; returns the folder outside."""
    shutil.copytree(sound, folder, symlinks=True)
    outside = folder / "outside"
    (outside / "folder").mkdir(parents=True)
    secret = {"id": SECRET, "question": SECRET, "test_case_id": SECRET, "answer": SECRET}
    (outside / "secret.jsonl").write_text(json.dumps(secret) + "\n")
    os.mkfifo(outside / "pipe")
    with open(outside / "endless", "wb") as file:
        file.truncate(8 * 2**30)
    change(folder / "results" / "base", outside)
    return outside


def content_of(folder: Path) -> list[tuple[str, int, int]]:
    """What tells whether anything below a folder was written."""
    stats = ((str(path), path.lstat()) for path in sorted(folder.rglob("*")))
    return [(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats]


def copies(folder: Path) -> list[str]:
    """The plain files below a folder that hold the secret."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 2**26
        if SECRET.encode() in path.read_bytes()
    ]


def end_all(jobs: Sequence[Job]) -> list[Ended]:
    """Call the scripts, see above."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile_runs"],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return [Ended(**json.loads(line)) for line in done.stdout.splitlines()]


MANY = 20
"""Calls that save more than it costs to fill all caches."""


def warm_up(names: set[str], calls: int) -> None:
    """Load these scripts and all that they load late, and for many calls fill the caches: once for
    all forks."""
    scripts = ROOT / "eval" / "scripts"
    for path in scripts.glob("*/**/*.py"):
        module = ".".join(path.relative_to(scripts).with_suffix("").parts)
        importlib.import_module(module.removesuffix(".__init__"))
    for name in (*names, "numpy", "rapidfuzz", "rich.table", "sentencex"):
        importlib.import_module(name)
    if calls > MANY:
        importlib.import_module("scipy.stats")
        with tempfile.TemporaryDirectory() as folder:
            make_sound(Path(folder))
    gc.freeze()


def make_sound(folder: Path) -> None:
    """Two runs, scored, judged, gated and reported, all in this process."""
    make_runs(folder)
    for name, words, cwd in scoring(folder):
        done = call_script(name, *words, cwd=Path(cwd))
        assert done.returncode in (0, 1), done.stderr


def _main(jobs: Iterable[Job]) -> None:
    jobs = [tuple(job) for job in jobs]  # type: ignore[misc]
    warm_up({name for name, _, _ in jobs}, len(jobs))
    commands = {name: importlib.import_module(name).main for name, _, _ in jobs}
    os.environ["COLUMNS"] = "200"
    for name, words, folder in jobs:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _call(commands[name], f"{name}.py", words, folder, out.fileno(), err.fileno())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            texts = [_text(file) for file in (out, err)]
        print(json.dumps({"code": code, "out": texts[0], "err": texts[1]}), flush=True)


def _text(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode("utf-8", "replace")
    return text


def _call(command: Any, name: str, words: list[str], folder: str, out: int, err: int) -> None:
    """The forked process: it does not come back."""
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(SECONDS)
    code: Any = 99
    try:
        command.main(words, prog_name=name)
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "eval" / "scripts"), str(ROOT / "eval")]
    _main(json.load(sys.stdin))
