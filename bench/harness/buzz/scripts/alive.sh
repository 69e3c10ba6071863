#!/bin/sh
# Says `dead NAME` for each agent of a team, and the forwarder, whose process has ended.
#
#   sh alive.sh DIRECTORY
set -u
dir=$1

lives() {
    { read -r line < "/proc/$1/stat"; } 2> /dev/null || return 1
    case ${line##*) } in [ZX]*) return 1 ;; esac
}

for file in "$dir"/agents/*/pid; do
    name=${file%/pid}
    lives "$(cat "$file")" || echo "dead ${name##*/}"
done
if [ -f "$dir/forwarder.pid" ]; then
    lives "$(cat "$dir/forwarder.pid")" || echo "dead forwarder"
fi
