"""Foreign text in Markdown and on the terminal, and a reader that has left."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tests.score_lines import write_lines
from tests.scripts.compare_runs.runs import CASES, HOSTILE, Compare


def foreign_markup(text: str) -> set[str]:
    """What a Markdown parser makes of a document besides our own: HTML, links, images, mentions."""
    found = set()
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        for part in (token, *(token.children or ())):
            ours = ("<details><summary>", "</details>")
            if part.type in ("html_block", "html_inline") and not part.content.startswith(ours):
                found.add(part.content)
            if part.type in ("image", "link_open") or (part.type == "text" and "@" in part.content):
                found.add(part.content or part.type)
    return found


def test_markdown_is_the_same_bytes_and_shuts_foreign_text_in(
    compare: Compare, folder: Path
) -> None:
    path = folder / "diff.md"
    words = ("good", "bad", "--metrics", "recall@5", "--set", "flips=30", "--markdown", str(path))
    assert compare(*words).exit_code == 0
    text = path.read_text("utf-8")
    assert compare(*words).exit_code == 0
    assert path.read_text("utf-8") == text
    assert text.startswith("# `good` → `bad`\n")
    assert "\x1b" not in text
    assert "<script>" in text
    assert foreign_markup(text) == set()
    assert str(folder) not in text


def test_a_hostile_metric_name_does_nothing(
    compare: Compare, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", "bad"):
        scores = {HOSTILE: float(name == "good")}
        rows = [{"case_id": f"q{i}", "scores": scores} for i in range(CASES)]
        write_lines(folder / "results" / name, "custom", rows)
    path = folder / "diff.md"
    monkeypatch.setenv("RAG_EVAL_FLIPS_BY", HOSTILE)
    done = compare("good", "bad", "-v", "--markdown", str(path))
    assert done.exit_code == 0, done.stderr
    assert "\x1b" not in done.stdout
    text = path.read_text("utf-8")
    assert "\x1b" not in text
    assert "<script>" in text
    assert foreign_markup(text) == set()


def test_hostile_texts_do_nothing_on_the_terminal(compare: Compare) -> None:
    done = compare("good", "bad", "--metrics", "recall@5", "--set", "flips=30", "-v")
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert "[bold red]x[/]" in done.stdout
