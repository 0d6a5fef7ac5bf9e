"""Judge the answers of a run claim by claim: groundedness, correctness, relevancy, context.

In: a run folder with full chunk texts (run_eval.py --store-full-text), the eval set, and a judge: a
model behind an OpenAI-compatible server, or the embedded rules (--judge local). Out: verdicts.jsonl
of the run (each claim and fact with verdict, quote and reason, what the judge saw and its raw
reply), scores/judged.jsonl, the section ``judged`` of metrics.json and the judge in config.json.

Verdicts are paid once: they lie in eval/cache. A failed judgement is counted and never a score.
The same command goes on where a stopped one ended; scores are counted from the verdicts alone
(--rescore).

\b
Examples:
  python eval/scripts/judge_answers.py --metrics all --claim-level
  python eval/scripts/judge_answers.py --judge http://localhost:11434/v1 --model llama3.1:8b
  python eval/scripts/judge_answers.py --judge https://api.openai.com/v1 --api-key OPENAI_API_KEY \\
      --model gpt-4o-2024-08-06 --prices prices.toml --max-cost 5 --dry-run
  python eval/scripts/judge_answers.py --rescore --by category --worst 5
  python eval/scripts/judge_answers.py --self-test --judge http://localhost:8080 --model qwen

Exit codes: 0 done, 1 a gate failed (--self-test), 2 bad input or usage, 3 judge unreachable or
too many judgements failed (--max-error-rate), 130 interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
import storage
from judging import flags

if TYPE_CHECKING:
    from judging.connect import Connection, Wanted
    from judging.run import Outcome, Plan


@options.command(
    help=__doc__,
    how_to_go_on="Every verdict that came in is kept: the same command goes on there.",
)
@options.score_options
@flags.judge_options
@flags.plan_options
def main(
    rescore: bool, self_test: bool, dry_run: bool, metrics: str, claim_level: bool, **given: Any
) -> int:
    wanted = wanted_of(given)
    if self_test:
        return test_judge(wanted, given["repeats"], given["as_json"], given["quiet"])
    calls = flags.calls_of(metrics, claim_level)
    if given["worst_by"]:
        from ragmetrics.catalogue.judged import ROWS
        from scorers.show import find_metric

        find_metric(ROWS, given["worst_by"])
    folder = storage.find_run(given["results_dir"], given["run"])
    plan = plan_of(folder, calls, given)
    if dry_run:
        return estimate(plan, wanted, given["as_json"])
    if rescore:
        show(folder, given)
        return options.Exit.DONE
    outcome = judge(plan, wanted, given)
    if outcome.unreached:
        return options.Exit.UNREACHABLE
    show(folder, given)
    if outcome.too_many_failed(given["max_error_rate"]):
        click.echo(
            f"{outcome.lines['failed']} of {outcome.judgements} judgements failed, more than "
            f"--max-error-rate {given['max_error_rate']:g} allows. The others are counted; the "
            "same command asks for the failed ones again.",
            err=True,
        )
        return options.Exit.UNREACHABLE
    return options.Exit.DONE


def wanted_of(given: dict[str, Any]) -> Wanted:
    """The judge that the options ask for."""
    from judging.connect import Wanted

    return Wanted(
        judge=given["judge"],
        model=given["model"],
        api_key=given["api_key"],
        revision=given["judge_revision"],
        file=given["judge_file"],
        allow_unpinned=given["allow_unpinned"],
        allow_alias=given["allow_alias"],
        temperature=given["temperature"],
        seed=given["seed"],
        mode=given["mode"],
        thinking_tokens=given["thinking_tokens"],
        concurrency=given["concurrency"],
        timeout=given["timeout"],
        retries=given["retries"],
        prices=given["prices"],
        max_cost=given["max_cost"],
        offline=given["offline"],
        cache_dir=given["cache_dir"],
    )


def plan_of(folder: Path, calls: tuple[str, ...], given: dict[str, Any]) -> Plan:
    """What is judged, from the options."""
    from judging.run import Plan

    return Plan(
        folder,
        given["eval_set"],
        given["labels_dir"],
        calls,
        repeats=given["repeats"],
        repeats_share=given["repeats_share"],
        seed=given["seed"],
        atomic=given["claims"] == "atomic",
        k=given["k"],
        concurrency=given["concurrency"],
    )


def judge(plan: Plan, wanted: Wanted, given: dict[str, Any]) -> Outcome:
    """Judge the run and say what it took. Raises StorageError when the judge has changed."""
    from judging.connect import connect
    from judging.run import confirm, judge_run, progress, say_notes
    from judging.show import bill

    console = options.stderr_console(quiet=given["quiet"])
    with connect(wanted) as connection:
        facts = fact_store(wanted, connection)
        with progress(console, plan.folder / storage.RESULTS) as step:
            outcome = judge_run(plan, connection, facts, step)
        for line in bill(outcome, connection.judge.totals):
            console.print(line, soft_wrap=True)
        if facts.made:
            console.print(
                f"The facts of {facts.made} reference answers stand in {facts.path}; correct them "
                "there, or write expected_key_facts into the set.",
                soft_wrap=True,
            )
        say_notes(connection.notes(), given["quiet"])
        confirm(plan, connection)
    return outcome


def fact_store(wanted: Wanted, connection: Connection) -> Any:
    """The facts of reference answers that this judge has found so far."""
    from judging import prompt_files
    from judging.answers import FactStore

    identity = connection.judge.identity
    prompt = prompt_files.load("facts").id
    return FactStore(wanted.cache_dir, identity, prompt, connection.withdrawn())


def show(folder: Path, given: dict[str, Any]) -> None:
    """Count the run's verdicts and print the section."""
    from judging.show import notes
    from scorers.judged import make_scorer, warm
    from scorers.show import score_and_show

    scorer = make_scorer(
        folder,
        weight=given["correctness_weight"],
        model=given["embedding_model"],
        cache_dir=given["cache_dir"],
    )
    warm(scorer, folder, given["eval_set"], given["labels_dir"])
    shared = given | {"run": str(folder)}
    section = score_and_show("judged", shared, options.Streams(given), scorer)
    if not given["quiet"]:
        answerer = storage.read_config(folder).answerer
        for note in notes(section, answerer, scorer.verdicts.others):
            click.echo(f"Note: {note}", err=True)


