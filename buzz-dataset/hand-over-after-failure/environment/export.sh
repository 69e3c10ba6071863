#!/bin/sh
# export.sh NAME: exports the register in the name of NAME. export.sh NAME CODE: goes on where another one's run broke off.
set -eu
cd /app
if [ $# -eq 1 ]; then
    head -n 3 register.csv > export.part
    echo "$1" > export.broken
    echo "broke off after 3 of 7 ships, code E-4417; $1 can't go on" >&2
    exit 1
fi
if [ "$2" != E-4417 ] || [ ! -f export.broken ]; then
    echo "there is no broken run with the code $2" >&2
    exit 1
fi
if [ "$1" = "$(cat export.broken)" ]; then
    echo "$1's own run broke off: somebody else has to go on" >&2
    exit 1
fi
tail -n +4 register.csv | cat export.part - > export.csv
echo "$1" > export.whole
echo "exported all 7 ships, seal $(cksum < export.csv | cut -d ' ' -f 1)"
