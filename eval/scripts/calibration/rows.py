"""Claims that people labelled outside of any run, judged now: how good is a judge on them?"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from calibration.claims import Judged, JudgedClaim, Key, Passage, claim_slices, support_score
from clients import judge_prompts
from clients.judge_types import Judge
from clients.pool import ask_all
from humanlabels.own import read_own
from humanlabels.rows import LabelledClaim
from humanlabels.sets import SUPPORT
from humanlabels.support import FILE
from judging.asking import Opinion, ask
from judging.tasks import GROUNDEDNESS, Material
from ragmetrics.stats import generator
from storage import StorageError

SETS = {one.key: one for one in SUPPORT}


def load(path: Path | None, data: Path | None, name: str | None) -> list[LabelledClaim]:
    """The rows of a file, or of a known set below the data folder. Raises StorageError."""
    if path is not None:
        return read_own(path)
    if data is None or name is None:
        raise StorageError("--set needs --data DIR (or RAG_EVAL_DATA), the folder of the sets.")
    if name not in SETS:
        raise StorageError(f"--set {name}: unknown; use one of: {', '.join(SETS)}.")
    known = SETS[name]
    if not known.present(data):
        raise StorageError(f"{data / known.folder}: no such folder; {known.title} lies there.")
    return list(known.load(data))


def drawn(rows: list[LabelledClaim], limit: int | None, seed: int) -> list[LabelledClaim]:
    """At most ``limit`` rows, drawn at random, in their order; all for None."""
    if limit is None or limit >= len(rows):
        return rows
    chosen = generator(seed, "rows").permutation(len(rows))[:limit]
    return [rows[place] for place in sorted(chosen.tolist())]


def file_of(path: Path | None, data: Path | None, name: str | None) -> Path:
    """The file behind the rows, for its hash."""
    if path is not None:
        return path
    assert data is not None
    assert name is not None
    return data / SETS[name].folder / FILE


def judged_rows(
    rows: Iterable[LabelledClaim], judge: Judge, salt: bytes, workers: int
) -> tuple[Judged, dict[Key, int]]:
    """Every row with the judge's verdict, and people's label of it.

    A row that the judge fails on is counted and left out. A row is a question of its own: a judge
    never sees two of them at once.
    """
    numbered = list(enumerate(rows, 1))

    def opinion(job: tuple[int, LabelledClaim]) -> tuple[int, LabelledClaim, Opinion]:
        number, row = job
        return number, row, ask(judge, GROUNDEDNESS, _material(row), salt=salt)

    answers = ask_all(numbered, opinion, workers, threading.Event())
    found = sorted(answers, key=lambda answer: answer[0])
    local = judge.identity.provider == "local"
    claims = [
        _claim(number, row, said, local=local) for number, row, said in found if not said.failure
    ]
    decided = {claim.case_id for claim in claims}
    human = {
        (f"row {number}", 0, "1"): row.supported
        for number, row, _ in found
        if f"row {number}" in decided
    }
    prompt = judge_prompts.load(GROUNDEDNESS.prompt).id
    known = {"name": prompt.name, "version": prompt.version, "sha256": prompt.sha256}
    failed = len(found) - len(claims)
    return Judged(claims, [judge.identity.to_dict()], [known], failed), human


def _material(row: LabelledClaim) -> Material:
    contexts = [{"id": f"c{place}", "text": text} for place, text in enumerate(row.contexts, 1)]
    lead = {"lead": row.lead} if row.lead else {}
    return Material(
        question=row.question, contexts=contexts, claims=[{"id": "1", "text": row.claim} | lead]
    )


def _claim(number: int, row: LabelledClaim, said: Opinion, *, local: bool) -> JudgedClaim:
    """A row as a claim of a run: its number names the case, its group is the source."""
    (entry,) = said.entries
    return JudgedClaim(
        f"row {number}",
        0,
        "1",
        row.claim,
        entry["verdict"],
        support_score(row.claim, list(row.contexts), row.question, row.lead) if local else None,
        question=row.question,
        contexts=tuple(Passage(f"c{n}", "", one) for n, one in enumerate(row.contexts, 1)),
        quote=entry.get("quote") or "",
        reason=entry.get("reason") or "",
        source=row.group,
        slices=claim_slices(None, row.claim),
    )
