# ruff: noqa: E501
"""Abstention by phrases of all languages, how these are searched, and the four-cell table."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics.abstention import (
    FourCells,
    detect,
    detect_with_passages,
    four_cells,
    rates,
)
from ragmetrics.claims import extract
from ragmetrics.text import refusals
from ragmetrics.text.phrase_search import PhraseSearch
from ragmetrics.text.plain import plain
from ragmetrics.text.refusal_phrases import phrases
from ragmetrics.text.refusals import _may_decline, _phrases_of, _supposed
from ragmetrics.text.words import fold
from records.jsonl import read_rows


@each_row(
    "answer",
    [
        "I don't know.",
        "I’m sorry, but I can’t help with that.",
        "Hello! I am not able to find this in the notes.",
        "The provided context does not mention the fee.",
        "There is no information about refunds in the documents.",
        "Based on the notes, the question cannot be answered.",
        "Unfortunately, the notes do not say.",
        "As an AI language model, I cannot give advice.",
        "The fee is not specified in the given passages.",
        "It's not appropriate to share such data.",
        "No idea, ask the desk.",
        "Not specified.",
        "Couldn't find it, sorry.",
        "It is not clear from the text whether dogs are allowed.",
        "That is beyond what I know.",
        "Good question! The fee isn't mentioned anywhere.",
        "None of the documents mentions a fee.",
        "Parking isn't part of my notes.",
        "Its origin is impossible to determine.",
        "We can't say when it opens again.",
    ],
)
def test_abstentions(answer: str) -> None:
    assert detect(answer).state == "abstained"


@each_row(
    "answer",
    [
        "Plan B costs 20 EUR.",
        "No, plan B does not include phone support.",
        "I'm sorry to hear that. You can return it within 15 days.",
        "The manual may be unclear, but the fee is probably 20 EUR.",
        "It is not safe to open the case while it is hot.",
        "I don't think it costs more than 20 EUR.",
        "🙂",
        "42",
        "# Only a heading",
        # a denial about the matter
        "We cannot refund shipping costs.",
        "Sorry, dogs are not allowed in the garden.",
        "Unfortunately, the warranty does not cover water damage.",
        "You cannot change the name after the account is made.",
        "There is no one answer to that, it depends on the plan.",
        "No, there is no evidence that it helps.",
        "Vouchers can't be exchanged for cash.",
        "What if I don't have a card?",
    ],
)
def test_answers(answer: str) -> None:
    assert detect(answer).state == "answered"


@each_row("answer", [None, "", " \n\t ", "<b></b>", "<A>", "<think>Hm.</think>", "\u200b"])
def test_an_empty_answer_is_a_failure_and_no_abstention(answer: str | None) -> None:
    found = detect(answer)
    assert found.state == "empty"
    assert not found.abstained


def test_statements_of_lack_decide_when_they_are_half_of_the_sentences() -> None:
    lack = "The notes do not mention the fee."
    assert detect(f"Plan B exists for companies. {lack}").abstained  # 1 of 2
    assert not detect(f"Plan B exists for companies. It costs 20 EUR. {lack}").abstained  # 1 of 3
    assert detect(f"Plan B exists for companies. {lack} Ask the desk.").abstained  # hints follow
    # One statement and one lack weigh alike; what it lacks tells whether it answers first.
    statement = "Plan B has phone support."
    assert detect(f"{statement} Its price is not stated.").abstained
    assert detect(f"{statement} The exact price is not stated.").state == "partial"
    assert detect(f"{statement} It costs 20 EUR. Its trial is not mentioned.").state == "partial"
    answer = "Sure. The notes do not mention the fee. Ask the desk."
    found = detect(answer)
    assert found.rule == "lack"
    assert found.span is not None
    assert answer[slice(*found.span)] == "The notes do not mention the fee."


@dataclass(frozen=True)
class Passage:
    text: str | None
    chunk_id: str = "p"
    doc_id: str | None = None
    rel_path: str | None = None
    truncated: bool = False


FEES = "The fee for parcels is 5 EUR. The fee for letters is not specified. Parcels go by rail."


@each_row(
    ("answer", "state"),
    [
        ("The fee for letters is not specified.", "answered"),  # the passage's own words
        ("The fee for parcels is not specified.", "answered"),  # all its words are in the window
        ("The fee for parcels by air is not mentioned.", "abstained"),  # "mentioned" is its own
        ("The document does not state the fee for letters.", "abstained"),  # a noun for the sources
        ("I do not know the fee for letters.", "abstained"),  # I
        ("The colour of the new stamps is not specified.", "abstained"),  # 1 of 4 words
    ],
)
def test_passages_decide_what_a_phrase_has_caught(answer: str, state: str) -> None:
    found = detect_with_passages(answer, [Passage("Hours: 9 to 5."), Passage(FEES)], "What fee?")
    assert found.state == state
    assert (found.denial is not None) == (state == "answered")
    assert detect(answer).abstained


def test_passages_decide_in_other_languages() -> None:
    answer = "Zur Garantie wird im Vertrag nichts gesagt."
    assert detect(answer).abstained
    said = [Passage("Zur Garantie wird im Vertrag nichts gesagt. Er gilt zwei Jahre.")]
    assert detect_with_passages(answer, said, "").state == "answered"
    assert detect_with_passages(answer, [Passage("Die Garantie gilt zwei Jahre.")], "").abstained
    # The window has all content words, but is not negated.
    answer = "The fee is not specified."
    assert detect_with_passages(answer, [Passage("The fee is specified.")], "").abstained
    assert not detect_with_passages(answer, [Passage("The fee is not specified.")], "").abstained


def test_a_denial_of_the_passages_is_a_claim() -> None:
    answer = "The fee for letters is not specified."
    found = detect_with_passages(answer, [Passage(FEES)], "")
    assert extract(answer).claims == ()
    (claim,) = extract(answer, denial=found.denial).claims
    assert claim.text == answer


def test_no_text_that_declines_is_passed_over_unread() -> None:
    """What is spared a search by its words alone declines in no sentence of our own lists."""
    folder = Path(__file__).parents[2] / "bench/research/blind"
    answers = [
        json.loads(line)["answer"]
        for path in sorted(folder.glob("[el]*/*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    assert len(answers) > 500
    search = _phrases_of("en").search
    found = [text for text in answers if search.first_in(fold(text)) is not None]
    assert len(found) > 60
    assert [text for text in found if not _may_decline(fold(text))] == []


def test_an_answer_after_a_refusal_is_partial_when_two_claims_are_supported() -> None:
    answer = (
        "Unfortunately, the notes do not name plan C. Plan B costs 20 EUR. It has phone support."
    )
    assert detect(answer).state == "abstained"
    assert detect(answer, supported_after=1).state == "abstained"
    assert detect(answer, supported_after=2).state == "partial"
    assert not detect(answer, supported_after=2).abstained


def test_four_cells_and_rates() -> None:
    # unanswerable: 3 abstained, 1 answered; answerable: 1 abstained, 5 answered.
    cases = [(True, False)] * 3 + [(False, False)] + [(True, True)] + [(False, True)] * 5
    table = four_cells(cases)
    assert table == FourCells(5, 1, 1, 3)
    assert rates(table) == {
        "abstention_accuracy": 3 / 4,
        "hallucination_on_unanswerable": 1 / 4,
        "over_refusal": 1 / 6,
        "abstention_f1": 6 / 8,  # 2 * 3 / (2 * 3 + 1 + 1)
    }
    assert rates(FourCells()) == dict.fromkeys(rates(table))
    # nothing to abstain from, nothing abstained
    assert rates(FourCells(answered_answerable=4)) == rates(FourCells()) | {"over_refusal": 0.0}


@given(st.text(st.characters(), max_size=100))
def test_any_text_has_a_state(text: str) -> None:
    found = detect(text)
    assert found.state in ("abstained", "answered", "empty")
    shown = [char for char in plain(text).text if unicodedata.category(char)[0] not in "ZC"]
    assert (found.state == "empty") == (not shown)


# Written for this test, language by language: two refusals, a statement of lack, and two answers
# that only quote one or suppose one.
_BY_LANGUAGE = {
    "de": (
        ["Das weiß ich leider nicht.", "Tut mir leid, dabei darf ich nicht helfen."],
        ["Die Unterlagen enthalten dazu keine Angaben."],
        ["Der Bot schreibt dann „Das weiß ich nicht“ und nennt die Hotline.",
         "Wenn die Unterlagen nichts dazu sagen, fragt er nach. Danach sucht er neu."],
    ),
    "fr": (
        ["Je ne sais pas.", "Désolé, je ne peux pas vous aider sur ce point."],
        ["Les documents ne précisent pas le prix."],
        ["L'assistant affiche « Je ne sais pas » quand la source manque.",
         "Si les documents ne précisent rien, le prix normal s'applique. Il est de 20 euros."],
    ),
    "es": (
        ["No lo sé.", "Lo siento, no puedo ayudarle con eso."],
        ["El documento no menciona el precio."],
        ["El asistente muestra «No lo sé» y ofrece un enlace.",
         "Si el texto no indica otra cosa, son 20 euros. Se paga al llegar."],
    ),
    "it": (
        ["Mi dispiace, non posso rispondere.", "Non ho accesso a questi dati."],
        ["Il documento non specifica il prezzo."],
        ["La risposta «Non lo so» compare in rosso.", "Se il testo manca, si usa il titolo."],
    ),
    "pt": (
        ["Desculpe, não posso ajudar com isso.", "Não tenho essa informação."],
        ["O texto não informa o preço."],
        ["O sistema mostra «Não sei» em vermelho.", "Se o texto não indica nada, vale a regra."],
    ),
    "nl": (
        ["Sorry, daar kan ik niet bij helpen.", "Ik weet het niet."],
        ["De documenten vermelden geen prijs."],
        ["De bot toont \"Ik weet het niet\" in het rood.",
         "Als de tekst niets zegt, geldt artikel 3."],
    ),
    "hi": (
        ["क्षमा करें, मैं इसका उत्तर नहीं दे सकता।", "मुझे नहीं पता।"],
        ["दस्तावेज़ों में इसकी जानकारी नहीं है।"],
        ["सहायक \"मुझे नहीं पता\" लिखकर रुकता है।",
         "यदि पाठ में उत्तर नहीं है, तो लाल बत्ती जलती है।"],
    ),
    "zh": (
        ["抱歉，我无法回答这个问题。", "我不知道。"], ["文档中没有提到价格。"],
        ["助手会显示“我不知道”，然后给出链接。", "如果文档没有提到价格，则按标准收费。"],
    ),
    "ja": (
        ["申し訳ございませんが、お答えできません。", "分かりません。"], ["資料には価格が記載されていません。"],
        ["画面には「分かりません」と表示されます。", "もし資料に記載がありません場合は、標準料金です。"],
    ),
    "ru": (["Извините, я не могу ответить."], ["В документах нет такой информации."], ["Бот пишет «Я не знаю» и ждёт."]),
    "el": (["Λυπάμαι, δεν μπορώ να απαντήσω."], ["Τα έγγραφα δεν αναφέρουν την τιμή."], ["Γράφει «Δεν ξέρω» στην οθόνη."]),
    "ro": (["Îmi pare rău, nu pot răspunde."], ["Documentele nu menționează prețul."], ["Scrie „Nu știu” pe ecran."]),
    "tr": (["Üzgünüm, bu soruyu yanıtlayamam."], ["Belgelerde bu konuda bilgi yok."], ["Ekranda \"Bilmiyorum\" yazar."]),
    "vi": (["Xin lỗi, tôi không thể trả lời."], ["Tài liệu không đề cập đến giá."], ["Màn hình hiện \"Tôi không biết\"."]),
    "ar": (["عذرًا، لا أستطيع الإجابة."], ["الوثائق لا تذكر السعر."], ["تعرض الشاشة «لا أعرف» ثم الرابط."]),
    "th": (["ขออภัย ฉันไม่สามารถตอบได้"], ["เอกสารไม่ได้ระบุราคา"], ["หน้าจอแสดง \"ฉันไม่ทราบ\""]),
}  # fmt: skip


@each_row("code", sorted(_BY_LANGUAGE))
def test_refusals_and_statements_of_lack_in_other_languages(code: str) -> None:
    refusals, lacks, answers = _BY_LANGUAGE[code]
    assert [text for text in [*refusals, *lacks] if not detect(text).abstained] == []
    assert [text for text in answers if detect(text).abstained] == []


_JAPANESE_REFUSALS = """
恐れながら、手元の資料の範囲では、ご質問の料金についてお示しすることが叶いません。
その件につきましては、当方では把握できておらず、ご説明のしようがございません。
提供された文書を一通り確認しましたが、保証期間に関する記述は発見できませんでした。
この質問に対する答えは、与えられた文脈からは導けませんでした。
マニュアルのどの章にも、電池の交換方法については書かれておりませんでした。
検索結果には該当する項目が一件もありませんでした。
いただいた抜粋だけでは、開始時刻を突き止めることはできそうにありません。
創業者の名前までは、資料からは読み取れませんでした。
それについては分かりませんでした。担当部署にお問い合わせください。
本文では送料の話が一切出てこないので、何とも申し上げられません。
お尋ねの数値は、どの資料にも載っていませんでした。
私にはその判断材料がなく、お答えのしようがありません。
文書内に記載が見られないため、回答は控えさせていただきます。
申請の締め切り日は、配布資料では明らかにされていません。
すべてのページを調べましたが、返品先の住所は見つけられませんでした。
"""

_JAPANESE_ANSWERS = """
窓口の職員は「申し訳ありませんが、お答えできません」と言うよう指導されています。
契約書に記載がない費用は、利用者が負担する必要はありません。
パスワードが分からない場合は、再設定画面から新しいものを登録してください。
資料が見つからないときは、司書に声をかければ書庫から出してもらえます。
このエラーは、設定ファイルが存在しないときに表示されます。
返品は30日以内であれば可能ですが、開封後の商品は受け付けていません。
「情報がありません」という表示は、通信が切れていることを意味します。
大臣は質問に答えず、記者会見を途中で打ち切りました。
はい、日曜日も営業しています。ただし駐車場は利用できません。
この関数は値が見つからなかった場合に None を返します。
回答できないアンケートの項目は空欄のままで構いません。
証人は「覚えていません」と繰り返し、裁判は翌月に延期されました。
未成年者は保護者の同意なしに申し込むことができません。
説明書に書かれていない使い方をすると、保証の対象外になります。
当時の記録は火災で失われたため、研究者は手紙をもとに年代を推定しました。1868年と考えられています。
"""


def test_japanese_negatives_refuse_when_they_are_the_speakers_own_predicate() -> None:
    """A negative before a noun describes the noun; one that is reported is somebody else's."""
    refusals, answers = _JAPANESE_REFUSALS.split(), _JAPANESE_ANSWERS.strip().splitlines()
    assert [text for text in refusals if not detect(text).abstained] == []
    assert [text for text in answers if detect(text).abstained] == []


