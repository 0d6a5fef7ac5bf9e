"""Serve the embedded RAG API: a real bot to evaluate, reachable from this machine only.

In: a folder of Markdown (default: the Python language reference that comes with every interpreter).
Out: an HTTP server; stdout gets one line, ``listening on http://127.0.0.1:PORT``, once it answers.

    python eval/scripts/demo_api.py --port 9000 --k 8
    python eval/scripts/demo_api.py --set chunk_size=400 --set lexical_only=true
    curl -d '{"question": "What does a lambda yield?"}' 'http://127.0.0.1:9000/api/v1/ask?debug=true'
"""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
import storage
from demo.retriever import FOLDER_MODES

if TYPE_CHECKING:
    from demo.bot import Bot
    from demo.index import Index

LARGEST_K = 100


@options.command(how_to_go_on="The index is kept: start the same command again.")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9000,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Allow a --host that other machines can reach. There is no password.",
)
@click.option(
    "--vault",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of Markdown to serve.  [default: the Python language reference]",
)
@click.option(
    "--k",
    type=click.IntRange(1, LARGEST_K),
    default=10,
    help="Chunks to retrieve when a request names no number.",
)
@click.option(
    "--set",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting (repeatable): vector_weight, lexical_weight (of BM25), lexical_only "
    "(true loads no model), chunk_size, embedding_model, threads, abstain_threshold, "
    "history_weight.",
)
@click.option(
    "--folder-mode",
    type=click.Choice(FOLDER_MODES),
    default="off",
    help="Choose folders for each question when a request names none.",
)
@options.cache_dir_option(type=options.FOLDER, help="Where the index and the embeddings are kept.")
@options.verbosity_options
def main(
    host: str, port: int, allow_remote: bool, verbose: bool, quiet: bool, **settings: Any
) -> None:
    """Serve an embedded RAG bot over HTTP, to try the toolkit on or to compare settings with.

    POST /api/v1/ask takes {question, k, vaults, folders, folder_mode, history, session};
    ?debug=true adds what was retrieved. GET /health tells what is served. Stop it with Ctrl-C.

    A follow-up is searched twice: as it stands, and with the rarer terms of the last three
    questions behind it (rewritten_query). A term of the last question counts history_weight, an
    older one that to the power of its age. history holds messages {role, content}; with session
    alone the server remembers the questions.
    """
    from clients.demo_server import ENDS_WITH_STDIN
    from demo.settings import demo_settings

    settings |= demo_settings(settings.pop("set"))  # vault and cache_dir may be among them
    over = threading.Event()
    if os.environ.get(ENDS_WITH_STDIN):
        threading.Thread(target=_stop_with_stdin, args=(over,), daemon=True).start()
    _check_host(host, allow_remote, quiet)
    _log_to_stderr(verbose)
    _warn_in_words(quiet)
    try:
        embedder = None if settings["lexical_only"] else _embedder(settings)
        index = _index(embedder, settings, quiet)
        _serve(_bot(index, settings), host, port)
    except KeyboardInterrupt:
        if not over.is_set():
            raise


def _stop_with_stdin(over: threading.Event) -> None:
    """Interrupt the main thread when stdin ends; ``over`` tells it that this was meant."""
    # Raw reads: a buffered reader would hold a lock that the interpreter wants at its end.
    while os.read(0, 4096):
        pass
    over.set()
    os.kill(os.getpid(), signal.SIGTERM)


def _log_to_stderr(verbose: bool) -> None:
    """Requests and faults of the server; libraries that log are none of the reader's business."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("demo")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logger.propagate = False


def _warn_in_words(quiet: bool) -> None:
    """A warning is one line without the place in the code."""
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    if quiet:
        warnings.simplefilter("ignore")


def _check_host(host: str, allow_remote: bool, quiet: bool) -> None:
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if local:
        return
    if not allow_remote:
        raise click.UsageError(
            f"--host {host} can be reached from other machines, and the API asks for no password. "
            "Add --allow-remote if you want that."
        )
    if not quiet:
        options.say(f"Warning: anyone who reaches {host} can read this vault.")


def _embedder(settings: dict[str, Any]) -> Any:
    from clients.embedder import Embedder, EmbeddingUnavailable

    try:
        return Embedder(settings["embedding_model"], settings["cache_dir"], settings["threads"])
    except EmbeddingUnavailable as error:
        raise storage.StorageError(f"{error} Or use --set lexical_only=true.") from None


def _index(embedder: Any, settings: dict[str, Any], quiet: bool) -> Index:
    from clients.embedder import EmbeddingUnavailable
    from demo.index import build_index
    from demo.vault import python_reference, read_folder

    vault = settings["vault"]
    notes = python_reference() if vault is None else read_folder(vault)

    def tell(done: int, texts: int) -> None:
        if not quiet:
            options.say(f"Embedded {done} of {texts} passages (kept for the next start).")

    try:
        return build_index(
            notes,
            chunk_size=settings["chunk_size"],
            embedder=embedder,
            cache_dir=settings["cache_dir"],
            progress=tell,
        )
    except EmbeddingUnavailable as error:
        raise storage.StorageError(f"{error} Or use --set lexical_only=true.") from None


def _bot(index: Index, settings: dict[str, Any]) -> Bot:
    from demo.answerer import Answerer
    from demo.bot import Bot
    from demo.retriever import Retriever

    try:
        retriever = Retriever(
            index,
            vector_weight=settings["vector_weight"],
            lexical_weight=settings["lexical_weight"],
        )
    except ValueError:
        raise click.UsageError(
            "--set: give lexical_weight or, unless lexical_only=true, vector_weight above 0."
        ) from None
    answerer = Answerer(
        index.lexical.rarity,
        vector_weight=retriever.vector_weight,
        threshold=settings["abstain_threshold"],
    )
    return Bot(
        retriever,
        answerer,
        k=settings["k"],
        folder_mode=settings["folder_mode"],
        history_weight=settings["history_weight"],
    )


def _serve(bot: Bot, host: str, port: int) -> None:
    from demo.bot import BotServer

    try:
        server = BotServer(host, port, bot)
    except OSError as error:
        raise storage.StorageError(
            f"Cannot listen on {host}:{port} ({error.strerror or error}): "
            "choose another --port, or --port 0 for a free one."
        ) from None
    with server:
        click.echo(f"listening on {server.url}")
        server.serve_forever()


if __name__ == "__main__":
    main()
