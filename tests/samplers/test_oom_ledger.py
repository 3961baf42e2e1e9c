from inferwatch.samplers._support.oom_ledger import HOST, OomLedger


def run(
    ledger: OomLedger, host: int = 0, targets: dict[str, int] | None = None, seen: tuple[str, ...] = ()
) -> dict[str, int]:
    ledger.counted(host, targets or {})
    for target in seen:
        ledger.seen(target)
    return dict(ledger.settle())


def test_kill_that_the_log_told_of_is_not_found_again() -> None:
    ledger = OomLedger()

    assert [run(ledger, 1, {"svc": 1}, ("svc",)), run(ledger), run(ledger)] == [{}, {}, {}]


def test_kill_without_a_line_is_found_once_and_one_run_late() -> None:
    ledger = OomLedger()

    assert [run(ledger, 1, {"svc": 1}), run(ledger), run(ledger), run(ledger)] == [{}, {"svc": 1}, {}, {}]


def test_kill_of_no_target_is_the_hosts() -> None:
    ledger = OomLedger()

    assert [run(ledger, 2), run(ledger), run(ledger)] == [{}, {HOST: 2}, {}]


def test_line_that_comes_before_the_counter_is_no_difference() -> None:
    ledger = OomLedger()

    found = [run(ledger, 0, {"svc": 0}, ("svc",)), run(ledger, 1, {"svc": 1}), run(ledger), run(ledger)]

    assert found == [{}] * 4


def test_line_that_comes_after_the_counter_is_no_difference() -> None:
    ledger = OomLedger()

    assert [run(ledger, 1, {"svc": 1}), run(ledger, seen=("svc",)), run(ledger), run(ledger)] == [{}] * 4


def test_group_that_counts_a_run_after_the_host_is_found_once() -> None:
    ledger = OomLedger()
    found = [run(ledger, 1), run(ledger, targets={"svc": 1}), run(ledger), run(ledger), run(ledger)]

    assert found == [{}, {}, {"svc": 1}, {}, {}]


def test_kill_seen_in_a_group_that_is_not_the_targets_hides_no_later_one() -> None:
    ledger = OomLedger()
    run(ledger, 0, {"svc": 0})
    run(ledger, 1, {"svc": 0}, ("svc",))  # its counter did not rise
    run(ledger)
    run(ledger)

    assert [run(ledger, 1, {"svc": 1}), run(ledger)] == [{}, {"svc": 1}]


def test_accounts_of_targets_that_are_gone_are_dropped() -> None:
    ledger = OomLedger()
    run(ledger, 0, {f"svc{number}": 0 for number in range(100)})
    ledger.keep_only(["svc1"])

    assert set(ledger._targets) == {"svc1"}
