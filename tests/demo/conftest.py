"""Fixtures of the embedded bot: a scripted embedding model, an index, a running server.

``server`` runs in this process, ``start_api`` starts the script.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from clients.demo_server import ENDS_WITH_STDIN
from clients.embedder import Embedder
from demo.bot import Bot, BotServer
from demo.index import Index, build_index
from demo.retriever import Retriever
from documents.sections import Note

SCRIPT = Path(__file__).resolve().parents[2] / "eval" / "scripts" / "demo_api.py"


class ScriptedModel:
    """Stands in for a sentence-transformers model: ``vector_of`` decides, ``batches`` remembers."""

    max_seq_length = 256

    def __init__(self, vector_of: Callable[[str], Sequence[float]]) -> None:
        self.vector_of = vector_of
        self.batches: list[list[str]] = []

    def encode(self, texts: list[str], *, normalize_embeddings: bool, **_: Any) -> Any:
        import numpy as np

        assert normalize_embeddings
        self.batches.append(list(texts))
        rows = np.array([self.vector_of(text) for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def scripted_embedder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Embedder, ScriptedModel]]:
    """``scripted_embedder(vector_of, cache_dir)``: a real Embedder over a scripted model."""

    def make(
        vector_of: Callable[[str], Sequence[float]], cache_dir: Path | None = None
    ) -> tuple[Embedder, ScriptedModel]:
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text("{}")
        embedder = Embedder(str(folder), cache_dir)
        model = ScriptedModel(vector_of)
        monkeypatch.setattr(embedder, "_load", lambda: model)
        return embedder, model

    return make


@pytest.fixture
def make_index() -> Callable[..., Index]:
    """``make_index({"a/b.md": "# T\\n\\ntext"}, embedder=None)``: an index of these notes."""

    def make(notes: dict[str, str], embedder: Embedder | None = None) -> Index:
        return build_index([Note("v", *note) for note in notes.items()], 1200, embedder)

    return make


@pytest.fixture
def start_api(tmp_path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """``start_api("--quiet")``: a running demo_api.py on a free port, and its URL."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), "--port", "0", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(tmp_path / f"stderr{len(started)}.txt").open("w"),
            text=True,
            cwd=tmp_path,
            env=os.environ | {ENDS_WITH_STDIN: "1"},
        )
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        return process, line.split()[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


@pytest.fixture
def zoo() -> dict[str, str]:
    """The notes of ``server``."""
    return {
        "birds/owl.md": "# Owl\n\n## Hunting\n\nAn owl hunts mice at night. It sees well.",
        "birds/hen.md": "# Hen\n\nA hen lays eggs in the morning.",
        "fish/cod.md": "# Cod\n\nA cod lays very many eggs, far out in the cold sea.",
    }


@pytest.fixture
def serve() -> Callable[[Bot], AbstractContextManager[BotServer]]:
    """``with serve(bot) as server``: the bot on a free port of this machine."""

    @contextmanager
    def running(bot: Bot) -> Iterator[BotServer]:
        with BotServer(0, bot) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield server
            finally:
                server.shutdown()
                thread.join()

    return running


@pytest.fixture
def server(
    make_index: Callable[..., Index],
    serve: Callable[[Bot], AbstractContextManager[BotServer]],
    zoo: dict[str, str],
) -> Iterator[BotServer]:
    """A running server of ``zoo``."""
    with serve(Bot(Retriever(make_index(zoo)))) as server:
        yield server


@pytest.fixture
def post(server: BotServer) -> Callable[..., requests.Response]:
    """``post(body, "?debug=true")``: what ``server`` says to JSON, or to bytes as they are."""

    def send(body: Any, query: str = "") -> requests.Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return requests.post(f"{server.url}/api/v1/ask{query}", data=data, timeout=60)

    return send
