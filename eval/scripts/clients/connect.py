"""Make a bot's profile: find the request, map the answer, check it, write it.

    outcome = connect(ConnectOptions(url="http://localhost:9000"), cases, environ, talk)

The requests are found in probe.py and shapes.py, the paths in guess.py, and place_check.py compares
the places in the answers with the labels."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clients.bot import Question, Timing, read_answer
from clients.connect_options import LIMITS_PREFIX, ConnectOptions
from clients.connect_request import begin_request, given_request, given_shape, url_parts
from clients.expressions import MOST, compile_path
from clients.guess import fitting_units, propose
from clients.http import CallError, Reply
from clients.limits import BotLimits
from clients.place_check import (
    AskedQuestion,
    Measurable,
    PlaceVerdict,
    asked_of,
    check_places,
    measurable,
    path_verdict,
    suggest,
)
from clients.probe import (
    Answered,
    Heard,
    K,
    Prober,
    Try,
    questions_of,
    read_reply,
    understood,
    with_model,
)
from clients.profile import check_profile
from clients.proof import Proof, ProvenAnswer, ProvenPlaces, prove
from clients.proposal import (
    NAMING,
    TABLE_OF_LIST,
    FieldRow,
    Proposal,
    assignment,
    field_rows,
    list_at,
    profile_text,
    set_paths,
)
from clients.reply_form import tree
from clients.run_plan import header_templates
from clients.secrets import Redactor, public_url
from clients.shapes import NO_MODEL, SecretFinder, Shape, known_shapes, template, with_history
from ragmetrics.paths import PathVerdict, shared_folder
from records.cases import TestCase
from records.errors import StorageError
from records.file_access import read_whole
from records.files import replace_bytes
from records.results import ErrorInfo, TestResult
from records.runs import HOME, PROFILES, ROOT

QUESTIONS = 3
"""Questions for the bot once the request is known; the first one is repeated."""

UNANSWERED = ("no_answer", "bot_error")
"""Kinds of errors of single questions: the mapping may be right all the same."""

ANY_QUESTIONS = (
    "What is this documentation about?",
    "How do I get started?",
    "What should I know first?",
)
"""Questions for a bot without a set or --ask."""


@dataclass(frozen=True)
class Talk:
    """How the user hears and is asked. ``edit``: shows the fields, returns changed ones or None to
    stop; ``name``: the name of the variable that is to hold a secret."""

    tell: Callable[[str], None]
    edit: Callable[[Draft], Mapping[str, str] | None] | None = None
    name: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Draft:
    """The proposed profile that a person accepts or changes."""

    rows: list[FieldRow]
    tree: list[str]
    faults: list[str]


@dataclass
class Outcome:
    """The result of connecting a bot: the profile's text, and all that was found on the way."""

    target: Path
    base_url: str
    text: str
    rows: list[FieldRow]
    tries: list[Try]
    verdict: PlaceVerdict | None
    measurable: list[Measurable]
    proof: Proof
    notes: list[str]
    variables: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    requests: int = 0
    written: bool = False

    def next_command(self, eval_set: Path | None) -> str:
        """The run that the profile is for, as it can be typed in the working folder.

        ``eval_set``: the set that the user named.
        """
        url = public_url(self.base_url) or "http://HOST:PORT"
        own = self.target.parent == PROFILES
        profile = self.target.stem if own else os.path.abspath(self.target)
        more = ["--eval-set", os.path.abspath(eval_set)] if eval_set else []
        if own and (HOME / "Makefile").is_file():
            folder = os.path.relpath(HOME)
            words = ["make", *([] if folder == "." else ["-C", folder]), "run", f"API={url}"]
            if HOME == ROOT:
                more = ["--profile", profile, *more]
            else:
                words.append(f"PROFILE={profile}")
            words += [f"ARGS={shlex.join(more)}"] if more else []
            return shlex.join(words)
        script = ROOT / "eval" / "scripts" / "run_eval.py"
        words = [os.path.relpath(sys.executable), os.path.relpath(script), "--api-url", url]
        return shlex.join([*words, "--profile", profile, "--store-full-text", *more])

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        places = self.verdict.places if self.verdict else None
        return {
            "profile": str(self.target),
            "written": self.written,
            "url": public_url(self.base_url),
            "text": self.text,
            "fields": {row.field: row.path for row in self.rows},
            "tries": [
                {"request": each.request, "status": each.status, "answer": each.excerpt}
                for each in self.tries
            ],
            "check": None
            if places is None or self.verdict is None
            else {
                "gold": places.gold,
                "paths": places.paths,
                "headings": places.headings,
                "settings": self.verdict.settings,
                "ids_stable": self.verdict.stable,
                "sentences": self.verdict.sentences(),
            },
            "measurable": [
                {"name": each.name, "possible": each.possible, "why": each.reason}
                for each in self.measurable
            ],
            "proof": self.proof.to_dict(),
            "notes": self.notes,
            "variables": self.variables,
            "requests": self.requests,
            "usage": self.usage,
            "cost_usd": self.cost_usd,
        }


