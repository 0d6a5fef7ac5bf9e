"""A fact-checking model of the user's own decides whether passages support a claim.

Each kind reads its input in the form that it was trained on, which its config.json tells (README.md
of this folder). Nothing is downloaded and no code of the model's folder is run. The libraries are
imported and the weights are read when the scorer is made; each process does so once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from clients.embedder import folder_hash, hide_progress, holds_model, model_config, offline, whole
from ragmetrics.claims import AnswerClaim, bare
from records.errors import StorageError
from records.files import read_toml
from scorers.contract import CannotRun

REMEDY = "run `make setup LIGHT=0`, or leave --support-model out"

GUIDE = "see eval/extras/support_models/README.md"

_NO_MODEL = (
    f"{{}}: has no config.json; name a folder with the weights of a fact-checking model ({GUIDE})."
)

BATCH = 8
"""Windows that a model reads at once."""


class SupportModelUnavailable(CannotRun):
    """The support model cannot be used; the message contains the remedy."""


class InputForm(NamedTuple):
    """The input of a kind of model; support_forms.toml explains each field.

    ``without_question``: what it reads in the place of ``text`` where no question is known.
    """

    head: str
    text: str
    words: int
    tokens: int
    without_question: str = ""


FORMS = {
    name: InputForm(**form)
    for name, form in read_toml(Path(__file__).with_name("support_forms.toml")).items()
}
"""By the values of ``support_form`` in config.json."""


@dataclass(frozen=True, slots=True)
class LocalSupportModel:
    """Says how likely passages support each claim of an answer. ``identity``: name and hash of
    the folder; ``form``: the key of its input form."""

    folder: Path
    identity: str
    form: str

    @property
    def window_words(self) -> int:
        """The longest window of a passage that the model was trained on, in words."""
        return FORMS[self.form].words

    def __call__(
        self, claims: Sequence[AnswerClaim], passages: Sequence[str], question: str, answer: str
    ) -> list[float]:
        """The probability for each claim, in [0, 1], in its best window; 0.0 without a passage."""
        reader = _load(self.folder, self.form)
        passages = [plain for text in passages if (plain := reader.plain(text)).strip()]
        if not claims or not passages:
            return [0.0] * len(claims)
        answer = reader.plain(bare(answer))
        spans = [(claim.start, claim.end) for claim in claims]
        if self.form == "lettucedetect":
            return reader.by_tokens(answer, spans, passages, reader.plain(question))
        leads = (reader.plain(claim.lead) for claim in claims)
        stated = (answer[start:end] for start, end in spans)
        texts = [
            " ".join(f"{lead} {text}".split()) for lead, text in zip(leads, stated, strict=True)
        ]
        return [reader.by_windows(text, passages) for text in texts]


def hand_in(own: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The value for the core's scorer of claims: what loads the model, once claims are scored.

    Raises StorageError when the folder holds no model: a slip of the one who names it, which no
    section's "cannot run" may hide.
    """
    folder = own["support_model"]
    if not holds_model(folder):
        raise StorageError(_NO_MODEL.format(folder))
    return {"support_model": partial(support_model, folder)}


def support_model(folder: Path) -> LocalSupportModel:
    """The model in a folder, loaded once to see that it can be used.

    Raises:
        SupportModelUnavailable: no such folder, no library, an unknown kind, or weights that do not
            fit.
    """
    if not holds_model(folder):
        raise SupportModelUnavailable(_NO_MODEL.format(folder))
    form = _form(folder)
    _load(folder, form)
    return LocalSupportModel(folder, f"{folder.resolve().name}@{folder_hash(folder)}", form)


def _form(folder: Path) -> str:
    """Which of the forms config.json states or, for a published model, shows."""
    try:
        config = model_config(folder)
        kind = str((config.get("architectures") or [""])[0])
        labels = [str(name) for name in (config.get("id2label") or {"0": "", "1": ""}).values()]
    except (ValueError, AttributeError, LookupError, TypeError) as error:
        raise SupportModelUnavailable(
            f"{folder}: config.json is not a model's configuration ({error}); download it again."
        ) from error
    name, stated = str(config.get("_name_or_path", "")).lower(), config.get("support_form")
    pairs = kind.endswith("ForSequenceClassification")
    nameless = len(labels) == 2 and not any(map(_named, labels))
    shown = {
        "hhem": kind == "HHEMv2ForSequenceClassification",
        "lettucedetect": kind.endswith("ForTokenClassification")
        and (_index(labels, _BAD) is not None or (nameless and kind.startswith("ModernBert"))),
        "minicheck": pairs and "minicheck" in name,
        "minicheck-t5": kind == "T5ForConditionalGeneration" and "minicheck" in name,
        "factcg": pairs and "factcg" in name,
        "nli": pairs and _index(labels, _GOOD) is not None,
    }
    form = stated if stated is not None else next((key for key in shown if shown[key]), None)
    if not isinstance(form, str) or form not in FORMS:
        found = f"support_form {stated!r}" if stated is not None else f"architectures {kind!r}"
        raise SupportModelUnavailable(
            f"{folder}: config.json ({found}, labels {', '.join(labels)}) does not say what the "
            f'model reads; add "support_form" with one of {", ".join(FORMS)} to it ({GUIDE}).'
        )
    return form


