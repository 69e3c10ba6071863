"""The harness of real agents: Buzz's own process trees in a task's environment.

`buzz-acp` → `buzz-agent` → `buzz-dev-mcp`, a tree for each agent. One trial's kit is brought in as one directory, and
one command starts everybody (scripts/start.sh). The facts about the programs are BUZZ.md's, sections 4 to 6.
"""