def connect(
    options: ConnectOptions, cases: Sequence[TestCase], environ: Mapping[str, str], talk: Talk
) -> Outcome | None:
    """Find out how a bot is asked and where its values are; None when the user stopped it.

    ``cases``: of the labelled set to check against, or none. Nothing is written: ``write`` does.
    Raises StorageError, with the tries, when it cannot be found out; Unreachable.
    """
    options.check()
    request = given_request(options)
    url = options.url or (request.url if request else "")
    base, path, url_query = url_parts(url)
    chosen = _chosen(cases)
    questions = _questions(options, chosen)
    finder = SecretFinder()
    headers = header_templates(options.header)
    given = given_shape(options, request, path, url_query, finder)
    plain = finder.shape(Shape("GET", path, "the URL", {} if given else template(url_query, None)))
    opening = begin_request(options, path, given, finder)
    names = _variable_names(finder, talk)
    given = _renamed(given, names) if given else None
    query = _renamed(plain, names).query
    begin = _renamed(opening, names).as_begin() if opening else None
    environ = {**environ, **{names[name]: value for name, value in finder.values.items()}}
    limits = BotLimits(**options.limits)
    prober = Prober(
        base,
        headers,
        environ,
        talk.tell,
        limits.timeout,
        query,
        model=options.model,
        begin=begin,
    )
    if options.from_response:
        answered, heard, repeat = _from_file(options, given, path, questions[0])
    else:
        talk.tell(
            f"When the request is known, {len(questions)} questions are asked, the first one twice."
        )
        answered = prober.find(given, path, questions[0])
        heard, repeat = _ask_all(prober, answered, questions, talk)
    shape = with_history(replace(answered.shape, headers={**answered.shape.headers, **headers}))
    payloads, texts = [each.payload for each in heard], [each.question.text for each in heard]
    seconds = [each.timing.total for each in heard]
    gold = [support.rel_path for case in cases for support in case.gold_supports]
    if answered.recipe:
        proposal = answered.recipe.proposal(payloads, texts, seconds=seconds, gold_paths=gold)
        own = answered.recipe.shape()
        if answered.recipe.needs_id and own and own.path == answered.shape.path:
            proposal.about.append("Write your own id into the path of the request.")
    else:
        proposal = propose(
            payloads,
            texts,
            seconds=seconds,
            gold_paths=gold,
            gold_ids=[chunk for case in cases for chunk in case.relevant_chunks],
            settings=answered.settings,
        )
    set_paths(
        proposal,
        dict(assignment(text) for text in options.set_paths if not text.startswith(LIMITS_PREFIX)),
    )
    job = _ConnectJob(options, shape, heard, repeat, proposal, cases, chosen)
    job.settle()
    if talk.edit and not job.edited(talk.edit):
        return None
    variables = sorted(names[name] for name in finder.values)
    return job.outcome(base, prober.tries, variables)


def write(outcome: Outcome) -> None:
    """Put the profile into its file."""
    replace_bytes(outcome.target, outcome.text.encode())
    outcome.written = True


