# ruff: noqa: E501
"""The script of a text and, for languages of the Latin script, a guess at the language.

Words cannot be compared across languages, and phrases are known in few of them: a claim in another
language than its contexts would look unsupported, a refusal in another language like an answer. The
guess counts function words; it stays silent when they are few, as in numbers, names and code.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from ragmetrics.text.refusal_phrases import phrases

# No words of one letter, and none that English or a programming language uses as well.
FUNCTION_WORDS = {
    "en": "the of and to is that it was for with are this which from were have they been you your "
    "not can be does did their would should about cannot what",
    "de": "der die und das ist nicht mit sich auf dem den ein eine von zu werden wird auch ich sie "
    "es im zum zur bei für kann keine kein leider oder dazu über wie",
    "fr": "le les des est et une dans pour qui que pas sur avec plus sont cette du aux je ne vous "
    "nous il ce ou peut aucune être",
    "es": "el los las es una del para con por como pero más este son fue lo se que esta está "
    "puedo tengo sobre cuando también qué",
    "it": "il che di della per sono con una nel gli dei anche alla è le più dal si non posso "
    "questa questo mi ho alle",
    "pt": "os uma não para com dos mais como foi ao das pelo pela são também às que em por está "
    "eu posso sobre esta isso você",
    "nl": "het een van dat niet zijn voor met op ook wordt aan door bij naar deze werd ik kan geen "
    "er uit deze heeft over",
    "pl": "się jest oraz że jak przez dla są był który która tego może nie czy ale jako lub będzie",
    "cs": "že jsou jako které který byl nebo také při jeho není může být podle která byla však "
    "jsem",
    "hr": "koji koja nije kao što ili su biti može također ali prema bio bila ako između iz za",
    "ro": "și este în pentru din sunt sau pe nu mai fost această prin într unui cea cele lui că",
    "sv": "och att det är på av för med inte ett från kan eller också när jag kunde som",
    "da": "og ikke på til med som fra kan eller også når blev ble det har er af av jeg",
    "fi": "ja ei että oli ovat mutta joka myös sekä kuin ole voi tai kun jos olla hän tämä",
    "hu": "az és hogy nem egy volt csak vagy már azt után között lehet ezt amely nincs",
    "tr": "ve bir bu için ile olarak olan gibi daha kadar sonra değil ancak tarafından çok veya "
    "ise her olduğu",
    "vi": "là và của có được trong cho không một các những với này đã khi để người từ",
    "ar": "في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا من متى أين كيف كم هل هو هي هم "
    "كان كانت يكون تكون قد لقد لم لن لا أن إن أو و ثم بعد قبل بين عند كل أي غير كما حيث بعض منذ حتى",
    "el": "ο η το οι τα του της των τον την τους τις στο στη στην στον στα στις στους και να με για "
    "από σε που πως ποιος ποια ποιο ποιοι τι πότε πού πόσο πόσα πόσοι πόσες είναι ήταν έχει έχουν "
    "είχε δεν θα μια ένα ένας μιας ενός αυτό αυτή αυτός ή κατά μετά πριν ως όπως ότι",
    "hi": "का के की को में से पर ने है हैं था थी थे हो होता होती होते और या कि जो यह ये वह वे इस उस "
    "इन उन क्या कौन कब कहाँ कहां कैसे कितने कितनी कितना किस किसने किसे किन एक ही भी तो तक लिए द्वारा "
    "साथ बाद पहले रूप गया गई गए किया कर करने करता करते हुए हुआ हुई रहा रही रहे जाता जाती जाते अपने "
    "अपनी अपना नहीं",
    "ru": "и в во на с со к ко по из за от до о об у для при над под между через без не ни что как "
    "кто где когда какой какая какое какие каких сколько чем или но а же бы был была было были есть "
    "это этот эта эти этого он она оно они его её ее их который которая которое которые которых "
    "так также после перед том того",
    "th": "ที่ ใน และ ของ เป็น มี ได้ จาก การ ให้ ว่า กับ ไป มา ไม่ โดย จะ ซึ่ง อยู่ คือ เพื่อ แต่ หรือ ก็ นี้ นั้น ต่อ ถูก "
    "กว่า ความ แล้ว ยัง เมื่อ ถึง ด้วย อะไร ใคร ไหน เท่าไร เท่าใด กี่ ใด อย่างไร เมื่อไร เมื่อใด ทำไม เพราะ ตาม ทั้ง ระหว่าง "
    "หลัง ก่อน เช่น อื่น ๆ ผู้ อัน คน แห่ง บาง ทุก แบบ ตัว ชื่อ",
    "id": "yang dan dengan untuk dari ini itu tidak pada adalah dalam akan oleh atau juga sebagai",
}

# A script that one language writes most; the others that share it are taken for it.
_BY_SCRIPT = {
    "arabic": "ar",
    "cyrillic": "ru",
    "devanagari": "hi",
    "greek": "el",
    "thai": "th",
}

_LANGUAGES: dict[str, list[str]] = {}

for _name, _listed in FUNCTION_WORDS.items():
    if _name in _BY_SCRIPT.values():  # the script tells the language already
        continue
    for _word in set(_listed.split()):
        _LANGUAGES.setdefault(_word, []).append(_name)

# Words beside marks of code and addresses are none of a language ("os.path", "example.com").
_WORD = re.compile(r"(?<![\w./@\\=$-])[^\W\d_]{2,}(?![\w@/\\=(-]|[.:]\w)")

# A capital inside a sentence begins a name ("Los Angeles"); only the first of a sentence does not.
_FIRST = re.compile(r"(?:\A|[.!?:]\s+)\W*\w")

_SYMBOL = re.compile(
    r"(?<![\u0370-\u03ff])[\u00b5\u2126\u0370-\u03ff](?![\u0370-\u03ff])"
)  # 5 Ω, 3 µm

_LETTER = re.compile(r"[^\W\d_]")

_EAST_ASIAN = dict.fromkeys(("cjk", "hiragana", "katakana", "katakana-hiragana"), "han")

_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")

_SAMPLE = 4000

_MIN_HITS = 4

_SHORT_HITS = 2
"""Different function words that suffice where no English one stands beside them."""


@lru_cache(maxsize=4096)
def _script_of(letter: str) -> str | None:
    """The script of a letter, by its Unicode name; None for letters of no script of their own."""
    plain = unicodedata.normalize("NFKC", letter)[:1]
    name = unicodedata.name(plain, "").partition(" ")[0].lower()
    return None if name in ("", "modifier") else _EAST_ASIAN.get(name, name)


def script(text: str) -> str | None:
    """The script of most letters among the first 4,000 characters; None without a letter.

    Chinese characters and kana are one ("han"); a single Greek letter is a symbol, not a script.
    """
    text = text[:_SAMPLE]
    if text.isascii():
        return "latin" if _LETTER.search(text) else None
    counts: Counter[str] = Counter()
    for char, times in Counter(_SYMBOL.sub(" ", text)).items():
        if char.isalpha() and (name := _script_of(char)) is not None:
            counts[name] += times
    return max(counts, key=lambda name: counts[name]) if counts else None


def _hits(text: str) -> tuple[Counter[str], Counter[str]]:
    """How many function words of each language a text has, and how many different ones."""
    text = _FIRST.sub(lambda first: first[0].lower(), unicodedata.normalize("NFC", text[:_SAMPLE]))
    hits: Counter[str] = Counter()
    different: Counter[str] = Counter()
    for word, times in Counter(_WORD.findall(text)).items():
        for name in _LANGUAGES.get(word, ()):
            hits[name] += times
            different[name] += 1
    return hits, different


def language(text: str) -> str | None:
    """A Latin-script language that clearly leads by function words (twice the next), else None."""
    hits, _ = _hits(text)
    (name, first), (_, second) = [*hits.most_common(2), ("", 0), ("", 0)][:2]
    return name if first >= _MIN_HITS and first >= 2 * second else None


def differ(first: str, second: str) -> bool:
    """Return True when two texts clearly have different scripts or languages."""
    scripts = script(first), script(second)
    if None not in scripts and scripts[0] != scripts[1]:
        return True
    languages = language(first), language(second)
    return None not in languages and languages[0] != languages[1]


def guess(text: str) -> str | None:
    """The language of a text as a code; a script's name where that has no or many languages.

    Among languages other than English the leading one is taken, however near the next one is: what
    matters is that it is not English. None for text that does not say.
    """
    written = script(text)
    if written != "latin":
        return _of_script(written, text)
    hits, different = _hits(text)
    english = hits.pop("en", 0)
    name, most = max(hits.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    if english >= _MIN_HITS and english >= 2 * most:
        return "en"
    if most >= _MIN_HITS and most >= 2 * english:
        return name
    return name if not english and different[name] >= _SHORT_HITS else None


def _of_script(name: str | None, text: str) -> str | None:
    """The one language that a script is taken for; kana among Chinese characters are Japanese."""
    if name == "han":
        return "ja" if _KANA.search(text, 0, _SAMPLE) else "zh"
    return _BY_SCRIPT.get(name or "", name)


def language_of(
    answer: str, question: str, passages: Iterable[str | None], usual: str | None = None
) -> str | None:
    """The language of an answer: its own, else that of question, answer and passages together.

    ``usual`` is what remains for a case of which nothing tells: the most frequent language of its
    run. None when that is not known either.
    """
    own = guess(answer)
    if own is not None:
        return own
    parts, size = [question, answer], len(question) + len(answer)
    for passage in passages:
        if size > _SAMPLE:
            break
        if passage:
            parts.append(passage)
            size += len(passage)
    return guess(" ".join(parts)) or usual


def is_covered(name: str | None) -> bool:
    """Return True for a language with phrase lists, and for a text of unknown language."""
    return name is None or name == "en" or name in phrases()
