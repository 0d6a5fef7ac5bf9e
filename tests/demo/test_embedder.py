"""The embedder: real weights, one vector a text, a cache that never stops the work."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tests.rows import each_row

import terminal.progress
from clients import embedder as embedder_module
from clients.embedder import Embedder, EmbeddingUnavailable, _bundled_model

SCRIPTS = Path(embedder_module.__file__).parents[1]
PUBLISHED_HASH = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

Scripted = Callable[..., tuple[Embedder, Any]]


def by_length(text: str) -> list[float]:
    """Texts of different lengths get different directions."""
    return [float(len(text)), 1.0]


def test_bundled_weights_are_the_published_ones() -> None:
    # SHA-256 of model.safetensors of sentence-transformers/all-MiniLM-L6-v2, revision 1110a243.
    with (_bundled_model() / "model.safetensors").open("rb") as stream:
        assert hashlib.file_digest(stream, "sha256").hexdigest() == PUBLISHED_HASH


def test_order_is_kept_and_each_text_is_embedded_once(scripted_embedder: Scripted) -> None:
    embedder, model = scripted_embedder(by_length)
    vectors = embedder.encode(["ccc", "a", "ccc", "bb"])
    assert model.batches == [["a", "bb", "ccc"]]
    assert vectors.dtype == np.float32
    expected = [[3, 1], [1, 1], [3, 1], [2, 1]]
    norms = np.sqrt([[10], [2], [10], [5]])
    np.testing.assert_allclose(vectors, np.array(expected) / norms, rtol=1e-6)


def test_no_texts_give_no_vectors(scripted_embedder: Scripted) -> None:
    embedder, model = scripted_embedder(by_length)
    assert embedder.encode([]).shape == (0, 0)
    assert model.batches == []


def test_cached_texts_are_not_embedded_again(scripted_embedder: Scripted, tmp_path: Path) -> None:
    first, _ = scripted_embedder(by_length, tmp_path)
    before = first.encode(["a", "bb", "\ud800 lone surrogate"])
    second, model = scripted_embedder(by_length, tmp_path)
    after = second.encode(["bb", "new", "a", "\ud800 lone surrogate"])
    assert model.batches == [["new"]]
    np.testing.assert_array_equal(after[[2, 0, 3]], before)


def test_more_texts_than_one_block(
    scripted_embedder: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder_module, "BLOCK", 3)
    embedder, model = scripted_embedder(by_length, tmp_path)
    log = io.StringIO()
    embedder.console = Console(file=log)
    monkeypatch.setattr(terminal.progress, "LOG_EVERY", 0)
    vectors = embedder.encode(["x" * n for n in range(1, 8)])
    assert [len(batch) for batch in model.batches] == [3, 3, 1]
    lines = log.getvalue().splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        "embedding texts: 3 of 7",
        "embedding texts: 6 of 7",
        "embedding texts: 7 of 7",
    ]
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], range(1, 8), rtol=1e-5)


def test_another_model_does_not_see_the_vectors(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for number, folder in enumerate(folders):
        folder.mkdir()
        (folder / "config.json").write_text(f'{{"layers": {number}}}')
    one, two = (Embedder(str(folder), tmp_path) for folder in folders)
    assert one.identity != two.identity
    (folders[1] / "config.json").write_text('{"layers": 0}')
    assert Embedder(str(folders[1]), tmp_path).identity == one.identity


def test_names_that_look_alike_have_their_own_caches(tmp_path: Path) -> None:
    paths = {Embedder(name, tmp_path)._cache._path for name in ("a/b", "a_b", "a/b@1", "a/b@2")}
    assert len(paths) == 4


@pytest.mark.parametrize("damage", [b"not a database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_damaged_cache_is_rebuilt(
    scripted_embedder: Scripted, tmp_path: Path, damage: bytes
) -> None:
    scripted_embedder(by_length, tmp_path)[0].encode(["a"])
    (path,) = (tmp_path / "embeddings").glob("*.sqlite")
    path.write_bytes(damage)
    embedder, model = scripted_embedder(by_length, tmp_path)
    embedder.encode(["a"])
    assert model.batches == [["a"]]
    again, model = scripted_embedder(by_length, tmp_path)
    again.encode(["a"])
    assert model.batches == []


def test_damaged_pages_of_a_cache_are_noticed(scripted_embedder: Scripted, tmp_path: Path) -> None:
    texts = ["x" * n for n in range(1, 400)]
    scripted_embedder(lambda t: [len(t), 1.0] * 50, tmp_path)[0].encode(texts)
    (path,) = (tmp_path / "embeddings").glob("*.sqlite")
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    embedder, model = scripted_embedder(lambda t: [len(t), 1.0] * 50, tmp_path)
    embedder.encode(texts)
    assert sum(map(len, model.batches)) == len(texts)


def test_unusable_cache_folder_is_warned_of(scripted_embedder: Scripted, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    embedder, _ = scripted_embedder(by_length, tmp_path / "file")
    with pytest.warns(UserWarning, match="embeddings are not stored"):
        assert embedder.encode(["a"]).shape == (1, 2)


def test_threads_share_one_cache(scripted_embedder: Scripted, tmp_path: Path) -> None:
    embedder, _ = scripted_embedder(by_length, tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: embedder.encode(["x" * (n % 20 + 1), "y"])[0], range(200)))
    for number, vector in enumerate(found):
        assert vector[0] / vector[1] == pytest.approx(number % 20 + 1, rel=1e-5)


@each_row("name", ["no/such/folder", "./nowhere", "/nowhere", "", "a//b"])
def test_a_model_that_is_nowhere(name: str) -> None:
    with pytest.raises(EmbeddingUnavailable, match="neither a folder nor a name"):
        Embedder(name, None)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingUnavailable, match=r"no config\.json"):
        Embedder(str(tmp_path), None)


def test_bundled_package_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder_module, "BUNDLED_PACKAGE", "no_such_package_at_all")
    with pytest.raises(EmbeddingUnavailable, match="run `make setup"):
        Embedder(None, None)


def test_the_bundled_model_answers_to_its_own_name(tmp_path: Path) -> None:
    one, two = Embedder(None, tmp_path), Embedder("all-MiniLM-L6-v2", tmp_path)
    assert (two.folder, two.public_name) == (one.folder, one.public_name)
    assert two._cache._path == one._cache._path


@pytest.mark.parametrize("allowed", [False, True])
def test_a_hub_is_asked_only_if_allowed(monkeypatch: pytest.MonkeyPatch, allowed: bool) -> None:
    asked: list[tuple[str, dict[str, object]]] = []

    class Model:
        def __init__(self, name: str, **options: object) -> None:
            asked.append((name, options | {"offline": os.environ.get("HF_HUB_OFFLINE")}))
            raise OSError("no such model")

    library = ModuleType("sentence_transformers")
    library.SentenceTransformer = Model  # type: ignore[attr-defined]
    torch = ModuleType("torch")
    torch.set_num_threads = lambda number: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    monkeypatch.setattr(embedder_module, "hide_progress", lambda: None)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    message = "check the name and the network" if allowed else "fetch it with `score_embedding.py"
    embedder = pickle.loads(pickle.dumps(Embedder("a/b@1", None, allow_download=allowed)))
    with pytest.raises(EmbeddingUnavailable, match=message):
        embedder.encode(["text"])
    ((name, options),) = asked
    assert (name, options["revision"]) == ("a/b", "1")
    assert (options["local_files_only"], options["offline"]) == (
        (False, None) if allowed else (True, "1")
    )


@pytest.mark.parametrize("library", ["torch", "sentence_transformers"])
def test_library_missing(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))  # the real one takes seconds
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(EmbeddingUnavailable, match="run `make setup"):
        Embedder(None, None).encode(["text"])


def test_windows_hold_the_whole_text_and_fit_the_model() -> None:
    from tokenizers import Tokenizer

    embedder = Embedder(None, None)
    text = " ".join(f"word{n} of a long text;" for n in range(300))
    windows = embedder.windows(text)
    tokenizer = Tokenizer.from_file(str(_bundled_model() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    assert all(len(tokenizer.encode(window).ids) <= 256 for window in windows)
    assert windows[0].startswith("word0 ")
    assert windows[-1].endswith("word299 of a long text;")
    at = 0
    for window in windows:  # each begins inside the one before it, so nothing is lost between
        start = text.index(window)
        assert start <= at
        at = start + len(window)
    assert at == len(text)
    assert not embedder.loaded


@each_row("text", ["", "short", "short " * 30])
def test_a_text_that_fits_is_one_window(text: str) -> None:
    assert Embedder(None, None).windows(text) == [text]


PROGRAM = """
import os
import pickle
import sys
from pathlib import Path
from clients.embedder import Embedder
texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
embedder = Embedder(None, Path(sys.argv[1]))
vectors = embedder.encode([*texts, "lone \\ud800 surrogate", ""])
cosines = vectors @ vectors.T
print("torch" in sys.modules, *(f"{cosines[pair]:.4f}" for pair in ((0, 1), (0, 2), (1, 2))))
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_real_model_gives_its_documented_similarities_and_rests_when_cached(tmp_path: Path) -> None:
    def run() -> str:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        done = subprocess.run(
            command, cwd=SCRIPTS, capture_output=True, text=True, check=True, timeout=280
        )
        assert done.stderr == ""
        return done.stdout.strip()

    # The three values stand in the model card's example of sentence-transformers.
    assert run() == "True 0.6660 0.1046 0.1411"
    assert run() == "False 0.6660 0.1046 0.1411"
