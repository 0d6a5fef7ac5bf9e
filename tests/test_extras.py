"""The house of extras: what a folder adds, what is missing, and who may know whom."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.labeller.screen.conftest import Bench
from tests.processes import call_script
from tests.sources import GUARD, SCRIPTS, SCRIPTS_DIR, SLOW, SOURCES, imports_of
from tests.test_documents import broken_links
from tests.test_scripts import HELP
from tests.test_scripts import run as run_python

import options
from judging.connect import JudgeOptions
from judging.judge_files import judge_settings
from labeller.actions import AddedAction, actions_of, hints_of, keymap_problems
from labeller.label_options import LabelOptions
from labeller.plain import PlainLabeller
from options.added import ScriptOptions
from records import extras, opt
from records.errors import StorageError
from views.library import RunLibrary

ROOT = SCRIPTS_DIR.parents[1]
EXTRA_FILES = sorted(extras.EXTRAS.rglob("*.py"))
EXTRA_CODE = [path for path in EXTRA_FILES if not {"tests", "bench"} & {*path.parts}]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of extras that a test fills; its name is no other's, for its modules stay loaded.

    The toolkit's own extras are looked for again only when the folder is theirs again.
    """
    made = tmp_path / f"extras_of_{abs(hash(tmp_path))}"
    made.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extras, "EXTRAS", made)
        patch.setattr("options.added.EXTRAS", made)
        patch.syspath_prepend(str(tmp_path))
        extras.extras.cache_clear()
        yield made
    extras.extras.cache_clear()


def write(folder: Path, name: str, text: str, **modules: str) -> None:
    (folder / name).mkdir()
    for stem, content in {"extra": text, **modules}.items():
        (folder / name / f"{stem}.py").write_text(content, "utf-8")


OPTION = """import click
from options.added import ScriptOptions
ADDED = ScriptOptions((click.option("--shout", is_flag=True), click.option("--loud")), "work:run")
"""


@dataclass(frozen=True)
class MadeUpOptions:
    run: str = opt.run()


@options.script(MadeUpOptions)
def score_context(asked: MadeUpOptions) -> int:
    """A script of a test; extras add to it by the name of its file."""
    outcome = options.run_extras(asked, answer=42)
    print(sorted(vars(asked)), outcome if isinstance(outcome, int) else outcome.run)
    return outcome if isinstance(outcome, int) else 0


SCRIPT = Path(__file__).stem


@contextlib.contextmanager
def fresh(command: options.Command) -> Iterator[None]:
    """A script as it is before it has looked for extras, and again after."""
    added, params = command.added, command.params
    foreign = added.params if added else []
    command.added, command.params = None, [param for param in params if param not in foreign]
    try:
        yield
    finally:
        command.added, command.params = added, params


def run(*words: str) -> tuple[int, str]:
    with fresh(score_context):
        done = CliRunner().invoke(score_context, words)
    return done.exit_code, done.output


def convert(*words: str) -> tuple[int, str]:
    command = importlib.import_module("convert_data").main
    with fresh(command):
        done = CliRunner().invoke(command, words)
    return done.exit_code, " ".join(done.output.split()) if done.exit_code else done.output


def test_an_extra_adds_an_option_and_does_its_work(folder: Path) -> None:
    own = "def run(own, values, *, answer):\n    print(own, values, answer)\n    return 7\n"
    added = f'"""Shouts."""\nOPTIONS = {{"{SCRIPT}": "cli:ADDED"}}\n'
    write(folder, "shout", added, cli=OPTION, work=own)
    code, output = run("--run", "r", "--shout")
    assert output.startswith("{'shout': True, 'loud': None} {'run': 'r'} 42\n['run'] 7")
    assert "--shout" in run("--help")[1]
    assert "From eval/extras/shout" in run("--help")[1]
    assert code == 7


def test_values_that_an_extra_returns_replace_those_of_the_script(folder: Path) -> None:
    own = "def run(own, values, *, answer):\n    return {'run': own['loud']}\n"
    write(folder, "loud", f'OPTIONS = {{"{SCRIPT}": "cli:ADDED"}}\n', cli=OPTION, work=own)
    assert run("--loud", "x") == (0, "['run'] x\n")
    assert run() == (0, "['run'] latest\n"), "not asked, not imported"


