-- The records of jobs, for queries. A projection: the job directories are the truth, and bench/projection.py fills this
-- from them at any time. PostgreSQL 15 or newer; no extension. Money is whole micro-dollars, null is unknown, never zero.

CREATE TABLE benchmark.trial_manifest (
    job              text NOT NULL,
    trial            text NOT NULL,
    task             text NOT NULL,
    condition        text NOT NULL,
    condition_sha256 text NOT NULL,
    rehearsal        text,              -- the script's name; null for a real run
    stack            text NOT NULL,
    environment      text NOT NULL,
    channel          text,              -- the team's channel, null if there was none yet
    outcome          text NOT NULL CHECK (outcome IN ('passed', 'failed', 'unscored')),
    reward           double precision,
    reason           text NOT NULL,
    labels           text[] NOT NULL,
    ended            text,              -- done, deadline, budget, loop, fault
    evidence_sha256  text,
    started_at       timestamptz,
    finished_at      timestamptz,
    PRIMARY KEY (job, trial)
);
CREATE INDEX trial_manifest_condition ON benchmark.trial_manifest (condition_sha256, task);

CREATE TABLE benchmark.llm_receipts (
    call_id            text PRIMARY KEY,
    job                text NOT NULL,
    trial              text NOT NULL,
    agent              text NOT NULL,
    member             text NOT NULL,
    endpoint           text NOT NULL,
    provider           text NOT NULL,
    model              text NOT NULL,
    dialect            text NOT NULL,
    started_at         timestamptz NOT NULL,
    total_ms           double precision NOT NULL,
    first_byte_ms      double precision,
    status             integer NOT NULL,
    outcome            text NOT NULL CHECK (outcome IN ('ok', 'error', 'refused', 'unknown')),
    input_tokens       bigint,          -- fresh only: the four classes are disjoint
    cache_read_tokens  bigint,
    cache_write_tokens bigint,
    output_tokens      bigint,
    cost_usd_micros    bigint,
    charged_usd_micros bigint,          -- what the budgets counted
    charged_tokens     bigint,
    prices_sha256      text NOT NULL,
    usage              jsonb,           -- as the upstream sent it
    request_sha256     text NOT NULL,
    response_sha256    text,
    reason             text
);
CREATE INDEX llm_receipts_trial ON benchmark.llm_receipts (job, trial);

CREATE TABLE benchmark.spans (
    job         text NOT NULL,
    trial       text NOT NULL,
    name        text NOT NULL,
    parent      text,
    started_at  timestamptz,            -- null where only the duration was measured
    finished_at timestamptz,
    seconds     double precision NOT NULL,
    PRIMARY KEY (job, trial, name)
);

-- A sum is null where no call reported the class; unknown_calls says how many calls a sum lacks.
CREATE VIEW benchmark.trial_spend AS
SELECT job,
       trial,
       count(*)                                                                        AS calls,
       sum(input_tokens)::bigint                                                       AS input_tokens,
       sum(cache_read_tokens)::bigint                                                  AS cache_read_tokens,
       sum(cache_write_tokens)::bigint                                                 AS cache_write_tokens,
       sum(output_tokens)::bigint                                                      AS output_tokens,
       sum(cost_usd_micros)::bigint                                                    AS cost_usd_micros,
       count(*) FILTER (WHERE num_nulls(input_tokens, cache_read_tokens, cache_write_tokens,
                                        output_tokens, cost_usd_micros) > 0)           AS unknown_calls
FROM benchmark.llm_receipts
GROUP BY job, trial;
