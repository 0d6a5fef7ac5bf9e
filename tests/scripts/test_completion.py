"""The shells complete our scripts, and nothing else changes for them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import completion
import options
from options import commands

FOLDER = completion.FOLDER
Ask = Callable[..., list[str]]

BASH = """
source {script}
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
compopt() {{ echo "compopt $*"; }}
_rag_eval "${{COMP_WORDS[0]}}" "${{COMP_WORDS[COMP_CWORD]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ : }}
_files() {{ print files }}
_path_files() {{ print paths }}
_describe() {{ print -l -- "${{described[@]%%:*}}" }}
compset() {{ : }}
compadd() {{ print -l -- "${{plain[@]}}" }}
source {script}
words=({words})
CURRENT=$#words
_rag_eval
"""
FISH = "source {script}\ncomplete -C {line}\n"


def clean() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    return kept | {"RAG_EVAL_CONFIG": os.devnull}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two runs and what is none."""
    folder = tmp_path / "results"
    for name in ("night-1", "night-2", ".hidden", "a b"):
        (folder / name).mkdir(parents=True)
    (folder / "notes.txt").write_text("")
    return folder


def run_shell(shell: str, text: str) -> list[str]:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    plain = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *plain, "-c", text], env=clean(), capture_output=True, encoding="utf-8"
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.fixture(params=["bash", "zsh", "fish"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    """What a shell offers for the last of some words."""
    shell = request.param
    script = tmp_path / "completion"
    script.write_text(completion.source_of(shell))

    def offered(*words: str) -> list[str]:
        quoted = " ".join(map(shlex.quote, words))
        if shell == "fish":
            typed = " ".join([*map(shlex.quote, words[:-1]), words[-1]])
            text = FISH.format(script=script, line=shlex.quote(typed))
            return [line.partition("\t")[0] for line in run_shell(shell, text)]
        template = BASH if shell == "bash" else ZSH
        return run_shell(shell, template.format(script=script, words=quoted))

    return offered


def test_options_are_completed_behind_python(ask: Ask) -> None:
    assert ask("python3", str(FOLDER / "score_retrieval.py"), "--mat") == ["--match"]
    assert ask("python", "-u", str(FOLDER / "score_retrieval.py"), "--mat") == ["--match"]


def test_choices_are_completed_behind_the_script(ask: Ask) -> None:
    found = ask(str(FOLDER / "score_retrieval.py"), "--match", "")
    assert sorted(found) == ["anchor", "auto", "chunk", "doc", "page", "text"]


def test_run_ids_are_names_of_folders(ask: Ask, results: Path) -> None:
    script = str(FOLDER / "score_retrieval.py")
    found = ask("python", script, "--results-dir", str(results), "--run", "")
    assert sorted(found) == ["latest", "night-1", "night-2"]
    assert ask("python", script, "--results-dir", str(results), "--run", "night-2") == ["night-2"]


def test_metrics_are_completed(ask: Ask) -> None:
    found = ask("python", str(FOLDER / "score_retrieval.py"), "--worst-by", "recall_any")
    assert sorted(found) == sorted(f"recall_any@{k}" for k in (1, 3, 5, 10))


@pytest.mark.parametrize("script", ["compare_runs.py", "track_metrics.py"])
def test_of_several_metrics_the_last_is_completed(ask: Ask, script: str) -> None:
    found = ask("python", str(FOLDER / script), "--metrics", "pass,recall_any")
    assert sorted(found) == sorted(f"pass,recall_any@{k}" for k in (1, 3, 5, 10))


def test_runs_base_and_rubric_of_pairs_are_completed(ask: Ask, results: Path) -> None:
    words = ("python", str(FOLDER / "judge_pairs.py"), "--results-dir", str(results))
    assert ask(*words, "--base", "night-1") == ["night-1"]
    assert sorted(ask(*words, "--run", "night-1,night")) == ["night-1,night-1", "night-1,night-2"]
    assert ask(*words, "--rubric", "h") == ["helpful"]


def test_formats_fit_the_direction(ask: Ask) -> None:
    assert ask("python", str(FOLDER / "convert_data.py"), "export", "c") == ["csv"]
    assert ask("python", str(FOLDER / "convert_data.py"), "import", "c") == []


def test_a_script_of_another_folder_is_never_started(ask: Ask, tmp_path: Path) -> None:
    """The file has a known name and would leave a mark if it ran."""
    other = tmp_path / "score_retrieval.py"
    mark = tmp_path / "mark"
    other.write_text(f"open({str(mark)!r}, 'w')\n")
    assert "--match" not in ask("python", str(other), "--mat")
    assert not mark.exists()


def test_bash_joins_what_it_parted_at_the_equals_sign(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(completion.source_of("bash"))
    path = str(FOLDER / "score_retrieval.py")
    for words, wanted in (
        (("python", path, "--match", "=", "d"), ["doc"]),
        (("python", path, "--json", "--gain", "="), ["linear", "exp"]),
    ):
        text = BASH.format(script=script, words=" ".join(map(shlex.quote, words)))
        assert run_shell("bash", text) == wanted


def test_zsh_completes_files_behind_the_equals_sign(tmp_path: Path) -> None:
    """What stands before the value is taken off before files are offered, too."""
    script = tmp_path / "completion"
    script.write_text(completion.source_of("zsh"))
    told = "compset() { print took off $2 }"
    source = ZSH.replace("compset() {{ : }}", told.replace("{", "{{").replace("}", "}}"))
    words = f"python {FOLDER}/gate_run.py --eval-set=ev"
    assert run_shell("zsh", source.format(script=script, words=words)) == ["took off *=", "paths"]


def test_bash_leaves_other_words_to_what_was_there(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(completion.source_of("bash"))
    before = "_mine() { COMPREPLY=(mine); }\ncomplete -F _mine python\n"
    text = before + BASH.format(script=script, words="python -")
    assert run_shell("bash", text) == ["mine"]
    assert run_shell("bash", BASH.format(script=script, words="python x")) == [
        "compopt -o bashdefault -o default"
    ]


def test_bash_registers_every_script(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(completion.source_of("bash"))
    lines = run_shell("bash", f"source {script}; complete -p")
    known = {line.split()[-1] for line in lines if "_rag_eval" in line}
    assert known == {"python", "python3", *completion.script_names()}
    assert "score_retrieval.py" in known


def test_completing_loads_nothing_slow() -> None:
    code = (
        "import runpy, sys; sys.argv = sys.argv[1:]\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit:\n    print({n.partition('.')[0] for n in sys.modules})"
    )
    path = str(FOLDER / "score_retrieval.py")
    asked = {"_SCORE_RETRIEVAL_PY_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        env=clean() | asked | {"COMP_WORDS": "x --run l", "PYTHONPATH": str(FOLDER)},
        capture_output=True,
        encoding="utf-8",
    )
    *offered, loaded = done.stdout.splitlines()
    assert offered == ["plain,latest"]
    slow = ("numpy", "requests", "rich", "textual", "sklearn", "torch")
    assert [name for name in slow if f"'{name}'" in loaded] == []


def test_paths_with_quotes_stay_one_word() -> None:
    assert shlex.split(completion.quoted("/a b/it's", "bash")) == ["/a b/it's"]
    assert completion.quoted("/a\\b/it's", "fish") == "'/a\\\\b/it\\'s'"


def test_output_writes_the_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    done = CliRunner().invoke(completion.main, ["zsh", "--output", str(target)])
    assert (done.exit_code, done.stdout) == (0, f"{target}\n")
    assert target.read_text() == completion.source_of("zsh")


def test_every_named_completer_belongs_to_an_option() -> None:
    """A renamed parameter would silently lose its completion."""
    import importlib

    params = {
        param.name: param._custom_shell_complete
        for name in completion.script_names()
        for param in importlib.import_module(Path(name).stem).main.params
    }
    assert commands.BY_NAME.keys() <= params.keys()
    assert isinstance(importlib.import_module("score_retrieval").main, options.Command)
