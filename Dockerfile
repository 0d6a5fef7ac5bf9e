# The toolkit in an image: CPU only, not root. Set, labels and results lie in a folder that is mounted:
#   docker build -t rag-eval .
#   docker run --rm -v "$PWD/rag-eval:/evals" rag-eval eval_suite.py --api-url http://bot:8000
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    RAG_EVAL_HOME=/evals

WORKDIR /opt/rag-eval

# Packages first: this layer stays as long as the pins do.
COPY requirements.txt requirements-torch.txt ./
RUN pip install --no-deps --index-url https://download.pytorch.org/whl/cpu -r requirements-torch.txt \
    && pip install --no-deps --require-hashes -r requirements.txt

COPY eval eval
COPY eval_set.jsonl LICENSE NOTICE ./

RUN useradd --create-home --uid 1000 rag && mkdir /evals && chown rag /evals
USER rag
VOLUME /evals

ENTRYPOINT ["/bin/sh", "-c", "script=$1; shift; exec python /opt/rag-eval/eval/scripts/$script \"$@\"", "rag-eval"]
CMD ["eval_suite.py", "--help"]
