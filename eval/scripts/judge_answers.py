"""Judge the answers of a run claim by claim: groundedness, correctness, relevancy, context.

In: a run folder with full chunk texts (run_eval.py --store-full-text), the eval set, and a judge.
The judge is a model behind an OpenAI-compatible server, described in eval/judges/NAME.toml
(--save-judge writes it) or by --judge and --model. The embedded rules (--judge local) need no
model. Out: verdicts.jsonl of the run (each claim and fact with verdict, quote and reason),
scores/judged.jsonl, the section ``judged`` of metrics.json and the judge in config.json.
--show-prompt CASE prints the prompt.

You pay for each verdict once: eval/cache keeps it. A failed judgement is counted and is never a
score. Repeat a stopped command and it continues. --rescore computes the scores again from the
verdicts.

--metrics rubrics.NAME asks your own question, described in eval/rubrics/NAME.toml (helpful, tone
and complete come with the toolkit). Its scores are in the section ``rubrics``. --dry-run says
which fields go to the judge.

\b
Examples:
  python eval/scripts/judge_answers.py --metrics all --claim-level
  python eval/scripts/judge_answers.py --judge http://localhost:11434/v1 --model llama3.1:8b
  python eval/scripts/judge_answers.py --judge https://api.openai.com/v1 --set api_key=MY_KEY \\
      --model gpt-4o-2024-08-06 --save-judge gpt4o
  python eval/scripts/judge_answers.py --judge gpt4o --dry-run
  python eval/scripts/judge_answers.py --judge gpt4o --metrics rubrics.helpful,rubrics.tone
  python eval/scripts/judge_answers.py --rescore --by category --worst 5

Exit codes: 0 done, 2 bad input or usage, 3 judge unreachable or too many judgements failed
(--max-error-rate), 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
from judging.choice import JudgeChoice
from records import opt
from records.errors import StorageError
from scorers.score_request import ScoreRequest

if TYPE_CHECKING:
    from judging.connect import Connection, JudgeOptions
    from judging.run import JudgingOutcome, JudgingPlan
    from records.verdicts import VerdictReader


MOST_REPEATS = 100


class OpinionCount(click.ParamType[tuple[int, float]]):
    """How many opinions, and the share of the cases that get so many: ``3`` or ``3:0.2``."""

    name = "n[:share]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, float]:
        if isinstance(value, tuple):
            return value
        count, _, share = str(value).partition(":")
        number: int = click.IntRange(1, MOST_REPEATS).convert(count, param, ctx)  # type: ignore[arg-type]
        return number, options.FiniteRange(0, 1).convert(share or 1.0, param, ctx)


@dataclass(frozen=True, kw_only=True)
class JudgeAnswersOptions(JudgeChoice, ScoreRequest):
    """The options of judge_answers.py."""

    metrics: str = opt.value(
        "Metrics to judge, or 'all'. Several: with commas.", default="groundedness,correctness"
    )
    claim_level: bool = opt.flag("Blame each claim and fact: the claim_* rates.")
    repeats: tuple[int, float] = opt.value(
        "Ask for N opinions on each answer (spread, flip rate). 3:0.2 asks three times for a fifth "
        "of the cases, and once for the others.",
        default=(1, 1.0),
        shown="1",
        metavar="N[:SHARE]",
    )
    k: int | None = opt.value(
        "Judge only the first K chunks of each answer.  [default: all]", low=1
    )
    max_error_rate: float = opt.error_rate("Exit 3 above this share of failed judgements.")
    dry_run: bool = opt.flag("Print calls and cost; ask nothing.")
    show_prompt: str | None = opt.value(
        "Print the prompt for this case; ask nothing.", metavar="CASE"
    )
    rescore: bool = opt.flag("Score again from existing verdicts; ask nothing.")
    save_judge: str | None = opt.value(
        "Write the judge into eval/judges/NAME.toml; ask nothing.", metavar="NAME"
    )


@options.script(
    JudgeAnswersOptions,
    {"repeats": OpinionCount()},
    help=__doc__,
    how_to_go_on="Every verdict so far is kept: the same command continues.",
)
def main(asked: JudgeAnswersOptions) -> int:
    from judging.connect import JudgeOptions
    from judging.judge_files import judge_settings
    from records.runs import VERDICTS, find_run
    from records.verdicts import VerdictReader

    settings = judge_settings(**asked.words())
    if asked.save_judge:
        return save(asked.save_judge, settings, asked.quiet)
    judge_options = JudgeOptions.of(settings, vars(asked))
    calls, rescore = calls_of(asked.metrics, asked.claim_level), asked.rescore

    def plans() -> list[JudgingPlan]:
        plan = plan_of(find_run(asked.results_dir, asked.run), calls, judge_options, asked)
        drop_damage(plan.verdicts_file, asked.quiet)
        return [plan]

    outcome_of_extra = options.run_extras(asked, judge_options=judge_options, plans=plans)
    if isinstance(outcome_of_extra, int):
        return outcome_of_extra
    if asked.worst_by and not any(map(of_rubric, calls)):
        from ragmetrics.catalogue.judged import ROWS
        from scorers.show import find_metric

        find_metric(ROWS, asked.worst_by)
    folder = find_run(asked.results_dir, asked.run)
    reader = VerdictReader(folder / VERDICTS)
    if rescore and not (asked.show_prompt or asked.dry_run):
        show(folder, reader, calls, judge_options, asked, again=True)
        return options.Exit.DONE
    plan = plan_of(folder, calls, judge_options, asked)
    if asked.show_prompt:
        return show_prompts(plan, judge_options, asked.show_prompt, asked.as_json)
    if not rescore:
        drop_damage(folder / VERDICTS, asked.quiet)
    if asked.dry_run:
        return estimate(plan, judge_options, asked.as_json)
    outcome = judge(plan, judge_options, reader, asked)
    if outcome.unreached:
        return options.Exit.UNREACHABLE
    show(folder, reader, calls, judge_options, asked)
    if outcome.too_many_failed(asked.max_error_rate):
        options.say(
            f"{outcome.lines['failed']} of {outcome.judgements} judgements failed, more than "
            f"--max-error-rate {asked.max_error_rate:g} allows. The others are counted; the "
            "same command asks for the failed ones again."
        )
        return options.Exit.UNREACHABLE
    return options.Exit.DONE


def save(name: str, settings: Mapping[str, Any], quiet: bool) -> int:
    """Write the judge's file; its path on stdout."""
    from judging.judge_files import save_judge

    click.echo(save_judge(name, settings))
    if not quiet:
        options.say(f"From now on: --judge {name}.")
    return options.Exit.DONE


