import errno
import os
import socket
from pathlib import Path

import psutil
import pytest

from inferwatch.errors import NoData, SourceError
from inferwatch.samplers.network import SAMPLER
from inferwatch.spec import PartialData
from support import LIVE, CountingRun, fail_open, host, make_context, names, tree, value, values

SNMP = b"Tcp: ActiveOpens PassiveOpens CurrEstab OutSegs RetransSegs\nTcp: 5 6 7 1000 12\n"
NETSTAT = b"TcpExt: ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans\nTcpExt: 1 2 3 4\n"
SOCKSTAT = b"sockets: used 11\nTCP: inuse 3 orphan 1 tw 40 alloc 1 mem 261\nUDP: inuse 2 mem 0\n"
FILES = {
    "proc/1/net/snmp": SNMP,
    "proc/1/net/netstat": NETSTAT,
    "proc/1/net/sockstat": SOCKSTAT,
    "proc/1/net/sockstat6": b"TCP6: inuse 9\n",
    "proc/sys/net/ipv4/ip_local_port_range": b"32768\t60999\n",
}


async def test_recorded_host_has_every_family() -> None:
    samples = await SAMPLER.create(make_context(host("debian12-2cpu"))).sample()

    assert names(samples) == {family.name for family in SAMPLER.families}
    assert value(samples, "inferwatch_tcp_ephemeral_ports") == 28232


async def test_figures_come_from_their_fields(tmp_path: Path) -> None:
    samples = await SAMPLER.create(make_context(tree(tmp_path, FILES))).sample()

    assert value(samples, "inferwatch_tcp_segments_sent_total") == 1000
    assert value(samples, "inferwatch_tcp_retransmits_total") == 12
    assert values(samples, "inferwatch_tcp_connections_opened_total") == {("active",): 5, ("passive",): 6}
    assert value(samples, "inferwatch_tcp_listen_overflows_total") == 1
    assert value(samples, "inferwatch_tcp_listen_drops_total") == 2
    assert values(samples, "inferwatch_tcp_connections") == {("established",): 7, ("time_wait",): 40, ("orphan",): 1}
    assert values(samples, "inferwatch_sockets") == {("tcp",): 3, ("udp",): 2, ("tcp6",): 9}


async def test_buffer_pages_become_bytes(tmp_path: Path) -> None:
    samples = await SAMPLER.create(make_context(tree(tmp_path, FILES))).sample()

    assert value(samples, "inferwatch_tcp_memory_bytes") == 261 * os.sysconf("SC_PAGE_SIZE")


async def test_mounted_procfs_is_read_in_the_namespace_of_process_1(tmp_path: Path) -> None:
    # B40: below a host's /proc mounted elsewhere, net leads into another namespace; process 1's is the host's.
    other = {"proc/net/snmp": SNMP.replace(b" 1000 ", b" 1 "), "proc/self/net/snmp": SNMP.replace(b" 1000 ", b" 2 ")}
    samples = await SAMPLER.create(make_context(tree(tmp_path, FILES | other))).sample()

    assert value(samples, "inferwatch_tcp_segments_sent_total") == 1000


async def test_field_that_the_kernel_lacks_is_absent_not_zero(tmp_path: Path) -> None:
    files = FILES | {"proc/1/net/sockstat": b"TCP: inuse 3\n", "proc/1/net/netstat": b"TcpExt: TW\nTcpExt: 1\n"}
    samples = await SAMPLER.create(make_context(tree(tmp_path, files))).sample()

    assert "inferwatch_tcp_memory_bytes" not in names(samples)
    assert "inferwatch_tcp_listen_overflows_total" not in names(samples)
    assert values(samples, "inferwatch_tcp_connections") == {("established",): 7}


@pytest.mark.parametrize("missing", ["proc/1/net/sockstat6", "proc/sys/net/ipv4/ip_local_port_range"])
async def test_host_without_ipv6_or_port_range_is_not_worth_a_word(tmp_path: Path, missing: str) -> None:
    files = {name: data for name, data in FILES.items() if name != missing}
    samples = await SAMPLER.create(make_context(tree(tmp_path, files))).sample()

    assert value(samples, "inferwatch_tcp_segments_sent_total") == 1000


async def test_denied_file_leaves_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fail_open(monkeypatch, {"net/netstat": errno.EACCES})

    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(tree(tmp_path, FILES))).sample()
    assert list(caught.value.problems) == ["permission_denied"]
    assert value(caught.value.samples, "inferwatch_tcp_retransmits_total") == 12
    assert value(caught.value.samples, "inferwatch_tcp_ephemeral_ports") == 28232


@pytest.mark.parametrize("data", [b"", b"32768\n", b"60999 32768\n", b"1 2 3\n", b"a b\n"])
async def test_malformed_port_range_leaves_the_others(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(PartialData, match=r"ip_local_port_range.*expected") as caught:
        await SAMPLER.create(
            make_context(tree(tmp_path, FILES | {"proc/sys/net/ipv4/ip_local_port_range": data}))
        ).sample()
    assert list(caught.value.problems) == ["parse"]
    assert "inferwatch_tcp_ephemeral_ports" not in names(caught.value.samples)


async def test_host_without_any_of_the_files_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(NoData):
        await SAMPLER.create(make_context(tree(tmp_path, {}))).sample()


async def test_all_reads_are_one_job_of_the_instances_thread(tmp_path: Path) -> None:
    run = CountingRun()
    sampler = SAMPLER.create(make_context(tree(tmp_path, FILES), run_blocking=run))
    await sampler.sample()
    await sampler.close()

    assert run.calls == 1


async def test_live_counters_follow_connections_that_the_test_makes() -> None:
    sampler = SAMPLER.create(make_context(LIVE))
    before = await sampler.sample()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(3):
            with socket.create_connection(listener.getsockname()), listener.accept()[0]:
                pass
    after = await sampler.sample()

    opened = "inferwatch_tcp_connections_opened_total"
    for direction in ("active", "passive"):
        assert value(after, opened, direction) - value(before, opened, direction) >= 3
    sent = "inferwatch_tcp_segments_sent_total"
    assert value(after, sent) > value(before, sent)


async def test_live_established_connections_include_the_tests_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        served = listener.accept()[0]
        with client, served:
            samples = await SAMPLER.create(make_context(LIVE)).sample()
            own = sum(each.status == psutil.CONN_ESTABLISHED for each in psutil.Process().net_connections("tcp"))

    assert own >= 2
    assert value(samples, "inferwatch_tcp_connections", "established") >= own


async def test_a_hosts_procfs_that_hides_its_first_process_says_so(tmp_path: Path) -> None:
    hidden = {name: data for name, data in FILES.items() if "/1/" not in name} | {"proc/uptime": b"1.0 1.0\n"}
    sampler = SAMPLER.create(make_context(tree(tmp_path, hidden)))
    with pytest.raises(SourceError, match="hidepid") as raised:
        await sampler.sample()
    assert raised.value.reason == "permission_denied"

    tree(tmp_path, FILES)
    assert value(await sampler.sample(), "inferwatch_tcp_segments_sent_total") == 1000
