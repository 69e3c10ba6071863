#!/bin/bash
# Leaves a reward whatever happens: 0 until verify.py has found that every check holds.
# Harbor runs this without arguments; other directories can be named: test.sh LOGS WORKSPACE
logs=${1:-/logs}
workspace=${2:-/app}
tests=$(cd "$(dirname "$0")" && pwd)

mkdir -p "$logs/verifier"
echo 0 > "$logs/verifier/reward.txt"
if ! command -v python3 > /dev/null; then
    echo '{"evidence": {"python3 is there to judge": false}, "files": {}}' > "$logs/verifier/checks.json"
    exit
fi
# -I: neither variables nor modules that a team left behind reach the judge.
python3 -I -B "$tests/verify.py" "$logs" "$workspace"