def estimate(plan: Plan, wanted: Wanted, as_json: bool) -> int:
    """What judging would take."""
    from dataclasses import asdict

    from judging import cost
    from judging.connect import connect
    from judging.run import would_ask
    from judging.show import print_estimate

    with connect(wanted, ask_nothing=True) as connection:
        asked = would_ask(plan, connection, fact_store(wanted, connection))
        prices = connection.budget.prices
        found = cost.estimate(asked, connection.holds, connection.tokens, prices)
    if not found.tasks:
        click.echo("Nothing is left to ask.", err=True)
    if as_json:
        click.echo(storage.json_bytes(asdict(found) | {"calls": found.calls}), nl=False)
    else:
        print_estimate(options.stdout_console(), found)
    return options.Exit.DONE


def test_judge(wanted: Wanted, repeats: int, as_json: bool, quiet: bool) -> int:
    """The self-test: 0 when all limits are kept, 1 when one is not, 3 when nothing came back."""
    from judging.connect import connect
    from judging.run import say_notes
    from judging.selftest import self_test
    from judging.show import print_self_test

    with connect(wanted) as connection:
        report = self_test(connection.judge, connection.salt, max(3, repeats))
        say_notes(connection.notes(), quiet)
    if as_json:
        click.echo(storage.json_bytes(storage.rounded(report)), nl=False)
    else:
        print_self_test(options.stdout_console(), report)
    if report["passed"] is None:
        return options.Exit.UNREACHABLE
    return options.Exit.DONE if report["passed"] else options.Exit.GATE_FAILED


if __name__ == "__main__":
    main()
