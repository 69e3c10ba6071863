#!/usr/bin/env bash
# A Docker engine for the tests marked `docker`: installed from Debian's packages, started by hand, on a socket, a bridge
# and a data directory of its own, so that no other engine of the machine is touched. Needs root and Debian 12 or newer.
#
#   .ci/docker.sh run COMMAND …   start the engine if it isn't up, run the command with DOCKER_HOST, stop what was started
#   .ci/docker.sh start           start it and print the line that exports DOCKER_HOST
#   .ci/docker.sh stop            stop it; its images stay for the next time
set -euo pipefail

home=${BUZZBENCH_CI_DOCKER:-/var/tmp/bzb-docker}
bridge=bzb0
gateway=172.31.255.1
newer=trixie
export DOCKER_HOST=unix://$home/docker.sock

install() {
    local missing=()
    command -v dockerd > /dev/null || missing+=(docker.io)
    command -v iptables > /dev/null || missing+=(iptables)
    command -v ip > /dev/null || missing+=(iproute2)
    command -v debootstrap > /dev/null || missing+=(debootstrap)
    docker compose version > /dev/null 2>&1 || missing+=("docker-compose/$newer")
    docker buildx version > /dev/null 2>&1 || missing+=("docker-buildx/$newer")
    [ ${#missing[@]} -gt 0 ] || return 0
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
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
}

is_up() {
    docker version --format '{{.Server.Version}}' > /dev/null 2>&1
}

start() {
    is_up && return
    mkdir -p "$home"
    ip link show $bridge > /dev/null 2>&1 || ip link add name $bridge type bridge
    ip address replace $gateway/24 dev $bridge
    ip link set $bridge up
    setsid dockerd --host "$DOCKER_HOST" --data-root "$home/data" --exec-root "$home/run" --pidfile "$home/pid" \
        --bridge $bridge --storage-driver overlay2 > "$home/log" 2>&1 < /dev/null &
    for _ in $(seq 300); do
        is_up && return
        sleep 0.1
    done
    echo "the Docker engine does not start; its last lines ($home/log):" >&2
    tail -n 15 "$home/log" >&2
    return 1
}

stop() {
    local pid
    pid=$(cat "$home/pid" 2> /dev/null) || return 0
    kill "$pid" 2> /dev/null || return 0
    for _ in $(seq 300); do
        kill -0 "$pid" 2> /dev/null || break
        sleep 0.1
    done
    ip link delete $bridge 2> /dev/null || true
}

case ${1:-} in
    run)
        shift
        install >&2
        is_up || trap stop EXIT
        start
        "$@"
        ;;
    start)
        install >&2
        start
        echo "export DOCKER_HOST=$DOCKER_HOST"
        ;;
    stop) stop ;;
    *)
        sed -n '2,7p' "$0" >&2
        exit 2
        ;;
esac
