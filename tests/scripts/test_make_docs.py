"""make_docs.py: generated tables and pages, and the check that finds what is out of date."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import make_docs
import pytest
from click.testing import CliRunner, Result

from ragmetrics.catalogue import METRICS
from storage import StorageError

ROOT = Path(make_docs.__file__).resolve().parents[1]
SCRIPT = ROOT / "bench" / "make_docs.py"
MARKED = "before\n<!-- generated: metrics -->\nold\n<!-- end -->\nafter\n"
AGREEMENT = "<!-- generated: agreement -->\nkept\n<!-- end -->\n"
KEYS = "# Manual\n\n<!-- generated: keys -->\n<!-- end -->\nby hand\n"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
    )


PRODUCTS = "# Known\n\n<!-- generated: products -->\n<!-- end -->\n"
OTHER_PAGES = {"README", "labelling", "metrics", "products"}

option_tables = cache(make_docs.option_tables)
"""Each script is asked once for all tests that call make_docs in this process."""


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """make_docs.py in this process, without asking a script for its options twice."""
    monkeypatch.setattr(make_docs, "option_tables", option_tables)
    return lambda *words: CliRunner().invoke(make_docs.main, list(map(str, words)))


def unwritten(folder: Path) -> Path:
    """Fill the folder: metrics.md has a block to fill, one of another writer, and other text."""
    (folder / "docs").mkdir()
    (folder / "docs" / "metrics.md").write_text(AGREEMENT + MARKED, encoding="utf-8")
    (folder / "docs" / "labelling.md").write_text(KEYS, encoding="utf-8")
    (folder / "docs" / "products.md").write_text(PRODUCTS, encoding="utf-8")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return unwritten(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ``root``'s whose documents were just written; tests copy it."""
    made = unwritten(tmp_path_factory.mktemp("made"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make_docs, "option_tables", option_tables)
        done = CliRunner().invoke(make_docs.main, ["--root", str(made)])
    assert done.exit_code == 0, done.output
    return made


@pytest.fixture
def fresh(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def test_writes_tables_and_a_page_for_each_script(made: Path) -> None:
    document = (made / "docs" / "metrics.md").read_text("utf-8")
    assert document.startswith(AGREEMENT + "before\n")
    assert all(f"`{metric.definition}`" in document for metric in METRICS)
    assert document.endswith("<!-- end -->\nafter\n")
    names = {path.stem for path in make_docs.scripts()}
    assert {"run_eval", "score_retrieval"} <= names
    assert {path.stem for path in (made / "docs").glob("*.md")} == names | OTHER_PAGES
    page = (made / "docs" / "score_retrieval.md").read_text("utf-8")
    assert "`Usage:" not in page  # it takes no arguments
    assert "\n`Usage: compare_runs.py [OPTIONS] BASE NEW...`\n" in (
        made / "docs" / "compare_runs.md"
    ).read_text("utf-8")
    assert "min_similarity: Levenshtein" in page
    listed = (made / "docs" / "README.md").read_text("utf-8")
    assert all(f"[{name}.py]({name}.md)" in listed for name in names)
    assert all(f"({file})" in listed for file, _, _ in make_docs.GUIDES)


def test_an_option_of_many_scripts_is_explained_once(made: Path) -> None:
    pages = {path.stem: path.read_text("utf-8") for path in (made / "docs").glob("*.md")}
    shared = [line for line in pages["README"].splitlines() if line.startswith("| `-")]
    names = [row.split("`")[1] for row in shared]
    assert {"-h, --help", "-q, --quiet", "--seed N", "--run, --run-id TEXT"} <= set(names)
    assert len(names) == len(set(names)), "two options of one name"
    assert [
        line for name in pages if name != "README" for line in shared if line in pages[name]
    ] == []
    # score_safety.py has its own words for --by and --worst, and the usual ones for --run.
    own, _, others = pages["score_safety"].partition(f"\nAlso {make_docs.SHARED_LINK}: ")
    assert "\n| `--worst N` | Show N texts that were judged wrongly" in own
    assert "`--run`" in others
    assert "`--worst`" not in others


def test_every_guide_is_a_document() -> None:
    own = {path.name for path in (ROOT / "docs").glob("*.md")}
    own -= {f"{path.stem}.md" for path in make_docs.scripts()} | {"README.md"}
    assert own == {file for file, _, _ in make_docs.GUIDES if not file.startswith("..")}


def test_the_same_text_whatever_the_machine_is_set_to(fresh: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("k = '7'\nseed = 99\n", encoding="utf-8")
    done = run(
        "--check",
        "--root",
        fresh,
        COLUMNS="200",
        RAG_EVAL_SEED="5",
        RAG_EVAL_CONFIG=str(config),
        FORCE_COLOR="1",
        LC_ALL="C",
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_check_names_what_is_stale_and_writes_nothing(
    fresh: Path, call: Callable[..., Result]
) -> None:
    table, page, gone = (fresh / "docs" / f"{name}.md" for name in ("metrics", "run_eval", "old"))
    table.write_text(table.read_text("utf-8").replace("higher", "lower"), encoding="utf-8")
    page.unlink()
    gone.write_text(make_docs.MARK + "\n\n# old.py\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in fresh.rglob("*.md")}
    done = call("--check", "--root", fresh)
    assert done.exit_code == 1
    assert sorted(done.stdout.split()) == ["docs/metrics.md", "docs/old.md", "docs/run_eval.md"]
    assert "make docs" in done.stderr
    assert {path: path.read_bytes() for path in fresh.rglob("*.md")} == before


def test_writing_mends_what_is_stale_and_keeps_pages_of_others(
    fresh: Path, call: Callable[..., Result]
) -> None:
    before = {path: path.read_bytes() for path in fresh.rglob("*.md")}
    own = fresh / "docs" / "own.md"
    own.write_text("# written by hand\n", encoding="utf-8")
    (fresh / "docs" / "old.md").write_text(make_docs.MARK + "\n\n# old.py\n", encoding="utf-8")
    (fresh / "docs" / "run_eval.md").write_text("changed", encoding="utf-8")
    assert call("--root", fresh).exit_code == 0
    assert own.read_text("utf-8") == "# written by hand\n"
    own.unlink()
    assert {path: path.read_bytes() for path in fresh.rglob("*.md")} == before


@pytest.mark.parametrize("name", ["docs/metrics.md", "docs/labelling.md", "docs/products.md"])
@pytest.mark.parametrize("text", [None, "no markers\n", "<!-- generated: metrics -->\nno end\n"])
def test_a_document_without_place_for_a_table(
    root: Path, call: Callable[..., Result], name: str, text: str | None
) -> None:
    (root / name).unlink()
    if text is not None:
        (root / name).write_text(text, encoding="utf-8")
    before = {path: path.read_bytes() for path in root.rglob("*.md")}
    done = call("--root", root)
    assert done.exit_code == 2
    assert name in done.stderr
    assert isinstance(done.exception, SystemExit)
    assert {path: path.read_bytes() for path in root.rglob("*.md")} == before


def test_a_script_that_fails_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text('raise RuntimeError("no help here")\n', encoding="utf-8")
    with pytest.raises(StorageError, match="no help here"):
        make_docs.option_tables(broken)
