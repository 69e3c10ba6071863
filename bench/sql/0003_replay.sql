-- Trials and calls that a cassette answered in a model's place: they cost nothing and measure nothing.

ALTER TABLE benchmark.trial_manifest ADD COLUMN replay text;          -- the cassette's SHA-256; null where none was played
ALTER TABLE benchmark.llm_receipts ADD COLUMN cassette_sha256 text;
