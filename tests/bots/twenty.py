"""Twenty strange bots: ten honest ones with unusual replies, and ten that are odd.

Each is a small HTTP server on loopback. A bot knows its question by its text and answers from a
table, so that every number about it can be derived by hand. ``RANKS`` says at which place the
passage with the answer comes, and 0 says that it does not come.
"""

from __future__ import annotations

import html
import itertools
import json
import threading
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


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
        text = question.strip()
        return self.questions.index(text) if text in self.questions else len(self.questions) - 1

    def passages(self, number: int) -> list[Section]:
        """Sections some steps further on; the one with the answer is pushed in at its rank."""
        order = [(number + step) % len(self.sections) for step in self.steps]
        rank = self.ranks[number] if number < len(self.ranks) else 0
        if rank:
            order.insert(rank - 1, number)
        return [self.sections[place] for place in order[: len(self.steps)]]


FERRY = World(
    sections=(
        Section(
            "tickets/fares.md",
            "Fares",
            "Single tickets",
            "A crossing is paid at the counter, at the machine on the quay or on our website.",
            "One adult pays 14 euros for a single crossing between the two islands.",
        ),
        Section(
            "tickets/fares.md",
            "Fares",
            "Season tickets",
            "Whoever crosses often is better off with a pass that carries a photograph.",
            "The yearly pass costs 310 euros and is bound to the person named on it.",
        ),
        Section(
            "tickets/refunds.md",
            "Refunds",
            "Deadlines",
            "Unused crossings can be handed back at any counter or by letter to the office.",
            "We return the money when the request reaches us within 21 days.",
        ),
        Section(
            "tickets/refunds.md",
            "Refunds",
            "Storm days",
            "When the wind keeps our boats in port, your booking stays valid by itself.",
            "A cancelled storm crossing may be taken up again during the next 6 months.",
        ),
        Section(
            "aboard/bicycles.md",
            "Bicycles",
            "Places",
            "Riders board first through the bow door and lash their wheels to the rail.",
            "Each boat has stands for 32 bicycles on the lower deck.",
        ),
        Section(
            "aboard/bicycles.md",
            "Bicycles",
            "Tandems",
            "Long machines need more room and are moved by the crew, not by their riders.",
            "For a tandem we charge 9 euros, and a trailer travels free with it.",
        ),
        Section(
            "aboard/animals.md",
            "Animals",
            "Dogs",
            "Pets are welcome on the open deck, where bowls of fresh water are put out.",
            "A dog above 8 kilograms wears a muzzle inside the saloon.",
        ),
        Section(
            "aboard/animals.md",
            "Animals",
            "Cages",
            "Birds, rabbits and other small creatures stay in a box during the crossing.",
            "No cage may be longer than 70 centimetres.",
        ),
        Section(
            "aboard/kitchen.md",
            "Kitchen",
            "Opening hours",
            "Our cook serves soup, bread and one warm dish on every longer passage.",
            "The galley shuts 25 minutes before the boat lands.",
        ),
        Section(
            "aboard/kitchen.md",
            "Kitchen",
            "Allergies",
            "Whoever cannot eat certain things should speak with the cook before boarding.",
            "Gluten-free bread is baked on request when 48 hours of notice are given.",
        ),
        Section(
            "harbour/parking.md",
            "Parking",
            "Long stay",
            "Cars that remain for several nights are left behind the old customs house.",
            "A week there costs 45 euros, to be paid on arrival.",
        ),
        Section(
            "harbour/parking.md",
            "Parking",
            "Electric cars",
            "There are posts with both usual plugs beside the entrance of the car park.",
            "The 4 charging posts deliver at most 22 kilowatts.",
        ),
        Section(
            "harbour/lost-property.md",
            "Lost property",
            "Office",
            "Things that our crew finds are carried to the harbour master's hut each night.",
            "The hut is staffed from 7 to 11 in the morning.",
        ),
        Section(
            "harbour/lost-property.md",
            "Lost property",
            "Storage",
            "Umbrellas, coats and telephones are labelled and kept on shelves upstairs.",
            "After 90 days they are given to the seamen's mission.",
        ),
    ),
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
    sections=(
        Section(
            "üyelik/ücret.md",
            "Ücretler",
            "Yıllık",
            "Üyelik her yıl ocak ayında yenilenir.",
            "Yıllık ücret 120 liradır.",
        ),
        Section(
            "üyelik/ücret.md",
            "Ücretler",
            "Öğrenci",
            "Öğrenciler belgelerini gösterir.",
            "Öğrenci ücreti 40 liradır.",
        ),
        Section(
            "ödünç/süre.md",
            "Süreler",
            "Kitaplar",
            "Kitaplar gişeden ödünç alınır.",
            "Bir kitap 21 gün kalabilir.",
        ),
        Section(
            "ödünç/süre.md",
            "Süreler",
            "Filmler",
            "Filmler yalnızca üyelere verilir.",
            "Bir film 5 gün kalabilir.",
        ),
        Section(
            "ödünç/ceza.md",
            "Cezalar",
            "Gecikme",
            "Geç gelen her kitap için ceza vardır.",
            "Günlük ceza 2 liradır.",
        ),
        Section(
            "ödünç/ceza.md",
            "Cezalar",
            "Kayıp",
            "Kaybolan kitabın yenisi istenir.",
            "İşlem bedeli 35 liradır.",
        ),
        Section(
            "bina/saatler.md",
            "Saatler",
            "Hafta içi",
            "Kapılar sabah görevliyle açılır.",
            "Salon 8 ile 20 arasında açıktır.",
        ),
        Section(
            "bina/saatler.md",
            "Saatler",
            "Pazar",
            "Pazar günü yalnızca okuma salonu vardır.",
            "Pazar 12 ile 17 arasında açıktır.",
        ),
        Section(
            "bina/salon.md",
            "Salonlar",
            "Sessiz",
            "Sessiz salonda konuşulmaz.",
            "Orada 64 masa bulunur.",
        ),
        Section(
            "bina/salon.md",
            "Salonlar",
            "Grup",
            "Grup odaları önceden ayrılır.",
            "Bir oda 6 kişi alır.",
        ),
    ),
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


@dataclass(frozen=True)
class Reply:
    body: bytes
    status: int = 200
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def as_json(payload: Any, status: int = 200, **headers: str) -> Reply:
    body = json.dumps(payload, ensure_ascii=False).encode()
    return Reply(body, status, headers=headers)


MISSING = as_json({"detail": "Not Found"}, 404)


class StrangeBot:
    """A server of its own; ``respond`` is what makes it a bot."""

    world = FERRY
    path = "/ask"
    pause = 0.0

    def __init__(self) -> None:
        bot = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def serve(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[-1] for name, values in parse_qs(url.query).items()}
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = bot.respond(Request(self.command, url.path, query, headers, body))
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.type)
                self.send_header("Content-Length", str(len(reply.body)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = do_PUT = serve

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256  # see tests/fake_bot.py

            def handle_error(self, *_: object) -> None:
                """A client may leave."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def respond(self, request: Request) -> Reply:
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

    def respond(self, request: Request) -> Reply:
        if request.path != self.path:
            return MISSING
        question = request.member("enquiry")
        if question is None:
            detail = [{"loc": ["body", "enquiry"], "msg": "Field required", "type": "missing"}]
            return as_json({"detail": detail}, 422)
        started = time.perf_counter()
        time.sleep(self.pause)
        number = self.world.number(question)
        hits = [
            {
                "node": {
                    "where": {"file": section.path, "crumbs": [section.title, section.heading]},
                    "excerpt": section.text,
                },
                "relevance": f"{0.93 - 0.11 * place:.2f}",
            }
            for place, section in enumerate(self.world.passages(number))
        ]
        took = round(time.perf_counter() - started, 6)
        body = {"kind": "reply", "body": {"plain": self.world.answers[number]}}
        return as_json(
            {
                "meta": {"took": took, "node": "eu-4", "version": "3.1.0"},
                "payload": {"result": [body], "evidence": {"hits": hits}},
            }
        )


class EventStream(StrangeBot):
    """Server-sent events: pieces of the answer, then the sources with file URLs."""

    path = "/stream"

    def respond(self, request: Request) -> Reply:
        if request.path != self.path or request.method != "POST":
            return MISSING
        question = request.member("query")
        if question is None:
            return as_json({"error": "missing field: query"}, 400)
        number = self.world.number(question)
        words = self.world.answers[number].split(" ")
        events: list[tuple[str, Any]] = [("status", {"phase": "searching"})]
        events += [
            ("token", {"t": word if place == 0 else f" {word}"}) for place, word in enumerate(words)
        ]
        sources = [
            {
                "uri": f"file:///srv/vault/{section.path}",
                "heading": f"/{section.title}/{section.heading}/",
                "passage": section.text,
            }
            for section in self.world.passages(number)
        ]
        events += [("sources", {"sources": sources}), ("end", {"finish": "stop"})]
        lines = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events]
        return Reply("".join(lines).encode(), type="text/event-stream")


class LineStream(StrangeBot):
    """A line of JSON for each event; the passages come first, as LangChain writes them."""

    path = "/generate"

    def respond(self, request: Request) -> Reply:
        if request.path != self.path or request.method != "POST":
            return MISSING
        question = request.member("prompt")
        if question is None:
            return as_json({"message": "'prompt' is a required property"}, 400)
        number = self.world.number(question)
        documents = [
            {
                "page_content": section.text,
                "metadata": {
                    "source": f"/data/vault/{section.path}",
                    "Header 1": section.title,
                    "Header 2": section.heading,
                },
            }
            for section in self.world.passages(number)
        ]
        text = self.world.answers[number]
        events: list[dict[str, Any]] = [{"type": "context", "documents": documents}]
        events += [
            {"type": "delta", "text": text[start : start + 7]} for start in range(0, len(text), 7)
        ]
        events.append({"type": "done", "tokens": {"input": 812, "output": len(text) // 4}})
        body = "".join(json.dumps(event) + "\n" for event in events)
        return Reply(body.encode(), type="application/x-ndjson")


class QueryTuples(StrangeBot):
    """Asked by GET alone; its passages are lists without keys; its time is in milliseconds."""

    path = "/answer"
    pause = 0.02

    def respond(self, request: Request) -> Reply:
        if request.path != self.path:
            return MISSING
        if request.method != "GET":
            return as_json({"error": "Method Not Allowed"}, 405, Allow="GET")
        question = request.query.get("q")
        if not question:
            return as_json({"error": "missing query parameter 'q'"}, 400)
        started = time.perf_counter()
        time.sleep(self.pause)
        number = self.world.number(question)
        rows = [
            [section.path, section.place, section.text, round(8.5 - place, 2)]
            for place, section in enumerate(self.world.passages(number))
        ]
        elapsed = round((time.perf_counter() - started) * 1000, 3)
        return as_json({"a": self.world.answers[number], "docs": rows, "elapsed": elapsed})


class FormPost(StrangeBot):
    """Takes a form; its paths have backslashes and its headings slashes."""

    path = "/cgi-bin/auskunft"

    def respond(self, request: Request) -> Reply:
        if request.path != self.path:
            return MISSING
        if "x-www-form-urlencoded" not in request.headers.get("content-type", ""):
            return as_json({"error": "Unsupported Media Type"}, 415)
        form = parse_qs(request.body.decode())
        if "frage" not in form:
            return as_json({"error": "Feld frage fehlt"}, 400)
        number = self.world.number(form["frage"][-1])
        context = [
            {
                "document": section.path.replace("/", "\\"),
                "chapter": f"{section.title} / {section.heading}",
                "content": section.text,
            }
            for section in self.world.passages(number)
        ]
        return as_json({"result": {"message": self.world.answers[number]}, "context": context})


class IdsAlone(StrangeBot):
    """Names its passages by ids and tells nothing else of them."""

    path = "/api/reply"

    def respond(self, request: Request) -> Reply:
        if request.path != self.path:
            return MISSING
        question = request.member("question")
        if question is None:
            return as_json({"error": "question is required"}, 400)
        number = self.world.number(question)
        ids = [chunk_id(section) for section in self.world.passages(number)]
        return as_json({"response": self.world.answers[number], "ids": ids})


def chunk_id(section: Section) -> str:
    return f"s-{FERRY.sections.index(section):03d}"


class WebPages(StrangeBot):
    """HTML answers; its sources are addresses of the published pages."""

    path = "/help"

    def respond(self, request: Request) -> Reply:
        if request.path != self.path:
            return MISSING
        question = request.member("message")
        if question is None:
            return as_json({"error": "message parameter cannot be empty"}, 400)
        number = self.world.number(question)
        sources = [
            {
                "href": f"https://ferry.example/docs/{section.path.removesuffix('.md')}.html"
                f"#{section.heading.lower().replace(' ', '-')}",
                "title": f"{section.title} › {section.heading}",
                "snippet": section.text,
            }
            for section in self.world.passages(number)
        ]
        return as_json({"html": self._page(number), "sources": sources})

    def _page(self, number: int) -> str:
        return f"<p>{html.escape(self.world.answers[number])}</p>"

    def true_answers(self, number: int) -> set[str]:
        return {self._page(number), self.world.answers[number]}


class TwoSteps(StrangeBot):
    """Wants a session first, and the question within it."""

    path = "/talk"

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.counter = itertools.count(1)
        super().__init__()

    def respond(self, request: Request) -> Reply:
        if request.path == "/sessions" and request.method == "POST":
            session = f"tk-{next(self.counter):06d}"
            self.sessions.add(session)
            return as_json({"session_id": session}, 201)
        if request.path != self.path:
            return MISSING
        message, session_id = request.member("message"), request.member("session_id")
        if message is None:
            return as_json({"error": "message is required"}, 400)
        if session_id is None:
            text = "session_id is required: create a session with POST /sessions"
            return as_json({"error": text}, 400)
        if session_id not in self.sessions:
            text = f"unknown session_id {session_id}: create a session with POST /sessions"
            return as_json({"error": text}, 404)
        number = self.world.number(message)
        passages = [
            {"path": section.path, "heading": section.place, "text": section.text}
            for section in self.world.passages(number)
        ]
        return as_json({"reply": self.world.answers[number], "passages": passages})


class SourceList(StrangeBot):
    """One text with [n] marks and a list of sources below it."""

    path = "/v1/complete"

    def respond(self, request: Request) -> Reply:
        if request.path != self.path:
            return MISSING
        question = request.member("input")
        if question is None:
            return as_json({"error": {"message": "Missing required parameter: 'input'"}}, 400)
        return as_json({"output": self._text(self.world.number(question))})

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

    def respond(self, request: Request) -> Reply:
        if request.path != self.path:
            return MISSING
        question = request.member("soru")
        if question is None:
            return as_json({"hata": "'soru' alanı zorunludur"}, 400)
        started = time.perf_counter()
        time.sleep(self.pause)
        number = self.world.number(unicodedata.normalize("NFC", question))
        sources = [
            {
                "dosya": unicodedata.normalize("NFD", section.path),
                "başlık": section.place,
                "metin": section.text,
                "puan": f"0,{91 - 7 * place}",
            }
            for place, section in enumerate(self.world.passages(number))
        ]
        took = round(time.perf_counter() - started, 6)
        answer = self.world.answers[number]
        return as_json({"cevap": answer, "kaynaklar": sources, "süre": took})


# Ten odd bots. They answer a plain request; what they send is wrong in one way.


class OddBot(StrangeBot):
    """A plain reply, for those below to spoil."""

    question_key = "question"
    answer_key = "answer"
    list_key = "sources"

    def respond(self, request: Request) -> Reply:
        if request.path != self.path or request.method != "POST":
            return MISSING
        question = request.member(self.question_key)
        if question is None:
            return as_json({"error": f"{self.question_key} is required"}, 400)
        return self.say(self.world.number(question))

    def say(self, number: int) -> Reply:
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

    def say(self, number: int) -> Reply:
        body = super().say(number).body.decode().encode("cp1252")
        return Reply(body, type="application/json; charset=utf-8")

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


def serving(kind: type[StrangeBot]) -> Iterator[StrangeBot]:
    """The bot while a test runs."""
    bot = kind()
    try:
        yield bot
    finally:
        bot.close()
