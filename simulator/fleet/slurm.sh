#!/usr/bin/env bash
#SBATCH --job-name=chargeproof-sweep
#SBATCH --array=1-64
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00
#SBATCH --output=sweep-%A-%a.log
# To merge the results afterwards: chargeproof sweep merge "$SHARDS"/*.json --out night.json
set -uo pipefail

SHARDS=${SHARDS:-$SLURM_SUBMIT_DIR/shards}
NIGHT=${NIGHT:?a text such as "$(git rev-parse HEAD) $(date -u +%F)", the same for all tasks}
mkdir -p "$SHARDS"

chargeproof sweep --night "$NIGHT" --seeds "${SEEDS:-1000000}" --shard auto --jobs "$SLURM_CPUS_PER_TASK" \
    --out "$SHARDS/$SLURM_ARRAY_TASK_ID.json" --save "$SHARDS/failures"
code=$?

# A violated invariant (1) is a result. With 5 the machine is not deterministic or cannot write: run the task elsewhere.
if [ "$code" -eq 5 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