def test_a_flag_that_a_setting_turns_off_asks_for_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "def run(own, values, *, answer):\n    return 7\n"
    write(folder, "shout", f'OPTIONS = {{"{SCRIPT}": "cli:ADDED"}}\n', cli=OPTION, work=own)
    monkeypatch.setenv("RAG_EVAL_SHOUT", "false")
    assert run()[0] == 0
    monkeypatch.setenv("RAG_EVAL_SHOUT", "true")
    assert run()[0] == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("COLOURS = {}\n", "COLOURS: an extra cannot add this; it can have OPTIONS"),
        ("import nowhere_at_all\n", "cannot be imported (ModuleNotFoundError: No module named"),
        ("FORMATS = {\n", "cannot be imported (SyntaxError"),
    ],
)
def test_a_folder_that_cannot_be_used_is_named(folder: Path, text: str, message: str) -> None:
    write(folder, "odd", text)
    with pytest.raises(StorageError, match=f"odd.*{re.escape(message)}"):
        extras.extras()


def test_two_that_add_the_same_are_named(folder: Path) -> None:
    for name in ("left", "right"):
        write(folder, name, 'FORMATS = {"xml": "xml"}\n')
    with pytest.raises(StorageError, match=r"left and right both add 'xml' \(formats\)"):
        extras.extras()


def test_an_option_that_the_script_has_already_is_refused(folder: Path) -> None:
    text = OPTION.replace('"--loud"', '"--run"')
    write(folder, "loud", f'OPTIONS = {{"{SCRIPT}": "cli:ADDED"}}\n', cli=text)
    code, output = run()
    assert code == 2
    assert f"{SCRIPT}.py has --run already; rename the option of the extra." in output


def test_an_option_of_an_extra_that_is_missing_names_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the test has no extras; the list says what the toolkit's own ones add."""
    known = {"far": {"about": "", "options": [f"{SCRIPT} --far-out", "run_eval --other"]}}
    monkeypatch.setattr(extras, "known_extras", lambda: known)
    code, output = run("--far-out", "x")
    assert code == 2
    words = "--far-out: this needs eval/extras/far, which this copy does not have."
    assert words in " ".join(output.split())
    assert "No such option" in run("--other")[1]


def test_an_extra_adds_a_format(folder: Path) -> None:
    code = """NAME, ABOUT = "xml", "rows in tags"
def read(sources, options, notes):
    from formats.shared.item import ImportedCase
    for number, line in enumerate(sources[0].read_text().split(options.added["between"])):
        yield ImportedCase({"id": str(number), "question": line}, sources[0])
"""
    cli = """import click
from options.added import ScriptOptions
ADDED = ScriptOptions((click.option("--between"),), "work:run")
"""
    work = "def run(own, values, *, direction, name):\n    return {'of_format': own}\n"
    added = 'FORMATS = {"xml": "xml"}\nOPTIONS = {"convert_data": "cli:ADDED"}\n'
    write(folder, "tags", added, xml=code, cli=cli, work=work)
    source, target = folder / "a.txt", folder / "out"
    source.write_text("One?;Two?")
    assert "xml        import             rows in tags" in convert("--list")[1]
    words = ["import", "xml", str(source), "--between", ";", "-o", str(target)]
    assert convert(*words)[0] == 0
    lines = (target / "eval_set.jsonl").read_text().splitlines()
    assert lines == ['{"id":"0","question":"One?"}', '{"id":"1","question":"Two?"}']


def test_a_format_of_an_extra_that_is_missing_names_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"far": {"about": "", "formats": ["xml"]}}
    monkeypatch.setattr(extras, "known_extras", lambda: known)
    code, output = convert("import", "xml", "a.xml", "-o", "out")
    assert code == 2
    assert "xml: this needs eval/extras/far, which this copy does not have." in output
    assert "'yml' is not one of csv, deepeval," in convert("import", "yml", "a", "-o", "b")[1]


SHOUT = """from labeller.actions import AddedAction, LineCommand
from terminal.actions import Action
SHOUT = AddedAction(
    Action("shout", ("D",), "shout", "Shouts.", part="Program"),
    lambda screen: screen.say("HO"),
    "D",
    LineCommand("WORD", "Shouts a word.", lambda plain, rest: rest.upper()),
    own=(Action("help", ("x",), "hush", "Hushes.", "shout"),),
    hints="help",
)
def by_loudness(cases, folder):
    return {case_id: len(case["question"]) for case_id, case in cases.items()}
"""
LABELLING = (
    'LABEL_ACTIONS = {"shout": "shouts:SHOUT"}\nLABEL_ORDERS = {"loud": "shouts:by_loudness"}\n'
)


