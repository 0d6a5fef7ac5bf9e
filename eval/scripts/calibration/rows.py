"""Claims that people labelled outside of any run, judged now: how good is a judge on them?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from calibration.claims import Judged, JudgedClaim, Key, Passage, claim_slices, support_score
from clients.judge_types import Judge
from humanlabels.own import read_own
from humanlabels.rows import LabelledClaim
from humanlabels.sets import SUPPORT
from humanlabels.support import FILE
from judging.tasks import GROUNDEDNESS, Material, make_task
from storage import StorageError

SETS = {one.key: one for one in SUPPORT}
_SALT = b"rows of people"


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


def file_of(path: Path | None, data: Path | None, name: str | None) -> Path:
    """The file behind the rows, for its hash."""
    if path is not None:
        return path
    assert data is not None
    assert name is not None
    return data / SETS[name].folder / FILE


def judged_rows(rows: Iterable[LabelledClaim], judge: Judge) -> tuple[Judged, dict[Key, int]]:
    """Every row with the judge's verdict, and people's label of it.

    A row that the judge fails on is counted and left out. One call a row: a judge never sees two
    rows at once.
    """
    claims: list[JudgedClaim] = []
    human: dict[Key, int] = {}
    failed = 0
    prompts = {}
    for number, row in enumerate(rows, 1):
        contexts = [
            {"id": f"c{place}", "chunk_id": "", "text": text}
            for place, text in enumerate(row.contexts, 1)
        ]
        lead = {"lead": f"{row.lead} "} if row.lead else {}
        material = Material(
            question=row.question,
            contexts=contexts,
            claims=[{"id": "1", "text": row.claim} | lead],
        )
        task = make_task(GROUNDEDNESS, material, salt=_SALT)
        prompts[str(task.prompt)] = task.prompt
        found = judge.ask(task)
        entries = [] if found.data is None else found.data["verdicts"]
        if not entries:
            failed += 1
            continue
        said = entries[0]
        local = judge.identity.provider == "local"
        text = f"{row.lead} {row.claim}" if row.lead else row.claim
        claim = JudgedClaim(
            f"row {number}",
            0,
            "1",
            row.claim,
            said["verdict"],
            support_score(text, list(row.contexts), row.question) if local else None,
            question=row.question,
            contexts=tuple(Passage(one["id"], "", one["text"]) for one in contexts),
            quote=said.get("quote", ""),
            reason=said.get("reason", ""),
            source=row.group,
            slices=claim_slices(None, row.claim),
        )
        claims.append(claim)
        human[claim.key] = row.supported
    judged = Judged(
        claims,
        [judge.identity.to_dict()],
        [
            {"name": one.name, "version": one.version, "sha256": one.sha256}
            for one in prompts.values()
        ],
        failed,
    )
    return judged, human
