#!/usr/bin/env bash
# Installs chargeproof, checks INPUT_URL, prints annotations, writes the job summary, and ends with the exit code of the check.
# Inputs are environment variables and are never part of a command that a shell parses.
set -euo pipefail

if [ "${INPUT_WHEEL:?the input wheel is missing}" != installed ]; then
    environment="${RUNNER_TEMP:-/tmp}/chargeproof"
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check "$INPUT_WHEEL"
    PATH="$environment/bin:$PATH"
fi

arguments=(check "${INPUT_URL:?the input url is missing}" --format github)
summary=$(mktemp)
arguments+=(--report "markdown=$summary")
while IFS= read -r report; do
    [ -z "$report" ] || arguments+=(--report "$report")
done <<<"${INPUT_REPORT:-}"
[ -z "${INPUT_BASELINE:-}" ] || arguments+=(--config "$INPUT_BASELINE")
while IFS= read -r argument; do
    [ -z "$argument" ] || arguments+=("$argument")
done <<<"${INPUT_ARGUMENTS:-}"

code=0
chargeproof "${arguments[@]}" || code=$?

if [ ! -s "$summary" ]; then
    told="chargeproof check ended with exit code $code before it judged anything: the log of this step says why"
    echo "::error title=chargeproof check::$told"
    echo "$told" >"$summary"
fi
cat "$summary" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
echo "exit-code=$code" >>"${GITHUB_OUTPUT:-/dev/null}"
rm -f "$summary"
exit "$code"
