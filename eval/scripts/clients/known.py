"""Products whose answers are known: a recipe for each says how it is asked and where what stands.

    recipe = recognised(payload, "/v1/chat-messages")
    recipe.proposal([payload], ["How long is the warranty?"]).tables["chunk"]["text"]   # "content"

A recipe is a file in eval/profiles/known: a profile, and under ``[known]`` how the product is
recognised, where its answer is described, and what is peculiar. Where the user names the fields
inside an answer (``fields = "user"``) only the envelope is known, and the rest is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from clients.expressions import compile_path
from clients.guess import chunk_paths, propose
from clients.proposal import Proposal
from clients.reply_form import columns_of
from clients.shapes import QUESTION, Shape
from clients.templates import merge
from clients.tool_paths import find_tools
from records.files import read_toml
from records.runs import SHIPPED_PROFILES

FOLDER = SHIPPED_PROFILES / "known"

_ID = re.compile(r"\{(\w+)\}")

MODEL = "{model}"
"""Placeholder in a recipe's request for the model, deployment or graph that the user chooses."""


@dataclass(frozen=True)
class Recipe:
    """One product. ``recognition``: the table ``known``; ``profile``: all the other tables."""

    name: str
    recognition: Mapping[str, Any]
    profile: Mapping[str, Any]

    @property
    def title(self) -> str:
        return str(self.recognition["title"])

    @property
    def guesses(self) -> bool:
        """Whether the fields inside the answer are the user's."""
        return self.recognition.get("fields") == "user"

    @property
    def settings(self) -> dict[str, str]:
        """Settings of the profile beside its tables, such as how a stream is read."""
        return dict(self.profile.get("profile", {}))

    @property
    def stream(self) -> dict[str, str]:
        """The settings by which a streamed answer is read; {} for plain JSON."""
        return {name: value for name, value in self.settings.items() if name.startswith("stream")}

    @cached_property
    def _urls(self) -> list[tuple[int, re.Pattern[str]]]:
        return [(len(url), _pattern(url)) for url in self.recognition.get("urls", ())]

    def fit(self, path: str) -> int:
        """How much of an address is this product's: the length of the longest of its endings."""
        return max((size for size, pattern in self._urls if pattern.search(path)), default=0)

    def describes(self, paths: Sequence[str]) -> bool:
        """Whether an OpenAPI document with these paths is this product's."""
        own = self.recognition.get("openapi", ())
        return bool(own) and all(any(path.endswith(each) for path in paths) for each in own)

    def holds(self, payload: Any) -> bool:
        """Whether an answer has all keys of this product's."""
        keys = self.recognition.get("keys", ())
        return bool(keys) and all(_value(key, payload) not in (None, False) for key in keys)

    @property
    def needs_id(self) -> bool:
        """Whether the address names something of the user's, such as a workspace or a flow."""
        return _ID.search(self.profile.get("request", {}).get("path", "")) is not None

    def shape(self, path: str = "") -> Shape | None:
        """The request, at the user's path if that is one of the product's; None without any.

        In the product's own path the user's id is missing: ``SLUG`` stands for it.
        """
        request = self.profile.get("request")
        if request is None:
            return None
        return Shape(
            request.get("method", "POST"),
            path if self.fit(path) else _ID.sub(lambda id_: id_[1].upper(), request["path"]),
            self.title,
            body=request.get("body"),
            models=self.recognition.get("models", ""),
        )

    def completed(self, shape: Shape) -> Shape:
        """The user's own request with the fields that this product needs besides."""
        own = self.shape(shape.path)
        if own is None or not isinstance(shape.body, Mapping) or not isinstance(own.body, Mapping):
            return shape
        fixed = {key: value for key, value in own.body.items() if not _asks(value)}
        body = merge(fixed, dict(shape.body))
        added = ", ".join(key for key in body if key not in shape.body)
        origin = f"{shape.origin}, {added} added for {self.title}" if added else shape.origin
        return replace(shape, body=body, origin=origin)

    def proposal(
        self,
        payloads: Sequence[Any],
        questions: Sequence[str],
        *,
        gold_paths: Sequence[str] = (),
        **measured: Any,
    ) -> Proposal:
        """The paths of this product's fields, without those that occur in none of these answers."""
        proposal = Proposal(settings=self.settings)
        if self.guesses:
            measured |= {"gold_paths": gold_paths, "settings": self.stream}
            proposal = propose(payloads, questions, **measured)
            proposal.settings |= self.settings
        for name, path in self.profile.get("response", {}).items():
            if self._fills(name, path, payloads, questions):
                proposal.tables["response"][name] = path
        if "tools" not in proposal.tables["response"]:
            columns = columns_of(payloads, streamed=bool(self.stream))
            if found := find_tools(payloads, columns, streamed=bool(self.stream)):
                proposal.tables["response"]["tools"], proposal.tables["tool"] = found
        self._passages(proposal, payloads, gold_paths)
        notes = [f"This is {self.title}.", *self.recognition.get("notes", ())]
        if "retrieved" not in proposal.tables["response"] and "without" in self.recognition:
            notes.append(self.recognition["without"])
        proposal.about = notes
        return proposal

    def _fills(
        self, name: str, path: str, payloads: Sequence[Any], questions: Sequence[str]
    ) -> bool:
        values = [_value(path, payload) for payload in payloads]
        if self.guesses and name == "answer":  # the last message may be the question alone
            return any(isinstance(value, str) and value not in questions for value in values)
        if name in ("retrieved", "references", "tools"):
            return any(values)
        if name == "latency_ms":
            values = [each for value in values for each in (value or {}).values()]
        return name in ("session", "error") or any(value is not None for value in values)

    def _passages(
        self, proposal: Proposal, payloads: Sequence[Any], gold_paths: Sequence[str]
    ) -> None:
        """The paths inside a passage and a citation; where the user names them, guessed ones."""
        response, own = proposal.tables["response"], self.profile.get("response", {})
        for table, field in (("chunk", "retrieved"), ("reference", "references")):
            path, paths = response.get(field), self.profile.get(table, {})
            if path is None or field not in own:
                continue
            lists = [_value(path, payload) or [] for payload in payloads]
            found = {
                name: inner
                for name, inner in paths.items()
                if any(_value(inner, item) is not None for each in lists for item in each)
            }
            guessed = chunk_paths(lists, gold_paths) if table == "chunk" else {}
            more = {
                name: inner
                for name, inner in guessed.items()
                if (self.guesses or name in ("rel_path", "heading_path"))
                and name not in paths
                and inner not in found.values()
            }
            proposal.tables[table] = more | found