def calls_of(metrics: str, claim_level: bool) -> tuple[str, ...]:
    """The calls behind a list of metrics, those of rubrics last. Raises click.BadParameter listing
    the names there are."""
    from judging.calls import CALLS
    from ragmetrics.catalogue.judged import CALLS_BY_METRIC, CLAIM_CALLS, FACT_CALLS
    from records.rubrics import PREFIX

    names = [name for part in metrics.split(",") if (name := part.strip())]
    rubrics = dict.fromkeys(filter(of_rubric, names))
    names = [name for name in names if name not in rubrics]
    if names == ["all"]:
        names = list(CALLS_BY_METRIC)
    blaming = {CLAIM_CALLS, FACT_CALLS}
    names += [name for name, calls in CALLS_BY_METRIC.items() if claim_level and calls in blaming]
    for name in names:
        if name not in CALLS_BY_METRIC:
            choices = ", ".join(CALLS_BY_METRIC)
            raise click.BadParameter(
                f"{name!r} is not judged; choose from: all, {choices}, or {PREFIX}NAME."
            )
    if not names and not rubrics:
        raise click.BadParameter("--metrics: name at least one, or 'all'.")
    needed = {call for name in names for call in CALLS_BY_METRIC[name]}
    return (*(call for call in CALLS if call in needed), *rubrics)


def plan_of(
    folder: Path, calls: tuple[str, ...], judge_options: JudgeOptions, asked: JudgeAnswersOptions
) -> JudgingPlan:
    """Plan of judging from the options. Raises StorageError for rubrics that cannot be asked."""
    from judging.run import JudgingPlan, refuse_examples
    from records import rubrics
    from records.verdicts import KINDS, rubric_kind
    from scorers.rubrics import taken_names

    prefix = rubrics.PREFIX
    found = {name: rubrics.find(name.removeprefix(prefix)) for name in calls if of_rubric(name)}
    for name in taken_names(rubric for rubric, _ in found.values()):
        raise StorageError(
            f"{found[prefix + name][1]}: a metric of the toolkit is called {name}; rename the file."
        )
    if found and not asked.rescore and judge_options.by_rules:
        raise StorageError(
            f"{', '.join(found)}: the embedded rules read no rubrics; name a model's server with "
            "--judge."
        )
    repeats, share = asked.repeats
    plan = JudgingPlan(
        folder,
        asked.eval_set,
        asked.labels_dir,
        calls,
        repeats=repeats,
        repeats_share=share,
        seed=asked.seed,
        atomic=judge_options.claims == "atomic",
        k=asked.k,
        concurrency=judge_options.concurrency,
        kinds={**KINDS, **{name: rubric_kind(rubric) for name, (rubric, _) in found.items()}},
    )
    refuse_examples(plan, {name: path for name, (_, path) in found.items()})
    return plan


def drop_damage(path: Path, quiet: bool) -> None:
    """Remove the remains of a power cut from the verdicts, which are then judged again; report how
    many."""
    from records import verdict_lines
    from records.files import damage_of
    from terminal.tables import printable

    if lines := verdict_lines.drop_damage(path):
        message = printable(damage_of(path, lines))
        options.stderr_console(quiet=quiet).print(message)


