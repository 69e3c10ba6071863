-- One group commit: events in, older versions of replaceable ones out, deleted ones marked. Returns the ids that are new.
WITH incoming AS (
    SELECT * FROM json_to_recordset(%(rows)s::json) AS r (
        id text, pubkey text, kind integer, created_at bigint, channel text, tags text[], replaces text, raw text
    )
), older AS (
    DELETE FROM relay.events e USING incoming i
    WHERE i.replaces IS NOT NULL
      AND e.pubkey = i.pubkey AND e.kind = i.kind AND e.replaces = i.replaces
      AND (e.created_at < i.created_at OR (e.created_at = i.created_at AND e.id > i.id))
), taken_back AS (
    UPDATE relay.events SET deleted = true WHERE id = ANY (%(deletes)s::text[])
)
INSERT INTO relay.events (id, pubkey, kind, created_at, channel, tags, replaces, raw)
SELECT id, pubkey, kind, created_at, channel, tags, replaces, raw
FROM incoming i
WHERE i.replaces IS NULL OR NOT EXISTS (
    SELECT FROM relay.events e
    WHERE e.pubkey = i.pubkey AND e.kind = i.kind AND e.replaces = i.replaces
      AND (e.created_at > i.created_at OR (e.created_at = i.created_at AND e.id < i.id))
)
ON CONFLICT (id) DO NOTHING
RETURNING id
