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


def test_hostile_texts_and_names_of_metrics_do_nothing(
    compare: Compare, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", "bad"):
        scores = {HOSTILE: float(name == "good")}
        rows = [{"case_id": f"q{i}", "scores": scores} for i in range(CASES)]
        write_lines(folder / "results" / name, "custom", rows)
    path = folder / "diff.md"
    monkeypatch.setenv("RAG_EVAL_FLIPS_BY", HOSTILE)
    words = ("good", "bad", "-v", "--set", "flips=30", "--markdown", str(path))
    done = compare(*words)
    assert done.exit_code == 0, done.stderr
    assert not {"\x1b", "\x07"} & set(done.stdout)
    assert "[bold red]x[/]" in done.stdout
    text = path.read_text("utf-8")
    assert compare(*words).exit_code == 0
    assert path.read_text("utf-8") == text
    assert text.startswith("# `good` → `bad`\n")
    assert str(folder) not in text
    assert "\x1b" not in text
    assert "<script>" in text
    assert foreign_markup(text) == set()
