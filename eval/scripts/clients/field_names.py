"""How bots name the fields of their answers, with how well each name fits: data for guess.py."""

from __future__ import annotations

from collections.abc import Mapping


def _ranked(text: str) -> dict[str, float]:
    """``"a b 9, c 5"`` as a table: the higher, the better the name fits."""
    table: dict[str, float] = {}
    for group in text.split(","):
        *names, weight = group.split()
        table |= dict.fromkeys(names, float(weight))
    return table


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _grouped(groups: Mapping[str, str]) -> dict[str, str]:
    return {name: group for group, names in groups.items() for name in names.split()}


ANSWER = _ranked(
    "answer final_answer 10, response reply output_text generated_text response_text 9,"
    "completion generation 8, result output 7, text content 6, message 5"
)
NO_ANSWER = _set(
    "question query prompt input user id model status created type role error object reason url"
    " path version session trace log hash lang language event kind title code detail"
)
DELTA = ANSWER | _ranked("delta token 10, data chunk 8")
PASSAGES = _ranked(
    "retrieved source_nodes source_documents retrieved_documents retrieved_contexts 10, sources"
    " passages chunks contexts context documents docs nodes hits search_results 9, results matches"
    " evidence snippets 7, citations references cited 5, data items 3"
)
TEXT = _ranked(
    "text page_content chunk_text passage_text 9, content passage chunk snippet body raw_text"
    " excerpt 8, document quote 5"
)
FILE = _ranked(
    "rel_path file_path relative_path filepath source_path 10, path source file filename file_name"
    " 8, uri url link doc document document_name doc_name 6, page name doc_id document_id 4,"
    " title 2"
)
HEADING = _ranked(
    "heading_path header_path headings section_path breadcrumb breadcrumbs heading_trail 10,"
    "heading header section section_title chapter 8, anchor title 4"
)
CHUNK_ID = _ranked("chunk_id node_id passage_id 10, id uuid 8, point_id key hash 5")
DOC_ID = _ranked("doc_id document_id ref_doc_id 10, file_id source_id parent_id 7")
SCORE = _ranked(
    "score similarity relevance relevance_score similarity_score rerank_score score_final 9,"
    "certainty 5"
)
SCORES = {
    "score_vector": _ranked("vector_score dense_score embedding_score score_vector 10"),
    "score_lexical": _ranked("bm25 bm25_score lexical_score sparse_score score_lexical 10"),
    "score_final": SCORE,
}
RANK = _ranked("rank position 8")
INDEX = _ranked("index number n marker ref 9, id 5")
CITED = _ranked(
    "citations references cited refs footnotes 10, cited_sources cited_ids citation_ids"
    " used_sources sources_used 9"
)
ABSTAINED = _set(
    "abstained abstain refused refusal declined no_answer unanswered unanswerable not_found"
    " is_refusal out_of_scope"
)
ANSWERED = _set(
    "answered answerable is_answerable has_answer answer_found found in_scope is_answered"
)
FLAGS = _set("policy_flags flags safety_flags moderation_flags guardrail_flags")
TIME_WORDS = _set("latency took elapsed duration time timing timings runtime")
OTHER_MONEY = _set("eur cents gbp")
UNITS = _grouped(
    {
        "ms": "ms millis milliseconds",
        "s": "s sec secs seconds",
        "": "ns us nanos micros minutes timestamp at",
    }
)
STAGES = _grouped(
    {
        "retrieve": "retrieve retrieval retriever search vector",
        "generate": "generate generation generator llm completion inference",
        "rerank": "rerank reranker reranking",
        "total": "total overall",
    }
)
TOKENS = _grouped(
    {
        "prompt_tokens": "prompt input in",
        "completion_tokens": "completion output out generated",
        "total_tokens": "total",
    }
)
QUESTION = _ranked(
    "question query 10, user_query user_question query_str 9, q prompt user_input user_message 8,"
    "message input text 7, search ask utterance 6, content 3"
)
"""Fields of a request that hold the question."""
TOP_K = _set("k top_k topk similarity_top_k n_results num_results max_results limit")
SESSION = _set(
    "session session_id conversation_id thread_id chat_id user_id sessionid conversationid"
    " request_id"
)
HISTORY = _set("history chat_history message_history conversation_history previous_messages")
"""Fields of a request that hold what was said before."""
ASKING = _set(
    "ask query chat answer answers rag question questions completions invoke generate search"
    " assistant run respond responses"
)
NOT_ASKING = _set(
    "feedback health healthz ready ingest upload documents document delete remove login logout"
    " register token auth users user admin logs log embed embeddings index reindex train webhook"
    " webhooks settings config rate vote cancel tokenize title rename moderations"
)
"""Words of paths that store or change something, or answer no question: these are never tried."""
