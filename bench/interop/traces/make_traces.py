"""Make the golden traces anew with the real frameworks, and say what changed.

    python bench/interop/traces/make_traces.py [--only TEXT] [--lock] [--keep] [--diff]

In: the locks of versions in locks/, an environment each in .venv-interop/traces-NAME; Vercel's AI
SDK needs Node. Out: the
cells APP.INSTRUMENTATION.jsonl.gz in tests/golden_traces. Each cell is made in a process of its
own, with no telemetry, no key and no address outside this machine. A cell that cannot be made keeps
its file and is reported; the exit code is then 1. --lock takes the newest versions and writes the
locks anew; --keep leaves the files as they are; --diff shows what differs. After --minutes (30)
nothing more is begun. expect.json is never written: a person compares it when a cell changed.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TARGET = ROOT / "tests" / "golden_traces"
HOMES = ROOT / ".venv-interop"
LOCKS = HERE / "locks"

NPM_FILES = ("package.json", "package-lock.json")
_OTEL = ["opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-common"]


@dataclass(frozen=True)
class Environment:
    """What one lock installs, and the cells that one driver makes with it."""

    driver: str
    packages: list[str]
    cells: list[str]
    npm: bool = False


ENVIRONMENTS = {
    "langchain": Environment(
        "langchain_cells.py",
        [
            *("langgraph", "langchain", "langchain-openai", "langsmith", "langfuse"),
            *("mlflow-skinny", "pandas", "openinference-instrumentation-langchain"),
            *("opentelemetry-instrumentation-langchain", *_OTEL),
        ],
        [
            "langgraph_prebuilt.openinference",
            "langgraph_prebuilt.openllmetry",
            "langgraph_prebuilt.langsmith",
            "langgraph_prebuilt.langfuse",
            "langgraph_prebuilt.mlflow",
            "langgraph_agentic_rag.openinference",
            "langgraph_agentic_rag.openllmetry",
            "langgraph_plain.openinference",
            "langgraph_plain.openllmetry",
            "langchain_create_agent.openinference",
            "langchain_lcel.openinference",
            "langchain_lcel.openllmetry",
        ],
    ),
    "mlflow": Environment(
        "mlflow_cells.py", ["mlflow-skinny", "pandas", "openai"], ["mlflow_traced.mlflow"]
    ),
    "llamaindex": Environment(
        "llamaindex_cells.py",
        [
            *("llama-index-core", "llama-index-llms-openai-like"),
            "openinference-instrumentation-llama-index",
            *("opentelemetry-instrumentation-llamaindex", *_OTEL),
        ],
        [
            f"llamaindex_{app}.{kind}"
            for app in ("query", "chat", "function_agent", "react_agent", "workflow")
            for kind in ("openinference", "openllmetry")
        ],
    ),
    "openai_agents": Environment(
        "openai_cells.py",
        [
            *("openai-agents", "openinference-instrumentation-openai-agents"),
            *("opentelemetry-instrumentation-openai-agents", *_OTEL),
        ],
        [
            "openai_agents.openinference",
            "openai_agents.openllmetry",
            "openai_agents.sdk",
            "openai_agents_chat.sdk",
        ],
    ),
    "openai_agents_semconv": Environment(
        "openai_cells.py",
        ["openai-agents", "opentelemetry-instrumentation-openai-agents-v2", *_OTEL],
        ["openai_agents.semconv_spans"],
    ),
    "openai_semconv": Environment(
        "openai_cells.py",
        [
            *("openai", "httpx<1", "wrapt<2", "opentelemetry-instrumentation-openai-v2>=2.4b0"),
            *("opentelemetry-util-genai<1.2b0", *_OTEL),  # 1.2 and 1.3 lack what 2.4b0 imports
        ],
        [
            "openai_loop.semconv_spans",
            "openai_loop.semconv_events",
            "openai_loop.semconv_no_content",
        ],
    ),
    "openai_semconv_1_36": Environment(
        "openai_cells.py",
        ["openai", "httpx<1", "wrapt<2", "opentelemetry-instrumentation-openai-v2==2.3b0", *_OTEL],
        ["openai_loop.semconv_messages"],
    ),
    "pydantic_ai": Environment(
        "pydantic_cells.py",
        [
            *("pydantic-ai-slim[openai,logfire]", "openinference-instrumentation-pydantic-ai"),
            *_OTEL,
        ],
        ["pydantic_ai.logfire", "pydantic_ai.openinference"],
    ),
    "haystack": Environment(
        "haystack_cells.py",
        [
            *("haystack-ai", "opentelemetry-haystack", "openinference-instrumentation-haystack"),
            *_OTEL,
        ],
        [
            f"haystack_{app}.{kind}"
            for app in ("pipeline", "agent")
            for kind in ("openinference", "native")
        ],
    ),
    "smolagents": Environment(
        "smolagents_cells.py",
        ["smolagents[openai]", "openinference-instrumentation-smolagents", *_OTEL],
        ["smolagents_tool_calling.openinference"],
    ),
    "dspy": Environment(
        "dspy_cells.py",
        ["dspy", "openinference-instrumentation-dspy", *_OTEL],
        ["dspy_rag.openinference", "dspy_react.openinference"],
    ),
    "vercel_ai": Environment(
        "vercel_cells.py",
        [
            *("ai", "@ai-sdk/openai-compatible", "zod", "@opentelemetry/api"),
            *("@opentelemetry/sdk-trace-node", "@opentelemetry/otlp-transformer"),
        ],
        ["vercel_ai.otel"],
        npm=True,
    ),
}


def quiet_environment(home: str) -> dict[str, str]:
    """The variables of a cell's process: no keys, proxies or telemetry of whoever runs this."""
    names = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
    env = {name: os.environ[name] for name in names if name in os.environ}
    env |= {"HOME": home, "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore", "DO_NOT_TRACK": "1"}
    return env | {"NO_PROXY": "*", "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def installed(name: str, lock: bool, seconds: float) -> str | None:
    """Install an environment from its lock, once; returns why that failed, or None."""
    home, path = HOMES / f"traces-{name}", LOCKS / f"{name}.txt"
    npm = ENVIRONMENTS[name].npm
    locks = [LOCKS / name / file for file in NPM_FILES] if npm else [path]
    ready = home / ".ready"
    if not lock and ready.exists() and ready.read_text() == _together(locks):
        return None
    if npm and (shutil.which("npm") is None or shutil.which("node") is None):
        return "node and npm are not there"
    print(f"installing {name} …", file=sys.stderr, flush=True)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    packages = ENVIRONMENTS[name].packages
    if npm:
        for file in () if lock else locks:
            shutil.copy(file, home)
        words = ["npm", "install", *packages] if lock else ["npm", "ci"]
        words += ["--no-audit", "--no-fund", "--silent", "--prefix", str(home)]
    else:
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        words = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        words += ["install", "--quiet", *(packages if lock else ["--no-deps", "-r", str(path)])]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=max(seconds, 1))
    except subprocess.TimeoutExpired:
        return "the time is over"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["installation failed"])[-1][:160]
    if lock and npm:
        (LOCKS / name).mkdir(parents=True, exist_ok=True)
        for file in NPM_FILES:
            shutil.copy(home / file, LOCKS / name)
    elif lock:
        frozen = subprocess.run([*words[:4], "freeze"], capture_output=True, text=True, check=True)
        path.write_text(frozen.stdout)
    ready.write_text(_together(locks))
    return None