# Questions in two parts of which an answer tells one and says that the other is missing. Written
# before the rule that finds them; ``FULL`` are abstentions that tell something else first.


def _pairs(text: str) -> list[tuple[str, str]]:
    """A question and its answer in turn, a line each."""
    lines = iter(text.strip().splitlines())
    return list(zip(lines, lines, strict=True))


PARTIAL = _pairs("""
How much is the basic tariff, and who is the contract partner?
The basic tariff costs 31.4 cents per kWh plus 11.90 euros a month. The contract partner is not \
named in the document.
How long does the warranty last and who pays for the shipping?
The warranty lasts two years. I could not find who pays for the shipping.
When does the pool open? Is there a discount for students?
The pool opens on 1 May at 9 am. A discount for students is not mentioned.
What is the maximum file size and which formats are supported?
Files may be up to 25 MB in size. The notes do not say which formats are supported.
Who founded the museum and when was it renovated?
The museum was founded by Clara Weiss. When it was renovated is not stated.
Which port does the server listen on and how is TLS enabled?
The server listens on port 8443. There is no information on how to enable TLS.
What are the opening hours of the branch and does it have a ramp?
The branch is open from 9 to 18 on weekdays. Whether it has a ramp is not specified.
Does the plan include dental care and eye tests?
Yes, the plan includes dental care. Eye tests are not mentioned in the document.
How many vacation days do I get and can I carry them over?
You get 28 vacation days a year. The handbook does not mention carrying them over.
What does a parcel to Norway cost? And how long does it take?
A parcel to Norway costs 14.90 euros. However, the delivery time is not given.
Wie hoch ist die Gebühr und wann wird sie fällig?
Die Gebühr beträgt 35 Euro. Wann sie fällig wird, ist nicht angegeben.
Wie lange dauert die Prüfung und welche Hilfsmittel sind erlaubt?
Die Prüfung dauert 90 Minuten. Zu Hilfsmitteln enthalten die Unterlagen keine Angaben.
Combien coûte l'abonnement et comment peut-on le résilier ?
L'abonnement coûte 20 euros par mois. La résiliation n'est pas mentionnée dans les documents.
¿Cuánto cuesta la entrada y a qué hora cierra el museo?
La entrada cuesta 12 euros. El documento no menciona a qué hora cierra el museo.
""")

