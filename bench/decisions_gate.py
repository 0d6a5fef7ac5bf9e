"""What gate_run.py does with a bot that is not the same twice: false alarms, and falls it finds.

    python bench/decisions_gate.py              # about five minutes; the demo bot is asked first
    python bench/decisions_gate.py --tiny       # seconds, on made-up scores

Two configurations of the demo (with vectors and without) answer the shipped questions. A case's
score lines are one of both: in each of two runs it takes those of the other configuration with
chance .1. A true fall: some cases that found their passages take the lines of a case that did not,
and did not pass, so that the first metric falls by 5 points. Each pair of runs is written as two
metrics.json, and the gate itself (decisions/gate.py) holds them to the built-in rules and to
others. 300 cases are drawn with replacement, 30 without.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measuring import SCRIPTS, print_table, say

sys.path.insert(0, str(SCRIPTS))

import numpy as np

from decisions.conditions import Conditions
from decisions.gate import evaluate
from decisions.gate_checks import GateEvidence
from decisions.gate_rules import AgainstBase, GateRule, GateRules
from decisions.joint import joint_p
from decisions.primary import primary_names, read_primary
from ragmetrics import catalogue
from records import metric_lines
from records.metric_lines import PRIMARY
from records.metrics import PRIMARY_METRICS
from records.results import RunConfig

NS = (30, 90, 300)
SWAP = 0.1
FALL = 0.05
PASS = "pipeline.pass"
ALPHA = 0.05
SECTIONS = "retrieval,groundedness,abstention,pipeline"
CONFIGURATIONS = {"vectors": (), "lexical": ("--set=lexical_only=true",)}
ASKED = Path(tempfile.gettempdir()) / "rag-eval-decisions"


class Configurations(NamedTuple):
    """The scores of the same cases (rows) by two configurations, a column a primary metric."""

    names: tuple[str, ...]
    first: Any
    second: Any


class Pair(NamedTuple):
    """Two runs of a bot: what the baseline and the new run scored."""

    base: Any
    new: Any


def of_the_demo(cache: Path, names: Sequence[str]) -> Configurations:
    """Ask the demo bot in both configurations, unless that was done before, and score the runs."""
    found = []
    for name, words in CONFIGURATIONS.items():
        folder = cache / name
        if not (folder / "results.jsonl").exists():
            say(f"asking the demo bot ({name}) …")
            _script("run_eval", "--api-url", "demo", "--run-id", name, *words, cache=cache)
        scores = read_primary(folder, names)
        if scores is None or {n for n in names if n in scores.names} != {*measured(names)}:
            say(f"scoring the run ({name}) …")
            _script("eval_suite", "--run", name, "--sections", SECTIONS, cache=cache)
            scores = read_primary(folder, names)
        if scores is None:
            raise SystemExit(f"{folder}: has no scores of {', '.join(names)}")
        found.append(scores)
    a, b = found
    shared = tuple(name for name in a.names if name in b.names)
    rows = [b.case_ids.index(case_id) for case_id in a.case_ids]
    return Configurations(
        shared,
        a.values[:, [a.names.index(name) for name in shared]],
        b.values[rows][:, [b.names.index(name) for name in shared]],
    )


def measured(names: Sequence[str]) -> list[str]:
    """The metrics that the sections of the demo's runs hold."""
    return [name for name in names if name.partition(".")[0] in SECTIONS.split(",")]


