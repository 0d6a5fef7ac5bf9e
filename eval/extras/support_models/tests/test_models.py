"""Support models: each kind reads its own input form, and config.json tells which kind it is.

All models are of the published architectures with random weights, made here. What each should say
is computed from token ids that are written down word by word, with the model called directly.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from extras.support_models.models import (
    FORMS,
    LocalSupportModel,
    SupportModelUnavailable,
    support_model,
)
from ragmetrics.claims import AnswerClaim

torch: Any = None
transformers: Any = None

PASSAGE = "staff get ten days"
CLAIM = "staff get nine days"
OTHER = "the kitchen opens at noon"
QUESTION = "how many days"
WORDS = sorted(
    {word for text in (PASSAGE, CLAIM, OTHER, QUESTION) for word in text.split()}
    | {word for form in FORMS.values() for word in re.findall(r"\w+|[^\w\s]", form.text)}
    | set("0123456789<>/:")
)


def tokenizer(folder: Path, style: str, longest: int = 10**9) -> dict[str, int]:
    """One id for each word and sign; ``style`` bert ([CLS] a [SEP] b [SEP]), blanks (the same, with
    a token for a run of blanks, as byte pairs have it) or t5 (a </s>)."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    marks = ["<pad>", "</s>"] if style == "t5" else ["[PAD]", "[CLS]", "[SEP]"]
    table = {word: at for at, word in enumerate([*marks, "unknown", *WORDS])}
    made = Tokenizer(models.WordLevel(table, unk_token="unknown"))
    signs = pre_tokenizers.Split(Regex(r"\w+|[^\w\s]"), "isolated")
    words = pre_tokenizers.WhitespaceSplit()
    parts = [signs] if style == "blanks" else [words, signs]
    made.pre_tokenizer = pre_tokenizers.Sequence(parts)
    names = {"pad_token": marks[0], "unk_token": "unknown"}
    if style == "t5":
        names["eos_token"] = "</s>"
        made.post_processor = processors.TemplateProcessing(
            single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", table["</s>"])]
        )
    else:
        names |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B [SEP]",
            special_tokens=[("[CLS]", table["[CLS]"]), ("[SEP]", table["[SEP]"])],
        )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        model_max_length=longest,
        model_input_names=["input_ids", "attention_mask"],
        **names,
    ).save_pretrained(folder)
    return table


def ids(table: dict[str, int], text: str) -> list[int]:
    """The text's words and signs; marks in angle or square brackets are written with blanks."""
    found = []
    for word in text.split():
        signs = [word] if word in table else re.findall(r"\w+|[^\w\s]", word)
        found += [table.get(sign, table["unknown"]) for sign in signs]
    return found


def softmax(row: Sequence[float]) -> list[float]:
    """The probabilities; none so near to 1 that another input would give the same."""
    powers = [math.exp(value) for value in row]
    chances = [power / sum(powers) for power in powers]
    assert max(chances) < 0.9999
    return chances


class Made:
    """A folder with a model in it, and what the model itself says of ids."""

    def __init__(self, folder: Path, model: Any, style: str, longest: int = 10**9) -> None:
        self.folder, self.model = folder, model.eval()
        model.save_pretrained(folder)
        self.table = tokenizer(folder, style, longest)

    def config(self, **fields: Any) -> None:
        file = self.folder / "config.json"
        stated = json.loads(file.read_text()) | fields
        kept = {name: value for name, value in stated.items() if value is not None}
        file.write_text(json.dumps(kept))

    def logits(self, text: str, **more: Any) -> list[Any]:
        with torch.no_grad():
            row = torch.tensor([ids(self.table, text)])
            return list(self.model(input_ids=row, **more).logits[0].tolist())


def ask(
    model: LocalSupportModel,
    answer: str = CLAIM,
    passages: Sequence[str] = (PASSAGE,),
    question: str = "",
    spans: Sequence[tuple[int, int]] = (),
) -> list[float]:
    claims = [
        AnswerClaim(answer[start:end], start, end, "assertion", (start, end))
        for start, end in spans or [(0, len(answer))]
    ]
    return model(claims, passages, question, answer)


TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 16, "vocab_size": len(WORDS) + 8, "initializer_range": 0.6,
        "pad_token_id": 0}  # fmt: skip
TINY_T5 = {"vocab_size": len(WORDS) + 8, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2,
           "num_heads": 2, "initializer_factor": 0.6, "feed_forward_proj": "gated-gelu",
           "decoder_start_token_id": 0}  # fmt: skip


