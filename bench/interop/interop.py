"""Round trips with the real peers: what comes through, what is told, what is lost.

    python bench/interop/interop.py [--only NAME] [--folder PATH]

One environment for each peer below .venv-interop/, since they clash; one that does not install is
shown as not run. A value is ``kept`` when it stands in a field of ours (``metadata``: there), and
``reported`` when the counts of the import name it; else it is ``LOST`` and the exit code is 1.
Last come the golden traces, see traces/make_traces.py; ``--only traces`` makes them alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HOMES = ROOT / ".venv-interop"
sys.path.insert(0, str(HERE))

from facts import FACTS, trajectories  # noqa: E402

PEERS = {
    "ragas": ["ragas"],
    "deepeval": ["deepeval"],
    "openinference": [
        "llama-index-core",
        "openinference-instrumentation-llama-index",
        *("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-common"),
    ],
    "rankings": ["ir_measures", "ranx"],
    "adk": ["google-adk"],
    "langserve": ["langserve[server]"],
    "hayhooks": ["hayhooks"],
    "workflows": ["llama-agents-server"],
}
"""The Python peers and what is installed for each; none of them needs torch."""

NPM = {"promptfoo": "promptfoo"}

SERVED = {"langserve": "", "hayhooks": "", "workflows": "/workflows/rag/run"}
"""Real servers that connect_bot.py is pointed at, and the path of the address that a user gives."""


@dataclass
class Source:
    """A file that a peer wrote: our format, the file, and the fields that it was given."""

    peer: str
    kind: str
    file: str
    fields: str
    more: tuple[str, ...] = ()


GIVEN: dict[str, Callable[[dict[str, Any]], list[Any]]] = {
    "question": lambda fact: [fact["question"]],
    "answer": lambda fact: [fact["answer"]],
    "reference": lambda fact: [fact["reference"]],
    "gold": lambda fact: fact["gold"],
    "passages": lambda fact: [passage["text"] for passage in fact["passages"]],
    "ids": lambda fact: [passage["id"] for passage in fact["passages"]],
    "paths": lambda fact: [passage["rel_path"] for passage in fact["passages"]],
    "headings": lambda fact: [passage["heading"] for passage in fact["passages"]],
    "scores": lambda fact: [passage["score"] for passage in fact["passages"]],
    "relevant": lambda fact: list(fact["relevant"]),
    "tokens": lambda fact: [fact["input_tokens"], fact["output_tokens"]],
    "cost": lambda fact: [fact["cost"]],
    "seconds": lambda fact: [fact["seconds"] * 1000],
    "note": lambda fact: [fact["note"]],
    "model": lambda fact: [fact["model"]],
    "judged": lambda fact: [fact["judged"]],
    "searches": lambda fact: fact["searches"],
}

TOLD = {"note": "rubrics|note|metadata", "judged": "gradingResult|Grader Reason|metricsData"}
"""How a report names what it does not hold in a field."""

SOURCES = [
    Source(
        "ragas", "ragas", "ragas.jsonl", "question answer reference gold passages ids relevant note"
    ),
    Source(
        "ragas", "ragas", "ragas.csv", "question answer reference gold passages ids relevant note"
    ),
    Source("deepeval", "deepeval", "goldens.json", "question answer reference gold passages note"),
    Source("deepeval", "deepeval", "goldens.jsonl", "question answer reference gold passages note"),
    Source("deepeval", "deepeval", "goldens.csv", "question answer reference gold passages note"),
    Source(
        "deepeval",
        "deepeval",
        "test-run.json",
        "question answer reference gold passages cost seconds note",
    ),
    Source(
        "openinference",
        "otel",
        "spans.json",
        "question answer passages ids paths headings scores note model searches",
    ),
    Source("rankings", "trec", "qrels.txt run.txt topics.tsv", "question ids scores relevant"),
    Source(
        "promptfoo",
        "promptfoo",
        "out.json",
        "question answer passages ids paths headings tokens cost note judged",
    ),
    Source(
        "promptfoo",
        "promptfoo",
        "out.jsonl",
        "question answer passages ids paths headings tokens cost note judged",
    ),
    Source("promptfoo", "promptfoo", "out.csv", "question answer note judged"),
]


def installed(name: str) -> str | None:
    """Install a peer once; returns why it cannot be run, None when it can."""
    if name == "rankings" and not (ROOT / "eval" / "extras" / "research").is_dir():
        return "eval/extras/research, which reads them, is not there"
    home = HOMES / name
    ready = home / ".ready"
    if ready.exists():
        return None
    home.mkdir(parents=True, exist_ok=True)
    if name in NPM:
        if shutil.which("npm") is None:
            return "npm is not there"
        words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), NPM[name]]
    else:
        if not (home / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        words = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        words += ["--disable-pip-version-check", "--no-compile", *PEERS[name]]
    print(f"installing {name} …", file=sys.stderr, flush=True)
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["installation failed"])[-1][:120]
    ready.touch()
    return None


def versions(name: str) -> str:
    """What is installed of a peer."""
    if name in NPM:
        package = HOMES / name / "node_modules" / NPM[name] / "package.json"
        return f"{NPM[name]} {json.loads(package.read_text())['version']}"
    code = "import importlib.metadata as m, sys; "
    code += "print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep=', ')"
    names = [package.partition("[")[0] for package in PEERS[name]]
    return run([str(HOMES / name / "bin" / "python"), "-c", code, *names]).strip()


def run(words: list[str], **more: Any) -> str:
    """The stdout of a program. Raises RuntimeError with the end of its stderr."""
    env = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    env |= {"PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore"}
    env |= {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    env |= more.pop("env", {})
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=600, **more)
    if done.returncode not in more.get("ok", (0, 100)):  # 100: promptfoo, a test failed
        raise RuntimeError((done.stderr.strip() or done.stdout.strip())[-400:])
    return done.stdout


def peer(name: str, verb: str, folder: Path) -> str:
    python = str(HOMES / name / "bin" / "python")
    return run([python, str(HERE / f"{name}_peer.py"), verb, str(folder)])


def convert(*words: str) -> dict[str, Any]:
    """Our converter; its report."""
    script = str(ROOT / "eval" / "scripts" / "convert_data.py")
    report: dict[str, Any] = json.loads(
        run([sys.executable, script, *words, "--json", "-q"], env={"PYTHONPATH": ""})
    )
    return report


PROVIDER = """import json
FACTS = json.load(open({facts!r}))
def call_api(prompt, options, context):
    fact = next(fact for fact in FACTS if fact["question"] == prompt)
    usage = {{"prompt": fact["input_tokens"], "completion": fact["output_tokens"]}}
    usage["total"] = sum(usage.values())
    retrieved = [dict(one, heading_path=one["heading"]) for one in fact["passages"]]
    for one in retrieved: del one["heading"]
    return {{"output": fact["answer"], "tokenUsage": usage, "cost": fact["cost"],
            "metadata": {{"retrieved": retrieved}}}}