def _script(script: str, *words: str, cache: Path) -> None:
    more = ["--store-full-text"] if script == "run_eval" else []
    line = [sys.executable, str(SCRIPTS / f"{script}.py"), *words, *more, "--quiet"]
    done = subprocess.run(
        [*line, "--results-dir", str(cache)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)


def made_up(names: Sequence[str], rng: np.random.Generator) -> Configurations:
    """90 cases whose metrics hang together: a case is easy or hard for all of them."""
    ease = rng.random((90, 1))
    runs = [(rng.random((90, len(names))) < 0.3 + 0.6 * ease).astype(float) for _ in range(2)]
    return Configurations(tuple(names), *runs)


def drawn(bot: Configurations, n: int, fall: float, rng: np.random.Generator) -> Pair:
    """Two runs over ``n`` cases; in the new one the first metric truly falls by ``fall``."""
    size = len(bot.first)
    rows = rng.choice(size, n, replace=n > size)
    runs = []
    for _ in range(2):
        swapped = rng.random(n) < SWAP
        runs.append(np.where(swapped[:, None], bot.second[rows], bot.first[rows]))
    base, new = runs
    if fall:
        lead = new[:, 0]
        hits = ~np.isnan(lead) & (lead > 0)
        lost = hits & (rng.random(n) < fall * np.sum(~np.isnan(lead)) / max(np.nansum(lead), 1e-9))
        misses = bot.first[bot.first[:, 0] == 0]
        if PASS in bot.names:  # an answer without its passages does not pass
            misses = misses[misses[:, bot.names.index(PASS)] == 0]
        new = new.copy()
        new[lost] = misses[rng.integers(0, len(misses), int(lost.sum()))]
    return Pair(base, new)


def metrics_file(path: Path, names: Sequence[str], values: Any) -> Conditions:
    """The metrics.json of a run with these primary scores, as a scorer writes it."""
    sections: dict[str, dict[str, Any]] = {}
    for name, column in zip(names, values.T, strict=True):
        section, _, metric = name.partition(".")
        scored = column[~np.isnan(column)]
        half = 1.96 * scored.std(ddof=1) / len(scored) ** 0.5 if len(scored) > 1 else 0.0
        parts: dict[str, Any] = {
            "mean": float(scored.mean()) if len(scored) else None,
            "ci95": [float(scored.mean() - half), float(scored.mean() + half)] if half else None,
            "n": len(scored),
            "not_applicable": len(column) - len(scored),
            "failed": 0,
            "definitions": catalogue_id(metric),
        }
        table = sections.setdefault(section, {})
        for part, value in parts.items():
            table.setdefault(part, {})[metric] = value
    rows = {
        f"c{at}": [None if value != value else round(value, 6) for value in row]
        for at, row in enumerate(values.tolist())
    }
    head = {"schema": metric_lines.SCHEMA, "run_id": path.stem, "cases": len(values), "errors": 0}
    head |= {"asked": len(values), "missing": 0}
    written = {name: metric_lines.written_section(table) for name, table in sections.items()}
    metrics = head | {PRIMARY_METRICS: list(names), PRIMARY: rows}
    path.write_bytes(metric_lines.metrics_bytes(metrics | {"sections": written}))
    return Conditions(path.stem, head | {"sections": sections}, RunConfig(path.stem), path)


def known(name: str) -> bool:
    """Whether the catalogue has a row for ``section.metric``, as such rules need."""
    return not catalogue_id(name.partition(".")[2]).endswith("@0")


def catalogue_id(metric: str) -> str:
    try:
        return catalogue.find(metric).definition
    except KeyError:
        return f"{metric}@0"


def file_rules(names: Sequence[str], rule: AgainstBase, coverage: float | None) -> GateRules:
    """A gates file with one rule for every primary metric, and nothing built in for them."""
    none = dict.fromkeys(names, AgainstBase("none"))
    own = dict.fromkeys(filter(known, names), rule)
    every = [GateRule("baseline", name, must) for name, must in (none | own).items()]
    return GateRules(None, every, coverage_drop=coverage)


def by_gate(rules: GateRules, base: Conditions, new: Conditions, targets: Path) -> bool:
    return not evaluate(rules, GateEvidence(new, base, targets=targets)).passed


def by_holm(pair: Pair) -> bool:
    """Each metric's own sign flips; Holm calls one where the smallest p times their number is
    small enough."""
    differences = pair.new - pair.base
    single = [
        float(joint_p(differences[:, [at]], None, "worse")[0]) for at in range(pair.new.shape[1])
    ]
    return len(single) * min(single) <= ALPHA


def table(bot: Configurations, simulations: int, fall: float, seed: int) -> dict[str, list[float]]:
    """The share of simulated pairs that each rule fails, at each number of cases."""
    drop, fixed = AgainstBase("drop", 0.1, True), AgainstBase("drop", 0.05)
    files = {
        "built-in (joint, one-sided)": GateRules(None),
        "drop 10 %": file_rules(bot.names, drop, None),
        "drop 10 %, no lower coverage (old default)": file_rules(bot.names, drop, 0.0),
        "fixed .05": file_rules(bot.names, fixed, None),
    }
    shares: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        targets = Path(folder) / "targets.toml"
        targets.write_text(f"[decide]\nprimary = {list(bot.names)}\n")
        for n in NS:
            rng = np.random.default_rng([seed, n])
            failed = dict.fromkeys((*files, "Holm, one-sided"), 0)
            for _ in range(simulations):
                pair = drawn(bot, n, fall, rng)
                base = metrics_file(Path(folder) / "base.json", bot.names, pair.base)
                new = metrics_file(Path(folder) / "new.json", bot.names, pair.new)
                for name, rules in files.items():
                    failed[name] += by_gate(rules, base, new, targets)
                failed["Holm, one-sided"] += by_holm(pair)
            for name, count in failed.items():
                shares.setdefault(name, []).append(count / simulations)
    return shares


def show(title: str, shares: dict[str, list[float]]) -> None:
    print(f"\n{title}")
    print_table(
        ("rule", *(f"n = {n}" for n in NS)),
        [(name, *(f"{share:.3f}" for share in values)) for name, values in shares.items()],
    )


def run(bot: Configurations, simulations: int, seed: int = 0) -> bool:
    """Print both tables; whether the built-in rules keep the promises of docs/decisions.md."""
    alarms = table(bot, simulations, 0.0, seed)
    show(f"False alarms: nothing changed ({simulations} pairs)", alarms)
    power = table(bot, simulations, FALL, seed + 1)
    show(f"Found: {bot.names[0]} truly falls by {FALL:g} ({simulations} pairs)", power)
    name = "built-in (joint, one-sided)"
    return max(alarms[name]) <= ALPHA and power[name][1] >= 0.4 and power[name][2] >= 0.9


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=ASKED, help="where the demo's runs are kept")
    parser.add_argument("--metrics", help="other metrics than the primary ones, comma-separated")
    parser.add_argument("--tiny", action="store_true", help="made-up scores, few simulations")
    options = parser.parse_args(words)
    names = tuple(options.metrics.split(",")) if options.metrics else primary_names()
    if options.tiny:
        run(made_up(names[:3], np.random.default_rng(0)), 5)
        return 0
    options.cache.mkdir(parents=True, exist_ok=True)
    return 0 if run(of_the_demo(options.cache, names), options.simulations, options.seed) else 1


_Raw: Callable[..., Any] = argparse.RawDescriptionHelpFormatter

if __name__ == "__main__":
    sys.exit(main())
