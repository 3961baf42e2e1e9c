"""The normalised families of serving engines, in one flat list: the same name and unit whatever engine it came from."""

from typing import Final

from inferwatch.model import Family, Kind

ENGINE: Final = ("target", "engine")
MODEL: Final = ("target", "engine", "model")


def _gauge(name: str, text: str, labels: tuple[str, ...] = MODEL, unit: str = "") -> Family:
    return Family(name, text, Kind.GAUGE, unit, labels)


def _counter(name: str, text: str, labels: tuple[str, ...] = MODEL, unit: str = "") -> Family:
    return Family(name, text, Kind.COUNTER, unit, labels)


def _info(name: str, text: str, labels: tuple[str, ...]) -> Family:
    return Family(name, text, Kind.INFO, labels=labels)


def _histogram(name: str, text: str, unit: str) -> Family:
    return Family(name, text, Kind.HISTOGRAM, unit, MODEL)


UP: Final = _gauge(
    "inferwatch_engine_up",
    "Whether the engine's metrics page was read and understood in the last scrape (1) or not (0); "
    "inferwatch_engine_state says why not.",
    labels=ENGINE,
)
STATE: Final = _gauge(
    "inferwatch_engine_state",
    "State of the engine's metrics page in the last scrape, 1 for the current one: up, down (no usable answer), "
    "disabled (the engine answers, its metrics are switched off), parse_error (not a page that is understood).",
    labels=(*ENGINE, "state"),
)
INFO: Final = _info(
    "inferwatch_engine_info",
    "Models that the engine's metrics page names, with the engine's version where the page tells it.",
    labels=(*MODEL, "version"),
)
UNMAPPED: Final = _gauge(
    "inferwatch_engine_unmapped_series",
    "Number of series on the engine's metrics page that inferwatch neither maps nor knowingly ignores.",
    labels=ENGINE,
)
ABSENT: Final = _gauge(
    "inferwatch_engine_absent_metrics",
    "Number of normalised metrics that this engine's table can fill but whose series are not on the page.",
    labels=ENGINE,
)
MAPPING: Final = _info(
    "inferwatch_engine_mapping_info",
    "Which name of the engine's metrics page (`upstream`) feeds which normalised metric (`metric`).",
    labels=(*ENGINE, "metric", "upstream"),
)
DROPPED: Final = _counter(
    "inferwatch_engine_dropped_samples_total",
    "Number of samples of the engine's metrics page that were left out or folded into another one, by reason.",
    labels=(*ENGINE, "reason"),
)
SCRAPE: Final = (UP, STATE, INFO, UNMAPPED, ABSENT, MAPPING, DROPPED)

REQUESTS_RUNNING: Final = _gauge(
    "inferwatch_engine_requests_running",
    "Number of requests in the engine's running batch, from its metrics page.",
)
REQUESTS_WAITING: Final = _gauge(
    "inferwatch_engine_requests_waiting",
    "Number of requests that wait in the engine's queue to be scheduled, from its metrics page.",
)
REQUESTS: Final = _counter(
    "inferwatch_engine_requests_total",
    "Number of requests that the engine finished, by outcome: success, aborted, failed or other.",
    labels=(*MODEL, "outcome"),
)
REJECTIONS: Final = _counter(
    "inferwatch_engine_rejections_total",
    "Number of requests that the engine refused to queue, by the limit that refused them.",
    labels=(*MODEL, "reason"),
)
PREEMPTIONS: Final = _counter(
    "inferwatch_engine_preemptions_total",
    "Number of times that the engine threw a running request's KV cache away to make room for others.",
)
STEPS: Final = _counter(
    "inferwatch_engine_steps_total",
    "Number of steps (forward passes: prefill, decode or both) of the engine; it moves while tokens are made and "
    "stands still in a stall.",
)

KV_CACHE_USAGE: Final = _gauge(
    "inferwatch_engine_kv_cache_usage_ratio",
    "Share of the engine's KV cache that is in use, 0 to 1; of several ranks the fullest.",
    unit="ratio",
)
KV_CACHE_CAPACITY: Final = _gauge(
    "inferwatch_engine_kv_cache_capacity_tokens",
    "Number of tokens that the engine's KV cache holds, all ranks together, from its cache configuration.",
    unit="tokens",
)
PREFIX_CACHE_QUERIES: Final = _counter(
    "inferwatch_engine_prefix_cache_queries_total",
    "Number of prompt tokens looked up in the engine's own prefix cache.",
)
PREFIX_CACHE_HITS: Final = _counter(
    "inferwatch_engine_prefix_cache_hits_total",
    "Number of prompt tokens found in the engine's own prefix cache.",
)
EXTERNAL_PREFIX_CACHE_QUERIES: Final = _counter(
    "inferwatch_engine_external_prefix_cache_queries_total",
    "Number of prompt tokens looked up in a prefix cache outside the engine (KV connector).",
)
EXTERNAL_PREFIX_CACHE_HITS: Final = _counter(
    "inferwatch_engine_external_prefix_cache_hits_total",
    "Number of prompt tokens found in a prefix cache outside the engine (KV connector).",
)

