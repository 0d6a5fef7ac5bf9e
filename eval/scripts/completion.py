"""Print a script that completes options, choices, run ids and metrics of these scripts in a shell.

In: the name of the shell. Out: a script for that shell on stdout, to be sourced. It completes
`python eval/scripts/NAME.py …` and `eval/scripts/NAME.py …`, with any interpreter called python or
python3. Every other use of python keeps its former completion.

While you type, click's completion asks the script itself: options with their choices, --run with
the run folders of --results-dir, metrics by name, files by the shell. It starts only scripts of
this folder, with the interpreter that printed this.

\b
Examples:
  source <(python eval/scripts/completion.py bash)
  source <(python eval/scripts/completion.py zsh)
  python eval/scripts/completion.py fish | source
  python eval/scripts/completion.py bash --output ~/.rag_eval_completion.bash

Put the line into ~/.bashrc, ~/.zshrc (after compinit) or ~/.config/fish/config.fish to keep it.

Exit codes: 0 done, 2 bad input or usage, 130 interrupted.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

import options

FOLDER = Path(__file__).resolve().parent
GUARD = 'if __name__ == "__main__":'
SHELLS = ("bash", "zsh", "fish")


def script_names() -> list[str]:
    """The files of this folder that can be run."""
    return sorted(path.name for path in FOLDER.glob("*.py") if GUARD in path.read_text("utf-8"))


def source_of(shell: str) -> str:
    """The script for a shell, with this folder and this interpreter in it."""
    text = (FOLDER / "shells" / f"completion.{shell}").read_text("utf-8")
    for name, value in (
        ("@FOLDER@", quoted(str(FOLDER), shell)),
        ("@PYTHON@", quoted(sys.executable, shell)),
        ("@SCRIPTS@", " ".join(script_names())),
    ):
        text = text.replace(name, value)
    return text


def quoted(text: str, shell: str) -> str:
    """A path as one word of the shell. Fish knows two escapes within single quotes."""
    if shell != "fish":
        return shlex.quote(text)
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@options.command(help=__doc__)
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--output", type=options.FILE, help="Write the script into this file instead.")
def main(shell: str, output: Path | None) -> None:
    source = source_of(shell)
    if output is None:
        click.echo(source, nl=False)
        return
    import storage

    storage.replace_bytes(output, source.encode())
    click.echo(output)


if __name__ == "__main__":
    main()
