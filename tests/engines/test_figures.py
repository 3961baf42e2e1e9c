"""What the engine says of a load against what the client that made it measured.

The page before the load is all zeros in both runs, so the page after it is the difference. Neither engine measures
quite what the client does; where they differ the test says why.
"""

import json
from typing import Any

import pytest

from inferwatch.model import HistogramValue
from support_engine import ENGINES, figures, histograms, mapped


def client(name: str) -> Any:  # noqa: ANN401 - parsed JSON
    return json.loads((ENGINES / f"{name}-load-client.json").read_text())


def vllm_histogram(name: str) -> HistogramValue:
    before, after = (histograms(mapped(f"vllm-0.32-{when}.prom"), name)["tiny",] for when in ("before", "after"))

    assert before.counts[-1] == 0
    return after


def total(measured: dict[str, float]) -> float:
    """Return the sum of what the client measured, which its report gives as mean and count."""
    return measured["n"] * measured["mean"]


def vllm_finished() -> float:
    return figures(mapped("vllm-0.32-after.prom"), "requests_total")["tiny", "success"]


def test_vllm_aborts_are_the_requests_that_had_a_first_token_and_did_not_finish() -> None:
    started = vllm_histogram("time_to_first_token_seconds").counts[-1]

    assert started - vllm_finished() == client("vllm-0.32")["aborted"]


def test_vllm_served_some_requests_besides_the_load() -> None:
    """22 of them, alone on an idle engine, before the load began: so counts and means differ, sums hardly do."""
    assert vllm_finished() - client("vllm-0.32")["completed"] == 22


def test_vllm_time_to_first_token_agrees_with_the_client() -> None:
    seen = vllm_histogram("time_to_first_token_seconds")

    assert seen.sum == pytest.approx(total(client("vllm-0.32")["ttft_s"]), rel=0.01)


def test_vllm_inter_token_latency_agrees_with_the_client_in_sum() -> None:
    """Not in mean: the client sees a gap only where a chunk has text, so it has fewer and longer ones."""
    seen, measured = vllm_histogram("inter_token_latency_seconds"), client("vllm-0.32")["itl_s"]

    assert seen.sum is not None
    assert seen.counts[-1] > measured["n"]
    assert 1 <= seen.sum / total(measured) < 1.08


def test_vllm_request_duration_agrees_with_the_client_in_sum() -> None:
    seen = vllm_histogram("request_duration_seconds")

    assert seen.sum is not None
    assert 1 <= seen.sum / total(client("vllm-0.32")["e2e_s"]) < 1.05


def test_vllm_tokens_are_those_of_the_client_and_of_the_aborted_and_other_requests() -> None:
    page, measured = mapped("vllm-0.32-after.prom"), client("vllm-0.32")
    generated = figures(page, "generation_tokens_total")["tiny",]

    assert measured["completion_tokens"] <= generated < 1.1 * measured["completion_tokens"]
    assert measured["prompt_tokens"] <= figures(page, "prompt_tokens_total")["tiny",]
    # one count per token but for each request's first
    assert generated - vllm_histogram("time_to_first_token_seconds").counts[-1] == pytest.approx(
        vllm_histogram("inter_token_latency_seconds").counts[-1], abs=1
    )


def test_vllm_rejections_of_a_full_queue_are_counted_where_web_server_and_streams_disagree() -> None:
    page = mapped("vllm-0.32-kvpressure-after.prom")

    assert figures(page, "rejections_total")["tiny", "max_num_queued_reqs"] == 56  # 44 as HTTP 503, 12 inside streams
    assert figures(page, "preemptions_total")["tiny",] == 24
    assert figures(page, "kv_cache_capacity_tokens")["tiny",] == 70 * 32


def test_llamacpp_tokens_agree_with_the_client_but_for_those_of_aborted_requests() -> None:
    page, measured = mapped("llamacpp-after.prom"), client("llamacpp")
    per_request = figures(page, "prompt_tokens_total")["",] / measured["requests"]

    assert set(figures(mapped("llamacpp-before.prom"), "generation_tokens_total").values()) == {0}
    assert 1 <= figures(page, "generation_tokens_total")["",] / measured["completion_tokens"] < 1.05
    assert per_request == pytest.approx(measured["prompt_tokens"] / measured["completed"], rel=0.1)


def test_llamacpp_time_per_token_agrees_with_the_client() -> None:
    """In sum within 2 %; the server's mean is lower because the client sees fewer chunks than tokens."""
    page, measured = mapped("llamacpp-after.prom"), client("llamacpp")["itl_s"]
    seconds = figures(page, "decode_seconds_total")["",]

    assert seconds == pytest.approx(total(measured), rel=0.02)
    assert seconds / figures(page, "generation_tokens_total")["",] == pytest.approx(measured["p50"], rel=0.02)


def test_llamacpp_shows_full_slots_and_a_queue_in_mid_load() -> None:
    page = mapped("llamacpp-mid.prom")

    assert figures(page, "requests_running") == {("",): 4}
    assert figures(page, "requests_waiting") == {("",): 8}
