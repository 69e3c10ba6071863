#!/bin/sh
# What buzz-acp starts as its agent: buzz-agent, with a copy of what the two say to each other (ACP, a JSON object a line).
frames=$BUZZBENCH_TEAM/frames/$BUZZ_ACP_DISPLAY_NAME
tee -a "$frames.in.jsonl" | "$BUZZBENCH_BIN/buzz-agent" | tee -a "$frames.out.jsonl"
