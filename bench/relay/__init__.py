"""The embedded relay: what Buzz's own programs need of one (BUZZ.md section 8.4), storing in PostgreSQL.

Pure: `protocol` (events, filters), `channels` and `rules` (who may do what, and what the relay announces),
`access` (NIP-42, NIP-98, NIP-OA). Effects: `writer` (group commit), `store` (reads), `fanout` (live delivery),
`ingest` (from a parsed event to the answer). Edges: `socket`, `http`, `__main__`.

What a team or a harness sees of it was held against Buzz's own relay, frame by frame, and is the same but for:

- Refusals have words of our own behind the prefix (`invalid:`, `restricted:`), but for the texts that clients act on.
- Channels that the relay makes (direct messages, 41010; a 9007 without a UUID), workflows, reminders, media, git, lists
  and other kinds that no task of ours needs: unknown kinds are refused. A deletion or edit names one event, by its id.
- Encrypted kinds (24200, 30174, 44200) are taken without a look at the form of what is in them.
- No summaries of threads (39005, 39006) nor a roll of the relay (13534); `top_level`, `depth_limit` and `include_…`
  are ignored.
- Where a filter of a query has several #h, Buzz answers for one of them, and where a subscription names channels of
  which some may be read, for those. Ours answers a query for all, and refuses the subscription.
- COUNT heeds every part of a filter and counts an event once; Buzz ignores `search` and sums over the filters. A REQ
  heeds `before_id`, as queries do; Buzz's doesn't.
- What a subscription hears of one change comes in one order; on Buzz's a 39002 may come after the event that caused it.
- Subscriptions to a channel that is deleted are closed. An agent's owner needs a place in a channel to change it.
- An event that is malformed but has an id is answered with OK, not a NOTICE. A NIP-98 URL may name a loopback address.
"""