class _ConnectJob:
    """What is known of a bot, and what becomes of it when a path is changed."""

    def __init__(
        self,
        options: ConnectOptions,
        shape: Shape,
        heard: Sequence[Heard],
        repeat: Heard | None,
        proposal: Proposal,
        cases: Sequence[TestCase],
        chosen: Sequence[TestCase],
    ) -> None:
        self._options, self._shape, self._heard, self._repeat = options, shape, heard, repeat
        self._proposal, self._cases = proposal, cases
        self._gold = {case.id: case.gold_supports for case in chosen}
        self._verdict: PlaceVerdict | None = None
        self._paths = PathVerdict()
        self._time_doubt = ""
        self._results: list[TestResult] = []
        self._faults: list[str] = []
        self._left_out, self._typed = list[str](), dict[str, str]()

    def settle(self) -> None:
        """Find the settings that make labels match, and read all answers by what is proposed."""
        self._left_out = []
        settings = self._proposal.settings
        places = ("path_root", "path_cut", "path_files", "heading_separator", "heading_root")
        by_hand = {name: settings.pop(name) for name in places if name in settings}
        self._drop_doubles()
        raw = self._asked(self._read())
        self._settle_time()
        before = check_places(raw)
        known = [gold.rel_path for case in self._cases for gold in case.gold_supports]
        found = by_hand or (suggest(raw, known) if known else self._folder())
        settings.update(found)
        settled = self._asked(self._read())
        tables = self._proposal.tables
        has_lists = bool(tables["response"].keys() & {"retrieved", "searches"})
        has_paths = has_lists and "rel_path" in tables["chunk"]
        self._verdict = PlaceVerdict(
            check_places(settled), before, found, self._stable(), has_paths
        )
        self._paths = path_verdict(settled, known)

    def _folder(self) -> dict[str, str]:
        """Without labels: the folder of the server that all files that came lie in."""
        paths = [chunk.rel_path or "" for result in self._results for chunk in result.chunks()]
        cut = shared_folder(paths)
        settings = {"path_root": cut.root, "path_cut": " ".join(cut.steps)}
        note = f"All returned files are in {cut.root}; change it with --set path_root=FOLDER."
        if cut.root and note not in self._proposal.notes:
            self._proposal.notes.append(note)
        return {name: value for name, value in settings.items() if value}

    def _drop_doubles(self) -> None:
        """Take out citations that are the list of passages: every answer would cite them all."""
        response = self._proposal.tables["response"]
        passages, cited = response.get("retrieved"), response.get("references")
        if cited is None or passages is None:
            return
        lists = [
            (list_at(passages, each.payload), list_at(cited, each.payload)) for each in self._heard
        ]
        same = any(len(items) > 1 for items, _ in lists) and all(a == b for a, b in lists)
        if cited == passages or same:
            response.pop("references")
            self._proposal.tables["reference"] = {}
            note = f"references: {cited} was left out: it is the list of passages"
            self._proposal.notes.append(f"{note}, so it does not say what an answer cites.")

    def _settle_time(self) -> None:
        """Take the bot's own time only where it fits the measured one in one unit."""
        response, settings = self._proposal.tables["response"], self._proposal.settings
        path = response.get("latency_ms")
        if path is None or self._options.from_response:
            return
        get = compile_path(path)
        times = [get(each.payload) for each in self._heard]
        totals = [time.get("total") if isinstance(time, dict) else None for time in times]
        if not any(totals):
            return
        units = fitting_units(totals, [each.timing.total for each in self._heard])
        if len(units) == 1:
            settings.pop("latency_unit", None)
            if units[0] != "ms":
                settings["latency_unit"] = units[0]
            return
        response.pop("latency_ms")
        settings.pop("latency_unit", None)
        number, timing = next(
            (n, each.timing) for n, each in zip(totals, self._heard, strict=True) if n
        )
        self._time_doubt = (
            f"The bot's time ({number}) fits {'no unit' if not units else ' and '.join(units)} for "
            f"a call of {timing.total * 1000:,.1f} ms; the measured one is taken."
        )

    def edited(self, edit: Callable[[Draft], Mapping[str, str] | None]) -> bool:
        """Let the user change fields until nothing is changed any more; False when they stop."""
        while True:
            shown = tree(self._heard[0].payload)
            changes = edit(
                Draft(
                    field_rows(self._proposal, [each.payload for each in self._heard]),
                    shown,
                    [*self._faults, *self._left_out],
                )
            )
            if changes is None:
                return False
            if not changes:
                return True
            self._faults = []
            try:
                set_paths(self._proposal, changes)
                self._typed |= changes
                set_paths(self._proposal, self._typed)  # a list that was left out comes back
            except StorageError as error:
                self._faults = [error.message]
            self.settle()

    def outcome(self, base: str, tries: list[Try], variables: list[str]) -> Outcome:
        usage: Counter[str] = Counter()
        for result in self._results:
            usage.update({k: n for k, n in result.usage.items() if type(n) is int})
        costs = [result.cost_usd for result in self._results if result.cost_usd is not None]
        return Outcome(
            target=self._options.target,
            base_url=base,
            text=profile_text(self._shape, self._proposal, self._options.limits),
            rows=self._rows(),
            tries=tries,
            verdict=self._verdict,
            measurable=measurable(self._proposal.tables, self._results),
            proof=self._proof(),
            notes=self._proposal.about + self._proposal.notes + self._left_out + self._faults,
            variables=variables,
            usage=dict(usage),
            cost_usd=sum(costs) if costs else None,
            requests=len(tries),
        )

    def _rows(self) -> list[FieldRow]:
        return field_rows(self._proposal, [each.payload for each in self._heard])

    def _proof(self) -> Proof:
        assert self._verdict is not None
        answers = [
            ProvenAnswer(each.question.text, each.payload, result, each.timing.total)
            for each, result in zip(self._heard, self._results, strict=False)
            if result.error is None or result.error.kind in UNANSWERED
        ]
        return prove(
            self._proposal.tables,
            answers,
            self._results[-1] if self._repeat else None,
            ProvenPlaces(self._verdict.places, self._paths),
            retrieves_only=self._proposal.settings.get("kind") == "retrieval",
            time_doubt=self._time_doubt,
        )

    def _read(self) -> list[TestResult]:
        """All answers by the profile as it stands; what does not fit is left out of it and told."""
        while True:
            raw = tomllib.loads(profile_text(self._shape, self._proposal, {}))
            if "answer" not in self._proposal.tables["response"]:
                raw["kind"] = "retrieval"  # to read the rest; that it lacks one the proof says
            # What a profile would refuse is shown and set right here, not taken out of it.
            answer = replace(check_profile("connect_bot", raw, "the profile").answer, answers=False)
            heard = [*self._heard, *([self._repeat] if self._repeat else [])]
            results: list[TestResult] = []
            faults: list[CallError] = []
            for each in heard:
                try:
                    results.append(read_answer(each.payload, answer, each.question, each.timing))
                except CallError as error:
                    faults.append(error)
                    info = ErrorInfo(error.kind, error.message)
                    question = each.question
                    results.append(TestResult(question.case_id, question.text, "error", error=info))
            if misfit := next((each for each in faults if each.kind not in UNANSWERED), None):
                self._drop(misfit.message)
                continue
            self._results = results
            return results[: len(self._heard)]

    def _drop(self, fault: str) -> None:
        """Take the path at fault out of the proposal. Raises StorageError when none is left."""
        fields = re.split(r"[\[.:]", fault, maxsplit=1)
        name, inner = fields[0].strip(), re.search(r"\]\.(\w+)", fault.partition(":")[0])
        tables = self._proposal.tables
        table = TABLE_OF_LIST.get(name)
        if inner and table and inner[1] in tables[table]:
            path = tables[table].pop(inner[1])
        elif "has no such field" in fault and self._proposal.settings.get("required") is None:
            self._proposal.settings["required"] = "answer"
            return
        elif name in tables["response"] and len(tables["response"]) > 1:
            path = tables["response"].pop(name)
        else:
            raise StorageError(f"the answers cannot be read: {fault}; set paths with --set.")
        remedy = ""
        if table and name not in tables["response"]:
            remedy = f" Set {NAMING[table]} too, with a path inside an item of {path}."
        self._left_out.append(f"{name}: {path} was left out ({fault}).{remedy}")

    def _asked(self, results: Sequence[TestResult]) -> list[AskedQuestion]:
        return [
            asked_of(result, self._gold[result.test_case_id])
            for result in results
            if result.status == "ok" and self._gold.get(result.test_case_id)
        ]

    def _stable(self) -> bool | None:
        """Do two equal questions bring equal ids? None where nothing came or nothing was asked."""
        if not self._repeat or "chunk_id" not in self._proposal.tables["chunk"]:
            return None
        first, again = self._results[0], self._results[-1]
        ids = [{chunk.chunk_id for chunk in result.chunks()} for result in (first, again)]
        return ids[0] == ids[1] if ids[0] and ids[1] else None


