"""Add the files for an evaluation to a bot's repository: set, profile, gates, Makefile, workflow.

In: the folder of the repository. Out: the folder rag-eval in it (two example questions, a profile,
gates, targets, a Makefile with label, run, gate, compare and report, a test for pytest) and
.github/workflows/rag-eval.yml. No existing file is overwritten. Only rag-eval/toolkit.mk, which git
ignores, names the toolkit's folder on this machine.

\b
Examples:
  python eval/scripts/init_repo.py ../mybot
  make -C ../mybot/rag-eval check-init

Exit codes: 0 done, 2 bad input or usage, or a file exists already."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import options
from records import opt
from records.errors import StorageError
from records.home import ROOT

TEMPLATE = ROOT / "docs" / "examples" / "repository"
COPIED = (
    "targets.toml",
    "profiles/default.toml",
    *(f"rubrics/{name}.toml" for name in ("helpful", "tone", "complete")),
)
"""Files of the toolkit's own folder ``eval`` that the repository gets unchanged."""

WORKFLOW = ".github/workflows/rag-eval.yml"
CLONE = "toolkit"
"""The folder of the toolkit in CI, and beside ``rag-eval`` unless another is given."""

PACKAGES = {
    "requirements.txt": "python -m pip install --requirement requirements.txt",
    "pyproject.toml": "python -m pip install .",
    "package.json": "npm ci",
}
"""The command that installs a bot's packages, by a file of its repository; the first one present
counts."""


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """The options of init_repo.py."""

    folder: Path = opt.argument(path="folder", exists=True, required=True)
    quiet: bool = opt.quiet()


@options.script(InitOptions, help=__doc__)
def main(asked: InitOptions) -> None:
    folder = asked.folder
    if not folder.is_dir():  # click takes a pipe or a device for a folder
        raise StorageError(f"{folder}: not a folder; name the folder of your bot's repository.")
    files = planned(folder.resolve())
    if present := [path for path in files if path.exists()]:
        names = ", ".join(str(path.relative_to(folder.resolve())) for path in present)
        raise StorageError(f"{folder}: {names} is there already; nothing was written.")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    if asked.quiet:
        return
    say = [f"{len(files)} files written. Try them: make -C {folder}/rag-eval check-init"]
    workflow = files[folder.resolve() / WORKFLOW]
    if 'TOOLKIT_REPOSITORY: ""' in workflow and f'TOOLKIT: "{CLONE}"' in workflow:
        say.append(
            f"Before CI runs, set TOOLKIT_REPOSITORY in {WORKFLOW} to the toolkit's repository "
            "(owner/name), which CI checks out."
        )
    options.say("\n".join(say))


def planned(folder: Path) -> dict[Path, str]:
    """The files to write, with their texts. None that is committed names a path of this machine."""
    near = toolkit_in(folder)
    values = {
        "@TOOLKIT@": os.path.relpath(ROOT, folder / "rag-eval") if near else f"../{CLONE}",
        "@PATH@": near or CLONE,
        "@REPOSITORY@": "" if near else repository(),
        "@INSTALL@": next((how for name, how in PACKAGES.items() if (folder / name).exists()), ""),
    }
    files: dict[Path, str] = {}
    for path in sorted(TEMPLATE.rglob("*")):
        if path.is_file():
            name = path.relative_to(TEMPLATE)
            name = name.with_name(".gitignore") if name.name == "gitignore" else name
            text = path.read_text("utf-8")
            for mark, value in values.items():
                text = text.replace(mark, value)
            files[folder / name] = text
    if not near:
        files[folder / "rag-eval" / "toolkit.mk"] = f"TOOLKIT ?= {ROOT}\n"
    for copied in COPIED:
        text = (ROOT / "eval" / copied).read_text("utf-8")
        files[folder / "rag-eval" / "eval" / copied] = text
    return files


def toolkit_in(folder: Path) -> str:
    """The toolkit's path within the folder's own git repository; "" when it is outside."""
    top = git("-C", str(folder), "rev-parse", "--show-toplevel")
    if not top or not ROOT.is_relative_to(Path(top).resolve()):
        return ""
    return ROOT.relative_to(Path(top).resolve()).as_posix()


def repository() -> str:
    """The toolkit's repository on GitHub as owner/name, by its clone; "" when it has none there."""
    url = git("-C", str(ROOT), "config", "--get", "remote.origin.url")
    match = re.fullmatch(r".*[@/]github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?", url)
    return match[1] if match else ""


def git(*words: str) -> str:
    """The output of git; "" when it fails, or is not installed."""
    try:
        return subprocess.run(["git", *words], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