FULL = _pairs("""
営業時間は何時から何時までですか。
図書館は駅の近くにあります。営業時間は記載されていません。
Are dogs and cats allowed in the hostel?
The hostel has 40 beds. The notes do not mention pets.
Where are responses stored, and for how long?
Responses can be exported as CSV. Storage place and duration are not mentioned.
How much is the basic tariff?
The basic tariff is offered in the north only. Its price is not stated.
Which version of Slurm runs on the cluster?
Jobs go through Slurm on 210 nodes. The version is not named.
I have wide feet and a bad knee, would these shoes hurt me?
A bad knee is no fun. How wide the shoes are is not mentioned.
When does the pool open and what does it cost?
I am sorry that you had to wait so long. The notes name neither the hours nor the price.
When does the pool open and what does it cost?
The documents do not say when the pool opens. The price is not given either.
""")


@each_row(("question", "answer"), PARTIAL)
def test_an_answer_to_one_of_two_questions_is_no_abstention(question: str, answer: str) -> None:
    assert not detect(answer, question=question).abstained
    told, _, missing = answer.partition(". ")
    assert not detect_with_passages(answer, [Passage(f"{told}.")], question).abstained
    assert detect(missing, question=question).state == detect(missing).state


@each_row(("question", "answer"), FULL)
def test_what_else_is_told_answers_no_part_of_the_question(question: str, answer: str) -> None:
    assert detect(answer, question=question).state == detect(answer).state != "partial"


