"""No bytes make a parser raise anything but ParseError."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.loadavg import parse_loadavg
from inferwatch.sources.procfs.meminfo import parse_meminfo
from inferwatch.sources.procfs.pressure import parse_pressure
from inferwatch.sources.procfs.schedstat import parse_schedstat
from inferwatch.sources.procfs.snmp import parse_snmp
from inferwatch.sources.procfs.sockstat import parse_sockstat
from inferwatch.sources.procfs.softirqs import parse_softirqs
from inferwatch.sources.procfs.stat import parse_stat
from inferwatch.sources.procfs.vmstat import parse_vmstat
from inferwatch.sources.sysfs.cpulist import parse_cpulist
from strategies import mutated, mutated_tokens
from support import HOSTS

Parser = Callable[[bytes], object]

RECORDED = HOSTS / "debian12-2cpu" / "proc"
CONSTRUCTED = HOSTS / "two-nodes" / "proc"
PARSERS: dict[str, tuple[Parser, bytes]] = {
    "stat": (partial(parse_stat, user_hz=100), (RECORDED / "stat").read_bytes()),
    "loadavg": (parse_loadavg, (RECORDED / "loadavg").read_bytes()),
    "softirqs": (parse_softirqs, (RECORDED / "softirqs").read_bytes()),
    "schedstat": (parse_schedstat, (CONSTRUCTED / "schedstat").read_bytes()),
    "meminfo": (parse_meminfo, (RECORDED / "meminfo").read_bytes()),
    "vmstat": (parse_vmstat, (RECORDED / "vmstat").read_bytes()),
    "pressure": (partial(parse_pressure, resource="io"), (RECORDED / "pressure" / "io").read_bytes()),
    "snmp": (parse_snmp, (RECORDED / "1" / "net" / "snmp").read_bytes()),
    "netstat": (partial(parse_snmp, file="/proc/net/netstat"), (RECORDED / "1" / "net" / "netstat").read_bytes()),
    "sockstat": (parse_sockstat, (RECORDED / "1" / "net" / "sockstat").read_bytes()),
    "cpulist": (partial(parse_cpulist, file="cpulist"), b"0-3,8,10-11\n"),
}
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def accept(parser: Parser, data: bytes) -> None:
    with suppress(ParseError):
        parser(data)


@pytest.mark.parametrize("name", PARSERS)
def test_real_file_is_parsed(name: str) -> None:
    parser, original = PARSERS[name]

    assert parser(original)


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.binary(max_size=400))
@QUICK
def test_arbitrary_bytes_raise_nothing_but_a_parse_error(name: str, data: bytes) -> None:
    parser, _ = PARSERS[name]

    accept(parser, data)


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
@QUICK
def test_damaged_real_file_raises_nothing_but_a_parse_error(name: str, data: st.DataObject) -> None:
    parser, original = PARSERS[name]

    accept(parser, data.draw(mutated(original) | mutated_tokens(original)))


@pytest.mark.parametrize("name", sorted(PARSERS.keys() - {"cpulist"}))
def test_empty_file_is_a_parse_error(name: str) -> None:
    parser, _ = PARSERS[name]

    with pytest.raises(ParseError, match=r"expected"):
        parser(b"")
