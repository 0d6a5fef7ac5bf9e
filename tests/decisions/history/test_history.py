"""Reading history from a real repository: renames, deletions, merges, shallow clones, odd files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from decisions.history import NotMetrics, _read_point, read_history
from storage import StorageError


def one(
    repo: Any, make_metrics: Any, run: str, value: float, subject: str = "s", **more: Any
) -> str:
    repo.write(run, make_metrics(run, {"retrieval": {"mrr": value}}, **more))
    return str(repo.commit(subject))


def means(points: Any) -> list[float]:
    return [point.values["retrieval", "mrr"].mean for point in points]


def test_every_version_is_a_point_in_the_order_of_commits(repo: Any, make_metrics: Any) -> None:
    shas = [
        one(repo, make_metrics, "b", 0.1),
        one(repo, make_metrics, "a", 0.2),
        one(repo, make_metrics, "b", 0.3),
    ]
    repo.commit("nothing to do with metrics")
    found = read_history([repo.results])
    assert means(found.points) == [0.1, 0.2, 0.3]
    assert [point.sha for point in found.points] == shas
    assert [point.date[:10] for point in found.points] == [f"2026-01-0{day}" for day in (1, 2, 3)]
    assert found.points[0].path == "eval/results/b/metrics.json"
    assert found.notes == []


def test_nothing_is_checked_out_or_changed(repo: Any, make_metrics: Any) -> None:
    one(repo, make_metrics, "a", 0.1)
    shutil.rmtree(repo.results)
    before = repo.git("status", "--porcelain")
    assert means(read_history([repo.results]).points) == [0.1]
    assert repo.git("status", "--porcelain") == before
    assert not repo.results.exists()


def test_renames_and_deletions(repo: Any, make_metrics: Any) -> None:
    """A move alone is no new point; a move with a change is one; what is deleted stays history."""
    one(repo, make_metrics, "a", 0.1)
    repo.git("mv", "eval/results/a", "eval/results/b")
    repo.commit("move")
    one(repo, make_metrics, "b", 0.2)
    repo.git("rm", "-rq", "eval/results/b")
    repo.commit("delete")
    assert means(read_history([repo.results]).points) == [0.1, 0.2]
    followed = read_history([repo.results / "b" / "metrics.json"])
    assert means(followed.points) == [0.1, 0.2]
    assert followed.points[0].path == "eval/results/a/metrics.json"


def test_one_file_among_several(repo: Any, make_metrics: Any) -> None:
    one(repo, make_metrics, "a", 0.1)
    one(repo, make_metrics, "b [x]*", 0.5)
    one(repo, make_metrics, "a", 0.2)
    assert means(read_history([repo.results / "a"]).points) == [0.1, 0.2]
    assert means(read_history([repo.results / "b [x]*" / "metrics.json"]).points) == [0.5]
    both = [repo.results / "b [x]*", repo.results / "a"]
    assert means(read_history(both).points) == [0.1, 0.5, 0.2]


def test_runs_not_committed_come_last_by_their_start(repo: Any, make_metrics: Any) -> None:
    one(repo, make_metrics, "z", 0.1)
    for name, started in (("late", "2026-05-02T00:00:00Z"), ("early", "2026-05-01T00:00:00+02:00")):
        path = repo.write(name, make_metrics(name, {"retrieval": {"mrr": 0.5}}))
        config = {"schema": 1, "run_id": name, "started": started}
        (path.parent / "config.json").write_text(json.dumps(config))
    found = read_history([repo.results])
    assert [point.run_id for point in found.points] == ["z", "early", "late"]
    assert found.points[1].sha is None
    assert [p.run_id for p in read_history([repo.results], "git").points] == ["z"]
    # runs: all three, since git is not asked which are committed; z has no config: nobody knows
    runs = read_history([repo.results], "runs")
    assert [point.run_id for point in runs.points] == ["early", "late", "z"]


def not_committed(repo: Any, make_metrics: Any, run: str, started: str | None) -> Path:
    """A run with a number, and a config.json that says when it was started."""
    path: Path = repo.write(run, make_metrics(run, {"retrieval": {"mrr": 0.5}}))
    if started is not None:
        config = {"schema": 1, "run_id": run, "started": started}
        (path.parent / "config.json").write_text(json.dumps(config))
    return path


def test_a_committed_run_that_is_still_there_stands_by_its_own_start(
    repo: Any, make_metrics: Any
) -> None:
    """Started at 10, committed at noon: a run of 11 o'clock came later, one of 9 before."""
    day = "2026-01-01T{}:00:00+00:00"
    not_committed(repo, make_metrics, "a", day.format("10"))
    repo.commit("a")
    not_committed(repo, make_metrics, "later", day.format("11"))
    not_committed(repo, make_metrics, "before", day.format("09"))
    found = read_history([repo.results])
    assert [point.run_id for point in found.points] == ["before", "a", "later"]


def test_the_time_of_a_file_orders_nothing(repo: Any, make_metrics: Any) -> None:
    """Runs without a start stand last, by their ids, however old their files are; that is said."""
    one(repo, make_metrics, "z", 0.1)
    not_committed(repo, make_metrics, "known", "2026-05-01T00:00:00Z")
    for name, age in (("b", 1_000), ("a", 2_000), ("c", 3_000)):
        path = not_committed(repo, make_metrics, name, None)
        os.utime(path, (age, age))
    found = read_history([repo.results])
    assert [point.run_id for point in found.points] == ["z", "known", "a", "b", "c"]
    assert found.points[-1].title == "c (not committed)"
    assert found.notes == [
        "No config.json says when a, b, c was started; runs without a start come last, in the "
        "order of run ids."
    ]


