"""Draft questions from the headings of a vault, each with its passage, for a person to accept.

In: a folder of Markdown, text, HTML and PDF, or demo. Out: cases in the form of eval_set.jsonl,
each with the tag draft, gold supports (path, heading, page, a sentence of the passage), a category
and its own id. Without a judge each heading becomes a question in the language of the notes; the
same seed gives the same questions. A judge writes better ones; its quotes are checked.

With --kinds a judge writes drafts of several kinds from one to three passages that share a name:
single, multi_hop, comparison, follow_up, unanswerable. The judge must be able to answer a draft
from its passages, but not if one of them is missing. A passage that the answer does not need is no
support. Calls and cost are printed before anything is sent. --personas FILE says who asks: a TOML
file with tables [[personas]] of name, who and writes.

Drafts are no gold labels. Check each in label_eval.py, where it is an open question: Enter accepts
it and removes the tag, e edits it. To see only drafts, press Shift+Tab, then / and tag:draft.

\b
Examples:
  python eval/extras/drafts/generate_cases.py --vault demo --limit 20 --output drafts.jsonl
  python eval/extras/drafts/generate_cases.py --vault ~/notes --limit 50 --append-to eval_set.jsonl
  python eval/extras/drafts/generate_cases.py --vault ~/notes --limit 50 --output drafts.jsonl \\
      --judge http://localhost:11434/v1 --model llama3.1:8b
  python eval/extras/drafts/generate_cases.py --vault ~/notes --output drafts.jsonl --judge gpt4o \\
      --kinds multi_hop,follow_up,unanswerable --personas personas.toml

Exit codes: 0 done, 2 bad input or usage, 3 judge unreachable, 130 interrupted.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options
from judging.choice import JudgeChoice
from records import opt

if TYPE_CHECKING:
    from extras.drafts.cases import DraftMaker, DraftOptions, Drafts
    from judging.cost import CostEstimate


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(JudgeChoice, opt.Output):
    """The options of generate_cases.py."""

    vault: str = opt.value(
        "Folder of documents, or 'demo' for the embedded bot's own.", metavar="DIR", required=True
    )
    limit: int = opt.value("Questions to draft.", default=20, low=1, high=100_000)
    output: Path | None = opt.value("A new file for them.", path="file")
    append_to: Path | None = opt.value(
        "Or a set to add them to; questions that it has are not drafted again.", path="file"
    )
    kinds: str | None = opt.value(
        "Kinds of drafts that a judge writes, such as single,multi_hop.",
        metavar="KIND,…",
        shown="single",
    )
    personas: Path | None = opt.value("TOML file that says who asks (with --judge).", path="file")
    dry_run: bool = opt.flag("Print calls and cost; ask nothing.")
    seed: int = opt.seed()


@options.script(GenerateOptions, help=__doc__)
def main(asked: GenerateOptions) -> int:
    """Read the vault, draft, write: the work is in cases.py and by_judge.py."""
    from extras.drafts.cases import DraftOptions, write_drafts
    from judging.connect import JudgeOptions
    from judging.judge_files import judge_settings
    from records.errors import StorageError

    settings = judge_settings(**asked.words())
    judge_options = JudgeOptions.of(settings, vars(asked))
    draft_options = DraftOptions(
        asked.vault, asked.limit, asked.output, asked.append_to, asked.seed, judge_options
    )
    maker = None
    if asked.kinds is not None or not judge_options.by_rules:
        draft_options, maker = kinds_of(draft_options, asked)
    elif asked.personas is not None or asked.dry_run:
        raise StorageError("--personas and --dry-run: name a judge with --judge, too.")
    drafts = write_drafts(draft_options, maker)
    if drafts.stopped:
        return options.Exit.DONE
    for note in () if asked.quiet else drafts.notes:
        options.say(f"Note: {note}")
    failures = ", ".join(f"{number} {kind}" for kind, number in drafts.failures.most_common())
    if not drafts.cases:
        options.say(f"The judge failed on every section: {failures}. Nothing was written.")
        return options.Exit.UNREACHABLE
    print_cases(drafts.cases, as_json=asked.as_json)
    if not asked.quiet:
        print_counts(drafts, draft_options, failures)
    return options.Exit.DONE


def kinds_of(
    draft_options: DraftOptions, asked: GenerateOptions
) -> tuple[DraftOptions, DraftMaker]:
    """The options with the kinds of drafts, and the drafter, after printing its cost."""
    from dataclasses import asdict, replace

    from extras.drafts.by_judge import drafter, read_kinds, read_personas
    from judging.show import estimate_line, print_estimate
    from records.files import json_bytes

    def say(expected: CostEstimate) -> bool:
        if asked.dry_run and asked.as_json:
            report = asdict(expected) | {"calls": expected.calls}
            click.echo(json_bytes(report), nl=False)
        elif asked.dry_run:
            print_estimate(options.stdout_console(), expected)
        elif not asked.quiet:
            line = estimate_line(expected, draft_options.judge.max_cost)
            options.say(f"Drafts and the checks of their passages: at most {line}")
        return not asked.dry_run

    people = read_personas(asked.personas) if asked.personas is not None else []
    return replace(draft_options, kinds=read_kinds(asked.kinds or "single")), drafter(people, say)


def print_cases(cases: list[dict[str, Any]], *, as_json: bool) -> None:
    """The drafts on stdout: one line each, or the cases as JSON."""
    if as_json:
        import orjson

        click.echo(orjson.dumps(cases, option=orjson.OPT_INDENT_2).decode())
        return
    from terminal.tables import plain

    for case in cases:
        options.say(f"{case['id']}\t{case['category']}\t{plain(case['question'], 500)}", err=False)


def print_counts(drafts: Drafts, draft_options: DraftOptions, failures: str) -> None:
    """Print on stderr the counts by section and the next step."""
    from terminal.tables import counted

    options.say(
        f"{len(drafts.cases)} drafts in {draft_options.target}; left out: {drafts.asked_already} "
        "that nearly repeat a question, and "
        f"{counted(drafts.nothing_to_ask, 'section')} with nothing to ask."
    )
    if drafts.not_needed:
        options.say(f"{drafts.not_needed} more failed the judge's check of their passages.")
    if failures:
        options.say(f"The judge failed on some sections: {failures}.")
    if len(drafts.cases) < draft_options.count:
        options.say(f"These are fewer than the {draft_options.count} that you asked for.")
    options.say(
        "Check each in label_eval.py, where it is an open question: Enter accepts it (and removes "
        "the tag), e edits it. To see only drafts, press Shift+Tab, then / and tag:draft."
    )


if __name__ == "__main__":
    main()
