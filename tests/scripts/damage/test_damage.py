"""Damaged run files: a sentence with the place and exit code 2, or a note; never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.processes import refused

from records.errors import StorageError
from records.judgements import read_verdicts
from records.metrics import ComparedSection, ReportSection, load_metrics, read_metrics
from records.results import iter_results
from records.run import Run
from records.runs import read_config, scored_sections
from records.scores import read_scores, read_whole_scores
from records.verdicts import judge_of

SCORES = [f"scores/{name}.jsonl" for name in ("retrieval", "groundedness", "pipeline", "judged")]
FILES = [*SCORES, "scores/abstention.jsonl", "metrics.json", "config.json", "results.jsonl"]
BAD: list[Any] = [
    *(None, [], {}, "", "x", "3", 0, -1, 1e308, 2**70, True, [None], [[1]], {"a": 1}, [{}]),
    *({"x": None}, {"a": {"b": [1]}}, "\0", "[bold]", 10**6, [1, 2, 3]),
]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each part of a JSON value, to the whole first."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    return [at, *(one for key, part in inner for one in places(part, (*at, key)))]


@st.composite
def damages(draw: st.DrawFn, lines: list[bytes]) -> list[bytes]:
    """The lines with one part of one of them taken out, replaced, or with a byte too many."""
    number = draw(st.integers(0, len(lines) - 1))
    line = lines[number]
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(line)))
        byte = draw(st.sampled_from([b"\xff", b"\0", b"{", b"\n", b"1e999"]))
        return [*lines[:number], line[:at] + byte + line[at:], *lines[number + 1 :]]
    value = json.loads(line)
    ways = places(value)
    depth = draw(st.integers(0, max(map(len, ways))))
    way = draw(st.sampled_from([one for one in ways if len(one) == depth]))
    bad = draw(st.sampled_from(BAD))
    if not way:
        value = bad
    else:
        inside = value
        for key in way[:-1]:
            inside = inside[key]
        if draw(st.booleans()):
            inside[way[-1]] = bad
        else:
            del inside[way[-1]]
    return [*lines[:number], json.dumps(value).encode(), *lines[number + 1 :]]


def damaged(data: st.DataObject, path: Path) -> None:
    whole = path.read_bytes()
    lines = [json.dumps(json.loads(whole)).encode()] if path.suffix == ".json" else []
    lines = lines or whole.splitlines()
    path.write_bytes(b"\n".join(data.draw(damages(lines))) + b"\n")


def examples(count: int) -> settings:
    """So many damages, each on a copy of the runs."""
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


few, many = examples(40), examples(60)
"""Of whole scripts: a few with every commit, many where there is time (``make test-all``)."""


def read_all(run: Path) -> None:
    """What the readers of all files of a run give, to the end."""
    load_metrics(run / "metrics.json")
    read_metrics(run, ReportSection)
    read_metrics(run, ComparedSection)
    read_config(run)
    list(iter_results(run / "results.jsonl"))
    read_verdicts(run, judge_of(run))
    table = Run(run)
    for section in scored_sections(run):
        list(read_scores(run, section))
        list(read_whole_scores(run, section))
        table.section(section)


@examples(100)
@given(data=st.data())
def test_any_damage_is_told_by_the_reader_of_the_file(desk: Any, data: st.DataObject) -> None:
    """What scripts say of a damaged file is said by its reader in ``records``."""
    path: Path = desk.path(data.draw(st.sampled_from([*FILES, "verdicts.jsonl"])))
    whole, refusal = path.read_bytes(), ""
    try:
        damaged(data, path)
        read_all(desk.path(""))
    except StorageError as error:
        refusal = str(error)
    finally:
        path.write_bytes(whole)
    assert not refusal or path.name in refusal


GATES = ("gate", "gate_against", "suite", "suite_against")
RUN = ["metrics.json", *FILES]
JUDGED = ["verdicts.jsonl", "config.json"]
READERS = {
    **dict.fromkeys(("report", "compare", "track", "export"), FILES),
    **dict.fromkeys(GATES, RUN),
    **dict.fromkeys(("rescore", "judge", "decide", "calibrate"), JUDGED),
    "browse": [*FILES, "verdicts.jsonl"],
}
"""The files of a run that each reader may meet damaged."""
OTHER_JUDGE = ("decided no claim", "has no verdicts of", "no verdicts on abstention")
"""Said where the damage made the lines those of another judge."""


def check(copied: Callable[[], Any], reader: str, data: st.DataObject) -> None:
    with copied() as desk:
        path = desk.path(data.draw(st.sampled_from(READERS[reader])))
        damaged(data, path)
        files = {one: one.read_bytes() for one in desk.path("").rglob("*") if one.is_file()}
        if reader == "browse":
            desk.browse()
            return
        done = desk.read(reader)
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert done.exit_code in ((0, 1, 2) if reader in GATES else (0, 2))
        if done.exit_code == 2:
            judging = READERS[reader] is JUDGED
            others = OTHER_JUDGE if judging else ("cannot be compared",) * (reader == "compare")
            assert any(words in done.stderr for words in (path.name, *others)), done.stderr
            now = {one: one.read_bytes() for one in files}
            assert not judging or now == files


@few
@given(reader=st.sampled_from([*READERS]), data=st.data())
def test_damage_is_a_sentence_of_the_script_or_does_no_harm(
    copied: Callable[[], Any], reader: str, data: st.DataObject
) -> None:
    check(copied, reader, data)


@pytest.mark.thorough
@pytest.mark.parametrize("reader", READERS)
@many
@given(data=st.data())
def test_any_damage_is_a_sentence_or_does_no_harm(
    copied: Callable[[], Any], reader: str, data: st.DataObject
) -> None:
    check(copied, reader, data)


def set_in(*way: Any) -> Callable[[Any], None]:
    """Puts the last of ``way`` where the others lead."""

    def change(value: Any) -> None:
        for key in way[:-2]:
            value = value[key]
        value[way[-2]] = way[-1]

    return change


EVIDENCE = [
    ("retrieval", set_in("evidence", "hits", "12")),
    ("retrieval", set_in("evidence", "hits", [0])),
    ("retrieval", set_in("evidence", "found", {"1": 2})),
    ("groundedness", set_in("evidence", "claims", "-1")),
    ("groundedness", set_in("evidence", "claims", 0, "text", None)),
    ("groundedness", set_in("evidence", "numbers", [])),
    ("pipeline", set_in("evidence", "over_budget", {"total": 3})),
    ("abstention", set_in("evidence", "cell", ["x"])),
    ("pipeline", set_in("reasons", [1])),
    ("pipeline", set_in("scores", "pass", "1.0")),
    ("retrieval", set_in("repeat", {})),
    ("retrieval", set_in("repeat", 2**70)),
]


@pytest.mark.parametrize(("section", "change"), EVIDENCE)
def test_evidence_of_another_shape_is_named_by_the_report(
    desk: Any, section: str, change: Callable[[Any], None]
) -> None:
    desk.change(f"scores/{section}.jsonl", change)
    done = desk.read("report")
    assert done.exit_code == 2
    assert f"{section}.jsonl:1: is not a score line (" in done.stderr
    assert "; score the run again\n" in done.stderr
    assert not desk.path("report.html").exists()


def test_a_damaged_verdict_is_named_by_the_report(desk: Any) -> None:
    """What the judge said is drawn from verdicts.jsonl, not from the copy in the score lines."""
    desk.change("verdicts.jsonl", set_in("verdicts", 0, "reason", 2**70), at=1)
    assert "verdicts.jsonl:2: is not a verdict line (" in refused(desk.read("report"))
    desk.change("metrics.json", set_in("sections", "retrieval", "latency_ms", {"a": {"p50": 1}}))
    assert "sections.retrieval.latency_ms.a: Object missing" in desk.read("report").stderr


METRICS = [
    (set_in("sections", ["a"]), "sections"),
    (set_in("sections", "retrieval", 3), "sections"),
    (set_in("sections", "retrieval", "metrics", None), "sections.retrieval"),
    (set_in("sections", "retrieval", "metrics", "mrr", "ci95", [0.5, None]), "metrics.mrr.ci95"),
    (set_in("sections", "retrieval", "metrics", "mrr", "def", 3), "metrics.mrr.def"),
    (set_in("sections", "retrieval", "metrics", {"mrr": {"mean": "high"}}), "metrics.mrr.mean"),
    (set_in("sections", "retrieval", "metrics", {"mrr": "high"}), "sections.retrieval"),
    (set_in("sections", "retrieval", "usual", ["wilson"]), "sections.retrieval"),
    (set_in("sections", "retrieval", "metrics", "mrr", "n", "4"), "metrics.mrr.n"),
    (set_in("sections", "retrieval", "metrics", "mrr", "failed", {}), "metrics.mrr.failed"),
    (set_in("sections", "judged", "options", "judge", "x"), "judge"),
]


@pytest.mark.parametrize(("change", "where"), METRICS)
@pytest.mark.parametrize("reader", ["report", "compare", "gate", "suite_against"])
def test_damaged_metrics_are_named(
    desk: Any, reader: str, change: Callable[[Any], None], where: str
) -> None:
    desk.change("metrics.json", change)
    before = desk.path("metrics.json").read_bytes()
    done = refused(desk.read(reader))
    assert desk.path("metrics.json").read_bytes() == before
    assert not desk.path("gate.json").exists()
    assert "metrics.json: " in done
    assert where in done
    assert "restore the file from git" in done


def test_a_damaged_configuration_is_named_by_the_comparison(desk: Any) -> None:
    desk.change("config.json", set_in("api", "fields_seen", [[1]]))
    assert "config.json: judge or api: " in refused(desk.read("compare"))


@pytest.mark.parametrize("mapped", [[["answer"]], [{}], 3, "answer"])
def test_damaged_names_of_mapped_fields_are_a_sentence(desk: Any, mapped: Any) -> None:
    desk.change("config.json", set_in("api", "mapped", mapped))
    assert "config.json: " in refused(desk.read("compare"))


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        ("report", "scores/pipeline.jsonl"),
        ("compare", "scores/pipeline.jsonl"),
        ("compare_answers", "results.jsonl"),
        ("export", "scores/pipeline.jsonl"),
    ],
)
def test_a_folder_where_a_file_belongs_is_a_sentence(desk: Any, reader: str, name: str) -> None:
    desk.change("scores/pipeline.jsonl", set_in("scores", "pass", 1.0))  # a flip to look up
    desk.path(name).unlink()
    desk.path(name).mkdir()
    assert f"{name.rpartition('/')[2]}: cannot be read (Is a directory)" in refused(
        desk.read(reader)
    )


@pytest.mark.parametrize("reader", ["report", "compare", "export"])
def test_bytes_that_are_no_text_are_named_with_their_line(desk: Any, reader: str) -> None:
    path = desk.path("scores/pipeline.jsonl")
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b"unknown", b"unkn\xffwn"))
    assert "pipeline.jsonl:2: is not a score line (" in refused(desk.read(reader))


def test_a_part_that_nobody_reads_may_hold_any_bytes(desk: Any) -> None:
    """In the evidence of the second case, whose line the report looks up again."""
    path = desk.path("scores/abstention.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"decided_by"', b'"\xffdecided_by"'))
    assert desk.read("report").exit_code == 0


@pytest.mark.parametrize("reader", ["export", "export_json"])
def test_a_damaged_answer_is_named_by_every_export(desk: Any, reader: str) -> None:
    path = desk.path("results.jsonl")
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first.replace(b"Logs", b"L\xffgs", 1) + second.replace(b'"ok"', b"3"))
    done = refused(desk.read(reader))
    assert "results.jsonl:1: is not a result line (" in done
    assert "results.jsonl:2: is not a result line (" in done
    assert not (desk.folder / "exported.jsonl").exists()
