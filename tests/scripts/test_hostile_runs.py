"""A run folder from somebody who means harm can do nothing.

No script waits, fills the memory, reads or writes elsewhere, or shows what is elsewhere: each ends
with a sentence.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import pytest
from tests.hostile_runs import (
    MEMORY,
    READ,
    REFUSED,
    ROOT,
    SECRET,
    SETS,
    Change,
    Ended,
    Job,
    calls,
    content_of,
    copies,
    end_all,
    make_hostile,
    make_sound,
    name_commands,
    obeyed,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork, pipes and /dev")

SCRIPTS = ROOT / "eval" / "scripts"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, scored, judged, gated and reported."""
    folder = tmp_path_factory.mktemp("sound")
    make_sound(folder)
    return folder


Ends = dict[str, dict[str, Ended]]
"""How scripts ended, by change and call."""

ALL = tuple(calls(Path()))
WALKS = ("track_metrics",)
"""It looks at all runs of a folder, and leaves out what it cannot read."""


def try_all(folder: Path, sound: Path, trials: Mapping[str, tuple[Change, Sequence[str]]]) -> Ends:
    """How the calls end after each change, when all that goes for each of them was checked."""
    jobs: list[Job] = []
    outsides = {}
    for place, (name, (change, chosen)) in enumerate(trials.items()):
        own = folder / str(place)
        outside = make_hostile(own, sound, change)
        outsides[name] = (own, outside, content_of(outside))
        words = calls(own)
        jobs += [(call.partition(",")[0], words[call], str(own)) for call in chosen]
    ended = iter(end_all(jobs))
    ends = {name: {call: next(ended) for call in chosen} for name, (_, chosen) in trials.items()}
    for name, (own, outside, content) in outsides.items():
        for call, end in ends[name].items():
            where = f"{call}, {name}: {end}"
            assert end.code in (0, 1, 2, 3), where
            assert "Traceback" not in end.err, where
            assert SECRET not in end.out + end.err, where
            assert obeyed(end.out + end.err) == set(), where
            if name in REFUSED and call not in WALKS:
                path = name.partition(" is a ")[0]
                assert (end.code, end.out) == (2, ""), where
                assert f"base/{path}: is" in end.err or call == "run_eval", where
        assert content_of(outside) == content, name
        assert copies(own / "results") == [], name
        pages = [*own.glob("*.md"), *own.rglob("report.html")] if name == "names" else []
        for page in pages:
            assert obeyed(page.read_text("utf-8")) == set(), page
        shutil.rmtree(own)
    return ends


SCORING = ("score_retrieval", "eval_suite", "judge_answers, again", "label_eval")
SHOWING = ("compare_runs", "report_run, as baseline", "gate_run, as baseline")
AS_NEW = "compare_runs, as the new one"
"""The set that two runs are compared by is that of the new one."""


def test_a_hostile_run_can_do_nothing(tmp_path: Path, sound: Path) -> None:
    turns = cycle(ALL)
    trials: dict[str, tuple[Change, Sequence[str]]] = {
        **{name: (change, (next(turns),)) for name, change in REFUSED.items()},
        **{name: (change, SHOWING[:1]) for name, change in READ.items()},
        **{name: (change, (AS_NEW,)) for name, change in SETS.items()},
        "the set is a device": (SETS["the set is a device"], (*SHOWING, AS_NEW, *WALKS)),
        "names": (name_commands, (*SHOWING, *SCORING)),
        "none": (lambda run, outside: None, (*SHOWING, AS_NEW)),
    }
    assert len(REFUSED) > len(ALL)
    ends = try_all(tmp_path, sound, trials)
    for name in SETS:
        for call in (*SHOWING, AS_NEW):
            if call in ends[name]:
                assert ends[name][call].code == ends["none"][call].code, (name, call)
    note = " ".join(ends["the set is a device"][AS_NEW].err.split())
    assert "base/config.json names its set as /dev/zero. A run may not name a path" in note
    assert "name the set with --eval-set" in note
    for name in ("config.json", "results.jsonl", "scores/pipeline.jsonl"):
        assert "MB; name the right file" in ends[f"{name} has no end"]["compare_runs"].err


SOME = (
    *("results.jsonl is a pipe", "scores is a link to a folder"),
    *("config.json is a link to a file", "metrics.json.lock is a link to nothing yet"),
)


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_changes_with_every_script(tmp_path: Path, sound: Path) -> None:
    changes = {name: REFUSED[name] for name in SOME} | READ | SETS | {"names": name_commands}
    try_all(tmp_path, sound, {name: (change, ALL) for name, change in changes.items()})


def as_processes(folder: Path, sound: Path, chosen: Sequence[str]) -> None:
    """Start scripts as a user does, on a run whose set once filled all memory."""
    make_hostile(folder, sound, SETS["the set is a device"])
    words = calls(folder)
    for call in chosen:
        done = subprocess.run(
            [sys.executable, SCRIPTS / f"{call.partition(',')[0]}.py", *words[call]],
            cwd=folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            preexec_fn=limit_memory,
            timeout=120,
        )
        assert done.returncode in (0, 1, 2, 3), (call, done.stderr)
        assert "Traceback" not in done.stderr, call


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def test_processes_that_read_the_set_of_a_run(tmp_path: Path, sound: Path) -> None:
    as_processes(tmp_path / "run", sound, (*SHOWING, *WALKS))


@pytest.mark.thorough
def test_every_process(tmp_path: Path, sound: Path) -> None:
    as_processes(tmp_path / "run", sound, ALL)
