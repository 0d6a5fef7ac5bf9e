"""A section that an extra adds to the report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from records import extras

ADDED = '"""Counts."""\nBLOCKS = {"counts": "report:blocks", "nothing": "report:nothing"}\n'
CODE = """from terminal.page import Heading, Prose
def blocks(runs):
    names = ", ".join(run.folder.name for run in runs)
    return [Heading("Counted <b>"), Prose(f"Runs: {names}.")]
def nothing(runs):
    return []
"""


def test_it_stands_in_all_forms_and_in_the_contents(
    pair: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"extras_of_{abs(hash(tmp_path))}"
    (folder / "counts").mkdir(parents=True)
    (folder / "counts" / "extra.py").write_text(ADDED)
    (folder / "counts" / "report.py").write_text(CODE)
    monkeypatch.setattr(extras, "EXTRAS", folder)
    monkeypatch.syspath_prepend(str(tmp_path))
    extras.extras.cache_clear()
    try:
        pair.report(tmp_path / "report")
    finally:
        extras.extras.cache_clear()
    page = (tmp_path / "report.html").read_text("utf-8")
    assert '<a href="#counts">Counted &lt;b&gt;</a>' in page
    assert '<h2 id="counts-title">Counted &lt;b&gt;</h2>' in page
    assert "<p>Runs: base, new.</p>" in page
    assert 'id="nothing"' not in page
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "## Counted \\<b>\n\nRuns: base, new.\n" in text