async def test_an_extra_adds_a_key_of_the_labelling_screen(folder: Path) -> None:
    write(folder, "loud", LABELLING, shouts=SHOUT)
    b = Bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("D")
        assert b.status == "HO"
    assert [action.help for action in actions_of("shout")] == ["Hushes."]
    assert hints_of("shout") == ["help"]
    assert keymap_problems({"shout": "f2", "shout.help": "f3"}) == []
    assert "key `m` is bound to both `group` and `shout`" in keymap_problems({"shout": "m"})[0]
    lines = io.StringIO()
    line_mode = PlainLabeller(b.session, b.store, b.source, lines, lines, prompt=False)
    line_mode.obey("D loud")
    line_mode.obey("?")
    assert "q-01: LOUD\n" in lines.getvalue()
    assert "Shouts a word." in lines.getvalue()


def labelled_by_order(case_ids: str, tmp_path: Path, *words: str) -> str:
    """The cases that label_eval.py shows one after the other, each named by its question."""
    path = tmp_path / "eval_set.jsonl"
    lines = (json.dumps({"id": name, "question": name}) for name in case_ids.split())
    path.write_text("\n".join(lines) + "\n")
    options = ("--eval-set", path, "--labels-dir", tmp_path / "labels", "--plain", *words)
    with fresh(importlib.import_module("label_eval").main):  # some tests import scripts anew
        done = call_script("label_eval", *map(str, options), typed="order loud\nq\n")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_extra_adds_an_order_of_the_questions(folder: Path, tmp_path: Path) -> None:
    cli = """import click
from options.added import ScriptOptions
ADDED = ScriptOptions((click.option("--loudest-first", is_flag=True),), "work:run")
"""
    work = "def run(own, values, **handed):\n    return {'order': 'loud'}\n"
    added = LABELLING + 'OPTIONS = {"label_eval": "cli:ADDED"}\n'
    write(folder, "loud", added, shouts=SHOUT, cli=cli, work=work)
    shown = labelled_by_order("b ccc aa", tmp_path, "--loudest-first")
    assert "ccc (1/3, open)" in shown
    assert "b (3/3, open)" not in shown
    assert "order: loud" in shown


def test_what_is_of_a_missing_extra_is_said_where_labelling_needs_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {
        "far": {
            "label_actions": ["shout"],
            "label_orders": ["loud"],
            "files": ["judgements/NAME.jsonl"],
        }
    }
    monkeypatch.setattr(extras, "known_extras", lambda: known)
    needs = "this needs eval/extras/far, which this copy does not have."
    assert keymap_problems({"shout.help": "f2"}) == [f"keymap: `shout.help`: {needs}"]
    shown = labelled_by_order("a b", tmp_path)
    assert "needs" not in shown
    assert "order 'loud' is unknown; use one of: file, random, failing, uncertain." in shown
    judgements = tmp_path / "labels" / "judgements"
    judgements.mkdir(parents=True)
    (judgements / "pool.jsonl").write_text('{"case_id": "a", "rows": []}\n')
    (judgements / "maria.jsonl").write_text('{"case_id": "a", "decision": "unanswerable"}\n')
    (tmp_path / "eval_set.jsonl.view").write_text('{"case": "b", "order": "loud"}')
    monkeypatch.setattr(LabelOptions, "resuming", True)
    before = {path: path.read_bytes() for path in judgements.iterdir()}
    shown = labelled_by_order("a b", tmp_path)
    assert f"{judgements} also has labels of maria; to compare them, {needs}" in shown
    assert f"The order loud of last time cannot be used: {needs}" in shown
    assert "b (2/2, open)" in shown, "the rest of the last view counts"
    assert {path: path.read_bytes() for path in judgements.iterdir()} == before


def called(folder: Path, script: str, *words: str) -> str:
    """What a script prints of the set and the runs of a folder."""
    where = ("--eval-set", str(folder / "set.jsonl"), "--results-dir", str(folder))
    with fresh(importlib.import_module(script).main):
        done = call_script(script, *words, *where)
    assert done.returncode == 0, done.stderr
    return done.stdout


