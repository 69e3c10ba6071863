#!/bin/bash
# `buzz-admin add-member --pubkey HEX`: says what Buzz's own says. The key is in the last argument.
echo "added ${*: -1} as member"
