"""Connects to the judge that the user names: local, on a server, or its cache alone."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from clients.http import RetryPolicy
from clients.limits import CallLimits
from judging.cache import CachedJudge, CacheOnly, VerdictCache
from judging.cost import (
    CostEstimate,
    CostLimit,
    JudgingTotals,
    Prices,
    estimate,
    read_prices,
)
from judging.identity import Alias, JudgeError, JudgePin, file_name
from judging.judge_files import LOCAL, compound_keys, compound_of
from judging.local import LocalJudge
from judging.protocols import Sampling, ServerCapabilities, endpoint
from judging.schema_limits import SchemaLimits, StoringJudge
from judging.server import HttpJudge, key_headers
from judging.types import Judge, JudgeTask, JudgeVerdict
from records.errors import StorageError
from records.files import locked, replace_bytes
from records.runs import CACHE_DIR, JUDGE_CACHE
from records.verdicts import JudgeIdentity, new_judging_run

SALT_BYTES = 32

EFFORT_ROOM = 8192
"""Tokens that a reply may take beside its form where a judge names only its effort."""


class Compound(Protocol):
    """A judge made of judges, as an extra makes it of a judge's file.

    ``names``: of the judges.
    """

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def concurrency(self) -> int: ...

    def may_be(self, identity: JudgeIdentity) -> bool:
        """Whether it may be the judge of an identity; names alone decide."""

    def connect(
        self, cache: VerdictCache, salt: bytes, ask_nothing: bool
    ) -> AbstractContextManager[Connection]:
        """The judge, ready to be asked; see ``connect``."""


@dataclass(frozen=True)
class JudgeOptions:
    """The judge, the way to reach it, and its highest cost.

    ``claims``: by ``sentence`` rules, or ``atomic`` by the judge. ``correctness_weight``: of facts
    in answer_correctness_judged; None: the usual one.

    ``judge``: an address, or ``local``; "": nothing was named. ``api_key``: the name of an
    environment variable, no key. ``thinking_tokens``: None: by the effort. ``min_kappa`` and
    ``min_balanced_accuracy``: how good it must be. ``compound``: a judge made of judges, which has
    no server.
    """

    judge: str = ""
    model: str | None = None
    api_key: str | None = None
    revision: str | None = None
    file: Path | None = None
    unpinned: bool = False
    aliases: tuple[Alias, ...] = ()
    temperature: float | None = 0.0
    seed: int | None = 0
    mode: str | None = None
    thinking_tokens: int | None = None
    reasoning_effort: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = 8
    rpm: float | None = None
    tpm: float | None = None
    timeout: float = 120.0
    retries: int = 3
    prices: Prices | None = None
    max_cost: float | None = None
    offline: bool = False
    cache_dir: Path = CACHE_DIR
    claims: str = "sentence"
    correctness_weight: float | None = None
    embedding_model: str | None = None
    min_kappa: float = 0.6
    min_balanced_accuracy: float = 0.75
    compound: Compound | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any], values: Mapping[str, Any]) -> JudgeOptions:
        """From the settings that describe a judge (``judge_files.judge_settings``) and the values
        of a command line's options; others of these are passed over.

        Raises StorageError for prices that cannot be read.
        """
        names = {field.name for field in fields(cls)}
        chosen = {key: value for key, value in settings.items() if key in names - {"prices"}}
        chosen["judge"] = settings.get("server", "")
        pairs = (pair.partition("=") for pair in settings.get("alias", ()))
        chosen["aliases"] = tuple((asked.strip(), name.strip()) for asked, _, name in pairs)
        chosen["prices"] = _prices(settings)
        for name in ("seed", "max_cost", "offline", "cache_dir"):
            if name in values:
                chosen[name] = values[name]
        for key in compound_keys() & settings.keys():
            chosen["compound"] = compound = compound_of(key).compound(settings, values)
            chosen["concurrency"] = compound.concurrency
        return cls(**chosen)

    def may_be(self, identity: JudgeIdentity) -> bool:
        """Return True if the options name the judge of an identity; names alone decide.

        No server is asked. Raises JudgeError for a model without a server.
        """
        if self.compound is not None:
            return self.compound.may_be(identity)
        if identity.provider in compound_keys():
            return False
        if self.by_rules or identity.provider == LOCAL:
            return identity.provider == LOCAL and self.by_rules
        if self.model is not None:
            model = identity.model
            asked = {self.model, f"{self.model}:latest", file_name(self.model)}
            if not asked & {model, f"{identity.provider}/{model}"}:
                return False
        return self.revision in (None, identity.revision)

    @property
    def sampling(self) -> Sampling:
        effort = {"reasoning_effort": self.reasoning_effort} if self.reasoning_effort else {}
        return Sampling(self.temperature, self.seed, {**effort, **self.extra_body})

    @property
    def thinking(self) -> int:
        """Tokens that a reply may take beside its form."""
        if self.thinking_tokens is not None:
            return self.thinking_tokens
        return EFFORT_ROOM if self.reasoning_effort not in (None, "none") else 0

    @property
    def server(self) -> str:
        """The server's address; "" when none is named."""
        return "" if self.judge == LOCAL else self.judge

    @property
    def by_rules(self) -> bool:
        """Do the embedded rules judge? ``offline`` means the cache, and a model is never the rules.

        Raises JudgeError for a model without a server.
        """
        if self.compound or self.server or (self.offline and (self.model or not self.judge)):
            return False
        if self.model and not self.judge:
            raise JudgeError(
                f"--model {self.model}: name its server with --judge, or score its cached verdicts "
                "with --offline."
            )
        return True