def scored_run(folder: Path, name: str) -> Path:
    """A run of one answer."""
    case = {"id": "q", "question": "?", "relevant_chunks": ["c"]}
    (folder / "set.jsonl").write_text(json.dumps(case) + "\n")
    answers = folder / "answers.jsonl"
    answers.write_text('{"id": "q", "answer": "so", "contexts": ["text"]}\n')
    called(folder, "run_eval", "--from-jsonl", str(answers), "--run-id", name)
    called(folder, "score_pipeline", "--run", name)
    return folder / name


COMPARED = """from terminal.page import Heading, Prose
def of_runs(base, runs, clustering, seed):
    for run in runs:
        yield Heading("Loudness")
        yield Prose(f"{run.name} is louder than {base.name}.")
def of_case(base, run, key):
    return [("loudness", "louder", key[0])]
"""


def test_an_extra_says_more_of_two_runs(folder: Path, tmp_path: Path) -> None:
    """On the terminal, in the Markdown, in the report, and of a case in the browser."""
    write(folder, "loud", 'COMPARED = {"loudness": "compared"}\n', compared=COMPARED)
    for name in ("old", "new"):
        scored_run(tmp_path, name)
    target = tmp_path / "diff.md"
    assert "new is louder than old." in called(
        tmp_path, "compare_runs", "old", "new", "--markdown", str(target)
    )
    assert "## Loudness\n\nnew is louder than old." in target.read_text()
    base = ("--baseline", str(tmp_path / "old"))
    called(tmp_path, "report_run", "--run", "new", *base, "--format", "md")
    assert "Loudness\n\nnew is louder than old." in (tmp_path / "new" / "report.md").read_text()
    library = RunLibrary(tmp_path, tmp_path / "set.jsonl", tmp_path / "labels")
    assert library.judged_pair("old", "new", ("q", 0)) == [("loudness", "louder", "q")]


CHOIR = """from types import SimpleNamespace
def read(path, settings):
    return {"voices": [f"{path.stem}: {name}" for name in settings["choir"]]}
def check(reader, values):
    pass
def compound(settings, values):
    return SimpleNamespace(names=settings["voices"], concurrency=7, may_be=lambda identity: True)
"""


def test_an_extra_makes_one_judge_of_several(folder: Path, tmp_path: Path) -> None:
    write(folder, "choirs", 'JUDGES = {"choir": "choir"}\n', choir=CHOIR)
    (tmp_path / "all.toml").write_text('choir = ["a", "b"]\n')
    options = JudgeOptions.of(judge_settings("all", folder=tmp_path), {})
    assert options.compound is not None
    assert options.compound.names == ["all: a", "all: b"]
    assert options.concurrency == 7
    assert not options.by_rules


def test_a_judge_of_a_missing_extra_is_one_sentence(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "known_extras", lambda: {"far": {"judges": ["choir"]}})
    (tmp_path / "all.toml").write_text('choir = ["a", "b"]\n')
    needs = "choir: this needs eval/extras/far, which this copy does not have."
    with pytest.raises(StorageError, match=needs):
        judge_settings("all", folder=tmp_path)


def test_a_report_says_which_extra_is_missing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {
        "far": {"run_keys": ["pace.loud", "pace.mute", "pace.loud.very"], "files": ["a/NAME.b"]}
    }
    monkeypatch.setattr(extras, "known_extras", lambda: known)
    run = scored_run(tmp_path, "loud-one")
    (run / "a").mkdir()
    (run / "a" / "x.b").touch()
    config = json.loads((run / "config.json").read_text())
    config["run"]["pace"] = {"loud": "very"}
    (run / "config.json").write_text(json.dumps(config))
    called(tmp_path, "report_run", "--run", run.name, "--format", "html")
    page = (run / "report.html").read_text()
    needs = "this needs eval/extras/far, which this copy does not have."
    assert f"config.json has run.pace.loud: {needs}" in page
    assert f"a/NAME.b: {needs}" in page
    assert page.count("eval/extras/far") == 2