PROMPT_TOKENS: Final = _counter(
    "inferwatch_engine_prompt_tokens_total",
    "Number of prompt tokens that the engine took in, those included that a cache had.",
    unit="tokens",
)
CACHED_PROMPT_TOKENS: Final = _counter(
    "inferwatch_engine_cached_prompt_tokens_total",
    "Number of prompt tokens that the engine did not have to compute because a cache had them.",
    unit="tokens",
)
GENERATION_TOKENS: Final = _counter(
    "inferwatch_engine_generation_tokens_total",
    "Number of tokens that the engine generated.",
    unit="tokens",
)
CONTEXT_WINDOW: Final = _gauge(
    "inferwatch_engine_context_window_tokens",
    "Longest sequence (prompt and answer) that the engine accepts, in tokens.",
    unit="tokens",
)
SPECULATIVE_DRAFTS: Final = _counter(
    "inferwatch_engine_speculative_drafts_total",
    "Number of speculative drafts that the engine verified.",
)
SPECULATIVE_DRAFT_TOKENS: Final = _counter(
    "inferwatch_engine_speculative_draft_tokens_total",
    "Number of tokens that speculative decoding proposed.",
    unit="tokens",
)
SPECULATIVE_ACCEPTED_TOKENS: Final = _counter(
    "inferwatch_engine_speculative_accepted_tokens_total",
    "Number of tokens proposed by speculative decoding that the model accepted.",
    unit="tokens",
)

PREFILL_SECONDS: Final = _counter(
    "inferwatch_engine_prefill_seconds_total",
    "Time that the engine spent on prompts, from an engine that has no histogram of it; divide by the prompt tokens.",
    unit="seconds",
)
DECODE_SECONDS: Final = _counter(
    "inferwatch_engine_decode_seconds_total",
    "Time that requests spent generating, summed over requests, from an engine that has no histogram of it; divided by "
    "the generated tokens it is a mean time per output token.",
    unit="seconds",
)


TIME_TO_FIRST_TOKEN: Final = _histogram(
    "inferwatch_engine_time_to_first_token_seconds",
    "Time from a request's arrival at the engine to its first token (TTFT), queue and prefill included, network not.",
    "seconds",
)
INTER_TOKEN_LATENCY: Final = _histogram(
    "inferwatch_engine_inter_token_latency_seconds",
    "Time between two consecutive outputs of a request (ITL), as the engine sees it.",
    "seconds",
)
TIME_PER_OUTPUT_TOKEN: Final = _histogram(
    "inferwatch_engine_time_per_output_token_seconds",
    "Mean time per output token after the first of each finished request (TPOT).",
    "seconds",
)
REQUEST_DURATION: Final = _histogram(
    "inferwatch_engine_request_duration_seconds",
    "Time from a request's arrival at the engine to its last token (end-to-end latency).",
    "seconds",
)
QUEUE_TIME: Final = _histogram(
    "inferwatch_engine_queue_time_seconds",
    "Time that a request waited in the engine's queue before it was first scheduled.",
    "seconds",
)
PREFILL_TIME: Final = _histogram(
    "inferwatch_engine_prefill_time_seconds",
    "Time from a request's first scheduling to its first token.",
    "seconds",
)
DECODE_TIME: Final = _histogram(
    "inferwatch_engine_decode_time_seconds",
    "Time from a request's first token to its last.",
    "seconds",
)
REQUEST_PROMPT_TOKENS: Final = _histogram(
    "inferwatch_engine_request_prompt_tokens", "Number of prompt tokens of a finished request.", "tokens"
)
REQUEST_GENERATION_TOKENS: Final = _histogram(
    "inferwatch_engine_request_generation_tokens", "Number of tokens generated for a finished request.", "tokens"
)

MAPPED: Final = (
    REQUESTS_RUNNING,
    REQUESTS_WAITING,
    REQUESTS,
    REJECTIONS,
    PREEMPTIONS,
    STEPS,
    KV_CACHE_USAGE,
    KV_CACHE_CAPACITY,
    PREFIX_CACHE_QUERIES,
    PREFIX_CACHE_HITS,
    EXTERNAL_PREFIX_CACHE_QUERIES,
    EXTERNAL_PREFIX_CACHE_HITS,
    PROMPT_TOKENS,
    CACHED_PROMPT_TOKENS,
    GENERATION_TOKENS,
    CONTEXT_WINDOW,
    SPECULATIVE_DRAFTS,
    SPECULATIVE_DRAFT_TOKENS,
    SPECULATIVE_ACCEPTED_TOKENS,
    PREFILL_SECONDS,
    DECODE_SECONDS,
    TIME_TO_FIRST_TOKEN,
    INTER_TOKEN_LATENCY,
    TIME_PER_OUTPUT_TOKEN,
    REQUEST_DURATION,
    QUEUE_TIME,
    PREFILL_TIME,
    DECODE_TIME,
    REQUEST_PROMPT_TOKENS,
    REQUEST_GENERATION_TOKENS,
)
FAMILIES: Final = (*SCRAPE, *MAPPED)

STATES: Final = ("up", "down", "disabled", "parse_error")
DROP_REASONS: Final = (
    "not_finite",
    "duplicate",
    "sentinel",
    "kind_mismatch",
    "out_of_range",
    "broken_histogram",
    "label_limit",
)