@pytest.fixture(autouse=True)
def slow_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded by the first test here, not by each worker that collects it."""
    for name in ("torch", "transformers"):
        monkeypatch.setitem(globals(), name, pytest.importorskip(name))


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Made]:
    def make(kind: str, style: str = "bert", **options: Any) -> Made:
        torch.manual_seed(7)
        tiny = TINY_T5 if kind.startswith("T5") else TINY
        longest = options.pop("longest", 10**9)
        base = re.sub(r"For\w+$", "", kind)
        config = getattr(transformers, f"{base}Config")(**(tiny | options))
        return Made(tmp_path, getattr(transformers, kind)(config), style, longest)

    return make


RELATIVE = {"relative_attention": True, "position_buckets": 8, "max_relative_positions": -1,
            "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
            "norm_rel_ebd": "layer_norm", "share_att_key": True, "type_vocab_size": 0,
            "max_position_embeddings": 512}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "labels", "column"),
    [
        ("DebertaV2ForSequenceClassification", ("entailment", "neutral", "contradiction"), 0),
        ("BertForSequenceClassification", ("contradiction", "entailment", "neutral"), 1),
        ("ModernBertForSequenceClassification", ("not_entailment", "Entailment"), 1),
        ("BertForSequenceClassification", ("SUPPORTED", "UNSUPPORTED"), 0),
    ],
)
def test_nli_reads_premise_and_claim_and_finds_its_label(
    made: Callable[..., Made], kind: str, labels: tuple[str, ...], column: int
) -> None:
    names = dict(enumerate(labels))
    options = RELATIVE if kind.startswith("Deberta") else {}
    model = made(kind, num_labels=len(labels), id2label=names, **options)
    expected = softmax(model.logits(f"[CLS] {PASSAGE} [SEP] {CLAIM} [SEP]"))[column]
    loaded = support_model(model.folder)
    assert loaded.form == "nli"
    assert loaded.window_words == 200
    assert ask(loaded) == pytest.approx([expected], abs=1e-6)


@pytest.mark.parametrize("named", [True, False])
def test_minicheck_with_a_classifier_reads_one_text(made: Callable[..., Made], named: bool) -> None:
    model = made("DebertaV2ForSequenceClassification", num_labels=2, **RELATIVE)
    fields = {"_name_or_path": "lytang/MiniCheck-DeBERTa-v3-Large"}
    model.config(id2label={"0": "0", "1": "1"}, **(fields if named else {}))
    if not named:
        with pytest.raises(SupportModelUnavailable, match='add "support_form" with one of nli'):
            support_model(model.folder)
        model.config(support_form="minicheck")
    expected = softmax(model.logits(f"[CLS] {PASSAGE} [SEP] {CLAIM} [SEP]"))[1]
    assert ask(support_model(model.folder)) == pytest.approx([expected], abs=1e-6)


def test_factcg_reads_an_instruction(made: Callable[..., Made]) -> None:
    model = made("DebertaV2ForSequenceClassification", num_labels=2, **RELATIVE)
    model.config(support_form="factcg")
    text = (
        f"{PASSAGE} Choose your answer: based on the paragraph above can we conclude that "
        f'" {CLAIM} "? OPTIONS: - Yes - No I think the answer is'
    )
    expected = softmax(model.logits(f"[CLS] {text} [SEP]"))[1]
    loaded = support_model(model.folder)
    assert ask(loaded) == pytest.approx([expected], abs=1e-6)
    assert loaded.window_words == 500


def test_minicheck_t5_compares_the_first_pieces_of_1_and_0(made: Callable[..., Made]) -> None:
    model = made("T5ForConditionalGeneration", "t5")
    model.config(_name_or_path="lytang/MiniCheck-Flan-T5-Large")
    start = torch.zeros((1, 1), dtype=torch.long)
    row = model.logits(f"predict: {PASSAGE} </s> {CLAIM} </s>", decoder_input_ids=start)[0]
    expected = softmax([row[model.table["0"]], row[model.table["1"]]])[1]
    assert ask(support_model(model.folder)) == pytest.approx([expected], abs=1e-6)
    model.config(_name_or_path="google/flan-t5-large")
    with pytest.raises(SupportModelUnavailable, match="does not say what the model reads"):
        support_model(model.folder)


def hhem(made: Callable[..., Made]) -> Made:
    """As published: the T5 under ``t5.``, its words under one name only, and its foundation."""
    from safetensors.torch import load_file, save_file

    model = made("T5ForTokenClassification", "t5", num_labels=2, tie_word_embeddings=False)
    base = model.folder / "flan-t5-base"
    base.mkdir()
    for file in [*model.folder.glob("*.json")]:
        file.rename(base / file.name)
    weights = load_file(model.folder / "model.safetensors")
    weights.pop("transformer.encoder.embed_tokens.weight", None)
    assert "transformer.shared.weight" in weights
    renamed = {f"t5.{name}": table for name, table in weights.items()}
    save_file(renamed, model.folder / "model.safetensors")
    (model.folder / "config.json").write_text(
        json.dumps({"architectures": ["HHEMv2ForSequenceClassification"], "model_type": "HHEMv2",
                    "auto_map": {"AutoConfig": "configuration_hhem_v2.HHEMv2Config"}})
    )  # fmt: skip
    return model


def test_hhem_reads_its_prompt_without_running_its_code(made: Callable[..., Made]) -> None:
    model = hhem(made)
    code = model.folder / "configuration_hhem_v2.py"
    code.write_text("raise SystemExit('code of the folder was run')")
    text = (
        "<pad> Determine if the hypothesis is true given the premise? "
        f"Premise: {PASSAGE} Hypothesis: {CLAIM} </s>"
    )
    expected = softmax(model.logits(text)[0])[1]  # the first token, class 1
    assert ask(support_model(model.folder)) == pytest.approx([expected], abs=1e-6)


def test_hhem_without_its_foundation_names_what_to_get(made: Callable[..., Made]) -> None:
    model = hhem(made)
    (model.folder / "flan-t5-base" / "config.json").unlink()
    told = r"config\.json of google/flan-t5-base into it"
    with pytest.raises(SupportModelUnavailable, match=told):
        support_model(model.folder)


ANSWER = f"{PASSAGE} {CLAIM}"
SPANS = [(0, len(PASSAGE)), (len(PASSAGE) + 1, len(ANSWER))]


def prompt(passages: Sequence[str], question: str) -> str:
    lines = " ".join(f"passage {at}: {text}" for at, text in enumerate(passages, 1))
    if not question:
        return f"Summarize the following text: {lines} output:"
    return (
        f"Briefly answer the following question: {question} Bear in mind that your response should "
        f"be strictly based on the following {len(passages)} passages: {lines} In case the "
        "passages do not contain the necessary information to answer the question, please reply "
        'with: " Unable to answer based on given passages." output:'
    )


def by_hand(model: Made, passages: Sequence[str], question: str, column: int = 1) -> list[float]:
    """1 minus the worst token: four tokens for each of the two claims, then the last [SEP]."""
    rows = model.logits(f"[CLS] {prompt(passages, question)} [SEP] {ANSWER} [SEP]")
    bad = [softmax(row)[column] for row in rows]
    return [1 - max(bad[-9:-5]), 1 - max(bad[-5:-1])]


@pytest.mark.parametrize("question", [QUESTION, ""])
def test_lettucedetect_reads_all_passages_question_and_answer_at_once(
    made: Callable[..., Made], question: str
) -> None:
    model = made("ModernBertForTokenClassification", num_labels=2, max_position_embeddings=8192)
    loaded = support_model(model.folder)
    assert loaded.form == "lettucedetect"
    expected = by_hand(model, [PASSAGE, OTHER], question)
    found = ask(loaded, ANSWER, [PASSAGE, OTHER], question, SPANS)
    assert found == pytest.approx(expected, abs=1e-5)
    assert expected[0] != pytest.approx(expected[1], abs=1e-4)


def test_token_labels_with_names_may_stand_in_another_order(made: Callable[..., Made]) -> None:
    names = {0: "hallucinated", 1: "supported"}
    model = made("BertForTokenClassification", num_labels=2, id2label=names)
    expected = by_hand(model, [PASSAGE], QUESTION, column=0)
    found = ask(support_model(model.folder), ANSWER, [PASSAGE], QUESTION, SPANS)
    assert found == pytest.approx(expected, abs=1e-5)


def test_token_labels_of_something_else_are_refused(made: Callable[..., Made]) -> None:
    names = {0: "O", 1: "B-PER"}
    model = made("ModernBertForTokenClassification", num_labels=2, id2label=names)
    with pytest.raises(SupportModelUnavailable, match="labels O, B-PER"):
        support_model(model.folder)


def test_passages_that_do_not_fit_are_read_in_groups_and_the_best_counts(
    made: Callable[..., Made],
) -> None:
    # Without a question: 6 words of prompt, 8 of answer, 3 marks leave 83 of 100; 56 fit once.
    model = made("ModernBertForTokenClassification", num_labels=2, max_position_embeddings=100)
    long = [f"{PASSAGE} " * 10 + word for word in ("noon", "kitchen")]
    rows = [by_hand(model, [text], "") for text in long]
    expected = [max(first, second) for first, second in zip(*rows, strict=True)]
    found = ask(support_model(model.folder), ANSWER, long, "", SPANS)
    assert found == pytest.approx(expected, abs=1e-5)
    assert rows[0] != pytest.approx(rows[1], abs=1e-4)


def test_neither_a_citation_mark_nor_a_blank_is_a_token_of_a_claim(
    made: Callable[..., Made],
) -> None:
    kind = "ModernBertForTokenClassification"
    model = made(kind, "blanks", num_labels=2, max_position_embeddings=8192)
    text = "Summarize the following text:\npassage 1: noon\noutput:"
    signs = re.findall(r"\w+|[^\w\s]|\s+", text)
    read = " ".join(sign if sign.strip() else "unknown" for sign in signs)
    for word in filter(str.isalpha, WORDS):
        # The mark becomes blanks: word, a run of blanks, word; the last [SEP] is none of them.
        rows = model.logits(f"[CLS] {read} [SEP] {word} unknown {word} [SEP]")[-4:-1]
        first, blank, last = (softmax(row)[1] for row in rows)
        if blank > max(first, last) + 0.01:  # else the blank would not count anyway
            break
    else:
        pytest.fail("no answer shows the difference")
    found = ask(support_model(model.folder), f"{word} [1] {word}", ["noon"])
    assert found == pytest.approx([1 - max(first, last)], abs=1e-5)


def test_a_long_passage_is_read_in_windows_and_the_best_counts(made: Callable[..., Made]) -> None:
    # 32 places: 3 marks, 4 words of claim and 2 spare leave windows of 23 words.
    names = {0: "entailment", 1: "neutral"}
    model = made("BertForSequenceClassification", num_labels=2, id2label=names, longest=32)
    words = [WORDS[at * 7 % len(WORDS)] for at in range(60)]
    words = [word for word in words if word.isalpha()][:40]
    assert len(words) == 40
    windows = [words[:23], words[23:]]
    each = [
        softmax(model.logits(f"[CLS] {' '.join(window)} [SEP] {CLAIM} [SEP]"))[0]
        for window in windows
    ]
    found = ask(support_model(model.folder), CLAIM, [" ".join(words)])
    assert found == pytest.approx([max(each)], abs=1e-6)
    assert each[0] != pytest.approx(each[1], abs=1e-4)


def test_many_passages_are_the_best_of_each_alone(made: Callable[..., Made]) -> None:
    names = {0: "entailment", 1: "neutral"}
    model = made("BertForSequenceClassification", num_labels=2, id2label=names)
    loaded = support_model(model.folder)
    passages = [" ".join(WORDS[at : at + 1 + at % 5]) for at in range(0, 60, 3)]
    alone = [ask(loaded, passages=[text])[0] for text in passages]
    assert ask(loaded, passages=passages) == pytest.approx([max(alone)], abs=1e-5)
    assert ask(loaded, passages=[]) == [0.0]
    assert ask(loaded, passages=[" \n"]) == [0.0]


def test_a_mark_of_the_model_inside_a_passage_is_only_text(made: Callable[..., Made]) -> None:
    """Else a passage "… </s> <the claim>" would bring its own claim."""
    model = made("T5ForConditionalGeneration", "t5")
    model.config(support_form="minicheck-t5")
    start = torch.zeros((1, 1), dtype=torch.long)
    text = f"predict: {PASSAGE} / s > {OTHER} </s> {CLAIM} </s>"
    row = model.logits(text, decoder_input_ids=start)[0]
    expected = softmax([row[model.table["0"]], row[model.table["1"]]])[1]
    found = ask(support_model(model.folder), passages=[f"{PASSAGE} </s> {OTHER}"])
    assert found == pytest.approx([expected], abs=1e-6)


def test_a_single_score_needs_a_word_of_the_user(made: Callable[..., Made]) -> None:
    model = made("BertForSequenceClassification", num_labels=1)
    with pytest.raises(SupportModelUnavailable, match="LABEL_0"):
        support_model(model.folder)
    model.config(support_form="nli")
    score = model.logits(f"[CLS] {PASSAGE} [SEP] {CLAIM} [SEP]")[0]
    expected = 1 / (1 + math.exp(-score))
    assert ask(support_model(model.folder)) == pytest.approx([expected], abs=1e-6)


def test_weights_without_a_head_are_refused(made: Callable[..., Made]) -> None:
    model = made("BertForSequenceClassification", num_labels=3)
    bare = transformers.BertModel(model.model.config)
    bare.save_pretrained(model.folder)
    names = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    model.config(architectures=["BertForSequenceClassification"], id2label=names)
    with pytest.raises(SupportModelUnavailable, match=r"no weights for classifier\.bias"):
        support_model(model.folder)


@each_row("text", ["[]", "{", '{"architectures": 3}', '{"id2label": ["a"]}'])
def test_a_broken_configuration_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(SupportModelUnavailable, match=r"config\.json is not a model's config"):
        support_model(tmp_path)


def test_an_unknown_form_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"support_form": "best"}')
    with pytest.raises(SupportModelUnavailable, match=r"support_form 'best'.*lettucedetect"):
        support_model(tmp_path)
