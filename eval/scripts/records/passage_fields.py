"""The usual names of a passage's fields in answers, tools' results and other tools' files: data.

TEXTS[0]                     # "text"
RANKED["text"]["snippet"]    # 8.0: the higher, the better a name fits
"""

from __future__ import annotations


def ranked(*groups: str) -> dict[str, float]:
    """The weight of each name in groups such as ``"name other_name 8"``, best first."""
    table: dict[str, float] = {}
    for group in groups:
        *names, weight = group.split()
        table |= dict.fromkeys(names, float(weight))
    return table


RANKED = {
    "text": ranked(
        "text page_content chunk_text passage_text 9",
        "content document_content passage chunk snippet body raw_text excerpt 8",
        "document quote 5",
    ),
    "file": ranked(
        "rel_path file_path relative_path filepath source_path 10",
        "path source file source_file filename file_name 8",
        "uri doc_uri source_uri url href link doc document document_name doc_name 6",
        "page name doc_id document_id 4",
        "title 2",
    ),
    "heading": ranked(
        "heading_path header_path headings section_path breadcrumb breadcrumbs heading_trail 10",
        "heading header headers section section_title chapter 8",
        "anchor title 4",
    ),
    "chunk_id": ranked("chunk_id node_id passage_id 10", "id uuid 8", "point_id key hash 5"),
    "doc_id": ranked("doc_id document_id ref_doc_id 10", "file_id source_id parent_id 7"),
    "score": ranked(
        "score similarity relevance relevance_score similarity_score rerank_score score_final 9",
        "_score 8",
        "certainty 5",
    ),
    "page": ranked("page_label 10", "page page_number page_no 8"),
}


def _at_least(weight: float, names: dict[str, float]) -> tuple[str, ...]:
    return tuple(name for name, fits in names.items() if fits >= weight)


TEXTS = _at_least(5, RANKED["text"])
PLACES = _at_least(6, RANKED["file"])
"""Without ids and titles, which are no places."""
HEADINGS = _at_least(8, RANKED["heading"])
IDS = _at_least(8, RANKED["chunk_id"])
SCORES = _at_least(8, RANKED["score"])
FILE = r"[^\s@|<>\"]*[\w)]\.[A-Za-z][A-Za-z0-9]{0,5}"
"""The pattern of a file with its folders, and of a page of a site."""
PAGES = _at_least(8, RANKED["page"])
