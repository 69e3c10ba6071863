-- A receipt is one attempt at a call: which one, what it waited for before it went out, and who says to have answered.

ALTER TABLE benchmark.llm_receipts
    ADD COLUMN retry           integer,            -- 0 for a call's first attempt; the others' call_id is <first>-<retry>
    ADD COLUMN again           boolean,            -- another attempt follows
    ADD COLUMN queue_ms        double precision,   -- of total_ms: before it went out
    ADD COLUMN streamed        boolean,
    ADD COLUMN tool_calls      integer,            -- of the answer: none ends the agent's turn
    ADD COLUMN served_model    text,               -- as the answer names itself
    ADD COLUMN served_provider text;

-- Of a call that was refused before its request was read, nobody knows what it asked for.
ALTER TABLE benchmark.llm_receipts
    ALTER COLUMN model DROP NOT NULL,
    ALTER COLUMN request_sha256 DROP NOT NULL;
