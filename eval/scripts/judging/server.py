"""A judge behind a server: OpenAI and all that imitate it, Azure, Anthropic (``protocols``).

    judge = HttpJudge("http://localhost:11434/v1", "llama3.1:8b")
    judge.identify()      # which model exactly; refuses one that may change
    judge.probe()         # how this server gives JSON
    verdict = await judge.ask(task)

A failure of the server or the model is a verdict without data, of a kind in ``FAILURES``. It never
is a score, and nothing is guessed from a reply that is cut or broken.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson
from msgspec.structs import replace

from clients.http import (
    RETRIED_STATUS,
    CallError,
    CallFailed,
    Reply,
    RetryPolicy,
    call_with_retries,
    finish,
)
from clients.limits import CallLimits
from clients.policy import PolicyTransport
from clients.secrets import Headers, resolve_headers, without_login
from clients.single import SingleTransport
from clients.transport import HttpTransport
from judging.cache import key_parameters, verdict_key
from judging.cost import CostLimit, TaskCost, add_usage
from judging.identity import (
    VOUCHED,
    JudgeError,
    JudgePin,
    JudgeServer,
    JudgeUnreachable,
    ReplyNames,
    file_name,
    identify,
)
from judging.protocols import (
    OPENAI,
    Endpoint,
    Sampling,
    ServerAnswer,
    ServerCapabilities,
    WireForm,
    cut_prompt,
    endpoint,
    error_within,
    failure_of,
    refused_parameter,
    sent_parameters,
)
from judging.replies import (
    BadReply,
    CheckedReply,
    SchemaChecker,
    ask_again,
    check_answer,
    is_thought,
)
from judging.trial import CANARY, MORE_ROOM, THINKING, check_reachable, find_way
from judging.types import JudgeTask, JudgeVerdict
from records.settings import VARIABLE_NAME
from records.verdicts import JudgeIdentity

MOST_ASKS = 3
"""The first time, and at most two re-asks."""

FINAL = frozenset({"refused", "truncated", "prompt_truncated"})
"""Errors that another try would not fix, or only seem to."""


class HttpJudge:
    """One model on one server. Any number of ``ask`` may be under way in one loop.

    ``mode``: the way to ask for JSON if it shall not be found out. ``thinking``: tokens that a
    reply may take beside its form; the trial gets them like every task. ``stop``: ends all calls.
    ``headers``: keys, whose values are kept out of everything that is returned or raised.
    Call ``identify`` and ``probe`` (or ``assume``) before the first ``ask``.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        headers: Headers | None = None,
        policy: RetryPolicy | None = None,
        sampling: Sampling | None = None,
        mode: str | None = None,
        thinking: int = 0,
        pin: JudgePin | None = None,
        budget: CostLimit | None = None,
        limits: CallLimits | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self._wanted_mode = mode
        self._thinking = thinking
        self._hints: list[str] = []
        self._pin = pin or JudgePin()
        self.stop = stop or threading.Event()
        self._server: JudgeServer | None = None
        self._identity: JudgeIdentity | None = None
        self._to_probe = False
        self._probing = asyncio.Lock()
        self._names = ReplyNames()
        self._channel = _ServerChannel(
            url, headers or Headers(), policy or RetryPolicy(), self.stop, limits
        )
        self._endpoint = self._channel.endpoint
        self._asked_model = model or self._endpoint.model
        self._exchange = _ModelExchange(
            self._channel, self._asked_model or "", sampling or Sampling(), budget or CostLimit()
        )

    def identify(self) -> JudgeIdentity:
        """Ask the server which model it has. Costs nothing.

        Raises JudgeError for a model that is absent or not pinned, JudgeUnreachable when the server
        does not answer.
        """
        self._server = self._look()
        self._identity = self._server.identity
        self._exchange.model = self._server.model
        return self._identity

    def probe(self, hint: ServerCapabilities | None = None) -> ServerCapabilities:
        """Find the way to get JSON with one small paid request, more if the best way fails.

        ``hint`` is tried first. Raises JudgeError when no way works, or another model answers than
        was asked for.
        """
        return finish(self._find_way(hint))

    async def _find_way(self, hint: ServerCapabilities | None) -> ServerCapabilities:
        form, room = self._endpoint.form, CANARY.max_tokens + self._thinking
        self._exchange.capabilities, answer = await find_way(
            self._exchange.attempt, form, self._wanted_mode, hint, room
        )
        self._note_thoughts(answer, room)
        answered = file_name(answer.model) if answer.model else None
        floating, aliases = self._floats, self._pin.aliases
        naming = self._names.take(self.identity, answered, floating=floating, aliases=aliases)
        if naming.fault is not None:
            raise JudgeError(
                f"{naming.fault}; ask for that model, or accept it with "
                f"--set alias={self.identity.model}={answered}."
            )
        if self.named_by_probe:
            # what an accepted name stands for today belongs to the identity
            self._identity = replace(self.identity, revision=naming.revision)
        return self.capabilities

    def _note_thoughts(self, answer: ServerAnswer, room: int) -> None:
        """Say what a reader must know of a model that thinks, when no room was set for it."""
        thought, took = answer.usage.reasoning_tokens or 0, answer.usage.completion_tokens or 0
        if took > room or (thought and not self._thinking):
            self._hints.append(
                f"The model thinks before it answers ({thought or took:,} tokens in the trial). "
                f"{MORE_ROOM}"
            )

    @property
    def named_by_probe(self) -> bool:
        """Does the identity depend on the name that a reply has? Then probe before it is used."""
        weak = self.identity.strength not in VOUCHED
        return weak and (self._floats or bool(self._pin.aliases))

    @property
    def _floats(self) -> bool:
        return self._server is not None and self._server.floating is not None

    def assume(self, capabilities: ServerCapabilities, *, probe_first: bool = False) -> None:
        """Take the server's ways as known, without a request.

        ``probe_first``: they are tried again before the judge is asked for the first time, which
        then may raise what ``probe`` raises.
        """
        self._exchange.capabilities = capabilities
        self._to_probe = probe_first

    async def _probe_once(self) -> None:
        """Try an assumed way again before the first question; the others wait for it."""
        if self._to_probe:
            async with self._probing:
                if self._to_probe:
                    await self._find_way(self.capabilities)
                    self._to_probe = False

    @property
    def identity(self) -> JudgeIdentity:
        if self._identity is None:
            raise RuntimeError("identify() has not been called")
        return self._identity

    @property
    def capabilities(self) -> ServerCapabilities:
        return self._exchange.capabilities

    @property
    def budget(self) -> CostLimit:
        return self._exchange.budget

    def parameters(self, task: JudgeTask) -> Mapping[str, Any]:
        """The request fields for this task beside messages and schema, and the mode."""
        return key_parameters(self._exchange.sampling, self.capabilities, task)

    def prefix(self, task: JudgeTask) -> str:
        """The part of a task's prompt that the server may have cached, in its own order."""
        form, mode = self._endpoint.form, self.capabilities.mode
        return form.prefix(form.body("", task.messages, task.schema, mode, {}))

    def changed(self) -> str | None:
        """The difference from the start, in a sentence; None if it is the same judge.

        Raises JudgeUnreachable when the server does not answer any more.
        """
        if (another := self._names.changed()) is not None:
            return another
        now, start = self._look().identity, self._server.identity if self._server else None
        if start is not None and now != start:
            return f"the judge changed during the run: it was {start}, it is {now}"
        return None

    @property
    def form(self) -> WireForm:
        """How this judge is asked, and how its replies are read."""
        return self._endpoint.form

    @property
    def notes(self) -> Sequence[str]:
        """Remarks on names, thoughts and refused settings for a reader of the verdicts."""
        refused = [
            name for name in self._exchange.sampling.extra if name in self.capabilities.dropped
        ]
        left = [f"The server refuses {name}: all requests leave it out." for name in refused]
        return (*self._names.notes, *self._hints, *left)

    def describe(self) -> dict[str, Any]:
        """The judge's part of config.json, without the prompts: no address, no key."""
        capabilities = self.capabilities
        return {
            "identity": self.identity.to_dict(),
            "parameters": self._exchange.sampling.described(capabilities.dropped),
            "mode": capabilities.mode,
            "dropped_params": list(capabilities.dropped),
            "facts": dict(self._server.facts) if self._server else {},
            "answered_as": sorted(self._names.accepted),
            "fingerprints": sorted(self._exchange.fingerprints),
        }

    def close(self) -> None:
        """Close idle connections."""
        self._channel.close()

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        """One verdict. Raises Interrupted when ``stop`` is set, and nothing for what others do."""
        await self._probe_once()
        spent = TaskCost()
        if self.budget.reached:
            return self._failed(task, spent, "budget", "the cost limit was reached", "")
        if self._names.fault is not None:
            message = f"asking stopped: {self._names.fault}"
            return self._failed(task, spent, "other_model", message, "")
        messages: Sequence[Mapping[str, str]] = task.messages
        usable: CheckedReply | None = None
        raw = ""

        def failed(kind: str, message: str) -> JudgeVerdict:
            if usable is not None:
                return self._verdict(task, spent, usable)
            return self._failed(task, spent, kind, message, raw)

        for asks_left in reversed(range(MOST_ASKS)):
            try:
                answer = await self._exchange.answer(messages, task, spent)
                raw = answer.text or answer.refusal or ""
                naming = self._names.take(self.identity, spent.answered_as)
                if naming.fault is not None:
                    return self._failed(task, spent, "other_model", naming.fault, raw)
                reply = self._exchange.read(answer, task, spent)
            except CallFailed as call:
                return failed(failure_of(call.error), call.error.message)
            except CallError as error:
                return failed("transport", error.message)
            except BadReply as bad:
                if bad.kind in FINAL:
                    return failed(bad.kind, bad.message)
                problem = bad
            else:
                advice = list(task.advice(reply.data)) if task.advice and not usable else []
                if not advice or not asks_left:
                    return self._verdict(task, spent, reply)
                usable = reply
                problem = BadReply("incomplete", "\n".join(advice))
            if self.budget.reached:
                break
            messages = ask_again(task.messages, raw, problem.message.splitlines())
        return failed(problem.kind, problem.message)

    def _look(self) -> JudgeServer:
        end = self._endpoint
        return identify(self._channel.fetch, end.host, self._asked_model, self._pin, end.provider)

    def _verdict(self, task: JudgeTask, spent: TaskCost, reply: CheckedReply) -> JudgeVerdict:
        return self._new_verdict(task, spent, reply.raw, data=reply.data, repaired=reply.repaired)

    def _failed(
        self, task: JudgeTask, spent: TaskCost, kind: str, message: str, raw: str
    ) -> JudgeVerdict:
        return self._new_verdict(task, spent, raw, data=None, failure=kind, message=message)

    def _new_verdict(self, task: JudgeTask, spent: TaskCost, raw: str, **more: Any) -> JudgeVerdict:
        capabilities = spent.capabilities or self.capabilities
        sent = key_parameters(self._exchange.sampling, capabilities, task)
        return JudgeVerdict(
            key=verdict_key(task, self.identity, sent),
            raw=raw,
            mode=capabilities.mode,
            sent=sent,
            attempts=spent.attempts,
            asks=spent.asks,
            usage=spent.usage,
            cost_usd=spent.cost,
            seconds=round(spent.seconds, 6) if spent.asks else None,
            answered_as=spent.answered_as,
            **more,
        )