class CountedJudge(Judge, Protocol):
    """A judge whose verdicts are counted. ``cannot``: prompts that it cannot answer, and why."""

    @property
    def totals(self) -> JudgingTotals: ...

    @property
    def cannot(self) -> Mapping[str, str]: ...


class _CountingJudge:
    """A judge whose verdicts are counted."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.totals = JudgingTotals()

    @property
    def identity(self) -> JudgeIdentity:
        return self._judge.identity

    @property
    def cannot(self) -> Mapping[str, str]:
        """Prompts that this judge cannot answer, with the reason."""
        reasons: Mapping[str, str] = getattr(self._judge, "cannot", {})
        return reasons

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        verdict = await self._judge.ask(task)
        self.totals.add(verdict)
        return verdict


class JudgeChanged(JudgeError):
    """Verdicts cannot be trusted any more. ``withdrawn``: the runs of judging, each with why."""

    def __init__(self, message: str, withdrawn: Mapping[str, str]) -> None:
        super().__init__(message)
        self.withdrawn = withdrawn


@dataclass
class Connection:
    """A judge at hand. ``describe``: its part of config.json. ``changed``: is it still the same?

    ``holds`` tells whether a task's verdict is in the cache; ``tokens`` how long replies are;
    ``prefix`` what of a task's prompt the provider may have in memory; ``thinking``: tokens that a
    reply may take beside its form.
    ``judging_run``: the id of what is asked by this connection. ``withdraw``: takes back what it
    has put into the cache, with a reason. ``withdrawn``: what was taken back, by id, each with the
    reason; ``taken_back``: those of them whose verdicts were used here. ``notes``: what a reader
    of the verdicts should know of the names in the replies.
    """

    judge: CountedJudge
    salt: bytes
    describe: Callable[[], dict[str, Any]]
    judging_run: str = ""
    changed: Callable[[], str | None] = lambda: None
    withdraw: Callable[[str], None] = lambda reason: None
    withdrawn: Callable[[], Mapping[str, str]] = dict
    taken_back: Callable[[], Mapping[str, str]] = dict
    notes: Callable[[], Sequence[str]] = tuple
    holds: Callable[[JudgeTask], bool] = lambda task: False
    tokens: Callable[[str], float | None] = lambda metric: None
    prefix: Callable[[JudgeTask], str] = lambda task: ""
    thinking: int = 0
    budget: CostLimit = field(default_factory=CostLimit)
    stop: threading.Event = field(default_factory=threading.Event)
    _confirmed: bool = False

    def recipients(self, cost: CostEstimate, max_cost: float | None) -> str:
        """Who gets the answers, where a user might not know it, and the cost; "" for one server."""
        return ""

    def estimate(self, tasks: Iterable[JudgeTask]) -> CostEstimate:
        """Calls, tokens and money of tasks, by the judge's prices; nothing is asked."""
        return estimate(
            tasks,
            self.holds,
            self.tokens,
            self.budget.prices,
            prefix=self.prefix,
            thinking=self.thinking,
        )

    def confirm(self) -> None:
        """Check again which judge answers; if it is another one, withdraw the verdicts of this
        call.

        Raises JudgeError for a judge that changed, and when another run of judging has taken back
        what was used here; JudgeUnreachable for a server that is gone. Done once: ``connect`` does
        it at its end if it was not done before.
        """
        if self._confirmed:
            return
        self._confirmed = True
        if (reason := self.changed()) is not None:
            self.withdraw(reason)
            raise JudgeChanged(
                f"{reason}; its verdicts cannot be trusted and were withdrawn: judge again.",
                {**self.withdrawn(), self.judging_run: reason},
            )
        if lost := self.taken_back():
            why = next(iter(lost.values()))
            raise JudgeChanged(
                f"verdicts from the cache were withdrawn in the meantime ({why}): judge again.",
                lost,
            )


