#!/bin/sh
# Says `dead NAME` for each agent of a team, and the forwarder, whose process has ended, and `unreachable relay` where that
# doesn't answer from here any more.
#
#   sh alive.sh DIRECTORY
set -u
dir=$1
. "$dir/team.env"
. "$dir/common.sh"

for file in "$dir"/agents/*/pid; do
    name=${file%/pid}
    lives "$(cat "$file")" || echo "dead ${name##*/}"
done
if [ -f "$dir/forwarder.pid" ]; then
    lives "$(cat "$dir/forwarder.pid")" || echo "dead forwarder"
fi
answers "$bzb_relay_host" "$bzb_relay_port" || echo "unreachable relay"
