"""Ask a judge which of two runs answers better, each pair of answers in both orders.

In: a run and a base with answers to the same questions, the eval set, and a judge: a model behind a
server, described in eval/judges/NAME.toml or by --judge and --model. --rubric NAME asks by a rubric
of eval/rubrics. Out: pairs/BASE.jsonl of the run (each verdict with the quote that decided), and on
stdout ``better 20, worse 12, undecided 68 of 100`` with the test, its interval and the smallest
share that it would have found. compare_runs.py, report_run.py and browse_runs.py also show it.

The judge sees the question, earlier turns, the reference if there is one, and both answers without
the names of their runs. A run wins a case if its answer wins in both orders; otherwise the case is
undecided. Equal answers are not judged. A failed call is counted as a missing verdict, never as a
tie. Each of several runs is compared with the base, and the tests are corrected for their number.

Calls and cost are printed before anything is sent. You pay for each verdict once: eval/cache keeps
it, and the same command continues after a stop. People label the same pairs blind with
calibrate_judge.py --run NEW --pairs-with BASE --label.

\b
Examples:
  python eval/extras/pairs/judge_pairs.py --run new --base old --judge gpt4o
  python eval/extras/pairs/judge_pairs.py --run new --base old --judge gpt4o --dry-run
  python eval/extras/pairs/judge_pairs.py --run new --base old --rubric helpful --judge gpt4o
  python eval/extras/pairs/judge_pairs.py --run k3,k5,k10 --base k1 --judge gpt4o --max-cost 5

Exit codes: 0 done, 2 bad input or usage, 3 judge unreachable or too many judgements failed
(--max-error-rate), 130 interrupted.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options
from judging.choice import JudgeChoice
from records import opt
from records.errors import StorageError

if TYPE_CHECKING:
    from extras.pairs.asking import PairsPlan
    from judging.connect import JudgeOptions
    from judging.run import JudgingOutcome


@dataclass(frozen=True, kw_only=True)
class PairsOptions(JudgeChoice, opt.Output):
    """The options of judge_pairs.py."""

    runs: tuple[str, ...] = opt.value(
        "Run id, path of a run folder, or 'latest'. Several: each is compared with the base.",
        names="--run --run-id",
        default=("latest",),
        shown="latest",
        metavar="RUN,…",
    )
    base: str = opt.value("The run to compare them with.", metavar="RUN", required=True)
    rubric: str | None = opt.value("Compare by this rubric of eval/rubrics.", metavar="NAME")
    results_dir: Path = opt.results_dir()
    eval_set: Path | None = opt.run_set()
    labels_dir: Path | None = opt.labels_dir()
    repeats: int = opt.value("Opinions on each pair and order.", default=1, low=1, high=100)
    max_error_rate: float = opt.error_rate("Exit 3 above this share of failed judgements.")
    dry_run: bool = opt.flag("Print calls and cost; ask nothing.")
    show_prompt: str | None = opt.value(
        "Print the prompt for this case; ask nothing.", metavar="CASE"
    )
    rescore: bool = opt.flag("Count existing verdicts; ask nothing.")
    seed: int = opt.seed()


@options.script(
    PairsOptions,
    help=__doc__,
    how_to_go_on="Every verdict so far is kept: the same command continues.",
)
def main(asked: PairsOptions) -> int:
    from judging.asking import prompts_text
    from judging.connect import JudgeOptions
    from judging.judge_files import judge_settings
    from records.runs import find_run

    judge_options = JudgeOptions.of(judge_settings(**asked.words()), vars(asked))

    def plans_of_runs() -> list[PairsPlan]:
        folders = [find_run(asked.results_dir, name) for name in asked.runs]
        base = find_run(asked.results_dir, asked.base)
        found = [plan_of(folder, base, judge_options, asked) for folder in dict.fromkeys(folders)]
        if judge_options.by_rules and not asked.rescore:
            raise StorageError(
                "--judge: the embedded rules cannot compare two answers; name a judge of "
                "eval/judges, or a server."
            )
        return found

    outcome_of_extra = options.run_extras(asked, judge_options=judge_options, plans=plans_of_runs)
    if isinstance(outcome_of_extra, int):
        return outcome_of_extra
    plans = plans_of_runs()
    if asked.rescore:
        show(plans, asked)
        return options.Exit.DONE
    if asked.show_prompt:
        text = prompts_text(plans, judge_options, asked.show_prompt, as_json=asked.as_json)
        click.echo(text or "No judge is asked: the answers are equal.\n", nl=False, err=not text)
        return options.Exit.DONE
    estimate(plans, judge_options, asked, quietly=not asked.dry_run)
    if asked.dry_run:
        return options.Exit.DONE
    outcomes = judge(plans, judge_options, asked)
    if any(outcome.unreached for outcome in outcomes):
        return options.Exit.UNREACHABLE
    show(plans, asked)
    most = asked.max_error_rate
    failed = sum(outcome.lines["failed"] for outcome in outcomes)
    if any(outcome.too_many_failed(most) for outcome in outcomes):
        options.say(
            f"{failed} judgements failed, more than --max-error-rate {most:g} allows. The others "
            "are counted; the same command asks for the failed ones again."
        )
        return options.Exit.UNREACHABLE
    return options.Exit.DONE


def plan_of(
    folder: Path, base: Path, judge_options: JudgeOptions, asked: PairsOptions
) -> PairsPlan:
    """The questions about a run and the base, from the options."""
    from extras.pairs.asking import PairsPlan
    from judging.kinds import pair_kind
    from judging.run import refuse_examples
    from records.rubrics import find

    if folder.resolve() == base.resolve():
        raise StorageError(f"--base {base.name}: is the run itself; name another run.")
    eval_set, labels_dir = options.set_of_run(base, asked.eval_set, asked.labels_dir)
    name = (asked.rubric or "").removeprefix("rubrics.")
    rubric, path = find(name) if name else (None, Path())
    if rubric is not None and (extra := {"passages", "tools"}.intersection(rubric.reads)):
        raise StorageError(
            f"--rubric {rubric.name}: it reads {' and '.join(sorted(extra))}, which the answers of "
            "two runs do not share; name a rubric that reads question, history, reference, answer."
        )
    kind = pair_kind(rubric)
    plan = PairsPlan(
        folder,
        eval_set,
        labels_dir,
        (kind.prompt,),
        repeats=asked.repeats,
        seed=asked.seed,
        concurrency=judge_options.concurrency,
        kinds={kind.prompt: kind},
        base=base,
    )
    for one in () if asked.rescore else (plan, plan.of_base()):
        refuse_examples(one, {kind.prompt: path})
    return plan


def estimate(
    plans: list[PairsPlan], judge_options: JudgeOptions, asked: PairsOptions, *, quietly: bool
) -> None:
    """Print the expected calls and cost of judging: a table on stdout, or ``quietly`` a line on
    stderr."""
    from judging.asking import expect
    from judging.show import estimate_line, print_estimate

    if quietly and asked.quiet:
        return
    expected = expect(plans, judge_options)
    if quietly:
        line = expected.recipients or estimate_line(expected.cost, judge_options.max_cost)
        options.say(line)
    elif asked.as_json:
        click.echo(expected.json(), nl=False)
    else:
        print_estimate(options.stdout_console(), expected.cost)
        options.say("\n".join(expected.lines()), err=False)


def judge(
    plans: list[PairsPlan], judge_options: JudgeOptions, asked: PairsOptions
) -> list[JudgingOutcome]:
    """Judge all pairs and report the calls and cost. Raises StorageError when the judge has
    changed."""
    from dataclasses import fields
    from functools import reduce
    from operator import add

    from judging.asking import fact_store
    from judging.connect import connect
    from judging.run import JudgingOutcome, confirm, judge_run
    from judging.show import bill
    from records.verdict_lines import drop_damage
    from records.verdicts import VerdictReader

    console = options.stderr_console(quiet=asked.quiet)
    outcomes = []
    with connect(judge_options) as connection:
        facts = fact_store(judge_options, connection)
        for plan in plans:
            drop_damage(plan.verdicts_file)
            reader = VerdictReader(plan.verdicts_file)
            outcomes.append(judge_run(plan, connection, facts, reader, console))
        total = JudgingOutcome(
            *(reduce(add, (getattr(o, f.name) for o in outcomes)) for f in fields(JudgingOutcome))
        )
        for line in (*bill(total, connection.judge.totals), *connection.notes()):
            console.print(line)
        for plan in plans:
            confirm(plan, connection)
    return outcomes


def show(plans: list[PairsPlan], asked: PairsOptions) -> None:
    """Count the pairs of the runs and print them, the verdict last."""
    from extras.pairs.deciding import decided_runs, pairs_page
    from records.claim_labels import label_files, read_labels
    from records.clusters import read_clusters
    from terminal.print_page import print_page

    first = plans[0]
    folders = [plan.folder for plan in plans]
    clusters = read_clusters(first.eval_set)
    labels = read_labels(label_files(first.labels_dir, [])) if first.labels_dir else []
    found = decided_runs(
        first.base, folders, clusters, metric=first.calls[0], seed=asked.seed, labels=labels
    )
    if not found:
        raise StorageError(
            f"{first.verdicts_file}: no verdicts on these pairs; judge them without --rescore."
        )
    if asked.as_json:
        report = {"schema": 1, "pairs": [decision.to_dict() for decision, _ in found]}
        options.print_json(report)
    else:
        print_page(options.stdout_console(), pairs_page(found))


if __name__ == "__main__":
    main()