"""


def make_promptfoo(folder: Path) -> None:
    facts = folder / "facts.json"
    facts.write_text(json.dumps(FACTS))
    (folder / "bot.py").write_text(PROVIDER.format(facts=str(facts)))
    reason = "({pass: true, score: 1, reason: context.vars.judged})"
    tests = [
        {
            "vars": {"question": fact["question"], "judged": fact["judged"], "note": fact["note"]},
            "assert": [{"type": "javascript", "value": reason}],
        }
        for fact in FACTS
    ]
    config = {"prompts": ["{{question}}"], "providers": ["file://bot.py"], "tests": tests}
    (folder / "config.json").write_text(json.dumps(config))
    promptfoo(folder, "config.json", "out.json", "out.jsonl", "out.csv")


def promptfoo(folder: Path, config: str, *outputs: str) -> None:
    words = [str(HOMES / "promptfoo" / "node_modules" / ".bin" / "promptfoo"), "eval"]
    words += ["-c", config, "--no-cache", "-j", "1"]
    words += [word for output in outputs for word in ("-o", output)]
    run(words, cwd=folder, env={"PROMPTFOO_CONFIG_DIR": str(folder / "cfg")})


def verdicts(source: Source, folder: Path) -> dict[str, str]:
    """Where each given field stands after an import."""
    out = folder / f"import-{source.file.replace(' ', '-')}"
    files = [str(folder / name) for name in source.file.split()]
    report = convert("import", source.kind, *files, "--output", str(out), *source.more)
    cases = [json.loads(line) for line in (out / "eval_set.jsonl").read_text().splitlines()]
    metadata = json.dumps([case.pop("metadata", {}) for case in cases])
    texts = [path.read_text() for path in out.glob("labels/*.jsonl")]
    texts += [path.read_text() for path in out.glob("results/*/results.jsonl")]
    fields = json.dumps(cases) + "\n".join(texts)
    counts = json.dumps([report["kept"], report["changed"], report["left_out"]])
    found: dict[str, str] = {}
    for name in source.fields.split():
        values = [value for fact in FACTS for value in GIVEN[name](fact)]
        if all(_stands(value, fields) for value in values):
            found[name] = "kept"
        elif all(_stands(value, metadata) or _stands(value, fields) for value in values):
            found[name] = "metadata"
        elif re.search(TOLD.get(name, name), counts):
            found[name] = "reported"
        else:
            found[name] = "LOST"
    if found.get("searches") == "kept" and _queries(out) != [fact["searches"] for fact in FACTS]:
        found["searches"] = "LOST"
    return found


def _queries(out: Path) -> list[list[str]]:
    """What was searched for each question, in order."""
    return [[search["query"] for search in row["searches"]] for row in _results(out)]


def _stands(value: Any, text: str) -> bool:
    spelled = json.dumps(value)
    if isinstance(value, float) and value == int(value):
        return (
            spelled in text or re.search(rf"[:\s\[]{int(value)}(?:\.0)?[,}}\]]", text) is not None
        )
    return spelled in text or spelled.strip('"') in text


def ours(folder: Path) -> Path:
    """A run of ours with everything, to be exported."""
    rows = [fact | {"n": f"case-{n}"} for n, fact in enumerate(FACTS, 1)]
    (folder / "ours.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    maps = ["id=n", "question=question", "answer=answer", "reference_answer=reference"]
    maps += ["gold_contexts=gold", "chunk_relevance_grades=relevant", "retrieved=passages"]
    maps += ["retrieved.chunk_id=id", "retrieved.text=text", "retrieved.rel_path=rel_path"]
    maps += ["retrieved.heading_path=heading", "retrieved.score_final=score", "cost_usd=cost"]
    maps += ["usage={input_tokens: input_tokens, output_tokens: output_tokens}"]
    words = [word for text in maps for word in ("--map", text)]
    convert("import", "json", str(folder / "ours.jsonl"), *words, "--output", str(folder / "ours"))
    return folder / "ours"


def exported(kind: str, base: Path, target: Path, *more: str) -> None:
    words = ["--eval-set", str(base / "eval_set.jsonl"), "--results-dir", str(base / "results")]
    convert("export", kind, *words, "--run", "ours", "--output", str(target), *more)


def _results(base: Path) -> list[dict[str, Any]]:
    path = next(base.glob("results/*/results.jsonl"))
    return [json.loads(line) for line in path.read_text().splitlines()]


def round_trip(name: str, folder: Path) -> str:
    """What the real peer scores of our trajectories, or of our export."""
    if name == "ragas":
        theirs = json.loads(peer(name, "tools", folder).splitlines()[-1])
        return tools_equal({"tool_f1": theirs})
    if name == "rankings":
        base = ours(folder)
        exported("trec", base, folder / "export", "--match", "chunk")
        means = json.loads(peer(name, "check", folder).splitlines()[-1])
        script = str(ROOT / "eval" / "scripts" / "score_retrieval.py")
        words = [sys.executable, script, "--eval-set", str(base / "eval_set.jsonl"), "--quiet"]
        words += ["--results-dir", str(base / "results"), "--run", "ours", "--match", "chunk"]
        run([*words, "--k", "3"], env={"PYTHONPATH": ""})
        metrics = json.loads((base / "results" / "ours" / "metrics.json").read_text())
        lines = metrics["sections"]["retrieval"]["metrics"]
        section = {metric: line["mean"] for metric, line in lines.items() if "mean" in line}
        section |= {"map": section["map@3"]}  # no list is longer
        differing = [
            f"{tool} {metric} {value} against {section[metric]}"
            for tool, values in means.items()
            for metric, value in values.items()
            if abs(section[metric] - value) > 1e-6  # metrics.json has six decimals
        ]
        return "; ".join(differing) or "equal (4 metrics, both tools)"
    return "–"


def tools_equal(theirs: dict[str, list[float]]) -> str:
    """Whether a peer's scores of the drawn trajectories are ours; ``any``: all expected calls were
    made. ragas puts calls into sets and rounds to four places: only where none occurs twice."""
    sys.path.insert(0, str(ROOT / "eval" / "scripts"))
    from ragmetrics.catalogue.tools import ROWS
    from ragmetrics.tools import ToolLabels, score_tools
    from records.tool_calls import ExpectedTool, ToolCall

    names, compared = [row.name for row in ROWS], 0
    for place, (expected, actual) in enumerate(trajectories()):
        keys = [[json.dumps(call) for call in calls] for calls in (expected, actual)]
        for kind, values in theirs.items():
            if kind == "tool_f1" and any(len(set(calls)) < len(calls) for calls in keys):
                continue
            stated = [ExpectedTool(name, arguments, "exact") for name, arguments in expected]
            labels = ToolLabels(stated, order=kind if kind in ("strict", "partial") else None)
            scores = score_tools(names, [ToolCall(*call) for call in actual], labels).values
            metric = {"any": "tool_recall", "tool_f1": "tool_f1"}.get(kind, "order_match")
            value = scores[metric]
            value = float(value == 1) if kind == "any" else round(value or 0.0, 4)
            if value != values[place]:
                return f"DIFFERS: {kind} of {expected} and {actual}: {values[place]}, ours {value}"
            compared += 1
    return f"equal (tool calls, {compared} scores)"


def adk(folder: Path) -> str:
    """The trajectories of the real ADK."""
    theirs = json.loads(peer("adk", "check", folder).splitlines()[-1])
    ours = {"EXACT": "strict", "IN_ORDER": "partial", "ANY_ORDER": "any"}
    return tools_equal({ours[kind]: values for kind, values in theirs.items()})


def served(name: str, folder: Path) -> str:
    """Connect a real server with one command, run the facts against it, compare what is stored."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    python, url = str(HOMES / name / "bin" / "python"), f"http://127.0.0.1:{port}"
    env = os.environ | {"PYTHONPATH": str(HERE)}
    words = [python, str(HERE / "serving_peer.py"), name, str(port)]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(words, env=env, start_new_session=True, **quiet)
    try:
        _await(port, server)
        cases = folder / "set.jsonl"
        rows = [
            {
                "id": f"q{number}",
                "question": fact["question"],
                "answerable": True,
                "gold_supports": [{"rel_path": fact["passages"][0]["rel_path"]}],
            }
            for number, fact in enumerate(FACTS, start=1)
        ]
        cases.write_text("".join(json.dumps(row) + "\n" for row in rows))
        scripts, profile = ROOT / "eval" / "scripts", folder / "bot.toml"
        common = ["--eval-set", str(cases)]
        words = [sys.executable, str(scripts / "connect_bot.py"), url + SERVED[name], *common]
        run([*words, "--name", str(profile), "--yes"], env={"PYTHONPATH": ""})
        words = [sys.executable, str(scripts / "run_eval.py"), "--api-url", url, *common]
        words += ["--profile", str(profile), "--results-dir", str(folder / "results")]
        run([*words, "--run-id", "r", "--store-full-text"], env={"PYTHONPATH": ""})
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)
    lines = (folder / "results" / "r" / "results.jsonl").read_text().splitlines()
    found = [
        (row["answer"], [(one["rel_path"], one["text"]) for one in row["retrieved"]])
        for row in map(json.loads, lines)
    ]
    expected = [
        (fact["answer"], [(one["rel_path"], one["text"]) for one in fact["passages"]])
        for fact in FACTS
    ]
    return "equal (connected with one command)" if found == expected else f"DIFFERS: {found}"


