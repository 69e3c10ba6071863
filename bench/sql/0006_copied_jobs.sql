-- A job that was copied has its calls' receipts, too: a call is one of its job.

ALTER TABLE benchmark.llm_receipts DROP CONSTRAINT llm_receipts_pkey;
ALTER TABLE benchmark.llm_receipts ADD PRIMARY KEY (job, call_id);
