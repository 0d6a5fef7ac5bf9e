"""Write the parts of the documents that repeat the code, or check that they are up to date.

In: the catalogue of metrics, the tables of actions of labeller and browser, and docstring and
options of every script. Out: the tables of metrics in docs/metrics.md, of keys in docs/labelling.md
and of known products in docs/products.md (between the line `<!-- generated: metrics -->`, `keys` or
`products`, and `<!-- end -->`; all else there is left alone), a page a script in docs/, and
docs/README.md, which lists them and explains the options that many of them share. Of the extras:
the options in the README.md of each folder, the table of them in the README.md of the toolkit, and
the list of what each adds (eval/scripts/records/known_extras.toml), in which an extra that this
copy lacks stays as it is.

\b
Examples:
  python bench/make_docs.py
  python bench/make_docs.py --check

With --check nothing is written: each file that is out of date is named on stdout.

Exit codes: 0 done, 1 with --check: a file is out of date, 2 bad input or usage, 130 interrupted.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "eval" / "scripts"))

import options
import storage
from clients.known import Recipe, recipes
from labeller.actions import ACTIONS
from options.added import option_list
from options.commands import USUAL_EXITS, option_words
from ragmetrics import catalogue
from ragmetrics.catalogue import metric as catalogue_metric
from ragmetrics.catalogue.metric import Metric
from records import opt
from records.extras import (
    EXTRAS,
    FILES,
    FORMATS,
    JUDGES,
    KNOWN_EXTRAS,
    LABEL_ACTIONS,
    LABEL_ORDERS,
    OPTIONS,
    RUN_KEYS,
    Extra,
    extras,
    known_extras,
)
from terminal.actions import Action, keymap_id, shown_key
from views.browser.actions import ACTIONS as SCREENS
from views.browser.actions import PARTS

SCRIPTS = storage.ROOT / "eval" / "scripts"
GUIDES = (
    ("../README.md", "README", "what the toolkit is, and the first five minutes"),
    ("tour.md", "Tour", "seven pictures, from the labels to the report"),
    ("tutorial.md", "Tutorial", "from an empty folder to a gated pull request, with a small bot"),
    ("../EVAL.md", "How to evaluate", "the way of working, the main numbers in words, glossary"),
    ("metrics.md", "Every number", "definitions, matching, intervals, slices, languages"),
    ("decisions.md", "Decisions", "comparing, gates, history"),
    ("labelling.md", "How to label", "what counts, all keys"),
    ("judging.md", "Judges", "servers, files, rubrics, calibration"),
    ("file-formats.md", "File formats", "every file that is read or written"),
    ("products.md", "Known products", "bots that are connected with one command"),
    ("validation.md", "Validation", "agreement with people, guardrails, speed"),
    ("scale.md", "Large runs", "what they cost in time and memory"),
    ("architecture.md", "Architecture", "the code on one page"),
)
"""The documents written by hand: file, name, what is in it."""
SHARED_LINK = "[options of many scripts](README.md#options-of-many-scripts)"
ABOUT_SCREENS = """\
Screens: *runs* lists runs, *cases* the cases of a run, *flips* the cases that two runs answer
differently, *groups* their counts; *case* and *pair* show one case, of one run or of both."""
GUARD = 'if __name__ == "__main__":'
MARK = "<!-- Made by make_docs.py from the script's docstring and options: run `make docs`. -->"
END = "<!-- end -->"
SHARED_BY = 4
"""Scripts of the core that an option must have with the same words: docs/README.md explains it."""
TERM = re.compile(r"  (\S{1,9}) {2,}(\S.*)")
"""A line of a list: a word, and what it means."""
COLUMNS = ("metric", "what it says", "range", "unit", "better", "needs", "source", "definition")


def metric_tables(metrics: Iterable[Metric]) -> str:
    """A heading and a Markdown table for each family of metrics, families in order of first use."""
    rows = list(metrics)
    order = list(dict.fromkeys(metric.family for metric in rows))
    rows.sort(key=lambda metric: order.index(metric.family))
    parts = []
    for family, members in groupby(rows, key=lambda metric: metric.family):
        title = family.replace("_", " ").capitalize()
        cells = [COLUMNS, ("---",) * len(COLUMNS), *map(metric_row, members)]
        lines = ("| " + " | ".join(map(_cell, row)) + " |" for row in cells)
        parts.append(f"### {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def metric_row(metric: Metric) -> tuple[str, ...]:
    """One metric as the cells of COLUMNS."""
    names = (name.name.replace("@0", "@k") for name in catalogue_metric.at_cutoffs([metric], [0]))
    return (
        ", ".join(f"`{name}`" for name in names),
        metric.meaning,
        metric_range(metric),
        metric.unit,
        "higher" if metric.higher_is_better else "lower",
        metric.needs,
        metric.source,
        f"`{metric.definition}`",
    )


def metric_range(metric: Metric) -> str:
    """The values that one case can have: ``0 or 1``, ``0 to 1``, ``0 and up`` …"""
    low, high = metric.low, metric.high
    if low is None:
        return "any number" if high is None else f"up to {high:g}"
    if high is None:
        return f"{low:g} and up"
    return f"{low:g} {'or' if metric.binary else 'to'} {high:g}"


def key_tables(actions: Iterable[Action]) -> str:
    """A heading and a Markdown table for each part of the help page: id, keys, what it does."""
    parts = []
    for title, members in groupby(actions, key=lambda action: action.part):
        cells = [("id", "keys", "what it does"), ("---",) * 3, *map(key_row, members)]
        lines = ("| " + " | ".join(map(_cell, row)) + " |" for row in cells)
        parts.append(f"### {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def key_row(action: Action) -> tuple[str, str, str]:
    """One action: its name in a keymap file, its keys as a person reads them, and its help."""
    return f"`{keymap_id(action)}`", keys_in_words(action), action.help.replace("<", "&lt;")


def keys_in_words(action: Action) -> str:
    """The keys of an action as a person reads them."""
    names = dict.fromkeys(f"`{shown_key(key)}`" for key in action.keys)
    keys = " ".join(names) or "none: by name, from `:`"
    return f"{keys}, then one of `{' '.join(action.then)}`" if action.then else keys


def browser_keys(screens: Mapping[str, Mapping[str, Action]]) -> str:
    """A Markdown table of the browser's keys by what they are for: keys, what they do, where."""
    rows: dict[tuple[int, str, str], list[str]] = {}
    for screen, actions in screens.items():
        for action in actions.values():
            row = (PARTS.index(action.part), keys_in_words(action), action.help)
            rows.setdefault(row, []).append(screen)
    cells = [("keys", "what they do", "on the screens"), ("---",) * 3]
    for (_, keys, text), names in sorted(rows.items(), key=lambda row: row[0][0]):
        cells.append((keys, text, "all" if len(names) == len(screens) else ", ".join(names)))
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in cells) + "\n"


