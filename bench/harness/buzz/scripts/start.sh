#!/bin/sh
# Starts a team's agents at once, each in a session of its own with its own logs, and waits until each listens to its channel.
#
#   sh start.sh DIRECTORY
#
# DIRECTORY is one trial's kit (see kit.py). What comes on standard output, a line each:
#   ready NAME          the agent has subscribed to the channel
#   failed NAME WHY     it has not, and won't
#   unreachable WHAT    relay or gateway don't answer from here
# The exit code is 0 where all are ready.
set -u
umask 077
dir=$1

# The image's own variables, before any of ours: buzz-agent clears them for the agents' shells, and mcp.sh gives them back.
export -p > "$dir/image.env"

. "$dir/team.env"
. "$dir/common.sh"
printf "bzb_bin='%s'\n" "$bzb_bin" >> "$dir/image.env"
mkdir -p "$dir/frames" "$bzb_logs"
setsid=$(command -v setsid) || setsid=
tick=0.02
sleep $tick 2> /dev/null || tick=1
end=$(($(date +%s) + bzb_ready_s))

in_time() { [ "$(date +%s)" -lt "$end" ]; }

# The first pair is the relay's, the second the gateway's, which may listen on any port.
if [ -n "$bzb_forward" ]; then
    $setsid "$bzb_bin/relay-forwarder" $bzb_forward > "$dir/forwarder.out" 2> "$bzb_logs/forwarder.log" < /dev/null &
    echo $! > "$dir/forwarder.pid"
    until [ "$(grep -c '^ready ' "$dir/forwarder.out")" -ge 2 ]; do
        if ! lives "$(cat "$dir/forwarder.pid")" || ! in_time; then
            echo "failed forwarder $(tail -n 1 "$bzb_logs/forwarder.log")"
            exit 1
        fi
        sleep $tick
    done
    listens=$(sed -n '2s/^ready \([^=]*\)=.*/\1/p' "$dir/forwarder.out")
    bzb_gateway_port=${listens##*:}
    bzb_gateway=http://127.0.0.1:$bzb_gateway_port
fi

for home in "$dir"/agents/*; do
    name=${home##*/}
    mkdir -p "$bzb_logs/$name"
    (
        . "$home/env"
        # setsid would run a program of another machine as a shell script; bash, whose place the program takes, says what it is.
        exec $setsid bash -c '"$0"' "$bzb_bin/buzz-acp"
    ) > "$bzb_logs/$name/buzz-acp.log" 2> "$bzb_logs/$name/buzz-agent.log" < /dev/null &
    echo $! > "$home/pid"
done

for way in "relay $bzb_relay_host $bzb_relay_port" "gateway 127.0.0.1 $bzb_gateway_port"; do
    set -- $way
    until answers "$2" "$3"; do
        if ! in_time; then
            echo "unreachable $1 at $2:$3${bzb_forward:+ ($bzb_forward)}"
            exit 1
        fi
        sleep $tick
    done
done

code=0
for home in "$dir"/agents/*; do
    name=${home##*/}
    log=$bzb_logs/$name/buzz-acp.log
    until grep -qE "$bzb_ready_line" "$log"; do
        if ! lives "$(cat "$home/pid")"; then
            echo "failed $name it ended: $(cat "$log" "$bzb_logs/$name/buzz-agent.log" | tail -n 1)"
            code=1
            continue 2
        fi
        if ! in_time; then
            echo "failed $name it has not subscribed within $bzb_ready_s s: $(tail -n 1 "$log")"
            code=1
            continue 2
        fi
        sleep $tick
    done
    echo "ready $name"
done
exit $code