_GOOD = ("entail", "support", "consistent", "grounded", "factual")
_BAD = ("halluc", "unsupport", "ungrounded")


def _named(label: str) -> bool:
    return bool(label) and not label.startswith("LABEL_") and not label.isdigit()


def _index(labels: Sequence[str], starts: tuple[str, ...]) -> int | None:
    """The one label that begins like this."""
    found = [at for at, label in enumerate(labels) if label.lower().startswith(starts)]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class _Reader:
    """A loaded model. ``outputs``: the outputs that are compared, None for all; ``column``: which
    of these means supported (``lettucedetect``: hallucinated); ``limit``: the longest input."""

    form: str
    model: Any
    tokenizer: Any
    limit: int
    outputs: tuple[int, ...] | None
    column: int

    def plain(self, text: str) -> str:
        """The text, same length, in which no word is a mark of the model: a passage that contains
        ``</s>`` must not end there and go on as the claim."""
        text = whole(text)
        for mark in self.tokenizer.all_special_tokens:
            text = text.replace(mark, " " + mark[1:])
        return text

    def by_windows(self, claim: str, passages: Sequence[str]) -> float:
        """The highest probability of support over all windows of the passages."""
        # One token more may come where the passage meets the words around it.
        room = self.limit - len(self._encode([""], claim)["input_ids"][0]) - 2
        windows = [part for text in passages for part in self._fit(text, room)]
        batches = [windows[at : at + BATCH] for at in range(0, len(windows), BATCH)]
        return max(score for batch in batches for score in self._scores(batch, claim))

    def by_tokens(
        self, answer: str, spans: Sequence[tuple[int, int]], passages: Sequence[str], question: str
    ) -> list[float]:
        """1 minus the highest probability of "hallucinated" over a span's tokens, in the window of
        passages where that is best. An answer over half the input is read span by span."""
        own = self._length(answer)
        if own > self.limit // 2 and len(spans) > 1:
            parts = [answer[start:end] for start, end in spans]
            return [self.by_tokens(p, [(0, len(p))], passages, question)[0] for p in parts]
        budget = self.limit - own - self._length(_prompt([""], question)) - 3
        groups: list[list[str]] = [[]]
        size = 0
        for text in [part for passage in passages for part in self._fit(passage, budget - 16)]:
            length = self._length(text) + 16  # "passage 12: " and a line end
            if groups[-1] and size + length > budget:
                groups.append([])
                size = 0
            groups[-1].append(text)
            size += length
        rows = [self._token_strengths(_prompt(group, question), answer, spans) for group in groups]
        return [max(column) for column in zip(*rows, strict=True)]

    def _token_strengths(
        self, prompt: str, answer: str, spans: Sequence[tuple[int, int]]
    ) -> list[float]:
        encoded = self.tokenizer(
            prompt, answer, truncation=True, max_length=self.limit,
            return_offsets_mapping=True, return_tensors="pt",
        )  # fmt: skip
        offsets = encoded.pop("offset_mapping")[0].tolist()
        chances = self._run(encoded).softmax(-1)[0, :, self.column].tolist()
        read = zip(encoded.sequence_ids(0), offsets, chances, strict=True)
        tokens = [
            (left, right, chance)
            for part, (left, right), chance in read
            if part == 1 and answer[left:right].strip()  # a blank states nothing
        ]
        return [
            1 - max((c for left, right, c in tokens if left < end and right > start), default=1.0)
            for start, end in spans
        ]

    def _scores(self, passages: Sequence[str], claim: str) -> list[float]:
        logits = self._run(self._encode(passages, claim))
        if logits.dim() == 3:  # the first token speaks for the whole
            logits = logits[:, 0]
        if self.outputs is not None:
            logits = logits[:, list(self.outputs)]
        chances = logits.sigmoid() if logits.shape[-1] == 1 else logits.softmax(-1)
        return [float(chance) for chance in chances[:, self.column]]

    def _run(self, inputs: Any) -> Any:
        import torch

        begin: dict[str, Any] = {}
        if self.model.config.is_encoder_decoder and FORMS[self.form].head == "Seq2SeqLM":
            start = self.model.config.decoder_start_token_id
            begin = {"decoder_input_ids": torch.full((len(inputs["input_ids"]), 1), start)}
        with torch.inference_mode():
            return self.model(**inputs, **begin).logits.float()

    def _encode(self, passages: Sequence[str], claim: str) -> Any:
        text, end = FORMS[self.form].text, self.tokenizer.eos_token or self.tokenizer.sep_token
        texts = [text.format(passage=part, claim=claim, end=end) for part in passages]
        pair = (texts,) if text else (list(passages), [claim] * len(passages))
        return self.tokenizer(
            *pair, padding=True, truncation=True, max_length=self.limit, return_tensors="pt"
        )

    def _length(self, text: str) -> int:
        return len(self._offsets(text))

    def _offsets(self, text: str) -> list[tuple[int, int]]:
        encoded = self.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return list(encoded["offset_mapping"])

    def _fit(self, text: str, room: int) -> list[str]:
        """The text in windows of at most ``room`` tokens, of a quarter of the input at least."""
        room = max(room, self.limit // 4)
        offsets = self._offsets(text)
        cut = [offsets[at : at + room] for at in range(0, len(offsets), room)]
        return [text[part[0][0] : part[-1][1]] for part in cut] if len(cut) > 1 else [text]


def _prompt(passages: Sequence[str], question: str) -> str:
    lines = "\n".join(f"passage {at}: {text}" for at, text in enumerate(passages, 1))
    form = FORMS["lettucedetect"]
    text = form.text if question.strip() else form.without_question
    return text.format(question=question, count=len(passages), passages=lines)


@cache
def _load(folder: Path, form: str) -> _Reader:
    """The model in memory, with all its weights from the folder."""
    offline()
    try:
        import torch
        import transformers
    except ImportError as error:
        raise SupportModelUnavailable(
            f"--support-model needs torch and transformers, which cannot be imported ({error}): "
            f"{REMEDY}."
        ) from error
    hide_progress()
    torch.set_num_threads(1)  # the processes of a scoring run share the cores
    try:
        base = _foundation(folder) if form == "hhem" else folder
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(base), local_files_only=True)
        if form == "hhem":
            model = _hhem(folder, base)
        else:
            head = getattr(transformers, f"AutoModelFor{FORMS[form].head}")
            model, report = head.from_pretrained(
                str(folder), local_files_only=True, output_loading_info=True
            )
            if report["missing_keys"]:
                raise ValueError(f"no weights for {sorted(report['missing_keys'])[0]}")
    except SupportModelUnavailable:
        raise
    except Exception as error:  # the library raises whatever lies beneath: OSError, ValueError…
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SupportModelUnavailable(
            f"{folder}: cannot be loaded as a support model ({first_line}); name a folder with its "
            "config.json, weights and tokenizer."
        ) from error
    outputs, column = _outputs(folder, form, model, tokenizer)
    return _Reader(form, model.eval(), tokenizer, _limit(form, model, tokenizer), outputs, column)


