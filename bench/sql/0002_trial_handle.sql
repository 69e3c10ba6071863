-- Where a trial took place and who played: stored when its team was in place, so that a trial that never ended can be found
-- on the relay. Public keys only. A trial that Harbor tries again has a handle for each channel.

CREATE TABLE benchmark.trial_handle (
    job              text NOT NULL,
    trial            text NOT NULL,
    channel          text NOT NULL,
    task             text NOT NULL,
    condition_sha256 text NOT NULL,
    user_public      text NOT NULL,
    agents           jsonb NOT NULL,     -- {name: public key}
    provisioned_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job, trial, channel)
);
