"""Twenty strange bots: ten honest ones with unusual replies, and ten that are odd.

Each is a small HTTP server on loopback. A bot knows its question by its text and answers from a
table, so that every number about it can be derived by hand. ``RANKS`` says at which place the
passage with the answer comes, and 0 says that it does not come.
"""

from __future__ import annotations

import html
import itertools
import json
import time
import unicodedata
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.bots.serving import Answer, BotServer, Handler


@dataclass(frozen=True)
class Section:
    """One section of the vault; the bots bring it as one passage."""

    path: str
    title: str
    heading: str
    first: str
    last: str

    @property
    def text(self) -> str:
        return f"{self.first} {self.last}"

    @property
    def place(self) -> str:
        return f"{self.title} > {self.heading}"


@dataclass(frozen=True)
class World:
    """A vault, the questions about it, and what every bot knows of them.

    Question ``n`` is answered by section ``n``; the questions after the ranks have no answer.
    """

    sections: tuple[Section, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    ranks: tuple[int, ...]
    steps: tuple[int, ...]

    def number(self, question: str) -> int:
        """The question's number; an unknown one counts as one without an answer."""
        text = unicodedata.normalize("NFC", question.strip())
        return self.questions.index(text) if text in self.questions else len(self.questions) - 1

    def passages(self, number: int) -> list[Section]:
        """Sections some steps further on; the one with the answer is pushed in at its rank."""
        order = [(number + step) % len(self.sections) for step in self.steps]
        rank = self.ranks[number] if number < len(self.ranks) else 0
        if rank:
            order.insert(rank - 1, number)
        return [self.sections[place] for place in order[: len(self.steps)]]


def sections_of(text: str) -> tuple[Section, ...]:
    """Three lines each: path, title and heading; the first and the last sentence."""
    lines = text.strip().splitlines()
    heads = [line.split(" | ") for line in lines[::3]]
    return tuple(
        Section(*row) for row in map(lambda h, *s: (*h, *s), heads, lines[1::3], lines[2::3])
    )


FERRY = World(
    sections_of("""
tickets/fares.md | Fares | Single tickets
A crossing is paid at the counter, at the machine on the quay or on our website.
One adult pays 14 euros for a single crossing between the two islands.
tickets/fares.md | Fares | Season tickets
Whoever crosses often is better off with a pass that carries a photograph.
The yearly pass costs 310 euros and is bound to the person named on it.
tickets/refunds.md | Refunds | Deadlines
Unused crossings can be handed back at any counter or by letter to the office.
We return the money when the request reaches us within 21 days.
tickets/refunds.md | Refunds | Storm days
When the wind keeps our boats in port, your booking stays valid by itself.
A cancelled storm crossing may be taken up again during the next 6 months.
aboard/bicycles.md | Bicycles | Places
Riders board first through the bow door and lash their wheels to the rail.
Each boat has stands for 32 bicycles on the lower deck.
aboard/bicycles.md | Bicycles | Tandems
Long machines need more room and are moved by the crew, not by their riders.
For a tandem we charge 9 euros, and a trailer travels free with it.
aboard/animals.md | Animals | Dogs
Pets are welcome on the open deck, where bowls of fresh water are put out.
A dog above 8 kilograms wears a muzzle inside the saloon.
aboard/animals.md | Animals | Cages
Birds, rabbits and other small creatures stay in a box during the crossing.
No cage may be longer than 70 centimetres.
aboard/kitchen.md | Kitchen | Opening hours
Our cook serves soup, bread and one warm dish on every longer passage.
The galley shuts 25 minutes before the boat lands.
aboard/kitchen.md | Kitchen | Allergies
Whoever cannot eat certain things should speak with the cook before boarding.
Gluten-free bread is baked on request when 48 hours of notice are given.
harbour/parking.md | Parking | Long stay
Cars that remain for several nights are left behind the old customs house.
A week there costs 45 euros, to be paid on arrival.
harbour/parking.md | Parking | Electric cars
There are posts with both usual plugs beside the entrance of the car park.
The 4 charging posts deliver at most 22 kilowatts.
harbour/lost-property.md | Lost property | Office
Things that our crew finds are carried to the harbour master's hut each night.
The hut is staffed from 7 to 11 in the morning.
harbour/lost-property.md | Lost property | Storage
Umbrellas, coats and telephones are labelled and kept on shelves upstairs.
After 90 days they are given to the seamen's mission.
"""),
    questions=(
        "What does an adult pay for one crossing?",
        "How much is the pass for a whole year?",
        "Until when must I ask for my money back?",
        "Is my booking lost when a storm keeps the boat in port?",
        "How many bicycles fit on a boat?",
        "What do you charge for a tandem?",
        "When does my dog need a muzzle?",
        "How large may a rabbit's cage be?",
        "Until when can I eat something warm on board?",
        "Can I get bread without gluten?",
        "What does it cost to leave my car for a week?",
        "How fast can I charge an electric car at the harbour?",
        "Who was the captain of the first boat in 1904?",
        "Do you also sail to Norway?",
    ),
    answers=(
        "An adult pays 14 euros for a single crossing.",
        "You pay 310 euros for the pass of one year.",
        "Your request has to arrive within 21 days.",
        "No, you can sail later, at any time in the following 6 months.",
        "There is room for 32 of them below deck.",
        "Tandems cost 9 euros; trailers are free.",
        "Indoors, if it weighs more than 8 kilograms.",
        "It may measure 70 centimetres at most.",
        "The galley closes 25 minutes before landing.",
        "Yes, tell us 48 hours ahead.",
        "Seven days cost 45 euros.",
        "With up to 22 kilowatts.",
        "I do not know who that was.",
        "I cannot find anything about Norway.",
    ),
    ranks=(1, 1, 2, 1, 3, 1, 0, 2, 1, 4, 1, 0),
    steps=(3, 6, 9, 12),
)

LIBRARY = World(
    sections_of("""
üyelik/ücret.md | Ücretler | Yıllık
Üyelik her yıl ocak ayında yenilenir.
Yıllık ücret 120 liradır.
üyelik/ücret.md | Ücretler | Öğrenci
Öğrenciler belgelerini gösterir.
Öğrenci ücreti 40 liradır.
ödünç/süre.md | Süreler | Kitaplar
Kitaplar gişeden ödünç alınır.
Bir kitap 21 gün kalabilir.
ödünç/süre.md | Süreler | Filmler
Filmler yalnızca üyelere verilir.
Bir film 5 gün kalabilir.
ödünç/ceza.md | Cezalar | Gecikme
Geç gelen her kitap için ceza vardır.
Günlük ceza 2 liradır.
ödünç/ceza.md | Cezalar | Kayıp
Kaybolan kitabın yenisi istenir.
İşlem bedeli 35 liradır.
bina/saatler.md | Saatler | Hafta içi
Kapılar sabah görevliyle açılır.
Salon 8 ile 20 arasında açıktır.
bina/saatler.md | Saatler | Pazar
Pazar günü yalnızca okuma salonu vardır.
Pazar 12 ile 17 arasında açıktır.
bina/salon.md | Salonlar | Sessiz
Sessiz salonda konuşulmaz.
Orada 64 masa bulunur.
bina/salon.md | Salonlar | Grup
Grup odaları önceden ayrılır.
Bir oda 6 kişi alır.
"""),
    questions=(
        "Bir yıllık üyelik kaç lira?",
        "Öğrenciler ne kadar öder?",
        "Bir kitabı kaç gün tutabilirim?",
        "Filmleri ne zaman geri vermeliyim?",
        "Geç kalırsam günde ne öderim?",
        "Kitabı kaybedersem ne olur?",
        "Hafta içi saat kaçta açılıyor?",
        "İlk pazar günü kütüphane açık mı?",
        "Kütüphaneyi kim kurdu?",
        "Ankara'da şubeniz var mı?",
    ),
    answers=(
        "Bir yıl için 120 lira ödersiniz.",
        "Öğrenciler 40 lira verir.",
        "Kitaplar sizde 21 gün durabilir.",
        "Onları 5 gün içinde getirin.",
        "Her gün için 2 lira alınır.",
        "Yenisini alır, 35 lira da ödersiniz.",
        "Kapılar saat 8'de açılır.",
        "Evet, 12 ile 17 arasında gelebilirsiniz.",
        "Bunu bilmiyorum.",
        "Bu konuda bilgi bulamadım.",
    ),
    ranks=(1, 2, 1, 3, 1, 1, 0, 1),
    steps=(2, 5, 7),
)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def member(self, name: str) -> str | None:
        """A text of the request's JSON object."""
        payload = self.json()
        value = payload.get(name) if isinstance(payload, dict) else None
        return value if isinstance(value, str) and value else None


def as_json(payload: Any, status: int = 200, **headers: str) -> Answer:
    body = json.dumps(payload, ensure_ascii=False).encode()
    return Answer(body, status, headers)


MISSING = as_json({"detail": "Not Found"}, 404)


class RequestHandler(Handler):
    """Hands the whole request to its bot."""

    server: StrangeBot

    def serve(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.send(self.server.respond(Request(self.command, url.path, query, headers, body)))

    do_GET = do_POST = do_PUT = serve


class StrangeBot(BotServer):
    """A server of its own; ``say`` is what makes it a bot."""

    handler = RequestHandler
    world = FERRY
    path = "/ask"
    methods: tuple[str, ...] = ("GET", "POST", "PUT")
    pause = 0.0
    question_key = "question"
    complaint: tuple[dict[str, Any], int]
    """What it says to a request without a question."""

    def __init__(self) -> None:
        super().__init__({})

    def handle_error(self, *_: object) -> None:
        """A client may leave."""

    def respond(self, request: Request) -> Answer:
        if request.path != self.path or request.method not in self.methods:
            return MISSING
        question = self.question(request)
        if question is None:
            return as_json(*self.complaint)
        started = time.perf_counter()
        time.sleep(self.pause)
        number = self.world.number(question)
        return self.say(number, self.world.passages(number), time.perf_counter() - started)

    def question(self, request: Request) -> str | None:
        return request.member(self.question_key)

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        raise NotImplementedError

    def true_answers(self, number: int) -> set[str]:
        """The texts that may be taken for the answer."""
        return {self.world.answers[number]}

    def true_texts(self, number: int) -> list[str]:
        """The texts of the passages as the bot sends them, in order."""
        return [section.text for section in self.world.passages(number)]


# Ten honest bots with unusual replies.


class DeepEnvelope(StrangeBot):
    """Nested envelopes, headings as lists, scores as strings, seconds; its errors are FastAPI's."""

    path = "/v3/consult"
    pause = 0.02
    question_key = "enquiry"
    complaint = (
        {"detail": [{"loc": ["body", "enquiry"], "msg": "Field required", "type": "missing"}]},
        422,
    )

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        hits = [
            {
                "node": {
                    "where": {"file": section.path, "crumbs": [section.title, section.heading]},
                    "excerpt": section.text,
                },
                "relevance": f"{0.93 - 0.11 * place:.2f}",
            }
            for place, section in enumerate(passages)
        ]
        body = {"kind": "reply", "body": {"plain": self.world.answers[number]}}
        meta = {"took": round(took, 6), "node": "eu-4", "version": "3.1.0"}
        return as_json({"meta": meta, "payload": {"result": [body], "evidence": {"hits": hits}}})


class EventStream(StrangeBot):
    """Server-sent events: pieces of the answer, then the sources with file URLs."""

    path = "/stream"
    methods = ("POST",)
    question_key = "query"
    complaint = ({"error": "missing field: query"}, 400)

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        first, *words = self.world.answers[number].split(" ")
        events: list[tuple[str, Any]] = [("status", {"phase": "searching"})]
        events += [("token", {"t": word}) for word in (first, *(f" {word}" for word in words))]
        sources = [
            {
                "uri": f"file:///srv/vault/{section.path}",
                "heading": f"/{section.title}/{section.heading}/",
                "passage": section.text,
            }
            for section in passages
        ]
        events += [("sources", {"sources": sources}), ("end", {"finish": "stop"})]
        lines = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events]
        return Answer("".join(lines).encode(), 200, {"Content-Type": "text/event-stream"})


class LineStream(StrangeBot):
    """A line of JSON for each event; the passages come first, as LangChain writes them."""

    path = "/generate"
    methods = ("POST",)
    question_key = "prompt"
    complaint = ({"message": "'prompt' is a required property"}, 400)

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        documents = [
            {
                "page_content": section.text,
                "metadata": {
                    "source": f"/data/vault/{section.path}",
                    "Header 1": section.title,
                    "Header 2": section.heading,
                },
            }
            for section in passages
        ]
        text = self.world.answers[number]
        events: list[dict[str, Any]] = [{"type": "context", "documents": documents}]
        events += [
            {"type": "delta", "text": text[start : start + 7]} for start in range(0, len(text), 7)
        ]
        events.append({"type": "done", "tokens": {"input": 812, "output": len(text) // 4}})
        body = "".join(json.dumps(event) + "\n" for event in events)
        return Answer(body.encode(), 200, {"Content-Type": "application/x-ndjson"})


class QueryTuples(StrangeBot):
    """Asked by GET alone; its passages are lists without keys; its time is in milliseconds."""

    path = "/answer"
    pause = 0.02
    complaint = ({"error": "missing query parameter 'q'"}, 400)

    def respond(self, request: Request) -> Answer:
        if request.path == self.path and request.method != "GET":
            return as_json({"error": "Method Not Allowed"}, 405, Allow="GET")
        return super().respond(request)

    def question(self, request: Request) -> str | None:
        return request.query.get("q")

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        rows = [
            [section.path, section.place, section.text, round(8.5 - place, 2)]
            for place, section in enumerate(passages)
        ]
        elapsed = round(took * 1000, 3)
        return as_json({"a": self.world.answers[number], "docs": rows, "elapsed": elapsed})


class FormPost(StrangeBot):
    """Takes a form; its paths have backslashes and its headings slashes."""

    path = "/cgi-bin/auskunft"
    complaint = ({"error": "Feld frage fehlt"}, 400)

    def respond(self, request: Request) -> Answer:
        is_form = "x-www-form-urlencoded" in request.headers.get("content-type", "")
        if request.path == self.path and not is_form:
            return as_json({"error": "Unsupported Media Type"}, 415)
        return super().respond(request)

    def question(self, request: Request) -> str | None:
        return parse_qs(request.body.decode()).get("frage", [None])[-1]

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        context = [
            {
                "document": section.path.replace("/", "\\"),
                "chapter": f"{section.title} / {section.heading}",
                "content": section.text,
            }
            for section in passages
        ]
        return as_json({"result": {"message": self.world.answers[number]}, "context": context})


class IdsAlone(StrangeBot):
    """Names its passages by ids and tells nothing else of them."""

    path = "/api/reply"
    complaint = ({"error": "question is required"}, 400)

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        ids = [chunk_id(section) for section in passages]
        return as_json({"response": self.world.answers[number], "ids": ids})


def chunk_id(section: Section) -> str:
    return f"s-{FERRY.sections.index(section):03d}"


class WebPages(StrangeBot):
    """HTML answers; its sources are addresses of the published pages."""

    path = "/help"
    question_key = "message"
    complaint = ({"error": "message parameter cannot be empty"}, 400)

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        sources = [
            {
                "href": f"https://ferry.example/docs/{section.path.removesuffix('.md')}.html"
                f"#{section.heading.lower().replace(' ', '-')}",
                "title": f"{section.title} › {section.heading}",
                "snippet": section.text,
            }
            for section in passages
        ]
        return as_json({"html": self._page(number), "sources": sources})

    def _page(self, number: int) -> str:
        return f"<p>{html.escape(self.world.answers[number])}</p>"

    def true_answers(self, number: int) -> set[str]:
        return {self._page(number), self.world.answers[number]}


class TwoSteps(StrangeBot):
    """Wants a session first, and the question within it."""

    path = "/talk"
    question_key = "message"
    complaint = ({"error": "message is required"}, 400)

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.counter = itertools.count(1)
        super().__init__()

    def respond(self, request: Request) -> Answer:
        if request.path == "/sessions" and request.method == "POST":
            session = f"tk-{next(self.counter):06d}"
            self.sessions.add(session)
            return as_json({"session_id": session}, 201)
        session_id = request.member("session_id")
        if request.path == self.path and request.member("message") is not None:
            create = "create a session with POST /sessions"
            if session_id is None:
                return as_json({"error": f"session_id is required: {create}"}, 400)
            if session_id not in self.sessions:
                return as_json({"error": f"unknown session_id {session_id}: {create}"}, 404)
        return super().respond(request)

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        found = [
            {"path": section.path, "heading": section.place, "text": section.text}
            for section in passages
        ]
        return as_json({"reply": self.world.answers[number], "passages": found})


class SourceList(StrangeBot):
    """One text with [n] marks and a list of sources below it."""

    path = "/v1/complete"
    question_key = "input"
    complaint = ({"error": {"message": "Missing required parameter: 'input'"}}, 400)

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        return as_json({"output": self._text(number)})

    def _marked(self, number: int) -> str:
        rank = self.world.ranks[number] if number < len(self.world.ranks) else 0
        return self.world.answers[number] + (f" [{rank}]" if rank else "")

    def _text(self, number: int) -> str:
        lines = [
            f"[{place}] {section.path} - {section.place}"
            for place, section in enumerate(self.world.passages(number), 1)
        ]
        return self._marked(number) + "\n\nSources:\n" + "\n".join(lines)

    def true_answers(self, number: int) -> set[str]:
        return {self._text(number), self._marked(number)}

    def true_texts(self, number: int) -> list[str]:
        return [""] * len(self.world.passages(number))


class Turkish(StrangeBot):
    """Turkish keys, messages and notes; decomposed paths; scores with a decimal comma; seconds."""

    world = LIBRARY
    path = "/sor"
    pause = 0.02
    question_key = "soru"
    complaint = ({"hata": "'soru' alanı zorunludur"}, 400)

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        sources = [
            {
                "dosya": unicodedata.normalize("NFD", section.path),
                "başlık": section.place,
                "metin": section.text,
                "puan": f"0,{91 - 7 * place}",
            }
            for place, section in enumerate(passages)
        ]
        answer = self.world.answers[number]
        return as_json({"cevap": answer, "kaynaklar": sources, "süre": round(took, 6)})


# Ten odd bots. They answer a plain request; what they send is wrong in one way.


class OddBot(StrangeBot):
    """A plain reply, for those below to spoil."""

    methods = ("POST",)
    answer_key = "answer"
    list_key = "sources"

    def respond(self, request: Request) -> Answer:
        self.complaint = ({"error": f"{self.question_key} is required"}, 400)
        return super().respond(request)

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        return as_json({self.answer_key: self.answer(number), self.list_key: self.items(number)})

    def answer(self, number: int) -> str | None:
        return self.world.answers[number]

    def items(self, number: int) -> list[dict[str, Any]]:
        return [self.item(section) for section in self.world.passages(number)]

    def item(self, section: Section) -> dict[str, Any]:
        return {"file": section.path, "section": section.place, "text": section.text}


class NoAnswer(OddBot):
    """Its answer is null, always."""

    answer_key = "reply"
    list_key = "documents"

    def answer(self, number: int) -> None:
        return None

    def true_answers(self, number: int) -> set[str]:
        return set()


class NeighbourPassages(OddBot):
    """Brings the passages of the next question, under a right answer."""

    question_key = "query"

    def items(self, number: int) -> list[dict[str, Any]]:
        return super().items((number + 1) % len(self.world.questions))

    def true_texts(self, number: int) -> list[str]:
        return super().true_texts((number + 1) % len(self.world.questions))


class BlobPaths(OddBot):
    """Its paths are names of blobs, which no cut makes equal to a file of the labels."""

    def item(self, section: Section) -> dict[str, Any]:
        place = self.world.sections.index(section)
        return {"file": f"store-7/{place * 7919 + 40961:x}.blob", "text": section.text}


class ConstantAnswer(OddBot):
    """Says the same to every question; its passages are right."""

    question_key = "prompt"
    answer_key = "completion"

    def answer(self, number: int) -> str:
        return "Thank you for asking! The passages below will surely help you."

    def true_answers(self, number: int) -> set[str]:
        return {self.answer(number)}


class CutTexts(OddBot):
    """No headings, and of each text the first 60 characters."""

    list_key = "snippets"

    def item(self, section: Section) -> dict[str, Any]:
        return {"file": section.path, "text": f"{section.text[:60]}…"}

    def true_texts(self, number: int) -> list[str]:
        return [f"{text[:60]}…" for text in super().true_texts(number)]


class FreshIds(OddBot):
    """Its ids are other ones at every call."""

    def __init__(self) -> None:
        self.counter = itertools.count(1)
        super().__init__()

    def item(self, section: Section) -> dict[str, Any]:
        number = next(self.counter) * 2_654_435_761 % 2**32
        return {"id": f"{number:08x}", **super().item(section)}


class Parrot(OddBot):
    """Its answer is the first passage."""

    answer_key = "output"
    list_key = "passages"

    def answer(self, number: int) -> str:
        return self.world.passages(number)[0].text

    def true_answers(self, number: int) -> set[str]:
        return {self.answer(number)}


class StaleCache(OddBot):
    """Its passages are those of the first question, under fresh answers."""

    def items(self, number: int) -> list[dict[str, Any]]:
        return super().items(0)

    def true_texts(self, number: int) -> list[str]:
        return super().true_texts(0)


class WrongEncoding(OddBot):
    """Says that it sends UTF-8 and sends Windows-1252."""

    def answer(self, number: int) -> str:
        return f"{self.world.answers[number]} Good “crossing” – naïve café."

    def say(self, number: int, passages: list[Section], took: float) -> Answer:
        body = super().say(number, passages, took).body.decode().encode("cp1252")
        return Answer(body, 200, {"Content-Type": "application/json; charset=utf-8"})

    def true_answers(self, number: int) -> set[str]:
        return {self.answer(number)}


class ErrorAsAnswer(OddBot):
    """Its store is down: status 200, an error for an answer, and no passages."""

    answer_key = "response"

    def answer(self, number: int) -> str:
        return "Internal error: the vector store is unavailable (ECONNREFUSED)."

    def items(self, number: int) -> list[dict[str, Any]]:
        return []

    def true_answers(self, number: int) -> set[str]:
        return {self.answer(number)}

    def true_texts(self, number: int) -> list[str]:
        return []
