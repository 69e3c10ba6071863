#!/bin/bash
# PostgreSQL's image in miniature: makes the database of POSTGRES_DB, _USER and _PASSWORD once, then serves it.
set -euo pipefail
[ "$1" = postgres ] || exec "$@"
# A first process ends by no signal that it doesn't expect.
trap 'exit 1' INT TERM
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /var/run/postgresql
    chown -R postgres "$(dirname "$PGDATA")" /var/run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --pgdata "$PGDATA" --username "$POSTGRES_USER" --pwfile <(echo "$POSTGRES_PASSWORD") \
        --encoding UTF8 --locale C.UTF-8 --auth-local trust --auth-host scram-sha-256 --no-sync > /dev/null
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl --pgdata "$PGDATA" --options "-c listen_addresses=''" --wait start > /dev/null
    createdb --username "$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl --pgdata "$PGDATA" --mode fast --wait stop > /dev/null
fi
exec postgres -D "$PGDATA" -c listen_addresses='*'