def _outputs(
    folder: Path, form: str, model: Any, tokenizer: Any
) -> tuple[tuple[int, ...] | None, int]:
    """Which outputs are compared, and which of them is the one to read."""
    if form == "minicheck-t5":
        pieces = [tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in "01"]
        return tuple(pieces), 1
    labels = [str(model.config.id2label[at]) for at in range(model.config.num_labels)]
    column = _index(labels, _BAD if form == "lettucedetect" else _GOOD)
    if column is None and len(labels) > 2:
        raise SupportModelUnavailable(
            f"{folder}: none of its labels ({', '.join(labels)}) is called entailment or "
            "supported; name it so under id2label of config.json."
        )
    return None, column if column is not None else len(labels) - 1


def _limit(form: str, model: Any, tokenizer: Any) -> int:
    """The longest input: as trained, and no longer than the places that the model can number."""
    kind, trained = model.config.model_type, FORMS[form].tokens
    if kind in ("t5", "deberta-v2"):  # they count distances: the stated 512 is no limit
        return trained
    places = getattr(model.config, "max_position_embeddings", trained)
    places -= 2 if "roberta" in kind else 0
    return min(trained, int(places), int(tokenizer.model_max_length))


def _foundation(folder: Path) -> Path:
    """HHEM's folder has neither a tokenizer nor the shape of its T5: both are its foundation's."""
    name = model_config(folder).get("foundation")
    name = name or "google/flan-t5-base"
    base = folder / str(name).rpartition("/")[2]
    if not holds_model(base):
        raise SupportModelUnavailable(
            f"{base}: has no config.json; put the tokenizer and config.json of {name} into it "
            f"({GUIDE})."
        )
    return base


def _hhem(folder: Path, base: Path) -> Any:
    """HHEM's weights in the class of transformers that its own code wraps: that code is not run."""
    from safetensors.torch import load_file
    from transformers import AutoConfig, T5ForTokenClassification

    weights = load_file(folder / "model.safetensors")
    weights = {name.removeprefix("t5."): table for name, table in weights.items()}
    weights.setdefault(
        "transformer.encoder.embed_tokens.weight", weights["transformer.shared.weight"]
    )
    model = T5ForTokenClassification(AutoConfig.from_pretrained(str(base), num_labels=2))
    model.load_state_dict(weights)
    return model