def _variable_names(finder: SecretFinder, talk: Talk) -> dict[str, str]:
    """The name of the variable for each secret: the proposed one, or what the user says."""
    names = {}
    for name in finder.values:
        answer = talk.name(name).strip() if talk.name else name
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", answer):
            raise StorageError(f"{answer[:40]!r} is not the name of an environment variable.")
        names[name] = answer
    return names


def _renamed(shape: Shape, names: Mapping[str, str]) -> Shape:
    def rename(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\$\{(\w+)\}", lambda m: f"${{{names.get(m[1], m[1])}}}", value)
        if isinstance(value, Mapping):
            return {key: rename(item) for key, item in value.items()}
        if isinstance(value, list):
            return [rename(item) for item in value]
        return value

    return replace(
        shape,
        query=rename(shape.query),
        headers=rename(shape.headers),
        body=rename(shape.body),
    )


def _chosen(cases: Sequence[TestCase]) -> list[TestCase]:
    """Cases to ask: two with gold of different files, one more, and one that has no answer."""
    labelled = [case for case in cases if case.gold_supports] or list(cases)
    first = labelled[:1]
    files = {support.rel_path for case in first for support in case.gold_supports}
    rest = sorted(
        labelled[1:], key=lambda case: {support.rel_path for support in case.gold_supports} <= files
    )
    second = rest[:1]
    third = [case for case in reversed(labelled) if case not in first + second][:1]
    none = [case for case in cases if case.answerable is False and case not in first + second]
    return [*first, *second, *third, *none[:1]]


def _questions(options: ConnectOptions, chosen: Sequence[TestCase]) -> list[Question]:
    if chosen:
        return [
            Question(
                case.id,
                case.question,
                K,
                vaults=tuple(case.vaults),
                folders=tuple(case.folders),
                user_roles=tuple(case.user_roles),
            )
            for case in chosen
        ]
    texts = [*options.ask, *ANY_QUESTIONS][: max(QUESTIONS, len(options.ask))]
    return questions_of(texts)


def _ask_all(
    prober: Prober, answered: Answered, questions: Sequence[Question], talk: Talk
) -> tuple[list[Heard], Heard | None]:
    """The answers to all questions, and to the first once more (None where that failed)."""
    heard = [answered.first]
    repeat = None
    for question in [*questions[1:], replace(questions[0], repeat=1)]:
        try:
            reply, redactor = prober.send(answered.shape, question)
            payload, _, timing = read_reply(reply, redactor, answered.settings)
        except CallError as error:
            talk.tell(f"   failed: {error.kind}: {prober.tries[-1].excerpt}")
            continue
        if question.repeat:
            repeat = Heard(question, payload, timing)
        else:
            heard.append(Heard(question, payload, timing))
    return heard, repeat


def _from_file(
    options: ConnectOptions, given: Shape | None, path_of_url: str, question: Question
) -> tuple[Answered, list[Heard], Heard | None]:
    """A saved answer as if the bot had just given it."""
    path = options.from_response
    assert path is not None
    try:
        body = read_whole(path, MOST)
    except OSError as error:
        raise StorageError(f"--from-response {path}: {error.strerror}.") from None
    try:
        payload, settings, _, recipe = understood(
            Reply(200, {}, body, 0.0), Redactor(), path_of_url
        )
    except CallError as error:
        raise StorageError(f"--from-response {path}: {error.message}.") from None
    heard = Heard(question, payload, Timing(0.0))
    shape = given or (recipe and recipe.shape(path_of_url)) or known_shapes(path_of_url)[0]
    shape = with_model(shape, options.model or NO_MODEL)
    is_chosen = recipe or options.set_paths
    if not is_chosen and not propose([payload], [], settings=settings).usable:
        shown = "\n".join(f"  {line}" for line in tree(payload))
        raise StorageError(
            f"--from-response {path}: contains no recognisable answer or passages:\n"
            f"{shown}\nName their paths with --set answer=PATH or --set retrieved=PATH."
        )
    return Answered(shape, settings, heard, recipe), [heard], None