def product_table(recipes: Iterable[Recipe]) -> str:
    """A Markdown table of known products: the command, what is found, and what is not."""
    cells = [("product", "command", "found", "not found", "peculiar"), ("---",) * 5]
    cells += [product_row(recipe) for recipe in sorted(recipes, key=lambda each: each.title)]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in cells) + "\n"


def product_row(recipe: Recipe) -> tuple[str, str, str, str, str]:
    """One product as the cells of the table; what the user names can be found by a guess."""
    response, chunk = (recipe.profile.get(name, {}) for name in ("response", "chunk"))
    messages = "messages" in str(recipe.profile.get("request", {}))
    parts = {
        "answer": "answer" in response,
        "passages": "retrieved" in response,
        "their text": "text" in chunk,
        f"their file{'' if 'rel_path' in chunk else ' by its name'}": "retrieved" in response,
        "scores": "score_final" in chunk,
        "citations": "references" in response,
        "tokens": "usage" in response,
        "cost": "cost_usd" in response,
        "conversations": "session" in response or messages or "{session" in str(recipe.profile),
    }
    found = [name for name, there in parts.items() if there]
    absent = [name for name, there in parts.items() if not there]
    if recipe.guesses:
        found, absent = [*found, "the rest by its names"], []
    notes = " ".join(recipe.recognition.get("notes", ()))
    command = f"`{recipe.recognition['command']}`"
    return recipe.title, command, ", ".join(found), ", ".join(absent) or "–", notes


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def replace_block(document: str, name: str, block: str) -> str | None:
    """The document with new text between the markers of a block; None when it has no markers."""
    start = f"<!-- generated: {name} -->"
    head, marker, rest = document.partition(f"{start}\n")
    _, ended, tail = rest.partition(END)
    if not marker or not ended:
        return None
    return f"{head}{start}\n{block}{END}{tail}"