def test_several_places_stand_in_the_order_of_commits_not_of_clocks(
    repo: Any, make_metrics: Any
) -> None:
    """The second commit was made on a machine whose clock is years behind."""
    repo.commits = 20
    one(repo, make_metrics, "a", 0.1)
    repo.commits = 3
    one(repo, make_metrics, "b", 0.2)
    found = read_history([repo.results / "b", repo.results / "a"])
    assert means(found.points) == [0.1, 0.2]


def test_a_merge_is_read_from_the_branch_and_is_a_point_if_it_settles_a_conflict(
    repo: Any, make_metrics: Any
) -> None:
    one(repo, make_metrics, "a", 0.1)
    repo.git("checkout", "--quiet", "-b", "side")
    branch = one(repo, make_metrics, "a", 0.2)
    repo.git("checkout", "--quiet", "main")
    repo.git("merge", "--quiet", "--no-ff", "--message", "merge", "side")
    assert [p.sha for p in read_history([repo.results]).points][1:] == [branch]
    repo.git("reset", "--quiet", "--hard", "HEAD~1")
    one(repo, make_metrics, "a", 0.3)
    repo.git("merge", "--quiet", "--strategy=ours", "--no-commit", "side")
    sha = one(repo, make_metrics, "a", 0.4)
    found = read_history([repo.results]).points
    assert sorted(means(found)) == [0.1, 0.2, 0.3, 0.4]
    assert (found[-1].sha, found[-1].values["retrieval", "mrr"].mean) == (sha, 0.4)


def test_damaged_versions_are_told_and_left_out(repo: Any, make_metrics: Any) -> None:
    one(repo, make_metrics, "a", 0.1)
    repo.write("a", "{")
    repo.commit("broken")
    repo.write("a", '{"schema": 9, "sections": {}}')
    sha = repo.commit("from the future")
    one(repo, make_metrics, "a", 0.2)
    found = read_history([repo.results])
    assert means(found.points) == [0.1, 0.2]
    assert len(found.notes) == 2
    assert found.notes[1].startswith(f"eval/results/a/metrics.json at {sha[:9]}: schema 9")


def test_a_shallow_clone_says_so(repo: Any, make_metrics: Any, tmp_path: Path) -> None:
    for value in (0.1, 0.2, 0.3):
        last = one(repo, make_metrics, "a", value)
    clone = tmp_path / "clone"
    words = ["git", "clone", "--quiet", "--depth", "1", repo.top.as_uri(), str(clone)]
    subprocess.run(words, check=True, env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull})
    found = read_history([clone / "eval" / "results"])
    assert [point.sha for point in found.points] == [last]
    assert "shallow" in found.notes[0]
    assert "--unshallow" in found.notes[0]


def test_a_commit_of_many_files_says_that_their_order_is_unknown(
    repo: Any, make_metrics: Any
) -> None:
    for folder, name in (("x", "b"), ("y", "a")):
        repo.write(folder, make_metrics(name, {"retrieval": {"mrr": 0.5}}))
    sha = repo.commit("both")
    found = read_history([repo.results])
    assert [point.run_id for point in found.points] == ["a", "b"]
    assert found.notes == [
        f"{sha[:9]} holds 2 metrics.json files; they are in the order of their run ids."
    ]


def test_an_empty_repository_and_no_repository(repo: Any, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"no metrics\.json"):
        read_history([repo.results])
    with pytest.raises(StorageError, match="no git repository"):
        read_history([tmp_path], "git")
    with pytest.raises(StorageError, match=r"no metrics\.json(.|\n)*only runs on disk"):
        read_history([tmp_path])


def test_a_point_is_named_by_commit_tag_or_run(repo: Any, make_metrics: Any) -> None:
    first = one(repo, make_metrics, "a", 0.1)
    repo.git("tag", "v1")
    one(repo, make_metrics, "b", 0.2)
    found = read_history([repo.results])
    named = {first: 0, first[:8]: 0, "v1": 0, "HEAD~1": 0, "a": 0, "b": 1, "HEAD": 1}
    assert {name: found.place_of(name) for name in named} == named
    for name in ("c", "HEAD~9", "--all", ""):
        with pytest.raises(StorageError, match="no point"):
            found.place_of(name)


@each_row("data", [b"", b"[]", b"{}", b'{"schema": 1}', b'{"sections": {}}'])
def test_what_is_no_metrics_file(data: bytes) -> None:
    with pytest.raises(NotMetrics):
        _read_point(data, sha=None, date="", subject="", path="p")


@each_row("part", [{"mean": {"a": "x"}}, {"ci95": {"a": [1]}}, {"n": 3}, {"definitions": {"a": 1}}])
def test_a_file_with_values_of_another_kind_is_no_point(part: dict[str, Any]) -> None:
    sound = {"mean": {"a": 0.5, "b": None}, "ci95": {"a": [0, 1]}, "n": {"a": 3}}
    for section in (sound, sound | part):
        data = json.dumps({"schema": 2, "sections": {"s": section}}).encode()
        if section is sound:
            point = _read_point(data, sha=None, date="", subject="", path="p")
            assert list(point.values) == [("s", "a")]
            value = point.values["s", "a"]
            assert (value.mean, value.ci95, value.n, value.definition) == (0.5, (0.0, 1.0), 3, "")
        else:
            with pytest.raises(NotMetrics, match="that can be read"):
                _read_point(data, sha=None, date="", subject="", path="p")
