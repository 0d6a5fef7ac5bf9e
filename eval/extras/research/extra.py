"""What papers use: TREC, BEIR and RAGTruth files, metrics of judged pools, tests of a judge."""

OPTIONS = {"convert_data": "cli:CONVERT_DATA"}

FORMATS = {"beir": "beir", "ragtruth": "ragtruth", "trec": "trec"}
