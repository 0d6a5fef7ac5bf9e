"""What explains the judged scores of one answer: claims, facts and chunks with their verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judging.casescores import Calls, Judgement, blames

Entry = dict[str, Any]


def evidence_of(calls: Calls) -> dict[str, Any]:
    """``claims``, ``facts``, ``chunks``, ``questions``, ``reply``: those that were judged."""
    found: dict[str, Any] = {}
    blamed = blames(calls)
    if claims := _rows(calls.get("groundedness"), "claims"):
        for row in claims:
            row |= {"blame": blamed[row["id"]]} if row["id"] in blamed else {}
        found["claims"] = claims
    if facts := _rows(calls.get("correctness"), "facts"):
        held = {row["id"]: row for row in _rows(calls.get("context_recall"), "facts")}
        for row in facts:
            row |= {"in_contexts": held[row["id"]]["verdict"]} if row["id"] in held else {}
        found["facts"] = facts
    elif facts := _rows(calls.get("context_recall"), "facts"):
        found["facts_in_contexts"] = facts
    if claims := _rows(calls.get("answer_correctness"), "claims"):
        found["claims_in_reference"] = claims
    chunks = calls.get("context_precision")
    if chunks is not None and chunks.status == "ok":
        names = _chunk_ids(chunks)
        found["chunks"] = [
            {"chunk_id": names.get(entry["id"], ""), "verdict": entry["verdict"]}
            for entry in chunks.entries
        ]
    relevancy = calls.get("answer_relevancy")
    if relevancy is not None and relevancy.status == "ok":
        found["questions"] = [text for part in relevancy.extra("questions") for text in part]
    reply = calls.get("abstained_judged")
    if reply is not None and reply.status == "ok":
        found["reply"] = reply.verdicts[0]
    failed = {name: one.reason for name, one in calls.items() if one.status == "failed"}
    return found | ({"failed": failed} if failed else {})


def _chunk_ids(one: Judgement) -> dict[str, str]:
    contexts = (c for line in one.lines for c in line["input"].get("contexts", ()))
    return {context["id"]: context.get("chunk_id", "") for context in contexts}


def _rows(one: Judgement | None, items: str) -> list[Entry]:
    """Each claim or fact with its verdict, quote and reason; [] when there is no judgement."""
    if one is None or one.status != "ok":
        return []
    texts: Mapping[str, Entry] = {
        item["id"]: item for line in one.lines for item in line["input"].get(items, ())
    }
    names = _chunk_ids(one)
    rows = []
    for entry in one.entries:
        item = texts.get(entry["id"], {})
        row = {"id": entry["id"], "text": item.get("text", ""), "verdict": entry["verdict"]}
        row |= {name: entry[name] for name in ("quote", "reason") if entry.get(name)}
        if (chunk := names.get(entry.get("context") or "")) is not None:
            row["chunk_id"] = chunk
        if item.get("span"):
            row["span"] = item["span"]
        rows.append(row)
    return rows
