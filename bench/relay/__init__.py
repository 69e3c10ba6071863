"""The embedded relay: what Buzz's own programs need of one (BUZZ.md section 8.4), storing in PostgreSQL.

Pure: `protocol` (events, filters), `channels` and `rules` (who may do what, and what the relay announces),
`access` (NIP-42, NIP-98, NIP-OA). Effects: `writer` (group commit), `store` (reads), `fanout` (live delivery),
`ingest` (from a parsed event to the answer). Edges: `socket`, `http`, `__main__`.
"""