def _await(port: int, server: subprocess.Popen[bytes]) -> None:
    """Until the server listens. Raises RuntimeError when it ended, or after two minutes."""
    for _ in range(240):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            break
        time.sleep(0.5)
    raise RuntimeError("the server does not listen")


def watched(folder: Path) -> str:
    """Watch the traces of a real instrumented bot that changes on 16 March."""
    if not (extra := ROOT / "eval" / "extras" / "watch").is_dir():
        return "left out: eval/extras/watch is not there"
    traces = folder / "watch"
    traces.mkdir()
    peer("openinference", "watch", traces)
    words = [
        sys.executable,
        str(extra / "watch_traces.py"),
        str(traces),
        "--index",
        str(folder / "watch.sqlite"),
    ]
    words += ["--reference", "2026-03-01..2026-03-12", "--check-share", "0", "--json"]
    words += ["--cases", "10", "--output", str(folder / "drawn")]
    report = json.loads(run(words, env={"PYTHONPATH": ""}))
    alarms = {
        figure["name"]: figure["watch"]["current"]["since"]
        for figure in report["figures"]
        if figure["name"] in report["alarms"]
    }
    drafts = (folder / "drawn" / "cases" / "eval_set.jsonl").read_text().splitlines()
    shown = sum("refusals" in json.loads(line)["tags"] for line in drafts)
    on_time = alarms.get("refusals", "") in ("2026-03-15", "2026-03-16", "2026-03-17")
    passed = on_time and shown >= 3
    text = f"{report['traces']} traces; alarms since {alarms}; {shown} of {len(drafts)} cases"
    return f"{'equal' if passed else 'DIFFERS'}: {text} show it"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=[*PEERS, *NPM, "traces"], help="one peer")
    parser.add_argument("--folder", type=Path, help="where the files are made and stay")
    options = parser.parse_args()
    if options.only == "traces":
        sys.exit(golden_traces())
    folder = options.folder or Path(tempfile.mkdtemp(prefix="interop-"))
    names = [options.only] if options.only else [*PEERS, *NPM]
    table: list[list[str]] = []
    trips: list[list[str]] = []
    failed = False
    for name in names:
        here = folder / name
        here.mkdir(parents=True, exist_ok=True)
        reason = installed(name)
        if reason is None:
            try:
                if name in SERVED:
                    trip = served(name, here)
                    failed |= trip.startswith("DIFFERS")
                    trips.append([name, versions(name), trip])
                    continue
                make_promptfoo(here) if name in NPM else peer(name, "make", here)
                for source in (one for one in SOURCES if one.peer == name):
                    found = verdicts(source, here)
                    failed |= "LOST" in found.values()
                    table.append([f"{name}: {source.file}", *(found.get(f, "") for f in GIVEN)])
                own = {"openinference": watched, "adk": adk}.get(name)
                trip = own(here) if own else round_trip(name, here)
                failed |= "DIFFERS" in trip or "against" in trip
                trips.append([name, versions(name), trip])
                continue
            except (RuntimeError, subprocess.SubprocessError) as error:
                reason, failed = str(error).replace("\n", " ")[-200:], True
        trips.append([name, "", f"not run: {reason}"])
    print_table(["source", *GIVEN], table)
    print_table(["peer", "versions", "our scores, and its"], trips)
    if options.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    if options.only is None:
        failed |= golden_traces() != 0
    sys.exit(1 if failed else 0)


def golden_traces() -> int:
    """Make the traces of tests/golden_traces anew; the exit code."""
    return subprocess.run([sys.executable, str(HERE / "traces" / "make_traces.py")]).returncode


def print_table(head: list[str], rows: list[list[str]]) -> None:
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()


if __name__ == "__main__":
    main()
