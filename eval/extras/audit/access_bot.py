"""Serve a small bot with roles, which keeps them apart or not: to see what check_access.py does.

In: the documents of example/vault and the roles of example/roles.toml, beside this script. Out: an
HTTP server; the header X-Role says who asks. With --hole cache the answers are kept for all roles
together; with --hole FILE everyone may see this file.

    python eval/extras/audit/access_bot.py --hole cache
    cd eval/extras/audit/example && python ../check_access.py vault --roles roles.toml \\
        --eval-set eval_set.jsonl --api-url http://127.0.0.1:9100
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options

if TYPE_CHECKING:
    from documents.sections import Note
    from extras.audit.access import Role

EXAMPLE = Path(__file__).with_name("example")
CACHE = "cache"

Ask = Callable[[str, str], dict[str, Any]]
"""The answer to a question of a role."""


def bot_of(notes: Sequence[Note], roles: Sequence[Role], hole: str = "") -> Ask:
    """A bot that answers each role from its own documents alone, but for its hole."""
    from demo.bot import AskRequest, Bot
    from demo.index import build_index
    from demo.retriever import Retriever

    bots = {}
    for role in roles:
        own = [note for note in notes if role.sees(note.rel_path) or note.rel_path == hole]
        bots[role.name] = Bot(Retriever(build_index(own, 1200), 0.0))
    answers: dict[str, dict[str, Any]] = {}

    def ask(role: str, question: str) -> dict[str, Any]:
        bot = bots[role]
        if hole == CACHE and question in answers:
            return answers[question]
        answers[question] = bot.ask(AskRequest(question, k=3), debug=True)
        return answers[question]

    return ask


def server_of(ask: Ask, port: int = 0) -> ThreadingHTTPServer:
    """The bot over HTTP, for programs of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            try:
                answer = ask(self.headers.get("X-Role", ""), str(body["question"]))
            except KeyError:
                self._send({"error": "the header X-Role names no role"}, 403)
            else:
                self._send(answer)

        def _send(self, answer: Mapping[str, Any], status: int = 200) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's
            """Requests are not logged."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256  # with five, many calls at once wait a second and knock again

    return Server(("127.0.0.1", port), Handler)


@options.command(help=__doc__)
@click.option("--port", type=click.IntRange(0, 65535), default=9100, help="0 takes a free one.")
@click.option("--hole", metavar="cache|FILE", help="What leaks: the cache, or a file for all.")
def main(port: int, hole: str | None) -> None:
    """Serve the example until Ctrl-C."""
    from documents.vault import read_vault
    from extras.audit.access import read_roles
    from records.errors import StorageError

    roles = read_roles(EXAMPLE / "roles.toml")
    notes = read_vault(EXAMPLE / "vault").notes
    if hole and hole != CACHE and hole not in {note.rel_path for note in notes}:
        names = ", ".join(note.rel_path for note in notes)
        raise StorageError(f"--hole {hole}: no such file; there are {CACHE}, {names}.")
    with server_of(bot_of(notes, roles, hole or ""), port) as server:
        click.echo(f"listening on http://127.0.0.1:{server.server_address[1]}")
        server.serve_forever()


if __name__ == "__main__":
    main()
