#!/usr/bin/env bash
# A Docker engine for the tests marked `docker`: installed from Debian's packages, started by hand, on a socket, a bridge
# and a data directory of its own, so that no other engine of the machine is touched. Needs root and Debian 12 or newer.
#
#   .ci/docker.sh run COMMAND …   run the command with DOCKER_HOST; the engine is started for it, and the last such
#                                 command to end stops it. It ends with 69, and a line, where no engine can be had
#   .ci/docker.sh start           start it, print the line that exports DOCKER_HOST, and leave it running
#   .ci/docker.sh stop            stop it; its images stay for the next time
set -euo pipefail

home=${BUZZBENCH_CI_DOCKER:-/var/tmp/bzb-docker}
bridge=bzb0
gateway=172.31.255.1
newer=trixie
unavailable=69
kept_images=48h
export DOCKER_HOST=unix://$home/docker.sock

no_engine() {
    echo "docker.sh: no Docker engine can be had here: $1" >&2
    exit $unavailable
}

install() {
    [ "$(id -u)" = 0 ] || no_engine "it takes root to start one"
    local missing=()
    command -v dockerd > /dev/null || missing+=(docker.io)
    command -v iptables > /dev/null || missing+=(iptables)
    command -v ip > /dev/null || missing+=(iproute2)
    command -v debootstrap > /dev/null || missing+=(debootstrap)
    docker compose version > /dev/null 2>&1 || missing+=("docker-compose/$newer")
    docker buildx version > /dev/null 2>&1 || missing+=("docker-buildx/$newer")
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get > /dev/null || no_engine "there is no apt-get to install ${missing[*]} with"
    echo "docker.sh: installing ${missing[*]}" >&2
    # Debian 12 has Compose 1 and no buildx: they come from the next release, which is pinned so low that it gives
    # nothing that isn't asked of it by name. Its mirror is the one that this machine uses anyway.
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v -- -security | head -n 1)
    cat > /etc/apt/sources.list.d/buzzbench-$newer.sources << SOURCE
Types: deb
URIs: $mirror
Suites: $newer
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCE
    printf 'Package: *\nPin: release n=%s\nPin-Priority: 10\n' $newer > /etc/apt/preferences.d/buzzbench-$newer
    local apt=(apt-get -qq -o DPkg::Lock::Timeout=300)
    "${apt[@]}" update || no_engine "apt-get update failed, see above"
    DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y --no-install-recommends "${missing[@]}" > /dev/null ||
        no_engine "its packages can't be installed, see above"
}

is_up() {
    docker version --format '{{.Server.Version}}' > /dev/null 2>&1
}

start() {
    is_up && return
    # What an engine that was killed has left would be in the way of this one.
    rm -f "$home/kept"
    [ ! -e "$home/before.rules" ] || clean
    cat /proc/sys/net/ipv4/ip_forward > "$home/before.forward"
    iptables-save > "$home/before.rules"
    ip link show $bridge > /dev/null 2>&1 || ip link add name $bridge type bridge
    ip address replace $gateway/24 dev $bridge
    ip link set $bridge up
    setsid dockerd --host "$DOCKER_HOST" --data-root "$home/data" --exec-root "$home/run" --pidfile "$home/pid" \
        --bridge $bridge --storage-driver overlay2 > "$home/log" 2>&1 < /dev/null &
    for _ in $(seq 300); do
        is_up && return
        kill -0 $! 2> /dev/null || break
        sleep 0.1
    done
    clean
    no_engine "it does not start: $(tail -n 1 "$home/log") (all of it: $home/log)"
}

stop() {
    if is_up; then
        docker ps --all --quiet | xargs --no-run-if-empty docker rm --force --volumes > /dev/null || true
        docker network prune --force > /dev/null || true
        docker volume ls --quiet | xargs --no-run-if-empty docker volume rm --force > /dev/null || true
        docker image prune --all --force --filter until=$kept_images > /dev/null || true
    fi
    clean
}

# End what is left of the engine, whatever state it is in.
clean() {
    local pid
    # The number may be another process's by now.
    if pid=$(cat "$home/pid" 2> /dev/null) && grep -qsx dockerd "/proc/$pid/comm" && kill "$pid"; then
        for _ in $(seq 300); do
            kill -0 "$pid" 2> /dev/null || break
            sleep 0.1
        done
    fi
    # Its containerd and their shims are known by its directory on their command line.
    for pid in $(grep -lsF "$home/run" /proc/[0-9]*/cmdline | cut -d / -f 3); do
        kill -KILL "$pid" 2> /dev/null || true
    done
    awk -v home="$home/" 'index($2, home) == 1 { print $2 }' /proc/mounts | sort -r | xargs --no-run-if-empty umount --lazy
    rm -f "$home/pid" "$home/docker.sock"
    ip link delete $bridge 2> /dev/null || true
    restore_rules
}

# Take the engine's packet rules out again, unless another engine of the machine has them, too.
restore_rules() {
    local policy
    [ -e "$home/before.rules" ] || return 0
    if ! grep -qsx dockerd /proc/[0-9]*/comm; then
        iptables-save | sed -e '/DOCKER/d' -e "/$bridge/d" -e '/ br-[0-9a-f]\{12\} /d' | iptables-restore
        # Where nobody had any rules there was no policy either.
        policy=$(sed -n 's/^:FORWARD \([A-Z]*\).*/\1/p' "$home/before.rules" | tail -n 1)
        iptables --policy FORWARD "${policy:-ACCEPT}"
        cat "$home/before.forward" > /proc/sys/net/ipv4/ip_forward
    fi
    rm -f "$home/before.rules" "$home/before.forward"
}

# Whoever needs the engine has a shared lock on this file: who gets it alone is the last, or the first.
leave() {
    if [ ! -e "$home/kept" ] && flock --exclusive --nonblock "$held"; then
        stop
    fi
}

case ${1:-} in
    run)
        shift
        install
        mkdir -p "$home"
        exec {held}> "$home/users"
        flock --shared "$held"
        trap 'code=$?; leave; exit $code' EXIT
        (
            flock --exclusive 9
            start 9>&-
        ) 9> "$home/starting" {held}>&-
        "$@" {held}>&-
        ;;
    start)
        install
        mkdir -p "$home"
        start
        touch "$home/kept"
        echo "export DOCKER_HOST=$DOCKER_HOST"
        ;;
    stop)
        rm -f "$home/kept"
        stop
        ;;
    *)
        sed -n '2,9p' "$0" >&2
        exit 2
        ;;
esac
