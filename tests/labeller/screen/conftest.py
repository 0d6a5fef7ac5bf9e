"""Shared by the TUI tests: the hostile corpus, and (below) a terminal to run real processes in."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.labeller.conftest import FakeSource, FakeStore
from tests.screens import shown

from labeller.app import LabelApp
from labeller.merging import Conflict
from labeller.passages import Chunk
from labeller.screen import MainScreen
from labeller.session import Session
from terminal.frame import Look

SCRIPT = Path(__file__).parents[3] / "eval" / "scripts" / "label_eval.py"
Start = Callable[..., Any]

TEXTS = (
    "Keys are rotated every month. Stale replicas reject writes until they reload.",
    "Audit events are kept for 30 days on the free plan.\n\nThe owner can extend this by 90 days.",
    "Only a billing owner can extend the period. The change takes effect at night.",
)


def plain_chunks(case_id: str, count: int = 12) -> list[Chunk]:
    """`count` chunks, each with its own path; every third tells of audit logs."""
    return [
        Chunk(
            rel_path=f"guide/part{number:02d}.md",
            heading_path=f"Part {number} > Section {number}",
            text=f"Note {number} for {case_id}. {TEXTS[number % 3]}",
            chunk_id=f"{case_id}-{number}",
            rank=number,
            score_vector=0.9 - number / 100,
            score_final=0.8 - number / 100,
        )
        for number in range(1, count + 1)
    ]


def plain_cases(count: int) -> dict[str, dict[str, Any]]:
    """`count` unlabelled cases, q-01 and on."""
    return {
        f"q-{number:02d}": {
            "id": f"q-{number:02d}",
            "question": f"How long are audit logs kept in case {number}, and who can extend it?",
            "category": "factual",
        }
        for number in range(1, count + 1)
    }


class Bench:
    """One app with its session and fakes."""

    def __init__(
        self,
        cases: dict[str, dict[str, Any]] | None = None,
        chunks: dict[str, list[Chunk]] | None = None,
        probed: list[Chunk] | None = None,
        keymap: dict[str, str] | None = None,
        look: Look | None = None,
        theme: str | None = None,
        notices: list[str] | None = None,
        conflicts: list[Conflict] | None = None,
        **options: Any,
    ) -> None:
        cases = plain_cases(4) if cases is None else cases
        if chunks is None:
            chunks = {case_id: plain_chunks(case_id) for case_id in cases}
        if probed is None:
            probed = [Chunk("found/by-probe.md", "Probe", "The probe found this passage.")]
        self.events: list[dict[str, Any]] = []
        self.clock = 1_700_000_000.0
        options = {"seed": "8f2", **options}
        self.session = Session(
            cases, {}, record=self.events.append, now=lambda: self.clock, **options
        )
        self.store = FakeStore()
        self.store.notices = notices or []
        self.store.conflicts = conflicts or []
        self.source = FakeSource(chunks, probed)
        self.app = LabelApp(
            self.session, self.store, self.source, look=look, keymap=keymap, theme=theme
        )

    @classmethod
    @asynccontextmanager
    async def run(
        cls, size: tuple[int, int] = (80, 24), **options: Any
    ) -> AsyncIterator[tuple[Bench, Any]]:
        """An app that runs: its bench, and a pilot for it."""
        made = cls(**options)
        async with made.app.run_test(size=size) as pilot:
            yield made, pilot

    @staticmethod
    def long_chunk(text: str) -> Chunk:
        """One chunk with this text."""
        return Chunk("guide/long.md", "Long", text)

    @property
    def main(self) -> MainScreen:
        """The main screen."""
        return self.app.main

    @property
    def status(self) -> str:
        """The message on the status line."""
        return str(self.main._message[1])

    @property
    def marks(self) -> list[str]:
        """The labels of the marked rows."""
        return [row.label for row in self.session.rows() if row.marked]

    def shown(self) -> str:
        """The text of the top screen, as it would stand in the terminal."""
        return shown(self.app)


@pytest.fixture
def bench() -> type[Bench]:
    """Makes an app over fakes: `bench(cases=…, chunks=…)`."""
    return Bench


@pytest.fixture
def start(tmp_path: Path, pseudo_terminal: Callable[..., Any]) -> Start:
    """Starts the script on a set in `tmp_path`, with the chunks of a run."""

    def run(*options: str, columns: int = 80, rows: int = 24, env: Any = None) -> Any:
        argv = [sys.executable, str(SCRIPT), "--eval-set", str(tmp_path / "eval_set.jsonl")]
        argv += ["--results-dir", str(tmp_path / "results")]
        argv += ["--labels-dir", str(tmp_path / "labels"), "--from-run", "latest", *options]
        made = pseudo_terminal(argv, columns=columns, rows=rows, env=env or {}, cwd=tmp_path)
        return made

    return run


def write_data(folder: Path, cases: list[dict[str, Any]], texts: list[str]) -> bytes:
    """Write the set, and a run in which each case has one chunk a text. Returns the set's bytes."""
    lines = [json.dumps(case, ensure_ascii=True) for case in cases]
    data = ("\n".join(lines) + "\n").encode()
    (folder / "eval_set.jsonl").write_bytes(data)
    run = folder / "results" / "20250101-000000-test"
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"schema": 1, "run_id": run.name}))
    with (run / "results.jsonl").open("w", encoding="utf-8") as file:
        for case in cases:
            retrieved = [
                {
                    "chunk_id": f"c{n}",
                    "rel_path": f"part{n}.md",
                    "heading_path": f"Part {n} > Section",
                    "text": text,
                    "rank": n,
                }
                for n, text in enumerate(texts, start=1)
            ]
            result = {"schema": 1, "test_case_id": case["id"], "question": case["question"]}
            file.write(json.dumps({**result, "status": "ok", "retrieved": retrieved}) + "\n")
    return data
