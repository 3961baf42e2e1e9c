"""vLLM 0.6 to 0.32: its page's series and what they mean (vllm/v1/metrics/loggers.py, V0: vllm/engine/metrics.py).

Names differ between V0 and V1 engines more than between releases; the notes say until or since when one was used.
"""

from types import MappingProxyType
from typing import Final

from inferwatch.engines import schema
from inferwatch.engines.rules import Combine, EngineTable, Ignore, LabelFrom, Reason, Rule, Take
from inferwatch.model import Kind

# What an operator asks: did the client get its answer? `length` and `repetition` end an answer as a limit said.
OUTCOMES: Final = MappingProxyType(
    {"stop": "success", "length": "success", "repetition": "success", "abort": "aborted", "error": "failed"}
)

RULES: Final = (
    Rule(("num_requests_running",), schema.REQUESTS_RUNNING, note="stays as it was while a worker hangs"),
    Rule(("num_requests_waiting",), schema.REQUESTS_WAITING),
    Rule(
        ("request_success_total",),
        schema.REQUESTS,
        labels={"outcome": LabelFrom("finished_reason", OUTCOMES)},
        note="stop, length and repetition are success; a client that hangs up is counted nowhere, not even as abort",
    ),
    Rule(
        ("admission_rejections_total",),
        schema.REJECTIONS,
        labels={"reason": LabelFrom("reason")},
        note="the only count that has all rejections: some are sent as an error inside a stream with status 200",
    ),
    Rule(("num_preemptions_total",), schema.PREEMPTIONS),
    Rule(
        ("iteration_tokens_total",),
        schema.STEPS,
        kind=Kind.HISTOGRAM,
        take=Take.COUNT,
        note="a histogram in spite of its name; its number of observations is the number of steps",
    ),
    Rule(
        ("kv_cache_usage_perc", "gpu_cache_usage_perc"),
        schema.KV_CACHE_USAGE,
        combine=Combine.MAX,
        note="0 to 1 in spite of its name; gpu_cache_usage_perc before 0.10",
    ),
    Rule(
        ("cache_config_info",),
        schema.KV_CACHE_CAPACITY,
        kind=Kind.GAUGE,
        take=Take.LABELS,
        products=(("kv_cache_size_tokens",), ("num_gpu_blocks", "block_size")),
        note="from the labels kv_cache_size_tokens, or num_gpu_blocks times block_size",
    ),
    Rule(
        ("prefix_cache_queries_total", "gpu_prefix_cache_queries_total"),
        schema.PREFIX_CACHE_QUERIES,
        note="gpu_prefix_cache_queries before 0.10; V0 had only a hit rate",
    ),
    Rule(
        ("prefix_cache_hits_total", "gpu_prefix_cache_hits_total"),
        schema.PREFIX_CACHE_HITS,
        note="gpu_prefix_cache_hits before 0.10; V0 had only a hit rate",
    ),
    Rule(("external_prefix_cache_queries_total",), schema.EXTERNAL_PREFIX_CACHE_QUERIES),
    Rule(("external_prefix_cache_hits_total",), schema.EXTERNAL_PREFIX_CACHE_HITS),
    Rule(("prompt_tokens_total",), schema.PROMPT_TOKENS, note="counted when a request's prefill is done"),
    Rule(("prompt_tokens_cached_total",), schema.CACHED_PROMPT_TOKENS, note="local and external caches together"),
    Rule(("generation_tokens_total",), schema.GENERATION_TOKENS, note="those of aborted requests included"),
    Rule(("spec_decode_num_drafts_total",), schema.SPECULATIVE_DRAFTS, note="only with speculative decoding"),
    Rule(
        ("spec_decode_num_draft_tokens_total",), schema.SPECULATIVE_DRAFT_TOKENS, note="only with speculative decoding"
    ),
    Rule(
        ("spec_decode_num_accepted_tokens_total",),
        schema.SPECULATIVE_ACCEPTED_TOKENS,
        note="only with speculative decoding",
    ),
    Rule(
        ("time_to_first_token_seconds",),
        schema.TIME_TO_FIRST_TOKEN,
        note="has aborted requests too: its count less the finished requests is the number of aborts after a token",
    ),
    Rule(
        ("inter_token_latency_seconds", "time_per_output_token_seconds"),
        schema.INTER_TOKEN_LATENCY,
        note="time_per_output_token_seconds before 0.15: the same quantity, misnamed; first bound 10 ms",
    ),
    Rule(("request_time_per_output_token_seconds",), schema.TIME_PER_OUTPUT_TOKEN, note="newer releases only"),
    Rule(("e2e_request_latency_seconds",), schema.REQUEST_DURATION, note="first bound 0.3 s"),
    Rule(
        ("request_queue_time_seconds", "time_in_queue_requests"),
        schema.QUEUE_TIME,
        note="time_in_queue_requests in V0, in seconds too; first bound 0.3 s, shorter waits are told only by the sum",
    ),
    Rule(("request_prefill_time_seconds",), schema.PREFILL_TIME, note="first bound 0.3 s"),
    Rule(("request_decode_time_seconds",), schema.DECODE_TIME, note="first bound 0.3 s"),
    Rule(("request_prompt_tokens",), schema.REQUEST_PROMPT_TOKENS, note="finished requests only"),
    Rule(("request_generation_tokens",), schema.REQUEST_GENERATION_TOKENS, note="finished requests only"),
)

