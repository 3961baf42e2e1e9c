"""The store and its pages."""

import zlib

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from inferwatch.exposition import Format, Renderer
from inferwatch.model import Family, Kind, Sample, Snapshot
from inferwatch.runtime.store import Store

COUNT = Family("inferwatch_a_total", "A count.", Kind.COUNTER, labels=("engine",))
LEVEL = Family("inferwatch_b", "A level.", Kind.GAUGE, labels=("engine",))


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def publish(store: Store, sampler: str, instance: str, samples: list[Sample], expires: int = 10**18) -> None:
    rendered = Renderer().render(samples)
    store.prepare(rendered, shared=True)
    store.publish(Snapshot(sampler, instance, tuple(samples), 0, 0.0), rendered, expires)


def gunzip(data: bytes) -> bytes:
    decompressor = zlib.decompressobj(31)
    plain = decompressor.decompress(data)
    assert decompressor.eof
    assert decompressor.unused_data == b""  # one member: others would stop or fail at a second
    return plain


def test_family_of_several_instances_stands_once_on_the_page() -> None:
    store = Store(Clock())
    publish(store, "engine", "two", [COUNT(2, "two"), LEVEL(20, "two")])
    publish(store, "engine", "one", [COUNT(1, "one")])

    page = store.page(Format.TEXT, gzip=False).decode()

    assert page == (
        "# HELP inferwatch_a_total A count.\n"
        "# TYPE inferwatch_a_total counter\n"
        'inferwatch_a_total{engine="one"} 1\n'
        'inferwatch_a_total{engine="two"} 2\n'
        "# HELP inferwatch_b A level.\n"
        "# TYPE inferwatch_b gauge\n"
        'inferwatch_b{engine="two"} 20\n'
    )


def test_gzip_of_the_page_is_one_member_with_the_same_text() -> None:
    store = Store(Clock())
    publish(store, "engine", "one", [COUNT(1, "one")])
    publish(store, "engine", "two", [COUNT(1, "two")])
    publish(store, "other", "", [LEVEL(number, f"e{number}") for number in range(500)])
    for form in Format:
        assert gunzip(store.page(form, gzip=True)) == store.page(form, gzip=False)


def test_page_between_two_changes_is_the_same_object() -> None:
    store = Store(Clock())
    publish(store, "engine", "one", [COUNT(1, "one")])

    assert store.page(Format.TEXT, gzip=True) is store.page(Format.TEXT, gzip=True)


def test_new_data_of_a_client_that_takes_gzip_is_compressed_before_it_is_asked_for() -> None:
    store = Store(Clock())
    publish(store, "engine", "one", [COUNT(1, "one")])
    store.page(Format.TEXT, gzip=True)
    rendered = Renderer().render([COUNT(2, "one")])

    store.prepare(rendered, shared=False)

    assert rendered.whole(Format.TEXT)._deflated is not None
    assert rendered.whole(Format.OPENMETRICS)._deflated is None


def test_expired_data_leaves_the_page_without_any_new_data() -> None:
    clock = Clock()
    store = Store(clock)
    publish(store, "old", "", [LEVEL(1, "x")], expires=100)
    publish(store, "new", "", [COUNT(1, "x")], expires=200)
    assert b"inferwatch_b" in store.page(Format.TEXT, gzip=False)
    clock.now = 100

    page = store.page(Format.TEXT, gzip=False)

    assert b"inferwatch_b" not in page
    assert b"inferwatch_a_total" in page
    assert [snapshot.sampler for snapshot in store.snapshots()] == ["new"]


def test_openmetrics_page_ends_with_eof_also_when_empty() -> None:
    store = Store(Clock())

    assert store.page(Format.OPENMETRICS, gzip=False) == b"# EOF\n"
    assert store.page(Format.TEXT, gzip=False) == b""


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.text(max_size=20), max_size=8, unique=True), max_size=6))
def test_any_page_joins_to_valid_text_and_gzip(instances: dict[str, list[str]]) -> None:
    store = Store(Clock())
    for instance, names in instances.items():
        publish(store, "engine", instance, [LEVEL(1, instance + name) for name in names])

    page = store.page(Format.TEXT, gzip=False)

    assert gunzip(store.page(Format.TEXT, gzip=True)) == page
    parsed = [sample for family in text_string_to_metric_families(page.decode()) for sample in family.samples]
    assert len(parsed) == sum(map(len, instances.values()))
