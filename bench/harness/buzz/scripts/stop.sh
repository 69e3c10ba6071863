#!/bin/sh
# Ends a team's agents with all that is theirs, at once, and takes their keys away; or halts them until go_on.sh.
#
#   sh stop.sh DIRECTORY [halt]
#
# Theirs is what descends from a buzz-acp or is in its session: buzz-agent, buzz-dev-mcp and the commands under way, which
# have process groups of their own. A service that an agent detached from all of them stays: it may be the task's result.
# All are halted before any is killed, so that nothing is started anew meanwhile. Says `dead NAME` for each agent that had
# ended before.
set -u
dir=$1
. "$dir/common.sh"
tick=0.01
sleep $tick 2> /dev/null || tick=1

known=" "
for file in "$dir"/agents/*/pid; do
    [ -f "$file" ] || continue
    known="$known$(cat "$file") "
    name=${file%/pid}
    lives "$(cat "$file")" || echo "dead ${name##*/}"
done

# Adds to $known, and says in $found which are new.
search() {
    found=
    for file in /proc/[0-9]*/stat; do
        { read -r line < "$file"; } 2> /dev/null || continue
        pid=${line%% *}
        case $known in *" $pid "*) continue ;; esac
        set -- ${line##*) } # state, parent, group, session, …
        case $known in
            *" $2 "* | *" $4 "*)
                known="$known$pid "
                found="$found $pid"
                ;;
        esac
    done
}

living() {
    for pid in $known; do
        lives "$pid" && return 0
    done
    return 1
}

kill -STOP $known 2> /dev/null
search
while [ -n "$found" ]; do
    kill -STOP $found 2> /dev/null
    search
done
. "$dir/team.env"
# What they have logged so far. Where they log elsewhere, Harbor empties its own directory between a task's steps.
[ "$bzb_logs" = "$bzb_collected" ] || { mkdir -p "$bzb_collected" && cp -R "$bzb_logs/." "$bzb_collected"; }
if [ "${2:-}" = halt ]; then
    echo $known > "$dir/halted"
    exit 0
fi
kill -KILL $known 2> /dev/null
[ -f "$dir/forwarder.pid" ] && kill -KILL "$(cat "$dir/forwarder.pid")" 2> /dev/null

rounds=0
while living && [ $rounds -lt 100 ]; do
    sleep $tick
    rounds=$((rounds + 1))
done
rm -rf "$dir/agents" "$dir/image.env" "$dir/forwarder.pid"
if living; then
    echo "some processes have not ended: $known"
    exit 1
fi