def judge(
    plan: JudgingPlan,
    judge_options: JudgeOptions,
    reader: VerdictReader,
    asked: JudgeAnswersOptions,
) -> JudgingOutcome:
    """Judge the run and report its cost. Raises StorageError when the judge has changed."""
    from judging.asking import expect, fact_store
    from judging.connect import connect
    from judging.run import confirm, judge_run
    from judging.show import bill

    console = options.stderr_console(quiet=asked.quiet)
    if judge_options.compound and not judge_options.offline:
        console.print(expect([plan], judge_options).recipients)
    with connect(judge_options) as connection:
        facts = fact_store(judge_options, connection)
        outcome = judge_run(plan, connection, facts, reader, console)
        for line in bill(outcome, connection.judge.totals):
            console.print(line)
        if facts.new_lists:
            console.print(
                f"The facts of {facts.new_lists} reference answers are in {facts.path}; correct "
                "them there, or write expected_key_facts into the set."
            )
        say_notes(connection, asked.quiet)
        confirm(plan, connection)
    return outcome


def say_notes(connection: Connection, quiet: bool) -> None:
    """Print the remarks on the judge that a reader of the verdicts needs, a line each; none when
    quiet."""
    for note in () if quiet else connection.notes():
        options.say(f"Note: {note}")


def of_rubric(call: str) -> bool:
    """Whether a call asks a rubric."""
    from records.rubrics import PREFIX

    return call.startswith(PREFIX)


class Together(options.Streams):
    """Writes the sections of both kinds as one JSON object, by their names."""

    def __init__(self, asked: opt.Output) -> None:
        super().__init__(asked)
        self._first: dict[str, Any] | None = None

    def json(self, value: dict[str, Any]) -> None:
        """Keep the rubrics; with the second section write both."""
        if self._first is None:
            self._first = value
        else:
            super().json({"rubrics": self._first, "judged": value})


def show(
    folder: Path,
    reader: VerdictReader,
    calls: tuple[str, ...],
    judge_options: JudgeOptions,
    asked: JudgeAnswersOptions,
    *,
    again: bool = False,
) -> None:
    """Count the run's verdicts and print the sections that ``calls`` belong to. ``again``: all that
    there is of rubrics, and with the options of the section that is there, unless others are
    named."""
    from records.rubrics import has_rubrics
    from records.runs import read_config
    from records.verdicts import judge_of
    from scorers import rubrics
    from scorers.contract import ScoringJob
    from scorers.judged import make_scorer, options_before, scorer_as_before, section_notes, warm
    from scorers.show import score_and_show
    from views.worst import print_worst

    shared = replace(asked, run=str(folder))
    job = ScoringJob(folder, asked.eval_set, asked.labels_dir)
    said = {line["metric"] for line in reader.read()}
    lacking = [name for name in calls if of_rubric(name) and name not in said]
    if again and lacking:
        raise StorageError(f"{folder.name}: no verdicts by {', '.join(lacking)}.")
    alone = all(map(of_rubric, calls)) or all(map(of_rubric, said or [""]))
    by_rubrics = has_rubrics(judge_of(folder)) and (again or any(map(of_rubric, calls)))
    output = options.Streams(asked) if alone or not by_rubrics else Together(asked)
    if by_rubrics:
        rubric_scorer = rubrics.make_scorer(job, reader)
        score_and_show("rubrics", shared, output, print_worst, rubric_scorer)
    if alone:
        return
    model, weight = judge_options.embedding_model, judge_options.correctness_weight
    if again and weight is None:
        weight = options_before(folder).get("correctness_weight")
    chosen: Any = {"weight": weight, "cache_dir": asked.cache_dir}
    if again and model is None:
        scorer = scorer_as_before(job, reader, **chosen)
    else:
        scorer = make_scorer(folder, reader, model=model, labels_dir=asked.labels_dir, **chosen)
        warm(scorer, folder, asked.eval_set, asked.labels_dir)
    section = score_and_show("judged", shared, output, print_worst, scorer)
    if not asked.quiet:
        answerer = read_config(folder).answerer
        for note in section_notes(section, answerer, scorer.verdicts.others):
            options.say(f"Note: {note}")


def estimate(plan: JudgingPlan, judge_options: JudgeOptions, as_json: bool) -> int:
    """The expected calls and cost of judging."""
    from judging.asking import expect
    from judging.show import print_estimate

    expected = expect([plan], judge_options)
    if not expected.cost.tasks:
        options.say("Nothing is left to ask.")
    if as_json:
        click.echo(expected.json(), nl=False)
    else:
        print_estimate(options.stdout_console(), expected.cost)
        options.say("\n".join(expected.lines()), err=False)
    return options.Exit.DONE


def show_prompts(plan: JudgingPlan, judge_options: JudgeOptions, case: str, as_json: bool) -> int:
    """Print the messages about one case as they are sent."""
    from judging.asking import prompts_text

    text = prompts_text([plan], judge_options, case, as_json=as_json)
    click.echo(text, nl=False)
    if not text:
        options.say("No judge is asked about this case: the rules decide it.")
    return options.Exit.DONE


if __name__ == "__main__":
    main()
