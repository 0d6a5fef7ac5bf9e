"""All benchmarks, one after the other; Markdown tables on stdout, progress on stderr.

python bench/run_all.py            # about 20 minutes, 1.5 GB of made data in a temporary folder
python bench/run_all.py --quick    # small sizes, about 3 minutes
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
QUICK = {
    "bench_browse": ["--cases", "10000", "--rounds", "3"],
    "bench_compare": ["--cases", "1000", "--rounds", "2"],
    "bench_score_retrieval": ["--cases", "1000,10000", "--rounds", "3"],
    "bench_report": ["--cases", "1000", "--rounds", "2"],
    "bench_run_eval": ["--concurrency", "8,32", "--seconds", "2", "--rounds", "2"],
    "bench_judge": ["--concurrency", "32", "--seconds", "2", "--rounds", "2"],
    "bench_start": ["--rounds", "3"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    options = parser.parse_args()
    failed = []
    for path in sorted(HERE.glob("bench_*.py")):
        words = QUICK.get(path.stem, []) if options.quick else []
        print(f"\n# {path.stem}", flush=True)
        if subprocess.run([sys.executable, str(path), *words]).returncode:
            failed.append(path.stem)
    if failed:
        sys.exit(f"ended with an error: {', '.join(failed)}")


if __name__ == "__main__":
    main()