class _ModelExchange:
    """Prompts and replies of one model: how it is asked for JSON, and what each answer costs."""

    def __init__(
        self, channel: _ServerChannel, model: str, sampling: Sampling, budget: CostLimit
    ) -> None:
        self._channel = channel
        self.model = model
        self.sampling = sampling
        self.budget = budget
        self._capabilities: ServerCapabilities | None = None
        self.fingerprints: set[str] = set()
        self._schemas = SchemaChecker()

    @property
    def capabilities(self) -> ServerCapabilities:
        """The ways of the server. Raises RuntimeError before they are known."""
        if self._capabilities is None:
            raise RuntimeError("probe() has not been called")
        return self._capabilities

    @capabilities.setter
    def capabilities(self, capabilities: ServerCapabilities) -> None:
        self._capabilities = capabilities

    async def answer(
        self, messages: Sequence[Mapping[str, str]], task: JudgeTask, spent: TaskCost
    ) -> ServerAnswer:
        """One answer, counted in ``spent``. A parameter that the server refuses is left out."""
        while True:
            capabilities = spent.capabilities = self.capabilities
            sent = sent_parameters(self.sampling, capabilities, task.max_tokens, task.repeat)
            make = self._channel.endpoint.form.body
            body = make(self.model, messages, task.schema, capabilities.mode, sent)
            try:
                reply, attempts = await self._channel.complete(body)
            except CallFailed as failed:
                spent.attempts += failed.attempts
                name = refused_parameter(failed.error, sent)
                if name is None or not self._drop(name, capabilities):
                    raise
                continue
            spent.attempts += attempts
            return self._count(reply, messages, spent)

    def _count(
        self, reply: Reply, messages: Sequence[Mapping[str, str]], spent: TaskCost
    ) -> ServerAnswer:
        spent.seconds += reply.seconds
        answer = self._channel.endpoint.form.read(self._channel.parse(reply))
        spent.asks += 1
        length = sum(len(message["content"]) for message in messages)
        usage = answer.usage
        if self._channel.limits is not None and usage.total_tokens is not None:
            self._channel.limits.spent(usage.total_tokens)
        spent.costs.append(self.budget.pay(usage, length, len(answer.text)))
        spent.usage = usage if spent.asks == 1 else add_usage(spent.usage, usage)
        spent.cut = cut_prompt(usage, messages)
        spent.answered_as = file_name(answer.model) if answer.model else None
        if answer.fingerprint:
            self.fingerprints.add(answer.fingerprint)
        return answer

    def read(self, answer: ServerAnswer, task: JudgeTask, spent: TaskCost) -> CheckedReply:
        if spent.cut is not None:
            raise BadReply("prompt_truncated", spent.cut)
        return check_answer(answer, task, self.capabilities.mode, self._schemas)

    async def attempt(
        self, task: JudgeTask, capabilities: ServerCapabilities
    ) -> tuple[ServerAnswer, ServerCapabilities]:
        """One small request in a given way: what came, and what had to be left out."""
        self.capabilities = capabilities
        spent = TaskCost()
        answer = await self.answer(task.messages, task, spent)
        try:
            self.read(answer, task, spent)
        except BadReply as bad:
            if bad.kind == "truncated" and (answer.usage.reasoning_tokens or is_thought(answer)):
                raise BadReply(bad.kind, f"{bad.message}, {THINKING}") from None
            raise
        return answer, self.capabilities

    def _drop(self, name: str, used: ServerCapabilities) -> bool:
        """Leave a parameter out from now on; False if this request did not carry it any more."""
        if name in used.dropped:
            return False
        if name not in self.capabilities.dropped:
            dropped = (*self.capabilities.dropped, name)
            self.capabilities = replace(self.capabilities, dropped=dropped)
        return True