def test_a_default_for_an_extra_that_is_missing_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"far": {"options": [f"{SCRIPT} --far-out", f"{SCRIPT} --far-in", "label_eval --port"]}}
    monkeypatch.setattr(extras, "known_extras", lambda: known)
    config = folder / "config.toml"
    config.write_text("far_out = 3\nport = 1\nrun = 'r'\n")
    monkeypatch.setenv("RAG_EVAL_CONFIG", str(config))
    monkeypatch.setenv("RAG_EVAL_FAR_IN", "4")
    needs = "this needs eval/extras/far, which this copy does not have."
    code, output = run()
    assert code == 0
    assert output.splitlines()[:2] == [
        f"{config}: far_out: not used; {needs}",
        f"RAG_EVAL_FAR_IN: not used; {needs}",
    ]
    assert "port" not in output, "of another script"


# -- the rules ----------------------------------------------------------------------------------


def test_the_core_imports_no_extra() -> None:
    importers = [
        f"{path.relative_to(ROOT)}:{item.line}: {item.module}"
        for path in [*SOURCES, *(ROOT / "tests").rglob("*.py")]
        if "extras" in path.read_text("utf-8")
        for item in imports_of(path)
        if item.top == "extras"
    ]
    assert importers == []


def test_an_extra_knows_itself_and_the_core_alone() -> None:
    strangers = [
        f"{path.relative_to(ROOT)}:{item.line}: {item.module}"
        for path in EXTRA_CODE
        for item in imports_of(path)
        if item.top in {script.stem for script in SCRIPTS}
        or (item.top == "extras" and item.module.split(".")[1:2] != [folder_of(path)])
    ]
    assert strangers == []


def all_params() -> Iterator[click.Parameter]:
    """The options of all scripts of the core."""
    for script in SCRIPTS:
        yield from importlib.import_module(script.stem).main.params


def folder_of(path: Path) -> str:
    return path.relative_to(extras.EXTRAS).parts[0]


def test_what_is_read_at_the_start_of_scripts_is_light() -> None:
    """extra.py; modules of options: click and the command line; of actions: their table."""
    light = [(path, "") for path in EXTRA_CODE if path.name == "extra.py"]
    for kind, kind_of, may in (
        (extras.OPTIONS, ScriptOptions, "click options pathlib"),
        (extras.LABEL_ACTIONS, AddedAction, "typing labeller.actions terminal.actions"),
    ):
        for extra, _, reference in extras.added(kind):
            assert isinstance(extra.load(reference), kind_of)
            path = extras.EXTRAS / extra.name / f"{reference.partition(':')[0]}.py"
            light.append((path, may))
    heavy = [
        f"{path.relative_to(ROOT)}:{item.line}: {item.module}"
        for path, may in light
        for item in imports_of(path)
        if not item.late and not item.module.startswith(("__future__", *may.split()))
    ]
    assert heavy == []


def test_what_an_extra_names_is_there() -> None:
    for kind in extras.KINDS:
        for extra, _, reference in extras.added(kind):
            assert extra.load(reference)


def test_help_of_a_script_of_an_extra_loads_nothing_slow(tmp_path: Path) -> None:
    for path in EXTRA_CODE:
        if GUARD in path.read_text("utf-8"):
            done = run_python(tmp_path, "-c", HELP, str(SCRIPTS_DIR), str(path))
            assert (done.returncode, done.stderr) == (0, ""), path
            assert done.stdout.startswith(f"Usage: {path.name} [OPTIONS]")
            assert set(done.stdout.splitlines()[-1].split()) & SLOW == set(), path


def test_the_core_says_no_name_of_an_extra() -> None:
    """Options and scripts of extras are in their own pages and in the generated list."""
    known = extras.known_extras().values()
    names = {words.split()[-1] for table in known for words in table.get("options", ())}
    names -= {option for param in all_params() for option in param.opts}
    names |= {f"{path.stem}.py" for path in EXTRA_CODE if GUARD in path.read_text("utf-8")}
    files = [*SOURCES, *(ROOT / "tests").rglob("*.py"), ROOT / "Makefile", ROOT / "README.md"]
    files += [ROOT / "EVAL.md", *(ROOT / "docs").glob("*.md")]
    words = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(names)))})(?![\w-])")
    said = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in words.findall(path.read_text("utf-8"))
    ]
    assert names
    assert said == []


def test_every_extra_has_a_page_and_tests() -> None:
    for extra in extras.extras():
        own = extras.EXTRAS / extra.name
        assert extra.about, extra.name
        assert list(broken_links(own / "README.md")) == []
        assert list((own / "tests").glob("test_*.py")), extra.name
