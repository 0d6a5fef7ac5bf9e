"""The page without a browser: what it is made of, its numbers, and what a screen reader is told."""

from __future__ import annotations

import base64
import re
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from decisions.measures import measures
from records.metrics import load_metrics
from records.targets import read_targets
from terminal.page import between, number

VOID = {"meta", "link", "br", "wbr", "img", "input", "hr", "rect", "line", "circle", "path"}


class Reader(HTMLParser):
    """Collects the elements of a page as (path of names, attributes, text directly inside)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.found: list[tuple[tuple[str, ...], dict[str, str | None], list[str]]] = []
        self.mismatched: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said: list[str] = []
        path = (*(name for name, _, _ in self.open), tag)
        self.found.append((path, dict(attrs), said))
        if tag not in VOID:
            self.open.append((tag, dict(attrs), said))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(((*(name for name, _, _ in self.open), tag), dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop()[0] != tag:
            self.mismatched.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1][2].append(data)

    def named(self, *names: str) -> list[tuple[tuple[str, ...], dict[str, str | None], list[str]]]:
        return [one for one in self.found if one[0][-1] in names]


@pytest.fixture(scope="module")
def page(made: Any) -> str:
    text: str = made.text("html")
    return text


@pytest.fixture(scope="module")
def read(page: str) -> Reader:
    return Reader(page)


def test_it_is_well_formed_with_a_language_and_one_title(read: Reader) -> None:
    assert read.mismatched == []
    assert read.open == []
    assert [attrs["lang"] for _, attrs, _ in read.named("html")] == ["en"]
    assert len([path for path, _, _ in read.named("title") if "head" in path]) == 1
    assert len(read.named("main")) == 1


def test_headings_go_down_one_step_at_a_time(read: Reader) -> None:
    levels = [int(path[-1][1]) for path, _, _ in read.named("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_every_table_has_a_caption_and_scoped_heads(read: Reader) -> None:
    assert len(read.named("table")) > 10
    assert len(read.named("caption")) == len(read.named("table"))
    assert all(attrs.get("scope") in ("col", "row") for _, attrs, _ in read.named("th"))
    body_rows = [path for path, _, _ in read.named("tr") if "tbody" in path]
    row_heads = [attrs for _, attrs, _ in read.named("th") if attrs["scope"] == "row"]
    assert len(row_heads) == len(body_rows)


def test_tables_scroll_in_a_named_box_that_the_keyboard_reaches(read: Reader) -> None:
    boxes = [
        attrs for _, attrs, _ in read.named("div") if "scroll" in (attrs.get("class") or "").split()
    ]
    assert len(boxes) == len(read.named("table"))
    assert all(one["tabindex"] == "0" and one["role"] == "region" for one in boxes)


def test_every_chart_has_a_title_and_is_described_or_decoration(read: Reader) -> None:
    charts = read.named("svg")
    assert len(charts) > 5
    titles = [path for path, _, _ in read.named("title") if "svg" in path]
    assert len(titles) == len(charts)
    described = [attrs for _, attrs, _ in charts if attrs.get("role") == "img"]
    assert len(described) == 2  # latency, reliability
    assert len(read.named("desc")) == 2
    assert all(attrs.get("aria-hidden") for _, attrs, _ in charts if attrs not in described)


def test_ids_are_unique_and_what_is_named_exists(read: Reader) -> None:
    ids = Counter(attrs["id"] for _, attrs, _ in read.found if "id" in attrs)
    assert set(ids.values()) == {1}
    wanted = {
        word for _, attrs, _ in read.found for word in (attrs.get("aria-labelledby") or "").split()
    }
    links = {str(attrs["href"]) for _, attrs, _ in read.named("a")}
    assert all(link.startswith("#") for link in links)
    assert wanted | {link[1:] for link in links} <= set(ids)
    assert read.named("a")[0][1]["href"] == "#main"  # the skip link comes first


def test_one_script_without_data_runs_and_nothing_loads(read: Reader) -> None:
    names = {path[-1] for path, _, _ in read.found}
    assert names & {"img", "iframe", "object", "embed", "form", "base", "video"} == set()
    ((_, script_attributes, said),) = read.named("script")
    script = "".join(said)
    assert script_attributes == {}
    places = r"case-(table|controls|data|short|tools|\$\{key\}|\")"
    assert "case-" not in re.sub(places, "", script)  # no id of a case is in it
    attributes = Counter(name for _, attrs, _ in read.found for name in attrs)
    assert [name for name in attributes if name.startswith("on")] == []
    assert {"src", "srcset", "action", "formaction", "style", "xlink:href"} & set(
        attributes
    ) == set()
    assert [attrs["href"] for _, attrs, _ in read.named("link")] == ["data:,"]
    metas = {attrs.get("http-equiv"): attrs.get("content") for _, attrs, _ in read.named("meta")}
    assert set(metas) == {None, "Content-Security-Policy"}
    policy = metas["Content-Security-Policy"] or ""
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; style-src ")


def test_the_style_loads_nothing_and_ends_where_it_should(read: Reader) -> None:
    (style,) = read.named("style")
    text = "".join(style[2])
    assert re.search(r"url\(|@import|https?:", text) is None
    for wanted in ("prefers-color-scheme: dark", "@media print", ":focus-visible", "max-width"):
        assert wanted in text


def test_hostile_text_is_shown_as_it_is_and_marks_are_words(page: str, read: Reader) -> None:
    assert [hex(ord(char)) for char in set(page) if ord(char) < 32 and char not in "\n\t"] == []
    assert {"\u202e", "\u202c", "\ufeff", "\x7f"} & set(page) == set()
    for text in ("⟨U+202E⟩txt.exe", "⟨U+001B⟩]0;title", "&lt;script&gt;window.ran = 1"):
        assert text in page
    assert "{{ 7 * 7 }} {% raw %}" in page
    texts = ["".join(said) for _, attrs, said in read.named("div") if attrs.get("class") == "text"]
    assert any('<img src="http://192.0.2.1/x.png" onerror=' in text for text in texts)
    assert ">✗ missed<" in page
    assert re.search(r'<td class="(poor|fair|good|excellent) few">', page)


def test_notes_of_people_stand_with_their_case(read: Reader, made: Any) -> None:
    notes = ["".join(said) for path, _, said in read.named("dd")]
    assert len([text for text in notes if text.startswith("flagged: Look at the chunker.")]) == 1
    assert "- note: flagged: Look at the chunker." in made.text("md")


def test_the_numbers_of_the_first_screen_are_those_of_metrics_json(made: Any) -> None:
    """Means, targets, counts of targets and of questions, read from the file by themselves."""
    report = made.report()
    sections = load_metrics(made.run / "metrics.json")["sections"]
    verdict, sides = report.top[0], report.of("sides")[0]
    (left, right) = sides["rows"][0]
    (table,) = left
    compared = 0
    by_name = {metric: name for name in sections for metric in sections[name]["mean"]}
    for name, mean, interval, picture, target in table["rows"]:
        section = sections[by_name[name]]
        assert mean == number(section["mean"][name])
        ends = section["ci95"].get(name)
        assert interval == between(ends)
        assert picture["value"] == section["mean"][name]
        assert picture["interval"] == (ends and list(ends))
        if target:
            assert picture["mark"] == float(target.split()[1])
        compared += 2 + bool(target)
    assert compared >= 15
    rated = [row for row in measures(sections, read_targets()).values() if row.target]
    met, missed = (sum(row.passed is one for row in rated) for one in (True, False))
    assert verdict["words"].startswith(f"{met} of {len(rated)} targets met, {missed} missed, ")
    marks = [row[-1][-1] for row in table["rows"] if row[-1]]
    assert marks.count("✗") == missed
    evidence = sections["retrieval"]["mean"]["recall_all@5"], sections["retrieval"]["n"]
    found = round(evidence[0] * evidence[1]["recall_all@5"])
    words = f"for {found} of {evidence[1]['recall_all@5']} questions."
    assert verdict["words"].endswith(words)
    heading, *worst = right
    failing = re.match(r"([\d,]+) of ", report.section("Cases in full").texts[0])
    assert failing is not None
    assert heading["words"] == f"The worst of {failing.group(1)} failing cases"
    assert len([block for block in worst if block.get("item")]) >= 5


def test_without_the_set_cases_that_fail_are_counted(made: Any, tmp_path: Path) -> None:
    options = ("--eval-set", str(tmp_path / "gone.jsonl"), "--output", str(tmp_path / "report"))
    heading, counts, *_ = made.report(*options).of("sides")[0]["rows"][0][1]
    assert heading["words"] == "Failing cases"
    assert re.match(r"[1-9]\d* of 48 cases fail: ", counts["words"])
