"""The jobs of label_eval.py: its options as a value, and one function a job.

Nothing here prints on stdout but the labelling itself; the script prints what a job returns.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeller.case_state import GOLD, Record
from labeller.cases import Judgements, foreign_words
from labeller.session import Session, View
from labeller.sources import Fetcher, RunChunks, failures, uncertainty, without_api
from labeller.store import LabelStore
from labeller.worklist import ORDERS, shuffle_key
from records.editing import Document, read_bytes
from records.errors import Problem, StorageError, did_you_mean
from records.files import read_toml
from records.journal import ANNOTATOR_NAME
from records.judged import identify_case, identify_judgement, judgements_dir
from records.labels import read_cases
from records.runs import CACHE_DIR, PROFILES, find_run, own_file, results_file
from terminal.tables import counted

if TYPE_CHECKING:
    from labeller.annotators import AnnotatorLabels

RECHECK = "recheck"
"""The file of labels that were given a second time by the same person."""


KEYMAP = own_file("keymap.toml")

CHUNK_CACHE = CACHE_DIR / "label_chunks"


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """The options of label_eval.py; `typed` names those on the command line.

    An option that is not typed comes from the environment, the config file or its default.
    """

    eval_set: Path
    labels_dir: Path
    results_dir: Path
    api_url: str | None
    profile: str
    k: int
    from_run: str | None
    annotator: str | None
    recheck: int | None
    order: str
    case: str | None
    run: str
    seed: int
    no_blind: bool
    inspect: bool
    plain: bool
    serve: bool
    host: str
    port: int
    screen: Mapping[str, Any]
    """How the person wants the screen, where not as usual: ascii, mouse, theme, keymap."""
    validate: bool
    stats: bool
    agreement: bool
    export_qrels: str | None
    as_json: bool
    verbose: bool
    quiet: bool
    typed: frozenset[str] = frozenset()

    def check(self) -> None:
        """Raises StorageError for options that contradict each other, or a full screen nowhere."""
        jobs = [self.validate, self.stats, self.agreement, bool(self.export_qrels), self.serve]
        if sum(jobs) > 1:
            raise StorageError(
                "choose one of --validate, --stats, --agreement, --export-qrels and --serve."
            )
        if self.as_json and not (self.stats or self.agreement):
            raise StorageError("--json goes with --stats or --agreement.")
        if self.annotator is not None and not ANNOTATOR_NAME.fullmatch(self.annotator):
            raise StorageError(
                f"--annotator {self.annotator!r}: use up to 64 letters, digits, '.', '_' and '-'."
            )
        if self.annotator == GOLD:
            raise StorageError(f"--annotator {GOLD}: this is the set itself; leave the option out.")
        if self.annotator == RECHECK:
            raise StorageError(f"--annotator {RECHECK}: this name belongs to --recheck PERCENT.")
        if self.annotator is not None and self.recheck is not None:
            raise StorageError("--recheck repeats the set's own labels; leave out --annotator.")
        if self.from_run is not None and self.api_url is not None and "api_url" in self.typed:
            raise StorageError(
                "choose --from-run or --api-url: the passages come from one of them."
            )
        if self.serve and self.plain:
            raise StorageError("--serve shows the full screen; leave --plain out.")
        if self.case is not None and any(jobs[:-1]):
            raise StorageError("--case is for labelling; leave it out.")
        if not any(jobs) and not self.lines:
            _check_terminal()

    @property
    def judgements_dir(self) -> Path:
        """The folder with a file for each annotator."""
        return judgements_dir(self.eval_set, self.labels_dir)

    @property
    def order_typed(self) -> bool:
        """Was the order asked for on the command line? Else that of the last session counts."""
        return "order" in self.typed

    @property
    def resuming(self) -> bool:
        """Does a person look at it? A script's lines shall not depend on what others looked at."""
        return not self.lines or sys.stdin.isatty()

    @property
    def who(self) -> str:
        """The name of this session's annotator; ``gold`` for the set itself."""
        return self.annotator or (GOLD if self.recheck is None else RECHECK)

    @property
    def lines(self) -> bool:
        """Line mode: asked for, or the only thing that a dumb terminal can show."""
        dumb = os.environ.get("TERM") == "dumb" and "TEXTUAL_DRIVER" not in os.environ
        return self.plain or (dumb and sys.stdin.isatty())

    def keys(self) -> dict[str, str]:
        """The keymap: action names and keys. Raises StorageError when the file cannot be used."""
        path = self.screen.get("keymap", KEYMAP)
        try:
            raw = read_toml(path)
        except FileNotFoundError:
            if "keymap" not in self.screen:
                return {}
            raise StorageError(f"{path}: no such file.") from None
        bad = [name for name, key in raw.items() if not isinstance(key, str)]
        if bad:
            raise StorageError(f'{path}: {bad[0]}: write the key as text, such as "x" or "f2".')
        return dict(raw)


