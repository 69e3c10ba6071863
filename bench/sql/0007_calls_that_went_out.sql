-- A call is what went out to a model, each retry by itself, as reports and budgets count them. What the gateway itself
-- refused is counted apart. A sum is null where no call reported the class; unknown_calls says how many calls a sum lacks.
CREATE OR REPLACE VIEW benchmark.trial_spend AS
SELECT job,
       trial,
       count(*) FILTER (WHERE outcome <> 'refused')                                    AS calls,
       sum(input_tokens)::bigint                                                       AS input_tokens,
       sum(cache_read_tokens)::bigint                                                  AS cache_read_tokens,
       sum(cache_write_tokens)::bigint                                                 AS cache_write_tokens,
       sum(output_tokens)::bigint                                                      AS output_tokens,
       sum(cost_usd_micros)::bigint                                                    AS cost_usd_micros,
       count(*) FILTER (WHERE outcome <> 'refused'
                          AND num_nulls(input_tokens, cache_read_tokens, cache_write_tokens,
                                        output_tokens, cost_usd_micros) > 0)           AS unknown_calls,
       count(*) FILTER (WHERE outcome = 'refused')                                     AS refused_calls
FROM benchmark.llm_receipts
GROUP BY job, trial;
