"""The one module that all scripts share: records, run folders, atomic files.

A run is a folder ``eval/results/<run_id>/`` with config.json (its settings), results.jsonl (a line
a case, in eval-set order) and metrics.json (a section a scorer; made to be committed). This module
exports the records and the file primitives of ``records/``.

    from storage import ResultsWriter, RunConfig, TestResult, iter_results

    writer = ResultsWriter(output_dir="eval/results", run_id="own-bot-1")
    config = RunConfig(k=5, folder_mode="on_with_fallback")
    writer.write_config(config, eval_set_commit_hash="abc123")
    result = TestResult(test_case_id="test_001", answer="Within 30 days.")
    writer.write_result(result, store_full_text=False)
    for result in iter_results(writer.finish(["test_001"])):
        print(result.answer)
"""

from __future__ import annotations

from records.asked import asked_counts, asked_of, count_results, missing_remark
from records.cases import (
    CATEGORIES,
    GoldFact,
    GoldSupport,
    Labels,
    TestCase,
    canonical,
    case_from_dict,
    iter_cases,
)
from records.errors import Problem, StorageError
from records.files import (
    JsonlWriter,
    check_schema,
    cut_torn_tail,
    git_commit,
    json_bytes,
    locked,
    read_json,
    replace_bytes,
    replace_json,
    scratch_folder,
    sha256_file,
)
from records.labels import labels_sha256, read_cases, read_labels, unknown_labels
from records.lines import iter_lines
from records.metrics import rounded, section_names, update_metrics
from records.results import (
    SCHEMA,
    TEXT_LIMIT,
    ErrorInfo,
    FolderSelection,
    Reference,
    RetrievedChunk,
    RunConfig,
    TestResult,
    iter_results,
)
from records.runs import (
    CACHE_DIR,
    CONFIG,
    EVAL_SET,
    GATE,
    JUDGE_CACHE,
    LABELS_DIR,
    PARTIAL,
    REPORT,
    RESULTS,
    RESULTS_DIR,
    ROOT,
    VERDICTS,
    VERSION,
    ResultsWriter,
    config_hash,
    find_run,
    own_file,
    read_config,
    results_file,
)

__all__ = [
    "CACHE_DIR",
    "CATEGORIES",
    "CONFIG",
    "EVAL_SET",
    "GATE",
    "JUDGE_CACHE",
    "LABELS_DIR",
    "PARTIAL",
    "REPORT",
    "RESULTS",
    "RESULTS_DIR",
    "ROOT",
    "SCHEMA",
    "TEXT_LIMIT",
    "VERDICTS",
    "VERSION",
    "ErrorInfo",
    "FolderSelection",
    "GoldFact",
    "GoldSupport",
    "JsonlWriter",
    "Labels",
    "Problem",
    "Reference",
    "ResultsWriter",
    "RetrievedChunk",
    "RunConfig",
    "StorageError",
    "TestCase",
    "TestResult",
    "asked_counts",
    "asked_of",
    "canonical",
    "case_from_dict",
    "check_schema",
    "config_hash",
    "count_results",
    "cut_torn_tail",
    "find_run",
    "git_commit",
    "iter_cases",
    "iter_lines",
    "iter_results",
    "json_bytes",
    "labels_sha256",
    "locked",
    "missing_remark",
    "own_file",
    "read_cases",
    "read_config",
    "read_json",
    "read_labels",
    "replace_bytes",
    "replace_json",
    "results_file",
    "rounded",
    "scratch_folder",
    "section_names",
    "sha256_file",
    "unknown_labels",
    "update_metrics",
]
