"""The latest snapshot of every (sampler, instance), and the pages made of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from inferwatch.exposition import EOF, Format, Piece, Rendered, gzip_member, join
from inferwatch.model import Family, Snapshot

WANTED_NS: Final = 600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Entry:
    snapshot: Snapshot
    rendered: Rendered
    expires_ns: int


class Store:
    """Keeps the newest data and drops what is too old; a page is joined once per change and then only handed out.

    Args:
        monotonic_ns: The clock.
    """

    def __init__(self, monotonic_ns: Callable[[], int]) -> None:
        self._now = monotonic_ns
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._pages: dict[tuple[Format, bool], bytes] = {}
        self._heads: dict[tuple[Family, Format], Piece] = {}
        self._wanted: dict[tuple[Format, bool], int] = {}

    def publish(self, snapshot: Snapshot, rendered: Rendered, expires_ns: int) -> None:
        """Replace a (sampler, instance)'s data.

        Args:
            snapshot: The data.
            rendered: The same, rendered.
            expires_ns: From when on it is too old to be shown, on the monotonic clock.
        """
        self._entries[snapshot.sampler, snapshot.instance] = _Entry(snapshot, rendered, expires_ns)
        self._pages.clear()

    def drop(self, sampler: str, instance: str) -> None:
        """Forget a (sampler, instance)."""
        if self._entries.pop((sampler, instance), None) is not None:
            self._pages.clear()

    def snapshots(self) -> Sequence[Snapshot]:
        """Return the snapshots that are not too old, ordered by sampler and instance."""
        self._expire()
        return [self._entries[key].snapshot for key in sorted(self._entries)]

    @property
    def counts(self) -> Mapping[str, tuple[int, int]]:
        """Return per sampler the number of series shown and of samples left out at the last rendering."""
        totals: dict[str, tuple[int, int]] = {}
        for (sampler, _), entry in self._entries.items():
            series, dropped = totals.get(sampler, (0, 0))
            totals[sampler] = series + entry.rendered.series, dropped + entry.rendered.dropped
        return totals

    def page(self, form: Format, *, gzip: bool) -> bytes:
        """Return the complete page; nothing is sampled and, between two changes, nothing is computed."""
        self._expire()
        self._wanted[form, gzip] = self._now() + WANTED_NS
        page = self._pages.get((form, gzip))
        if page is None:
            pieces = list(self._pieces(form))
            plain = self._pages.get((form, False)) or b"".join(piece.raw for piece in pieces)
            self._pages[form, False] = plain
            page = self._pages[form, gzip] = gzip_member(pieces, plain) if gzip else plain
        return page

    def _pieces(self, form: Format) -> list[Piece]:
        by_sampler: dict[str, list[Rendered]] = {}
        for sampler, instance in sorted(self._entries):
            by_sampler.setdefault(sampler, []).append(self._entries[sampler, instance].rendered)
        pieces = [piece for parts in by_sampler.values() for piece in join(parts, form, self._heads)]
        if form is Format.OPENMETRICS:
            pieces.append(Piece(EOF))
        return pieces

    def prepare(self, rendered: Rendered, *, shared: bool) -> None:
        """Compress new data before it is published when a client asked for gzip lately.

        So that client's next scrape only copies bytes. Safe to call from a thread.

        Args:
            rendered: The data.
            shared: Whether other instances of the sampler are published too, so that its families are joined.
        """
        now = self._now()
        forms = [form for (form, gzip), until in tuple(self._wanted.items()) if gzip and until > now]
        if not forms:
            return
        pieces = list(rendered.lines.values()) if shared else [rendered.whole(form) for form in forms]
        for piece in pieces:
            _ = piece.deflated

    def _expire(self) -> None:
        now = self._now()
        stale = [key for key, entry in self._entries.items() if entry.expires_ns <= now]
        for key in stale:
            del self._entries[key]
        if stale:
            self._pages.clear()