MAX_BYTES = 8 * 2**20

LOADING = 503

RETRIED = RETRIED_STATUS | {408, 409, 425}


class _ServerChannel:
    """Requests to a judge's endpoint, and below its server's root.

    The values of ``headers`` and a login in the address are kept out of answers and messages.
    """

    def __init__(
        self,
        url: str,
        headers: Headers,
        policy: RetryPolicy,
        stop: threading.Event,
        limits: CallLimits | None = None,
    ) -> None:
        self.limits = limits
        bare, login, self._redactor = without_login(url, headers.secrets)
        self.endpoint: Endpoint = endpoint(bare)
        self._headers = {
            "User-Agent": "rag-eval-toolkit",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "Content-Type": "application/json",
            **self.endpoint.form.headers,
            **login,
            **headers.values,
        }
        self._policy = policy
        self._stop = stop
        self._many, self._single = (
            library(
                self.endpoint.base,
                max_bytes=MAX_BYTES,
                timeout=policy.timeout,
                retried=RETRIED,
                redactor=self._redactor,
            )
            for library in (HttpTransport, SingleTransport)
        )

    async def complete(self, body: Any) -> tuple[Reply, int]:
        """A reply and the number of tries. Raises CallFailed and Interrupted."""
        end = self.endpoint.url
        return await self._request(self._many, "POST", end, body, self._stop, self.limits)

    def fetch(self, path: str, body: Any = None) -> Any:
        """The JSON at a path below the root (POST with a body, else GET); None without any there.

        Works after ``stop``, too: whether the judge is still the same is asked at the very end.
        Raises JudgeError when the key is refused, JudgeUnreachable without a connection and while
        the server loads its model (503): its kind would be guessed wrongly then, and verdicts kept
        under another name.
        """
        try:
            method = "GET" if body is None else "POST"
            end = self.endpoint.root + path
            reply, _ = finish(self._request(self._single, method, end, body, threading.Event()))
            return self.parse(reply)
        except CallFailed as failed:
            if failed.error.status == 403:
                return None  # some gateways say so of any path that they do not know
            check_reachable(failed.error)
            if failed.error.status == LOADING:
                raise JudgeUnreachable(
                    f"the judge's server is not ready ({failed.error.message}); try again later."
                ) from None
            return None
        except CallError:
            return None

    def parse(self, reply: Reply) -> Any:
        """The JSON of an answer, without secrets. Raises CallError of kind ``malformed``."""
        try:
            return self._redactor.data(orjson.loads(reply.body))
        except orjson.JSONDecodeError as error:
            raise CallError("malformed", f"the answer is not valid JSON: {error}") from None

    def close(self) -> None:
        """Close idle connections."""
        self._many.close()
        self._single.close()

    async def _request(
        self,
        transport: PolicyTransport,
        method: str,
        url: str,
        body: Any,
        stop: threading.Event,
        limits: CallLimits | None = None,
    ) -> tuple[Reply, int]:
        data = None if body is None else orjson.dumps(body)

        async def once(timeout: float) -> Reply:
            reply = await transport.send(method, url, self._headers, data, timeout)
            if b'"error"' in reply.body and method == "POST":
                with suppress(orjson.JSONDecodeError):
                    error = error_within(orjson.loads(reply.body))
                    if error is not None and error.status is not None:
                        raise error
            return reply

        try:
            return await call_with_retries(once, self._policy, stop, limits=limits)
        except CallFailed as failed:
            failed.error.message = self._redactor.text(failed.error.message)
            body = failed.error.body.decode("utf-8", "replace")
            failed.error.body = self._redactor.text(body).encode()
            raise CallFailed(failed.error, failed.attempts) from None


def key_headers(
    variable: str | None, environ: Mapping[str, str], form: WireForm = OPENAI
) -> Headers:
    """The header that carries the key in an environment variable; none without a variable.

    ``form``: says which header. Raises JudgeError when there is no usable key. No message shows
    what may be a key.
    """
    if variable is None:
        return Headers()
    if not VARIABLE_NAME.fullmatch(variable):
        raise JudgeError(
            "api_key takes the name of an environment variable, such as OPENAI_API_KEY, not the "
            "key itself."
        )
    name, template = form.key
    headers, problems = resolve_headers(
        {name: template.format(f"${{{variable}}}")}, environ, "api_key"
    )
    if problems:
        raise JudgeError(f"api_key: {problems[0].message}.")
    return headers
