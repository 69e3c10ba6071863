#!/bin/sh
# What buzz-agent starts for its tools: buzz-dev-mcp, with the variables of the task's image, which buzz-agent cleared.
# What was set for this agent (its relay, key and attestation) is no variable of an image and stays.
. "${0%/*}/image.env"
exec "$bzb_bin/buzz-dev-mcp" "$@"
