"""Serve the embedded RAG API: a real bot to evaluate, reachable from this machine only.

In: a folder of Markdown, text, HTML and PDF (default: the Python language reference that comes with
every interpreter).
Out: an HTTP server; stdout gets one line, ``listening on http://127.0.0.1:PORT``, once it answers.

    python eval/scripts/demo_api.py --vault path/to/notes
    python eval/scripts/demo_api.py --set chunk_size=400 --set lexical_only=true
    curl -d '{"question": "What does a lambda yield?"}' 'http://127.0.0.1:9000/api/v1/ask?debug=true'
"""

from __future__ import annotations

import os
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

import click

import options
from records import opt
from records.errors import StorageError


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of demo_api.py."""

    port: int = opt.value("0 takes a free one.", default=9000, low=0, high=65535)
    vault: Path | None = opt.value(
        "Folder of documents to serve.  [default: the Python language reference]", path="folder"
    )
    pairs: tuple[str, ...] = opt.pairs(
        "Change a setting (repeatable): lexical_only (true: BM25 alone, no model), vector_weight "
        "(share of the embeddings in a score), chunk_size (most characters of a chunk)."
    )
    cache_dir: Path = opt.cache_dir("Where the embeddings are kept.")
    quiet: bool = opt.quiet()


@options.script(ServeOptions, how_to_go_on="The embeddings are kept: start the same command again.")
def main(asked: ServeOptions) -> None:
    """Serve an embedded RAG bot over HTTP, to try the toolkit on or to compare settings with.

    POST /api/v1/ask takes {question, k, vaults, folders, folder_mode, history}; ?debug=true adds
    what was retrieved. Stop it with Ctrl-C.

    history takes messages {role, content}: a follow-up is searched twice, unchanged and with the
    rarer terms of the last three questions behind it (rewritten_query).
    """
    from clients.demo_server import ENDS_WITH_STDIN
    from clients.embedder import Embedder, EmbeddingUnavailable
    from demo.bot import Bot, BotServer
    from demo.index import build_index
    from demo.retriever import Retriever
    from demo.settings import SETTINGS, USUAL
    from demo.vault import python_reference
    from documents.vault import Vault, read_vault
    from records.settings import from_pairs

    settings = vars(asked) | USUAL | from_pairs(asked.pairs, SETTINGS)
    if os.environ.get(ENDS_WITH_STDIN):
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    if asked.quiet:
        warnings.simplefilter("ignore")

    vault = settings["vault"]
    read = Vault(python_reference()) if vault is None else read_vault(Path(vault))
    for problem in read.unreadable:
        warnings.warn(str(problem), stacklevel=1)
    try:
        embedder = None if settings["lexical_only"] else Embedder(None, Path(settings["cache_dir"]))
        if embedder is not None:
            embedder.console = options.stderr_console(quiet=asked.quiet)
        index = build_index(read.notes, settings["chunk_size"], embedder)
    except EmbeddingUnavailable as error:
        raise StorageError(f"{error} Or use --set lexical_only=true.") from None
    bot = Bot(Retriever(index, settings["vector_weight"]))
    try:
        server = BotServer(asked.port, bot)
    except OSError as error:
        raise StorageError(
            f"Cannot listen on port {asked.port} ({error.strerror or error}): "
            "choose another --port, or --port 0 for a free one."
        ) from None
    with server:
        click.echo(f"listening on {server.url}")
        server.serve_forever()


def _end_with_stdin() -> None:
    # Raw reads: a buffered reader would hold a lock that the interpreter wants at its end.
    while os.read(0, 4096):
        pass
    os._exit(0)  # nothing is half-written: the cache of embeddings has transactions


if __name__ == "__main__":
    main()
