"""The folders of the toolkit and of the team, and their files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
"""The toolkit's own folder."""
INIT_FOLDER = "rag-eval"
"""The folder that init_repo.py makes in a bot's repository."""


def _home() -> Path:
    if named := os.environ.get("RAG_EVAL_HOME"):
        return Path(named).expanduser().resolve()
    with contextlib.suppress(OSError):  # the working folder may be gone, or closed to us
        for folder in (Path.cwd(), Path.cwd() / INIT_FOLDER):
            made = (folder / "eval" / name for name in ("gates.toml", "profiles"))
            own = (folder / "eval_set.jsonl").is_file() and all(path.exists() for path in made)
            if own and not (folder / "eval" / "scripts").exists():
                return folder.resolve()
    return ROOT


HOME = _home()
"""The folder of the team's files, with the layout of the toolkit's own: set, labels, results,
profiles, gates, targets. RAG_EVAL_HOME names it; else it is the working folder or its ``rag-eval``
where init_repo.py made one, else the toolkit's folder."""
EVAL_SET = HOME / "eval_set.jsonl"
LABELS_DIR = HOME / "eval" / "labels"
RESULTS_DIR = HOME / "eval" / "results"
CACHE_DIR = HOME / "eval" / "cache"
PROFILES, SHIPPED_PROFILES = HOME / "eval" / "profiles", ROOT / "eval" / "profiles"
"""The team's descriptions of bots, and those that come with the toolkit; the first count more."""
JUDGES = HOME / "eval" / "judges"
"""The team's descriptions of judges, a TOML file each."""


def own_file(name: str) -> Path:
    """A file of the folder ``eval``: the team's where there is one, else the toolkit's."""
    own = HOME / "eval" / name
    return own if own.exists() else ROOT / "eval" / name
