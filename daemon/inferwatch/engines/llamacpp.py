"""llama.cpp's server: its page's series and what they mean (tools/server/server-context.cpp, build 11434 was run).

The page has counters and gauges only: no histogram, no label, no TTFT, ITL, KV cache or errors, and needs --metrics.
"""

from typing import Final

from inferwatch.engines import schema
from inferwatch.engines.rules import Combine, EngineTable, Ignore, Reason, Rule

RULES: Final = (
    Rule(("requests_processing",), schema.REQUESTS_RUNNING, note="slots that are busy"),
    Rule(("requests_deferred",), schema.REQUESTS_WAITING, note="tasks that found no free slot"),
    Rule(
        ("n_decode_total",),
        schema.STEPS,
        note="calls of llama_decode(), batches of prompts included; moves while tokens are made",
    ),
    Rule(
        ("kv_cache_usage_ratio",),
        schema.KV_CACHE_USAGE,
        combine=Combine.MAX,
        note="older builds only: removed upstream, /slots is what is left",
    ),
    Rule(
        ("prompt_tokens_total",),
        schema.PROMPT_TOKENS,
        plus=("prompt_tokens_cached_total",),
        note="upstream counts only what was computed, so the cached ones are added where the page has them",
    ),
    Rule(
        ("prompt_tokens_cached_total",),
        schema.PREFIX_CACHE_QUERIES,
        plus=("prompt_tokens_total",),
        note="every prompt is compared with what its slot holds: all prompt tokens are looked up",
    ),
    Rule(("prompt_tokens_cached_total",), schema.PREFIX_CACHE_HITS, note="newer builds only"),
    Rule(("prompt_tokens_cached_total",), schema.CACHED_PROMPT_TOKENS, note="newer builds only"),
    Rule(
        ("tokens_predicted_total",),
        schema.GENERATION_TOKENS,
        note="moves only when a request ends, by all of its tokens at once",
    ),
    Rule(("spec_decode_num_drafts_total",), schema.SPECULATIVE_DRAFTS, note="0 without a draft model"),
    Rule(("spec_decode_num_draft_tokens_total",), schema.SPECULATIVE_DRAFT_TOKENS, note="0 without a draft model"),
    Rule(
        ("spec_decode_num_accepted_tokens_total",), schema.SPECULATIVE_ACCEPTED_TOKENS, note="0 without a draft model"
    ),
    Rule(("prompt_seconds_total",), schema.PREFILL_SECONDS, note="moves only when a prompt is done"),
    Rule(
        ("tokens_predicted_seconds_total",),
        schema.DECODE_SECONDS,
        note="moves only when a request ends; requests that run side by side count side by side",
    ),
)

IGNORES: Final = (
    Ignore(
        ("prompt_tokens_seconds", "predicted_tokens_seconds"),
        Reason.DERIVED,
        sentence="Tokens per second since the last scrape by anybody, who sets it back; the counters say it unspoilt.",
    ),
    Ignore(
        ("n_tokens_max",),
        Reason.DERIVED,
        sentence="Longest sequence since the start: it can't be told when that was, and it is typed a counter.",
    ),
    Ignore(("n_busy_slots_per_decode",), Reason.DERIVED),
    Ignore(
        ("kv_cache_tokens",),
        Reason.RETIRED,
        sentence="Tokens in the KV cache, removed upstream together with its usage ratio, which is mapped.",
    ),
)

_NO_HISTOGRAM: Final = "llama.cpp has no histogram; an active probe measures it from outside."

TABLE: Final = EngineTable(
    name="llamacpp",
    title="llama.cpp",
    prefixes=("llamacpp:", "llamacpp_"),
    rules=RULES,
    ignores=IGNORES,
    absent={
        schema.REQUESTS: "llama.cpp does not count requests.",
        schema.REJECTIONS: "llama.cpp queues without a limit.",
        schema.PREEMPTIONS: "llama.cpp does not preempt: a request keeps its slot.",
        schema.KV_CACHE_CAPACITY: "The page does not tell it; /props and /slots do (n_ctx).",
        schema.EXTERNAL_PREFIX_CACHE_QUERIES: "llama.cpp has no cache outside itself.",
        schema.EXTERNAL_PREFIX_CACHE_HITS: "llama.cpp has no cache outside itself.",
        schema.CONTEXT_WINDOW: "The page does not tell it; /props and /slots do (n_ctx).",
        schema.TIME_TO_FIRST_TOKEN: _NO_HISTOGRAM,
        schema.INTER_TOKEN_LATENCY: _NO_HISTOGRAM,
        schema.TIME_PER_OUTPUT_TOKEN: "llama.cpp has no histogram; decode seconds by generated tokens are the mean.",
        schema.REQUEST_DURATION: _NO_HISTOGRAM,
        schema.QUEUE_TIME: _NO_HISTOGRAM,
        schema.PREFILL_TIME: "llama.cpp has no histogram; prefill seconds are counted.",
        schema.DECODE_TIME: "llama.cpp has no histogram; decode seconds are counted.",
        schema.REQUEST_PROMPT_TOKENS: _NO_HISTOGRAM,
        schema.REQUEST_GENERATION_TOKENS: _NO_HISTOGRAM,
    },
    model_labels=(),
    enable="start llama-server with --metrics",
)
