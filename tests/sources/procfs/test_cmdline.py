import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferwatch.sources.procfs.cmdline import parse_cmdline


@pytest.mark.parametrize(
    ("data", "arguments"),
    [
        (b"python\x00-m\x00x\x00", ("python", "-m", "x")),
        (b"a\x00\x00b\x00", ("a", "", "b")),
        (b"VLLM::EngineCore", ("VLLM::EngineCore",)),
        (b"VLLM::Worker_TP0" + b"\x00" * 90, ("VLLM::Worker_TP0",)),
        (b"nginx: master process nginx" + b" " * 20, ("nginx: master process nginx",)),
        (b"", ()),
        (b"\x00\x00", ()),
        (b"a\xff\x00", ("a\N{REPLACEMENT CHARACTER}",)),
    ],
)
def test_arguments_and_titles(data: bytes, arguments: tuple[str, ...]) -> None:
    assert parse_cmdline(data, 4096).arguments == arguments


def test_what_was_cut_says_so() -> None:
    assert parse_cmdline(b"abcd", 4).truncated
    assert not parse_cmdline(b"abc", 4).truncated


@given(st.binary(max_size=200))
def test_it_never_fails(data: bytes) -> None:
    assert len(parse_cmdline(data, 1000).arguments) <= data.count(b"\x00") + 1