@contextmanager
def connect(options: JudgeOptions, *, ask_nothing: bool = False) -> Iterator[Connection]:
    """The judge that is options, ready to be asked.

    ``ask_nothing``: spend nothing yet (for an estimate): a server is identified, not probed.
    Raises StorageError for what is missing or not pinned, JudgeUnreachable (exit code 3).
    """
    salt = read_salt(options.cache_dir)
    if options.by_rules:
        local = LocalJudge()
        description: dict[str, Any] = {"identity": local.identity.to_dict(), "parameters": {}}
        description |= {"mode": "local", "dropped_params": []}
        yield Connection(_CountingJudge(local), salt, lambda: dict(description))
        return
    cache = VerdictCache(options.cache_dir / JUDGE_CACHE, read_only=options.offline)
    try:
        if options.compound is not None:
            opened = options.compound.connect(cache, salt, ask_nothing)
        else:
            opened = open_judge(options, cache, salt, ask_nothing, Shared())
        with opened as connection:
            yield connection
    finally:
        cache.close()


@dataclass(frozen=True)
class Shared:
    """The end and the dollars spent, which judges that are asked together share."""

    stop: threading.Event = field(default_factory=threading.Event)
    purse: list[float] = field(default_factory=lambda: [0.0])


@contextmanager
def open_judge(
    options: JudgeOptions, cache: VerdictCache, salt: bytes, ask_nothing: bool, shared: Shared
) -> Iterator[Connection]:
    """One judge, on its server or from the cache alone."""
    open_one = _offline if options.offline else _server
    yield from open_one(options, cache, salt, ask_nothing, shared)


def _offline(
    options: JudgeOptions, cache: VerdictCache, salt: bytes, ask_nothing: bool, shared: Shared
) -> Iterator[Connection]:
    """The cache alone, as the judge that has verdicts there under this name."""
    candidates = [
        (identity, capabilities)
        for identity, capabilities in cache.judges(options.model)
        if options.file or options.revision in (None, identity.revision)
    ]
    if not candidates:
        name = options.model or "any judge"
        raise JudgeError(f"{cache.path}: no verdicts of {name}; judge once without --offline.")
    names = sorted({str(identity) for identity, _ in candidates})
    if len(names) > 1:
        raise JudgeError(
            f"--offline: the cache has verdicts of several judges ({', '.join(names)}); choose one "
            "with --model, or with --set revision=NAME."
        )
    identity, capabilities = candidates[-1]
    judge = CachedJudge(CacheOnly(identity, capabilities, options.sampling), cache)
    yield unasked(judge, options, cache, salt, (identity, capabilities))


