#!/bin/sh
# Every night: ask the bot, score, commit metrics.json, look at the history. Exit code 1 when a
# metric calls for a look; cron then mails what was printed (set MAILTO). Put into the crontab:
#
#   MAILTO=rag-team@example.org
#   17 3 * * *  API=http://localhost:9000 /srv/rag-eval/docs/examples/nightly.sh
#
set -eu
cd "$(dirname "$0")/../.."
: "${API:?say which bot to ask, such as API=http://localhost:9000}"
PYTHON="${PYTHON:-.venv/bin/python}"
RUN="nightly-$(date -u +%Y-%m-%d)"

$PYTHON eval/scripts/run_eval.py --api-url "$API" --run-id "$RUN" --store-full-text --quiet
$PYTHON eval/scripts/eval_suite.py --run "$RUN" --quiet >/dev/null
git add "eval/results/$RUN/metrics.json" "eval/results/$RUN/config.json"
git commit --quiet --message "Metrics of $RUN" -- "eval/results/$RUN"
exec "$PYTHON" eval/scripts/track_metrics.py --fail-on any