TUNED = "0acda40c601f2930897e3185af15900d25ee6ce607d5ee215cfa2d17c21ae5f8"
"""SHA-256 of the patterns as JSON, as they were when they still were strings of the module. Who
changes a pattern on purpose measures again (bench/research/languages.py) and puts the new hash."""


def test_the_compiled_patterns_are_the_tuned_ones() -> None:
    search, first_lack, _ = _phrases_of(*phrases())
    patterns = [search._patterns, first_lack, [_supposed(code).pattern for code in phrases()]]
    assert hashlib.sha256(json.dumps(patterns).encode()).hexdigest() == TUNED
    assert len(phrases()) == 19
    assert all(own.refusal and own.lack and own.when for own in phrases().values())


@each_row(
    "answer",
    [
        "Nie znalazłem tej informacji w dokumencie The Guide and the Rules.",
        "Dazu steht nichts in den Unterlagen zu Lord of the Rings and the Hobbit.",
        "Dat staat niet in de documenten van The Game and the Box.",
        "Lo siento, no encuentro esa información en la guía This and That for You.",
    ],
)
def test_an_english_title_does_not_switch_off_the_phrases_of_the_answer_s_language(
    answer: str,
) -> None:
    assert detect(answer).abstained


def test_phrases_are_chosen_by_language_without_changing_a_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each answer of the blind lists, alone and with an English title behind it."""
    folder = Path(__file__).resolve().parents[2] / "bench" / "research" / "blind"
    rows = [row for path in sorted(folder.glob("*/*.jsonl")) for _, row in read_rows(path)]
    answers = [row["answer"] for row in rows if "answer" in row]
    answers += [f"{answer} The Guide and the Rules for You." for answer in answers]
    assert len(answers) > 1_000

    def states() -> list[str]:
        refusals.declines.cache_clear()
        return [detect(answer).state for answer in answers]

    found = states()
    monkeypatch.setattr(refusals, "_is_english", lambda folded: False)
    assert found == states()
    refusals.declines.cache_clear()


@each_row(
    ("answer", "state"),
    [
        ("Exchange rates lie outside the texts that I can open.", "abstained"),
        ("The brochure is quiet on parking.", "abstained"),
        ("I lack the price list, so could you ring the shop?", "abstained"),
        ("Does the guide not mention a price?", "answered"),
        ("Zur Gebühr trifft das Merkblatt keine Aussage.", "abstained"),
        ("Der Aufzug steht Ihnen nicht zur Verfügung.", "answered"),
        ("Maalesef bu ürün iade edilemez.", "answered"),
        ("很抱歉，本店不接受现金付款。", "answered"),
    ],
)
def test_a_lack_is_said_of_sources_and_a_question_says_none(answer: str, state: str) -> None:
    assert detect(answer).state == state


PATTERNS = (
    r"\bcan(?:not|'t)\b", r"(?:no|not any) (?:data|information)", r"ab+c{2,}", r"x?y*z",
    r"(?i:ABC)d",
    r"(?=look)(?!ahead)\w+ing", r"[ab]{3}", r"(?:long|literal|words)+ here", r"(?>cat|dog)s",
)  # fmt: skip


COMPILED = tuple(map(re.compile, PATTERNS))


def by_all(patterns: Sequence[re.Pattern[str]], text: str) -> int | None:
    return next((n for n, pattern in enumerate(patterns) if pattern.search(text)), None)


def every_pattern(search: PhraseSearch) -> list[re.Pattern[str]]:
    """Compiled once: ``re`` keeps fewer than there are, and would compile each for each text."""
    return [re.compile(pattern) for pattern in search._patterns]


@given(st.text("abcdinotlrwksgxyzuefm' h", max_size=60))
def test_it_finds_the_first_pattern_that_matches(text: str) -> None:
    assert PhraseSearch(PATTERNS).first_in(text) == by_all(COMPILED, text)


def test_each_pattern_is_found_by_its_letters() -> None:
    texts = ("I cannot.", "not any information", "abbccc", "z", "ABCd", "looking", "bab",
             "so many words here", "two dogs", "nothing at al")  # fmt: skip
    search = PhraseSearch(PATTERNS)
    assert [search.first_in(text) for text in texts] == [0, 1, 2, 3, 4, 5, 6, 7, 8, None]
    search = PhraseSearch(PATTERNS)
    for text in ("catalogue " * 200 + "two dogs", "犬" * 2000 + "abbccc", "n" * 5000 + "ABCd"):
        assert len(text) > 1000
        assert search.first_in(text) == by_all(COMPILED, text)


def test_refusals_of_all_languages_are_found_as_by_trying_all() -> None:
    path = Path(__file__).parents[2] / "bench/research/refusals_by_language.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    texts = [fold(value) for row in rows for value in row.values() if isinstance(value, str)]
    assert len(texts) > 300
    for search in (_phrases_of("en").search, _phrases_of(*phrases()).search):
        patterns = every_pattern(search)
        for text in texts:
            assert search.first_in(text) == by_all(patterns, text), text
