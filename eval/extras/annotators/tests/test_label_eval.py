"""label_eval.py with the options of the extra, as a user runs it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from labeller.label_options import LabelOptions

if TYPE_CHECKING:
    from tests.scripts.labelling.conftest import Tool

Record = dict[str, Any]


def test_agreement_needs_two(tool: Tool) -> None:
    done = tool.run("--agreement")
    assert done.returncode == 2
    assert "--annotator NAME" in done.stderr


def test_a_second_annotator_and_agreement(tool: Tool) -> None:
    tool.make_run()
    # First pass: a = {f0, f1}, b unanswerable, c = {f0}. Maria: a = {f0}, b = {f2}, c = {f0}.
    # Rows are named by what they show, since both see their own shuffle.
    label(tool, {"a": ["f0", "f1"], "b": [], "c": ["f0"]})
    before = tool.set.read_bytes()
    label(tool, {"a": ["f0"], "b": ["f2"], "c": ["f0"]}, "--annotator", "maria")
    assert tool.set.read_bytes() == before
    done = tool.run("--agreement", "--json")
    assert done.returncode == 0, done.stderr
    (pair,) = json.loads(done.stdout)["pairs"]
    # State: (ans, ans) (un, ans) (ans, ans): raw 2/3; p_e = (2*3 + 1*0)/9 = 2/3; kappa 0.
    assert pair["state"]["raw"] == pytest.approx(2 / 3)
    assert pair["state"]["kappa"] == pytest.approx(0)
    # Marks over 9 rows: both 2 (a f0, c f0), only first 1 (a f1), only Maria 1 (b f2), neither 5.
    # p_o = 7/9; p_e = (3*3 + 6*6)/81 = 5/9; kappa = (2/9)/(4/9) = 1/2; Dice 2/3; Jaccard 1/2.
    assert pair["marks"]["n"] == 9
    assert pair["marks"]["kappa"] == pytest.approx(1 / 2)
    assert pair["marks"]["positive"] == pytest.approx(2 / 3)
    assert pair["marks"]["overlap"] == pytest.approx(1 / 2)
    shown = tool.run("--agreement")
    assert "gold and maria: 3 cases labelled by both" in shown.stdout
    assert "gold says unanswerable; maria says answerable" in shown.stdout
    ordered = tool.run("--plain", "--from-run", "r1", "--disagreements-first", typed="p\nq\n")
    assert "b (1/3" in ordered.stdout
    typed = "go b\nD maria\nD maria 1 b\nD maria 2 b\nD maria done\nq\n"
    settled = tool.run("--plain", typed=typed)
    assert "b is settled with maria" in settled.stdout
    assert tool.cases()["b"]["gold_supports"][0]["rel_path"] == "f2.md"


def label(tool: Tool, marks: dict[str, list[str]], *words: str) -> None:
    """Read every row, mark those of the named files, confirm; no file means unanswerable."""
    shown = tool.run("--plain", "--from-run", "r1", *words, typed="go a\ngo b\ngo c\nq\n").stdout
    typed, case = [], ""
    labels: dict[str, dict[str, str]] = {}
    for line in shown.splitlines():
        if line[:3] in ("a (", "b (", "c ("):
            case = line[0]
        elif line.startswith("[") and case:
            number, name = line[line.index("]") + 1 :].split()[:2]
            labels.setdefault(case, {})[name.removesuffix(".md")] = number
    for case, names in marks.items():
        typed.append(f"go {case}")
        typed.append(" ".join(labels[case][name] for name in names) if names else "x")
        typed.append("")
    done = tool.run("--plain", "--from-run", "r1", *words, typed="\n".join([*typed, "q", ""]))
    assert done.returncode == 0, done.stderr


def test_a_recheck_asks_a_share_of_the_decided_cases_again(tool: Tool) -> None:
    tool.make_run()
    assert "there is nothing to recheck" in tool.run("--plain", "--recheck", "50").stderr
    label(tool, {"a": ["f0"], "b": [], "c": ["f1"]})
    before = tool.set.read_bytes()
    words = ("--plain", "--from-run", "r1", "--recheck", "50")
    done = tool.run(*words, typed="progress\nx\n\nx\n\nq\n")
    assert "0 of 2 done" in done.stdout, "half of three, rounded up; and no label shows"
    assert tool.set.read_bytes() == before
    found = json.loads(tool.run("--agreement", "--json").stdout)
    assert found["annotators"] == {"gold": 3, "recheck": 2}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stats", "--agreement"), "choose one of --agreement and --stats."),
        (("--agreement", "--serve"), "choose one of --agreement and --serve."),
        (("--agreement", "--case", "a"), "--case is for labelling"),
        (("--plain", "--annotator", "../x"), "up to 64 letters"),
        (("--serve", "--annotator", "x/../y"), "up to 64 letters"),
        (("--plain", "--annotator", "gold"), "leave the option out"),
        (("--plain", "--annotator", "recheck"), "belongs to --recheck"),
        (("--plain", "--annotator", "maria", "--recheck", "5"), "leave out --annotator"),
        (("--plain", "--disagreements-first", "--order", "random"), "leave --order out"),
        (("--serve", "--plain"), "leave --plain out"),
        (("--serve", "--from-run", "r1", "--api-url", "demo"), "choose --from-run or"),
    ],
)
def test_bad_usage_is_one_sentence(tool: Tool, words: tuple[str, ...], said: str) -> None:
    before = tool.set.read_bytes()
    done = tool.run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert tool.set.read_bytes() == before


def test_a_browser_needs_a_package(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.delitem(sys.modules, "extras.annotators.serving", raising=False)
    done = tool.run("--serve")
    assert done.returncode == 2
    assert "--serve needs the package textual-serve, which is not installed" in done.stderr


def test_the_order_of_last_time_is_taken_up(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """b is the question on which gold and maria differ; a view is kept where a person looks."""
    tool.write([case | {"answerable": case["id"] != "b"} for case in tool.CASES])
    judgements = tool.folder / "labels" / "judgements"
    judgements.mkdir(parents=True)
    for who, differs in (("maria", ""), ("gold", "b")):
        decided = {c: "unanswerable" if c == differs else "answerable" for c in "abc"}
        lines = ({"case_id": c, "decision": d, "confirmed": True} for c, d in decided.items())
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (judgements / f"{who}.jsonl").write_text(text)
    monkeypatch.setattr(LabelOptions, "resuming", True)
    shown = tool.run("--plain", "--disagreements-first", typed="go a\nq\n").stdout
    assert "a (2/3" in shown
    assert "a (2/3" in tool.run("--plain", typed="q\n").stdout
    assert "a (1/3" in tool.run("--plain", "--order", "file", typed="q\n").stdout