def scripts(folder: Path = SCRIPTS) -> list[Path]:
    """The files of a folder that can be run, by name."""
    return [path for path in sorted(folder.glob("*.py")) if GUARD in path.read_text("utf-8")]


def extra_block(extra: Extra) -> str:
    """What the page of an extra repeats of its code: its scripts, and the options that it adds."""
    parts = []
    for script in scripts(EXTRAS / extra.name):
        parts += [f"## {script.name}", *_as_markdown(_docstring(script))]
        parts.append(
            option_tables(script, "### Options").replace("README.md#", f"{DOCS}README.md#")
        )
    for script_name, members in added_options(extra).items():
        command = command_of(SCRIPTS / "run_eval.py")  # all scripts show their options alike
        ctx = click.Context(command, **command.context_settings)
        rows = [option_words(option, ctx) for option in members]
        parts.append(f"## Options that {script_name}.py gets\n\n{_option_table('option', rows)}")
    for reference in extra.added.get(LABEL_ACTIONS, {}).values():
        added = extra.load(reference)
        keys = key_tables([added.action, *added.own]).replace("### Program\n\n", "")
        parts.append(f"## Keys that label_eval.py gets\n\n{keys}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


DOCS = "../../../docs/"
"""The folder of the core's pages, seen from an extra's."""


def added_options(extra: Extra) -> dict[str, list[click.Option]]:
    """The options that an extra adds, by script."""
    references = extra.added.get(OPTIONS, {})
    return {name: option_list(extra.load(place).options) for name, place in references.items()}


def known_list() -> str:
    """What each extra adds, as TOML; of those that this copy lacks what the list says already."""
    tables = {name: dict(table) for name, table in known_extras().items()}
    for extra in extras():
        names = [
            f"{script} {max(option.opts, key=len)}"
            for script, group in added_options(extra).items()
            for option in group
        ]
        kinds = {kind: sorted(extra.added.get(kind, ())) for kind in NAMED_BY_KEY}
        kinds[OPTIONS] = sorted(set(names))
        entries = {kind: keys for kind, keys in sorted(kinds.items()) if keys}
        tables[extra.name] = {"about": extra.about.partition("\n")[0], **entries}
    head = (
        "# What the extras of the toolkit add to the core. Made by make_docs.py: run `make docs`.\n"
    )
    parts = [head]
    for name, table in sorted(tables.items()):
        lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
        parts.append("\n".join([f"[{name}]", *lines]) + "\n")
    return "\n".join(parts)


NAMED_BY_KEY = (FILES, FORMATS, JUDGES, LABEL_ACTIONS, LABEL_ORDERS, RUN_KEYS)
"""Kinds whose keys a user's files or words hold."""


def extra_table() -> str:
    """What each extra is for, with a link to its page from the root's README.md."""
    rows = [
        f"| [{name}](eval/extras/{name}/README.md) | {_cell(str(table['about']))} |"
        for name, table in tomllib.loads(known_list()).items()
    ]
    return "\n".join(["| extra | what it is for |", "| --- | --- |", *rows]) + "\n"


def command_of(script: Path) -> options.Command:
    """The command that a script runs. Raises StorageError when it cannot be imported."""
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[script.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise storage.StorageError(f"{script} fails ({error}); fix the script first.") from None
    command = module.main
    assert isinstance(command, options.Command)
    return command


def option_tables(script: Path, title: str = "## Options") -> str:
    """The options of a script: a table of its own, and the names of those that many share."""
    command = command_of(script)
    ctx = click.Context(command, info_name=script.name, **command.context_settings)
    usage = " ".join(command.get_usage(ctx).split())
    rows = option_rows(script)
    own = [row for row in rows if row not in shared_rows()]
    shared = [f"`{row[0].split(', ')[0].split()[0]}`" for row in rows if row in shared_rows()]
    parts = [title] if usage.endswith("[OPTIONS]") else [title, f"`{usage}`"]
    parts += [_option_table("option", own).strip()] if own else []
    return "\n\n".join([*parts, f"Also {SHARED_LINK}: {', '.join(shared)}.\n"])


@cache
def option_rows(script: Path) -> tuple[tuple[str, str, str], ...]:
    """Names, help and values of each option of a script, in the order of its --help."""
    command = command_of(script)
    ctx = click.Context(command, **command.context_settings)
    groups = command.grouped_options(ctx).values()
    return tuple(option_words(option, ctx) for group in groups for option in group)


@cache
def shared_rows() -> tuple[tuple[str, str, str], ...]:
    """The options that many scripts of the core have with the same words, most frequent first. Of
    two options of the same name it is the more frequent one."""
    counts = Counter(row for script in scripts() for row in option_rows(script))
    frequent = [row for row, count in reversed(counts.most_common()) if count >= SHARED_BY]
    return tuple(reversed({row[0]: row for row in frequent}.values()))


def _option_table(heading: str, rows: Iterable[tuple[str, str, str]]) -> str:
    cells = [(heading, "what it does", "values"), ("---",) * 3]
    cells += [(f"`{names}`", text, values) for names, text, values in rows]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in cells) + "\n"


def page(script: Path, tables: str) -> str:
    """The page of one script: what its docstring says, and its options."""
    return "\n\n".join([MARK, f"# {script.name}", *_as_markdown(_docstring(script)), tables])


def _as_markdown(about: str) -> list[str]:
    """The paragraphs of a docstring; indented lines as a list of terms, or as code."""
    parts = []
    for block in about.split("\n\n"):
        for indented, run in groupby(block.splitlines(), key=lambda line: line.startswith("  ")):
            lines = list(run)
            terms = [TERM.fullmatch(line) for line in lines]
            if lines == ["Examples:"]:
                continue
            if not indented:
                parts.append("\n".join(lines).replace("``", "`"))
            elif all(terms):
                parts.append("\n".join(f"- `{term[1]}`: {term[2]}" for term in terms if term))
            else:
                code = textwrap.dedent("\n".join(lines))
                code = re.sub(r"(?<=\S) {4,}", " \\\\\n    ", code)  # a call that Python joined
                parts.append(f"```{'json' if code.startswith('{') else 'sh'}\n{code}\n```")
    return parts


def index(pages: Sequence[Path]) -> str:
    """docs/README.md: what to read, a line for each script, and the options that many share."""
    lines = (f"| [{name}]({file}) | {about} |" for file, name, about in GUIDES)
    guides = "\n".join(["| page | what is in it |", "| --- | --- |", *lines])
    return "\n\n".join(
        [
            f"{MARK}\n\n# Documents\n\n{guides}",
            "## The scripts",
            "Run each as `python eval/scripts/NAME.py`, from any folder. Unless its page says "
            f"otherwise, its exit codes are {USUAL_EXITS.removeprefix('Exit codes: ')}",
            script_table(pages).rstrip(),
            "## Extras",
            "What fewer teams need is in `eval/extras`, a folder each: "
            "[the list](../README.md#all-commands).",
            "## Options of many scripts",
            _option_table("option", shared_rows()),
        ]
    )


def script_table(pages: Sequence[Path]) -> str:
    """What each script does, with a link to its page."""
    rows = [f"| [{script.name}]({script.stem}.md) | {_summary(script)} |" for script in pages]
    return "\n".join(["| script | what it does |", "| --- | --- |", *rows]) + "\n"


def _docstring(script: Path) -> str:
    tree = ast.parse(script.read_text("utf-8"))
    return (ast.get_docstring(tree) or "").replace("\b\n", "").strip()


def _summary(script: Path) -> str:
    return _cell(_docstring(script).partition("\n")[0])


def wanted_files(root: Path) -> dict[Path, str | None]:
    """Every generated file with the text it should have; None for one that should be gone.

    Raises StorageError when docs/metrics.md, docs/labelling.md or docs/products.md is absent or
    lacks its markers.
    """
    docs, runnable = root / "docs", scripts()
    texts: dict[Path, str | None] = {
        docs / "metrics.md": with_block(
            docs / "metrics.md", "metrics", metric_tables(catalogue.METRICS)
        ),
        docs / "labelling.md": with_block(docs / "labelling.md", "keys", key_tables(ACTIONS)),
        docs / "products.md": with_block(
            docs / "products.md", "products", product_table(recipes())
        ),
        docs / "README.md": index(runnable),
    }
    texts |= {
        docs / f"{script.stem}.md": page(script, option_tables(script)) for script in runnable
    }
    browser = docs / "browse_runs.md"
    texts[browser] = f"{texts[browser]}\n## Keys\n\n{ABOUT_SCREENS}\n\n{browser_keys(SCREENS)}"
    if root == storage.ROOT:
        for extra in extras():
            path = EXTRAS / extra.name / "README.md"
            texts[path] = with_block(path, "options", extra_block(extra))
        readme = root / "README.md"
        texts[readme] = with_block(readme, "extras", extra_table())
        texts[KNOWN_EXTRAS] = known_list()
    for path in sorted(docs.glob("*.md")):
        if path not in texts and (_read(path) or "").startswith(MARK):
            texts[path] = None
    return texts


def with_block(target: Path, name: str, block: str) -> str:
    """A document's text with a new block. Raises StorageError when there is no place for it."""
    document = _read(target)
    if document is None:
        raise storage.StorageError(f"{target}: no such file; restore it, or name its --root.")
    changed = replace_block(document, name, block)
    if changed is None:
        raise storage.StorageError(
            f"{target}: lacks the lines `<!-- generated: {name} -->` and `{END}`; add them where "
            "the table belongs."
        )
    return changed


def stale_files(texts: Mapping[Path, str | None]) -> list[Path]:
    """The files whose text is not the wanted one."""
    return [path for path, text in texts.items() if _read(path) != text]


def _read(path: Path) -> str | None:
    """The file's text; None when there is none. Raises StorageError for a file of another kind."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise storage.StorageError(f"{path}: cannot be read ({error}).") from None


@dataclass(frozen=True, kw_only=True)
class DocsOptions:
    """The options of make_docs.py."""

    check: bool = opt.flag("Write nothing; exit 1 when a file is out of date.")
    root: Path = opt.value(
        "Folder that contains docs/.",
        default=storage.ROOT,
        path="folder",
        exists=True,
        shown="the repository",
    )
    quiet: bool = opt.quiet()
    verbose: bool = opt.flag("More messages on stderr; show every metric.", names="-v --verbose")


@options.script(DocsOptions, help=__doc__)
def main(asked: DocsOptions) -> int:
    check, root = asked.check, asked.root
    texts = wanted_files(root)
    stale = stale_files(texts)
    for path in texts if asked.verbose else ():
        state = "out of date" if path in stale else "up to date"
        click.echo(f"{path.relative_to(root).as_posix()}: {state}", err=True)
    for path in stale:
        text = texts[path]
        click.echo(path.relative_to(root).as_posix())
        if not check and text is None:
            path.unlink()
        elif not check and text is not None:
            path.parent.mkdir(exist_ok=True)
            storage.replace_bytes(path, text.encode())
    if not asked.quiet:
        click.echo(verdict(check, len(stale), len(texts)), err=True)
    return options.Exit.GATE_FAILED if check and stale else options.Exit.DONE


def verdict(check: bool, stale: int, files: int) -> str:
    """The closing sentence."""
    if not stale:
        return f"All {files} generated files are up to date."
    return f"{stale} out of date: run `make docs`." if check else f"{stale} written."


if __name__ == "__main__":
    main()
