#!/bin/sh
# Lets a team go on that `stop.sh DIRECTORY halt` has halted.
#
#   sh go_on.sh DIRECTORY
set -u
kill -CONT $(cat "$1/halted") 2> /dev/null
rm "$1/halted"
