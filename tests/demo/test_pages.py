"""Gold by page survives another chunking: the recall of two chunk sizes is what a hand counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rows import each_row

from demo.bot import AskRequest, Bot
from demo.index import build_index
from demo.retriever import Retriever
from documents.vault import read_vault
from ragmetrics.gold import gold_of, match_chunks
from records.cases import GoldSupport, TestCase
from records.results import RetrievedChunk

pytest.importorskip("pypdf")

from tests.documents.pdf_files import pdf  # it needs pypdf

PAGES = (
    ("Books are lent for four weeks.", "A loan is renewed twice at the desk."),
    ("Films are lent for seven days.", "A film is renewed once by telephone."),
    ("A reminder costs two euros.", "The card is locked after three reminders."),
    ("The reading room opens at nine.", "Drinks need a bottle with a lid."),
)
ASKED = (
    ("How long are films lent?", GoldSupport("rules.pdf", page=2)),
    ("How often is a loan renewed?", GoldSupport("rules.pdf", page=1)),
    (
        "What does a reminder cost?",
        GoldSupport("rules.pdf", snippets=["A reminder costs two euros"]),
    ),
    ("When does the reading room open?", GoldSupport("rules.pdf", page=3)),  # a wrong label
)


@each_row("size", [45, 1200])
def test_pages_are_found_at_every_chunk_size(tmp_path: Path, size: int) -> None:
    """The first passage is of page 2, 1, 3 and 4, whatever the size: 3 of 4 labels are met."""
    (tmp_path / "rules.pdf").write_bytes(pdf(PAGES))
    index = build_index(read_vault(tmp_path).notes, size)
    assert len(index.chunks) == (8 if size == 45 else 4)
    bot = Bot(Retriever(index, 0.0))
    ranks = []
    for question, support in ASKED:
        response = bot.ask(AskRequest(question, k=1), debug=True)
        chunks = [
            RetrievedChunk(
                item["chunk_id"], rel_path=item["rel_path"], text=item["text"], page=item["page"]
            )
            for item in response["retrieved"]
        ]
        gold = gold_of(TestCase("a", question, gold_supports=[support]), "auto")
        assert gold is not None
        ranks += match_chunks(gold, chunks).first
    assert ranks == [1, 1, 1, None]
