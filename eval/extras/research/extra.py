"""What papers use: TREC, BEIR and RAGTruth files, tests of a judge with known answers."""

OPTIONS = {
    "convert_data": "cli:CONVERT_DATA",
    "judge_answers": "cli:JUDGE_ANSWERS",
    "judge_pairs": "cli:JUDGE_PAIRS",
    "label_eval": "cli:LABEL_EVAL",
}

FORMATS = {"beir": "beir", "ragtruth": "ragtruth", "trec": "trec"}