def _together(locks: list[Path]) -> str:
    return "".join(path.read_text() for path in locks)


def made(name: str, cell: str, target: Path, seconds: float) -> str | None:
    """Make one cell in a process of its own; returns why that failed, or None."""
    environment = ENVIRONMENTS[name]
    home = HOMES / f"traces-{name}"
    python = sys.executable if environment.npm else str(home / "bin" / "python")
    with tempfile.TemporaryDirectory() as folder:
        words = [python, str(HERE / environment.driver), cell, str(target)]
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                env=quiet_environment(folder) | {"GOLDEN_HOME": str(home)},
                capture_output=True,
                text=True,
                timeout=max(min(seconds, 180), 1),
            )
        except subprocess.TimeoutExpired:
            return "took too long"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no reason given"])[-1][:160]
    return None


def changes(old: Path, new: Path) -> str:
    """What differs between two files of a cell, in words."""
    if not old.exists():
        return "new"
    before, after = (gzip.decompress(path.read_bytes()).decode() for path in (old, new))
    if before == after:
        return "same"
    pairs = [_pairs(before), _pairs(after)]
    gone, come = pairs[0] - pairs[1], pairs[1] - pairs[0]
    names = collections.Counter(name for name, _ in (*gone, *come))
    shown = ", ".join(f"{name} ({count})" for name, count in names.most_common(6))
    return f"CHANGED in {len(names)} fields: {shown}" if names else "CHANGED in order alone"


def _pairs(text: str) -> collections.Counter[tuple[str, str]]:
    """Each value of a file with the name under which it is found, however deep."""
    pairs: collections.Counter[tuple[str, str]] = collections.Counter()

    def walk(value: object, name: str) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("key"), str) and "value" in value:
                walk(value["value"], value["key"])
                return
            for key, part in value.items():
                walk(part, key if not key.endswith("Value") else name)
        elif isinstance(value, list):
            for part in value:
                walk(part, name)
        else:
            pairs[name, str(value)] += 1

    for line in text.splitlines():
        walk(json.loads(line), "")
    return pairs


def show(old: Path, new: Path) -> None:
    """The first lines that differ, for whoever looks for the reason."""
    texts = []
    for path in (old, new):
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        texts.append(json.dumps(rows, indent=1, ensure_ascii=False).splitlines())
    for line in list(difflib.unified_diff(*texts, lineterm="", n=2))[:40]:
        print("   ", line[:200])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cells whose name has this text")
    parser.add_argument("--lock", action="store_true", help="newest versions; write locks/ anew")
    parser.add_argument("--minutes", type=float, default=30, help="stop after this many")
    parser.add_argument("--diff", action="store_true", help="show the first lines that differ")
    parser.add_argument("--keep", action="store_true", help="leave the files as they are")
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    TARGET.mkdir(parents=True, exist_ok=True)
    failed = False
    for name, environment in ENVIRONMENTS.items():
        cells = [cell for cell in environment.cells if options.only in cell]
        if not cells:
            continue
        reason = installed(name, options.lock, end - time.monotonic())
        for cell in cells:
            with tempfile.TemporaryDirectory() as folder:
                new = Path(folder) / f"{cell}.jsonl.gz"
                left = end - time.monotonic()
                why = reason or (made(name, cell, new, left) if left > 0 else "the time is over")
                old = TARGET / new.name
                verdict = f"not made: {why}" if why else changes(old, new)
                print(f"{cell}: {verdict}", flush=True)
                failed |= bool(why)
                if why is None and verdict != "same":
                    if options.diff and old.exists():
                        show(old, new)
                    if not options.keep:
                        shutil.copyfile(new, old)
    for name, why in json.loads((TARGET / "expect.json").read_text())["not possible"].items():
        print(f"{name}: not possible: {why}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
