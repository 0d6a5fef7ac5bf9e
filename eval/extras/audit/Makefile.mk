# The target of the audit of documents; the Makefile of the toolkit includes it.
VAULT ?= demo
override VAULT := $(value VAULT)
export VAULT

.PHONY: audit
## Audit the documents (eval/extras/audit)
audit: setup ## what is wrong with the documents: make audit VAULT=path/to/notes
	$(PY) eval/extras/audit/audit_documents.py "$$VAULT" $(ARGS)
