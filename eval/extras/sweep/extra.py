"""Several runs as one question: races of settings, and runs that end when they are decided."""

OPTIONS = {"run_eval": "cli:RUN_EVAL"}
BLOCKS = {"sweep": "page:report_blocks"}
RUN_KEYS = {"pace.sweep": "record"}
