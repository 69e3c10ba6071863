-- The relay's own tables. An event is kept as it is sent out (raw), beside what queries look at.
CREATE SCHEMA IF NOT EXISTS relay;

CREATE TABLE IF NOT EXISTS relay.events (
    id          text    PRIMARY KEY,
    seq         bigint  GENERATED ALWAYS AS IDENTITY, -- in the order of arrival; no index, nothing queries by it
    pubkey      text    NOT NULL,
    kind        integer NOT NULL,
    created_at  bigint  NOT NULL,
    channel     text,             -- the channel it is stored under; NULL: global
    tags        text[]  NOT NULL, -- "letter:value" of every tag with a single letter, but h
    replaces    text,             -- the d tag, '' for kinds without one; NULL: not replaceable
    raw         text    NOT NULL,
    deleted     boolean NOT NULL DEFAULT false,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS events_channel ON relay.events (channel, created_at DESC, id);
CREATE INDEX IF NOT EXISTS events_author ON relay.events (pubkey, kind, replaces);
CREATE INDEX IF NOT EXISTS events_tags ON relay.events USING gin (tags);
CREATE INDEX IF NOT EXISTS events_state ON relay.events (kind) WHERE kind IN (9008, 39000, 39002);

-- Which owner a key has proven (NIP-OA). The first proof stays.
CREATE TABLE IF NOT EXISTS relay.owners (
    agent text PRIMARY KEY,
    owner text NOT NULL
);