def _check_terminal() -> None:
    """The full screen reads keys from stdin and draws on stderr; both must be a terminal.

    Behind --serve neither is: there a browser takes their place.
    """
    if "TEXTUAL_DRIVER" in os.environ:
        return
    for stream, name in ((sys.stdin, "stdin"), (sys.stderr, "stderr")):
        if not stream.isatty():
            raise StorageError(
                f"{name} is not a terminal, so the full-screen view cannot start. Use --plain."
            )


# -- the files -------------------------------------------------------------------------------------


def _cases_of(options: LabelOptions) -> Document:
    """The set; lines with faults make it refused, as every other script does."""
    document = Document(read_bytes(options.eval_set), identify_case, cases=True)
    if document.problems:
        raise StorageError.from_problems(
            Problem(str(options.eval_set), n, "", text) for n, text in document.problems
        )
    return document


def _annotator_files(options: LabelOptions) -> dict[str, Path]:
    """The file of each annotator who has one."""
    return {path.stem: path for path in sorted(options.judgements_dir.glob("*.jsonl"))}


def _judgements_of(options: LabelOptions) -> dict[str, Document]:
    """The annotators' files as they are, labels included."""
    return {
        name: Document(read_bytes(path), identify_judgement)
        for name, path in _annotator_files(options).items()
    }


def _gold_judgements(options: LabelOptions) -> Mapping[str, Record]:
    """What was judged of the set's own labels beside them."""
    document = _judgements_of(options).get(GOLD)
    return {} if document is None else Judgements(document)


def _labels_by_annotator(
    options: LabelOptions, cases: Mapping[str, Record]
) -> dict[str, AnnotatorLabels]:
    """Each annotator's decided cases, the set's own first."""
    from labeller.annotators import labels_of

    documents = _judgements_of(options)
    labels = {GOLD: labels_of(cases, documents.pop(GOLD, {}), GOLD)}
    labels |= {name: labels_of(cases, document, name) for name, document in documents.items()}
    return {name: decided for name, decided in labels.items() if decided}


# -- the jobs --------------------------------------------------------------------------------------


def validate(options: LabelOptions) -> str:
    """Check the set, the label files joined to it, and the annotators' files.

    Returns a sentence. Raises StorageError with all faults.
    """
    cases = read_cases(options.eval_set, options.labels_dir)
    problems = []
    for path in _annotator_files(options).values():
        document = Document(read_bytes(path), identify_judgement)
        problems += [Problem(str(path), n, "", text) for n, text in document.problems]
        foreign = foreign_words(document, {case.id for case in cases})
        if foreign:
            problems.append(Problem(str(path), None, "case_id", foreign))
    if problems:
        raise StorageError.from_problems(problems)
    return f"{options.eval_set}: {counted(len(cases), 'case')}, nothing wrong."


def statistics(options: LabelOptions) -> Record:
    """Statistics of the set."""
    from labeller.annotators import statistics_of

    return statistics_of(_cases_of(options), _gold_judgements(options))


def agreement(options: LabelOptions) -> Record:
    """How far the annotators agree, and where they do not."""
    from labeller.annotators import agreement as compare_all

    labels = _labels_by_annotator(options, _cases_of(options))
    if len(labels) < 2:
        raise StorageError(
            f"{options.judgements_dir}: agreement needs two annotators; label again with "
            "--annotator NAME."
        )
    return compare_all(labels, options.seed)


def qrels(options: LabelOptions) -> Iterator[str]:
    """The labels as lines of TREC qrels."""
    from labeller.annotators import qrels as lines_of

    return lines_of(_cases_of(options), _gold_judgements(options), str(options.export_qrels))


@dataclass(frozen=True)
class LabelOutcome:
    """How a session ended: the screen's exit code, and whether every label is in the files.

    `refused` tells of changes that a session with nothing to write turned away.
    """

    code: int
    saved: bool
    refused: str = ""


def label(options: LabelOptions, talk: Callable[[str], None]) -> LabelOutcome:
    """Label, on the full screen or in lines. `talk` gets what is beside the labelling itself."""
    gc.disable()  # what the start makes stays: collecting amid it is work for nothing
    store = LabelStore(
        options.eval_set,
        options.judgements_dir,
        now=time.time,
        annotator=options.who,
        second=options.who != GOLD,
        only=None if options.recheck is None else _sample(options, options.recheck),
        writing=not options.inspect,
        resuming=options.resuming,
    )
    try:
        with _source_of(options, store) as source:
            session = _open_session(options, store)
            if options.verbose:
                talk(f"chunks: {source.describe()}\njudgements: {store.judgements_path}")
            code = _run(options, session, store, source)
    finally:
        message = store.close()
    if message:
        talk(message)
    if not options.inspect:
        talk(f"{session.progress().says()}.\nNext: {_next_command(options)}")
    lost = session.turned_away
    changes = "1 change was" if lost == 1 else f"{lost} changes were"
    refused = f"NOT SAVED: {changes} refused: {store.read_only}." if lost else ""
    return LabelOutcome(code, saved=not store.problem and not lost, refused=refused)


def _next_command(options: LabelOptions) -> str:
    """What makes use of the labels."""
    if options.who != GOLD:
        return "label_eval.py --agreement"
    if options.from_run is not None:
        return f"eval_suite.py --run {options.from_run}"
    return "run_eval.py --api-url URL"


