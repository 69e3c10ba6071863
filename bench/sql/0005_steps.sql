-- The step of its trial's task in which a call came; null for a task without steps.
ALTER TABLE benchmark.llm_receipts ADD COLUMN step text;
