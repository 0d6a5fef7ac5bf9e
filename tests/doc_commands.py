"""The commands, files and outputs in the fenced blocks of a document, and how outputs are compared.

A block of ``console`` has commands after ``$`` and what they print; ``sh`` has commands alone; a
block with a file's name after its language (``python bot.py``) is that file. The rest is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

DEMO_RUN = "--api-url demo --labels --store-full-text --set folder_mode=on_with_fallback"
TWO_RUNS = f"""
unset RAG_EVAL_EVAL_SET RAG_EVAL_PROFILE
for run in old new; do
  .venv/bin/python eval/scripts/run_eval.py {DEMO_RUN} --run-id $run &&
  .venv/bin/python eval/scripts/eval_suite.py --run $run || break
done
git add eval/results/old && git commit --quiet -m "Numbers"
"""
BASELINE = """
export RAG_EVAL_EVAL_SET=my_set.jsonl RAG_EVAL_PROFILE=mybot
export BOT_URL=http://localhost:9000 COMMIT=abc BOT_TOKEN=token
make run API=$BOT_URL ARGS="--run-id main" && make suite RUN=main
"""


@dataclass(frozen=True)
class Detour:
    """How a command is run that needs what a check has not.

    ``instead``: what is run (None: nothing; ``{}`` is the command). ``before``: what it needs.
    """

    reason: str
    instead: str | None = "{}"
    before: str = ""


DETOURS: dict[str, dict[str, Detour]] = {
    "README.md": {
        "make test": Detour("takes minutes, and runs by itself", None),
        "git clone https://github.com/OWNER/rag-eval-toolkit": Detour("it is this folder", None),
        "cd rag-eval-toolkit": Detour("it is this folder", None),
        "make connect API=http://localhost:9000": Detour(
            "needs a person, who accepts",
            "{} ARGS=--yes",
            "{ .venv/bin/python -m tests.bots.query_engine 9000 >/dev/null 2>&1 & } && sleep 2",
        ),
        ".venv/bin/python eval/scripts/demo_api.py --vault path/to/notes": Detour(
            "serves until it is stopped; the other bot has the port",
            "{} --port 9001 & curl --silent --retry 30 --retry-connrefused localhost:9001/docs"
            " >/dev/null; kill $!",
            "mkdir -p path/to && cp -r tests/bots/pages path/to/notes",
        ),
        "make label API=http://localhost:9000": Detour("needs a person", "{} ARGS=--plain"),
        "make compare BASE=old RUN=new": Detour("needs the two runs", before=TWO_RUNS),
        "make init TO=../mybot": Detour("needs the bot's repository", before="mkdir ../mybot"),
        '.venv/bin/python eval/scripts/run_eval.py --api-url "$BOT_URL" --run-id "ci-$COMMIT"'
        " --header Authorization=BOT_TOKEN --store-full-text": Detour(
            "needs variables, and the committed numbers", before=BASELINE
        ),
        "make judge RUN=new JUDGE=http://localhost:11434 MODEL=llama3.1:8b"
        ' ARGS="--metrics all --claim-level"': Detour(
            "needs a model's server; the embedded rules judge",
            'make judge RUN=new ARGS="--metrics all --claim-level"',
            "unset RAG_EVAL_EVAL_SET RAG_EVAL_PROFILE",
        ),
        "make label-verdicts RUN=new": Detour(
            "needs a person", r"printf '1\n3\n1\nq\n' | {} ARGS=--plain"
        ),
    },
    "docs/tutorial.md": {
        "make --silent -C toolkit setup LIGHT=1": Detour("installs from the network", None),
    },
}
"""The commands that cannot be run as they stand. One that no document has fails a test."""


FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = frozenset({"text", "json", "toml", "powershell", "markdown", "diff"})
LEFT_OUT = "⋮"


@dataclass(frozen=True)
class Step:
    """A command with the output that the document shows (None: it shows none), or a file."""

    line: int
    command: str = ""
    output: tuple[str, ...] | None = None
    file: str = ""
    text: str = ""


def steps(document: str) -> Iterator[Step]:
    """What a reader does, in order. Raises ValueError for a block whose language says nothing."""
    for fence in FENCE.finditer(document):
        line = document.count("\n", 0, fence.start()) + 2
        language, _, file = fence[1].strip().partition(" ")
        if file:
            yield Step(line, file=file, text=fence[2])
        elif language in ("sh", "console"):
            yield from _commands(fence[2], line, language == "console")
        elif language not in SHOWN:
            raise ValueError(f"line {line - 1}: a block of {language or 'no language'}")


def _commands(block: str, line: int, with_output: bool) -> Iterator[Step]:
    """``line``: the number of the block's first line."""
    command, output, start = "", [], line
    for number, text in enumerate(block.splitlines(), start=line):
        if command.endswith("\\\n"):
            command += text.removeprefix("> ") if with_output else text
        elif with_output and not text.startswith("$ "):
            output.append(text)
            continue
        else:
            if command:
                yield Step(start, command, tuple(output) if with_output else None)
            command, output, start = text.removeprefix("$ ") if with_output else text, [], number
        command += "\n" if command.endswith("\\") else ""
    if command.strip():
        yield Step(start, command, tuple(output) if with_output else None)


def without_comment(command: str) -> str:
    """The command as the table of exceptions names it: on one line, without what ``#`` explains."""
    return re.sub(r"\s+", " ", re.sub(r"\s+# .*", "", command.replace("\\\n", " "))).strip()


VARYING = [
    (re.compile(r"\d{8}-\d{6}"), "DATE"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?"), "DATE"),
    (re.compile(r"[\d.,]+(?: / [\d.,]+)? (?:ms|s|min)\b"), "TIME"),
    (re.compile(r"\[(\w+file):\d+: "), r"[\1: "),
    (re.compile(r"^index [0-9a-f]+\.\.[0-9a-f]+"), "index"),
    (re.compile(r"^(\s*latency_\w+ ).*"), r"\1"),
    (re.compile(r"[\s─┌┐└┘├┤┬┴┼]+"), " "),
]
"""What is different from run to run, and what its width moves."""


def blotted(text: str) -> str:
    """A line of output without what varies."""
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    return text.strip()


def difference(shown: Sequence[str], printed: Sequence[str]) -> str:
    """Empty when the output is what the document shows; else the first line that is not there."""
    lines = [blotted(line) for line in printed]
    while lines and not lines[-1]:
        lines.pop()
    position, loose = 0, False
    chunk: list[str] = []
    for text in [*shown, None]:
        if text is not None and text.strip() != LEFT_OUT:
            chunk.append(blotted(text))
            continue
        last = text is None
        starts = range(position, len(lines) - len(chunk) + 1) if loose else [position]
        if last and loose and chunk:
            starts = [max(position, len(lines) - len(chunk))]
        for start in starts:
            if lines[start : start + len(chunk)] == chunk:
                position = start + len(chunk)
                break
        else:
            return _first_difference(chunk, lines[position:])
        loose, chunk = True, []
        if last and shown and shown[-1].strip() != LEFT_OUT and position != len(lines):
            return f"not shown: {lines[position]!r}"
    return ""


def _first_difference(chunk: Sequence[str], rest: Sequence[str]) -> str:
    for text in chunk:
        if text not in rest:
            return f"not printed: {text!r}"
    for start in range(len(rest)):
        alike = 0
        while rest[start + alike : start + alike + 1] == chunk[alike : alike + 1] != []:
            alike += 1
        if 1 < alike < len(chunk) and start + alike < len(rest):
            return f"not shown: {rest[start + alike]!r}"
    return f"printed elsewhere: {chunk[0]!r}"