IGNORES: Final = (
    Ignore(("num_requests_waiting_by_reason",), Reason.DUPLICATE, duplicate_of="num_requests_waiting"),
    Ignore(("prompt_tokens_by_source_total",), Reason.DUPLICATE, duplicate_of="prompt_tokens_total"),
    Ignore(("prompt_tokens_cached_by_source_total",), Reason.DUPLICATE, duplicate_of="prompt_tokens_cached_total"),
    Ignore(
        ("request_inference_time_seconds",),
        Reason.DUPLICATE,
        duplicate_of="request_prefill_time_seconds plus request_decode_time_seconds",
    ),
    Ignore(("request_num_preemptions",), Reason.DUPLICATE, duplicate_of="num_preemptions_total"),
    Ignore(
        ("request_prefill_kv_computed_tokens",),
        Reason.DERIVED,
        sentence="Prompt tokens less cached prompt tokens, both of which are mapped.",
    ),
    Ignore(
        (
            "request_max_num_generation_tokens",
            "request_params_n",
            "request_params_max_tokens",
            "request_params_best_of",
        ),
        Reason.CONFIGURATION,
        sentence="What clients asked for; request_generation_tokens says what they got.",
    ),
    Ignore(
        ("mm_cache_queries_total", "mm_cache_hits_total", "mm_cache_queries", "mm_cache_hits"),
        Reason.HARDWARE,
        sentence="Cache of multi-modal inputs, which says nothing about the serving of tokens.",
    ),
    Ignore(
        ("estimated_flops_per_gpu_total", "estimated_read_bytes_per_gpu_total", "estimated_write_bytes_per_gpu_total"),
        Reason.HARDWARE,
    ),
    Ignore(("engine_sleep_state",), Reason.CONFIGURATION),
    Ignore(
        ("kv_block_lifetime_seconds", "kv_block_idle_before_evict_seconds", "kv_block_reuse_gap_seconds"),
        Reason.DEBUGGING,
    ),
    Ignore(
        ("lora_requests_info", "corrupted_requests_total", "corrupted_requests"),
        Reason.DEBUGGING,
        sentence="Names of adapters, or a count that needs VLLM_COMPUTE_NANS_IN_LOGITS: neither is a load.",
    ),
    Ignore(
        ("spec_decode_num_accepted_tokens_per_pos_total", "spec_decode_num_accepted_tokens_per_pos"),
        Reason.DUPLICATE,
        duplicate_of="spec_decode_num_accepted_tokens_total",
    ),
    Ignore(
        ("spec_decode_num_emitted_tokens_total", "spec_decode_draft_acceptance_rate", "spec_decode_efficiency"),
        Reason.DERIVED,
        sentence="V0: follows from draft and accepted tokens.",
    ),
    Ignore(("nixl_xfer_time_seconds", "nixl_post_time_seconds", "nixl_bytes_transferred"), Reason.HARDWARE),
    Ignore(("nixl_num_*", "kv_offload_*"), Reason.HARDWARE, sentence="Transport of KV blocks between instances."),
    Ignore(
        ("cpu_cache_usage_perc", "num_requests_swapped", "cpu_prefix_cache_hit_rate"),
        Reason.RETIRED,
        sentence="V0's swapping of KV blocks to the CPU, which V1 does not have.",
    ),
    Ignore(
        ("gpu_prefix_cache_hit_rate",),
        Reason.DERIVED,
        sentence="V0: a hit rate over a window of the engine's own, which can't be made a count.",
    ),
    Ignore(
        ("avg_prompt_throughput_toks_per_s", "avg_generation_throughput_toks_per_s", "tokens_total"),
        Reason.DERIVED,
        sentence="V0: averages over the engine's log interval; the token counters say it for any interval.",
    ),
    Ignore(("model_forward_time_milliseconds", "model_execute_time_milliseconds"), Reason.DEBUGGING),
    Ignore(("python_*", "process_*"), Reason.RUNTIME, foreign=True),
    Ignore(
        ("http_*",),
        Reason.HTTP_LAYER,
        foreign=True,
        sentence="The web server's view: every path and status class, streams that fail inside a 200 counted as good.",
    ),
)

TABLE: Final = EngineTable(
    name="vllm",
    title="vLLM",
    prefixes=("vllm:", "vllm_", "ray_vllm:", "ray_vllm_"),
    rules=RULES,
    ignores=IGNORES,
    absent={
        schema.CONTEXT_WINDOW: "The page does not tell the longest sequence; /v1/models does (max_model_len).",
        schema.PREFILL_SECONDS: "The sum of the histogram of prefill times says it.",
        schema.DECODE_SECONDS: "The sum of the histogram of decode times says it.",
    },
    model_labels=("model_name",),
    enable="start it without --disable-log-stats",
)
