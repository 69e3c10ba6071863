#!/bin/bash
# Redis' image in miniature.
exec "$@"
