"""Write what a bot's own repository needs to be evaluated: set, profile, gates, Makefile, workflow.

In: the folder of the repository. Out: the folder rag-eval in it (two example questions, a profile,
gates, targets, a Makefile with label, run, gate, compare and report, a test for pytest) and
.github/workflows/rag-eval.yml. No file that is there is overwritten.

\b
Examples:
  python eval/scripts/init_repo.py ../mybot
  make -C ../mybot/rag-eval check-init

Exit codes: 0 done, 2 bad input or usage, or a file is there already.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click

import options
import storage
from storage import StorageError

TEMPLATE = storage.ROOT / "docs" / "examples" / "repository"
COPIED = ("targets.toml", "profiles/default.toml")
"""Files of the toolkit's own folder ``eval`` that the repository gets as they are."""


@options.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("-q", "--quiet", is_flag=True, help="No messages on stderr.")
def main(folder: Path, quiet: bool) -> None:
    files = planned(folder.resolve())
    if present := [path for path in files if path.exists()]:
        names = ", ".join(str(path.relative_to(folder.resolve())) for path in present)
        raise StorageError(f"{folder}: {names} is there already; nothing was written.")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    if not quiet:
        click.echo(
            f"{len(files)} files written. Try them: make -C {folder}/rag-eval check-init", err=True
        )


def planned(folder: Path) -> dict[Path, str]:
    """The files to write, with their texts."""
    files: dict[Path, str] = {}
    for path in sorted(TEMPLATE.rglob("*")):
        if path.is_file():
            name = path.relative_to(TEMPLATE)
            name = name.with_name(".gitignore") if name.name == "gitignore" else name
            files[folder / name] = path.read_text("utf-8").replace("@TOOLKIT@", toolkit(folder))
    for copied in COPIED:
        text = (storage.ROOT / "eval" / copied).read_text("utf-8")
        files[folder / "rag-eval" / "eval" / copied] = text
    return files


def toolkit(folder: Path) -> str:
    """Where the Makefile looks for the toolkit: beside it in one repository, else an absolute path.

    A path of this machine only is a default; TOOLKIT=… says another one.
    """
    root = storage.ROOT
    top = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--show-toplevel"], capture_output=True, text=True
    ).stdout.strip()
    near = top and root.is_relative_to(Path(top).resolve())
    return os.path.relpath(root, folder / "rag-eval") if near else str(root)


if __name__ == "__main__":
    main()