def _value(path: str, payload: Any) -> Any:
    """What a path finds; None also where it cannot be applied."""
    from jmespath.exceptions import JMESPathError

    try:
        return compile_path(path)(payload)
    except JMESPathError:
        return None


def _asks(value: Any) -> bool:
    return QUESTION in json.dumps(value)


def _pattern(url: str) -> re.Pattern[str]:
    """An ending of an address; ``{name}`` is one part of it."""
    return re.compile("[^/]+".join(map(re.escape, _ID.sub("\0", url).split("\0"))) + "/?$")


@cache
def recipes() -> tuple[Recipe, ...]:
    """All known products, by name."""
    found = []
    for file in sorted(FOLDER.glob("*.toml")):
        raw = read_toml(file)
        found.append(Recipe(file.stem, raw.pop("known"), raw))
    return tuple(found)


def at_path(path: str) -> list[Recipe]:
    """The products whose address ends like this path, the longest ending first."""
    fitting = [(recipe.fit(path), recipe) for recipe in recipes()]
    return [
        recipe
        for fit, recipe in sorted(fitting, key=lambda pair: -pair[0])
        if fit and not recipe.recognition.get("saved_only")
    ]


def described(document: Any) -> Recipe | None:
    """The product that an OpenAPI document is of."""
    paths = document.get("paths") if isinstance(document, Mapping) else None
    names = [str(path) for path in paths] if isinstance(paths, Mapping) else []
    return next((recipe for recipe in recipes() if recipe.describes(names)), None)


def recognised(payload: Any, path: str = "") -> Recipe | None:
    """The product that an answer is of: all its keys are there; the one whose address fits best,
    then one whose fields are known, then the one with the most keys."""
    holding = [recipe for recipe in recipes() if recipe.holds(payload)]
    return max(
        holding,
        key=lambda recipe: (recipe.fit(path), not recipe.guesses, len(recipe.recognition["keys"])),
        default=None,
    )
