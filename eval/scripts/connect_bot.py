"""Connect your bot: find out how to ask it, and where each value is in its answer.

In: the bot's address, a working curl command, or a saved answer; for the check a labelled set
(--eval-set). Out: eval/profiles/NAME.toml, which run_eval.py --profile NAME takes; its path on
stdout.

Known products (docs/products.md) are recognised and asked in their own way. For any other bot the
request is yours (--curl, --body, or a URL with {question} in it, for GET). Without one, the script
tries the bot's /openapi.json, then known requests (ours, OpenAI's, {"message": …} and the like) at
the path of the URL. It tries at most 10 requests and prints each before it sends it. Then it asks a
few questions, the first one twice, and at most ten more if scores look reversed; it says how many
before. It proposes a path in the answers for each field, by names, types and shapes; you accept or
change them. Last it compares the places that the bot names with the labels, and says what would
make them match.

No secret is written: --header names a variable, and secrets in --curl become ${VARIABLE}. GraphQL
needs --curl. A bot that needs a request to begin a conversation needs --begin, or an OpenAPI
document. Bots that must be polled do not work.

\b
    python eval/scripts/connect_bot.py http://localhost:9000
    python eval/scripts/connect_bot.py http://localhost:9000 --eval-set my_set.jsonl --yes
    python eval/scripts/connect_bot.py http://localhost:9000/v1/chat/completions \
        --header Authorization=BOT_TOKEN --name chat
    python eval/scripts/connect_bot.py http://localhost:3000/api/v1/prediction/FLOW_ID
    python eval/scripts/connect_bot.py 'http://localhost:9000/sessions/{session}/messages' \
        --begin 'curl -X POST http://localhost:9000/sessions'
    python eval/scripts/connect_bot.py --curl @request.txt --ask 'How long is the warranty?'
    python eval/scripts/connect_bot.py http://localhost:9000/ask --from-response answer.json \
        --set answer=data.text --dry-run
    python eval/scripts/connect_bot.py --from-traces spans.jsonl

Exit codes: 0 done, 2 bad input or usage, or no request worked (then nothing is written), 3 bot
unreachable, 130 interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import options
from clients.connect_options import ConnectOptions

if TYPE_CHECKING:
    from clients.connect_job import Draft, Outcome
    from clients.proposal import FieldRow

HOW_TO_CHANGE = "Enter accepts all; FIELD=JMESPATH sets one, FIELD= drops it; t: tree; q: stop"
"""One line of 80 columns: a terminal would cut a longer prompt within a word."""


def show_fields(rows: Sequence[FieldRow]) -> None:
    """Print the fields with their paths and values on stderr, unfolded."""
    from terminal.tables import harmless

    width = max((len(row.field) for row in rows), default=0)
    options.say("Where each field is in the answer:")
    for row in rows:
        options.say(f"  {row.field:{width}}  {harmless(row.path)}")
        if row.sample:
            options.say(f"  {'':{width}}  → {harmless(row.sample)}")


def edit_fields(draft: Draft) -> Mapping[str, str] | None:
    """Ask at the terminal; {} accepts, None stops."""
    from terminal.tables import harmless

    show_fields(draft.rows)
    for fault in draft.faults:
        options.say(harmless(fault))
    while True:
        answer = click.prompt(HOW_TO_CHANGE, default="", show_default=False, err=True).strip()
        name, equals, path = answer.partition("=")
        if answer == "t":
            options.say("\n".join(map(harmless, draft.tree)))
        elif answer == "q":
            return None
        elif equals:
            return {name.strip(): path.strip()}
        elif not answer:
            return {}
        else:
            options.say("Write FIELD=JMESPATH, such as chunk.rel_path=metadata.file.")


def ask_variable(name: str) -> str:
    """Ask for the environment variable that will contain a secret."""
    answer: str = click.prompt(
        "The request contains a secret. Environment variable for it", name, err=True
    )
    return answer


def tell_outcome(outcome: Outcome) -> None:
    """Print the check in words, the calls spent, and the next step."""
    from terminal.tables import harmless

    lines = [*outcome.notes, *outcome.verdict.sentences()]
    lines += ["The mapping, proved by two answers:", *outcome.proof.lines()]
    spent = ", ".join(f"{count:,} {name}" for name, count in sorted(outcome.usage.items()))
    if outcome.tries:
        cost = "" if outcome.cost_usd is None else f"; {outcome.cost_usd:.4f} USD"
        lines.append(f"{len(outcome.tries)} requests, {spent or 'tokens not reported'}{cost}.")
    lines += [f"Before you run: export {name}=…" for name in outcome.variables]
    options.say("\n".join(map(harmless, lines)))


def prove_traced_tools(source: Path) -> int:
    """Print which tools in traces are searches; the keys that config.toml needs go to stdout."""
    import tempfile

    from clients.expressions import compile_path
    from clients.guess import chunk_paths
    from formats.otel import results_of_tools
    from formats.shared.item import ImportOptions, Notes
    from formats.traces.tool_forms import prove_tools, toml_pattern
    from options.tables import trace_settings
    from records.errors import StorageError
    from records.toml_files import toml_key
    from terminal.tables import harmless

    if not source.exists():
        raise StorageError(f"--from-traces {source}: no such file or folder.")
    known = trace_settings(compile_path)
    with tempfile.TemporaryDirectory() as scratch:
        read = ImportOptions(scratch=Path(scratch))
        results = results_of_tools(source, read, Notes(counts_rest=False))
    if not results:
        raise StorageError(f"--from-traces {source}: no trace calls a tool that is no retriever.")
    proofs = prove_tools(results, known["tools"], known["documents"], compile_path, chunk_paths)
    for proof in proofs:
        options.say("\n".join(map(harmless, proof.lines())))
    if needed := [proof for proof in proofs if proof.form]:
        options.say("Put this into eval/config.toml:")
    for proof in needed:
        click.echo(f"[traces.tools.{toml_key(proof.name)}]")
        for key, value in proof.form.items():
            click.echo(f"{key} = {toml_pattern(value)}")
    return options.Exit.DONE


@options.script(ConnectOptions)
def main(chosen: ConnectOptions) -> int:
    """Find out how a bot is asked, and write the profile that run_eval.py needs.

    URL is the bot's address, or the address of its endpoint.
    """
    from clients.connect import Talk, connect, prepare, write
    from records.home import EVAL_SET, HOME, ROOT

    if chosen.from_traces:
        return prove_traced_tools(chosen.from_traces)
    chosen.check()
    yes, eval_set = chosen.yes, chosen.eval_set
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and not yes
    if (yes or terminal) and not chosen.dry_run:
        prepare(chosen)
    cases = []
    named = "eval_set" in chosen.set_by_user
    if named or (HOME != ROOT and EVAL_SET.is_file()):  # the toolkit's own set is of its demo
        from records.labels import read_cases

        cases = list(read_cases(eval_set, chosen.labels_dir))
    talk = Talk(
        tell=options.say,
        edit=edit_fields if terminal else None,
        name=ask_variable if terminal else None,
    )
    outcome = connect(chosen, cases, os.environ, talk)
    if outcome is None:
        options.say("Stopped; nothing was written.")
        return options.Exit.BAD_INPUT
    if not terminal:
        show_fields(outcome.rows)
    tell_outcome(outcome)
    failed = bool(outcome.proof.failures)
    decided = (yes or terminal) and not failed
    if decided and not chosen.dry_run:
        write(outcome)
    if chosen.as_json:
        import orjson

        click.echo(orjson.dumps(outcome.to_dict(), option=orjson.OPT_INDENT_2).decode())
    elif outcome.written:
        click.echo(str(outcome.target))
        if not named and HOME == ROOT:
            own = "my_set.jsonl"
            options.say(f"Next: write your questions, one a line, in {own} (README.md); then")
            options.say(outcome.next_command(Path(own)))
        else:
            options.say(f"Next: {outcome.next_command(eval_set if named else None)}")
    else:
        click.echo(outcome.text, nl=False)
    if failed:
        options.say("\n".join(["Nothing was written.", *outcome.proof.failures]))
    elif not decided and not chosen.dry_run:
        options.say("Nothing was written: look at the profile, then say --yes.")
    if failed or not (decided or chosen.dry_run):
        return options.Exit.BAD_INPUT
    return options.Exit.DONE


if __name__ == "__main__":
    main()