def unasked(
    judge: StoringJudge,
    options: JudgeOptions,
    cache: VerdictCache,
    salt: bytes,
    described: tuple[JudgeIdentity, ServerCapabilities],
) -> Connection:
    """The connection of a judge that is not asked: what it has said is in the cache.

    ``described``: who it is, and how it was asked.
    """
    identity, capabilities = described
    parameters = options.sampling.described(capabilities.dropped)
    description: dict[str, Any] = {"identity": identity.to_dict(), "parameters": parameters}
    description |= {"mode": capabilities.mode, "dropped_params": list(capabilities.dropped)}
    limited = SchemaLimits(judge, options.thinking)
    return Connection(
        _CountingJudge(limited),
        salt,
        lambda: dict(description),
        withdrawn=lambda: cache.withdrawn,
        holds=limited.holds,
        tokens=cache.tokens_a_reply,
    )


def _server(
    options: JudgeOptions, cache: VerdictCache, salt: bytes, ask_nothing: bool, shared: Shared
) -> Iterator[Connection]:
    stop = shared.stop
    judging_run = new_judging_run()
    judge = HttpJudge(
        options.judge,
        options.model,
        headers=key_headers(options.api_key, os.environ, endpoint(options.judge).form),
        policy=RetryPolicy(options.timeout, options.retries),
        sampling=options.sampling,
        mode=options.mode,
        thinking=options.thinking,
        pin=JudgePin(options.revision, options.file, options.unpinned, options.aliases),
        budget=_budget(options, shared.purse),
        limits=CallLimits(options.concurrency, options.rpm, options.tpm),
        stop=stop,
    )
    try:
        _make_ready(judge, cache.found_for(judge.identify()), options.mode, ask_nothing)
        cached = CachedJudge(judge, cache, judging_run)
        limited = SchemaLimits(cached, options.thinking)

        def describe() -> dict[str, Any]:
            description = judge.describe()
            left_out = [f"schema:{name}" for name in limited.left_out]
            return description | {"dropped_params": [*description["dropped_params"], *left_out]}

        connection = Connection(
            _CountingJudge(limited),
            salt,
            describe,
            judging_run,
            judge.changed,
            lambda reason: cache.withdraw(judging_run, reason),
            lambda: cache.withdrawn,
            lambda: cache.taken_back,
            lambda: judge.notes,
            limited.holds,
            cache.tokens_a_reply,
            lambda task: judge.prefix(limited.first_form(task)),
            options.thinking,
            judge.budget,
            stop,
        )
        yield connection
        if not ask_nothing:
            connection.confirm()
    finally:
        judge.close()


def _make_ready(
    judge: HttpJudge, capabilities: ServerCapabilities | None, mode: str | None, ask_nothing: bool
) -> None:
    """Settle in which way the judge gives JSON. ``found``: the way that worked before.

    A run that takes all from the cache asks the server nothing, unless the judge is known only by
    the name that a reply has.
    """
    if judge.named_by_probe and not ask_nothing:
        judge.probe(capabilities)
    elif capabilities is not None and mode in (None, capabilities.mode):
        judge.assume(capabilities, probe_first=not ask_nothing)
    elif ask_nothing:
        judge.assume(ServerCapabilities(mode or judge.form.modes[0], judge.form.dropped))
    else:
        judge.probe()


def _prices(settings: Mapping[str, Any]) -> Prices | None:
    """What the judge's tokens cost: a table of its own, or that of its model in another file."""
    prices = settings.get("prices")
    if isinstance(prices, dict):
        return Prices(**prices)
    if prices is None:
        return None
    if not settings.get("model"):
        raise StorageError("prices: name the model with --model, too.")
    return read_prices(prices, settings["model"])


def _budget(options: JudgeOptions, purse: list[float]) -> CostLimit:
    if options.prices is None and options.max_cost is not None:
        raise StorageError(
            f"--max-cost: needs prices of {options.model or 'the judge'}; give --set prices=FILE, "
            "a TOML file with prices of tokens, or write [prices] into the judge's file."
        )
    return CostLimit(options.prices, options.max_cost, purse)


def read_salt(cache_dir: Path) -> bytes:
    """The secret of the boundaries, made once; whoever writes an answer must not know it."""
    path = cache_dir / "judge_salt"
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with locked(path):
            if not path.exists() or len(path.read_bytes()) != SALT_BYTES:
                replace_bytes(path, secrets.token_bytes(SALT_BYTES))
                path.chmod(0o600)
            return path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: cannot be used ({error.strerror}).") from None