def _run(options: LabelOptions, session: Session, store: LabelStore, source: Fetcher) -> int:
    if options.lines:
        from labeller.plain import PlainLabeller

        gc.enable()

        for stream in (sys.stdin, sys.stdout):
            stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        prompt = sys.stdin.isatty()
        return PlainLabeller(session, store, source, sys.stdin, sys.stdout, prompt=prompt).run()
    from labeller.app import run

    gc.freeze()
    gc.enable()

    try:
        return run(
            session,
            store,
            source,
            **{**options.screen, "keymap": options.keys()},
        )
    except ValueError as error:
        raise StorageError(str(error)) from None


def _open_session(options: LabelOptions, store: LabelStore) -> Session:
    """The session on what the store holds, looking at what the last one looked at.

    Raises StorageError for a case that is not there, and for an order that has nothing to go by.
    """
    others: Mapping[str, Mapping[str, Record]] = {}
    if options.who == GOLD:
        others = _others(options, store.cases)
    view = store.last_view()
    order, priority = _order(options, store, view)
    session = Session(
        store.records,
        store.judgements,
        seed=str(options.seed),
        order=order,
        priority=priority,
        blind=not options.no_blind,
        inspect=options.inspect,
        others=others,
        **store.session_options(),
    )
    store.attach(session)
    if view is not None:
        store.notices += session.resume(view)
    if options.case is not None:
        if not session.knows(options.case):
            raise StorageError(_no_such_case(options, options.case))
        session.resume(View(case=options.case, row_order=session.row_order, blind=session.blind))
    return session


def _no_such_case(options: LabelOptions, case_id: str) -> str:
    hint = did_you_mean(case_id, _cases_of(options))
    return f"--case {case_id}: {options.eval_set} has no such case that can be labelled here.{hint}"


def _order(
    options: LabelOptions, store: LabelStore, view: View | None
) -> tuple[str, Mapping[str, float]]:
    """The order of the queue and what it goes by: the one asked for, else that of last time."""
    if view is None or options.order_typed or view.order not in ORDERS:
        return options.order, _priority(options, store, options.order)
    try:
        return view.order, _priority(options, store, view.order)
    except StorageError as error:
        store.notices.append(f"The order {view.order} of last time cannot be used: {error.message}")
        return options.order, _priority(options, store, options.order)


def _others(
    options: LabelOptions, cases: Mapping[str, Record]
) -> Mapping[str, Mapping[str, Record]]:
    """The labels of other annotators who have decided anything; a pool of judged rows has not."""
    documents = {name: d for name, d in _judgements_of(options).items() if name != GOLD}
    if not documents:
        return {}
    from labeller.annotators import labels_of

    return {
        name: {case_id: document[case_id] for case_id in decided}
        for name, document in documents.items()
        if (decided := labels_of(cases, document, name))
    }


def _sample(options: LabelOptions, percent: int) -> set[str]:
    """A share of the decided cases, the same for the same seed; of a conversation all turns, for
    a later one cannot be read without those before it."""
    from labeller.annotators import labels_of

    cases = _cases_of(options)
    decided = labels_of(cases, _gold_judgements(options), GOLD)
    if not decided:
        raise StorageError(
            f"{options.eval_set}: no case is labelled, so there is nothing to recheck."
        )
    order = sorted(decided, key=lambda case_id: shuffle_key(str(options.seed), RECHECK, case_id))
    chosen = set(order[: math.ceil(len(order) * percent / 100)])
    talks = {cases[case_id].get("conversation") for case_id in chosen} - {None}
    if not talks:
        return chosen
    return chosen | {name for name in cases if cases[name].get("conversation") in talks}


def _priority(options: LabelOptions, store: LabelStore, order: str) -> Mapping[str, float]:
    """How much each case teaches, for the orders that put it first."""
    if order == "disagreement":
        from labeller.annotators import disagreement as by_disagreement

        return by_disagreement(_labels_by_annotator(options, store.cases))
    if order in ("failing", "uncertain"):
        results = _results(options, options.run)
        if order == "uncertain":
            return uncertainty(results)
        return failures(results.parent, store.cases)
    return {}


@contextlib.contextmanager
def _source_of(options: LabelOptions, store: LabelStore) -> Iterator[Fetcher]:
    """Where the passages come from: the run, the API, or nowhere, which says so in its place."""
    if options.from_run is not None:
        results = _results(options, options.from_run)
        source = Fetcher(RunChunks(results), f"run {results.parent.name}")
    elif options.api_url is not None:
        from labeller.sources import Api, api_source

        api = Api(options.api_url, options.profile, options.k, PROFILES, CHUNK_CACHE)
        with api_source(api, store.records) as source:
            yield source
        return
    else:
        source = Fetcher(without_api, "no API and no run")
    try:
        yield source
    finally:
        source.close()


def _results(options: LabelOptions, run: str) -> Path:
    path = results_file(find_run(options.results_dir, run))
    if not path.exists():
        raise StorageError(f"{path}: no such file; the run is not complete.")
    return path
