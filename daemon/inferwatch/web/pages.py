"""The handlers: each copies what is already there; none samples."""

from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from inferwatch.exposition import accepts_gzip, choose_format
from inferwatch.runtime.unit import State
from inferwatch.web.api import samplers_document, to_json
from inferwatch.web.landing import Landing
from inferwatch.web.targets_api import targets_document
from inferwatch.web.turnstile import Turnstile
from inferwatch.web.view import AgentView, printable

HOW_TO_ENABLE: Final = "reload is not enabled; set enable_reload = true under [web] and restart, or send SIGHUP\n"
CROSS_SITE: Final = "refused: the request comes from a page of another site\n"
OWN_SITES: Final = frozenset({"same-origin", "none"})  # none: typed or scripted by the user, not by a page


class Pages:
    """The handlers, one per path.

    Args:
        agent: Whose data is shown.
    """

    def __init__(self, agent: AgentView) -> None:
        self._agent = agent
        self._landing = Landing(agent)
        self._turnstile = Turnstile()
        # read once: a change of [web] takes effect after a restart
        self._reload_enabled = agent.loaded.config.web.enable_reload

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; aiohttp adds HEAD to each GET."""
        return [
            web.get("/", self.landing),
            web.get("/metrics", self.metrics),
            web.get("/-/healthy", self.healthy),
            web.get("/-/ready", self.ready),
            web.get("/api/v1/samplers", self.samplers),
            web.get("/api/v1/targets", self.targets),
            web.post("/-/reload", self.reload),
            web.put("/-/reload", self.reload),
        ]

    async def metrics(self, request: web.Request) -> web.Response:
        """Copy the page in the form that the client asks for."""
        await self._turnstile.wait()
        form = choose_format(_header(request, hdrs.ACCEPT))
        gzip = accepts_gzip(_header(request, hdrs.ACCEPT_ENCODING))
        headers = {hdrs.CONTENT_TYPE: form.value, hdrs.VARY: "Accept, Accept-Encoding"}
        if gzip:
            headers[hdrs.CONTENT_ENCODING] = "gzip"
        return web.Response(body=self._agent.store.page(form, gzip=gzip), headers=headers)

    async def landing(self, _request: web.Request) -> web.Response:
        """Show what this is and how the samplers are doing."""
        return web.Response(text=self._landing.page(), content_type="text/html", headers=self._landing.headers)

    async def healthy(self, _request: web.Request) -> web.Response:
        """Say that the event loop turns, which is all that health is here."""
        return web.Response(text="healthy\n")

    async def ready(self, _request: web.Request) -> web.Response:
        """Say whether every sampler has run once."""
        scheduler = self._agent.scheduler
        if scheduler.first_round_done.is_set():
            return web.Response(text="ready\n")
        pending = ", ".join(printable(unit.label) for unit in scheduler.units if unit.state is State.PENDING)
        text = f"not ready: the first run is not over yet of {pending or 'any sampler'}\n"
        return web.Response(status=503, text=text, headers={hdrs.RETRY_AFTER: "1"})

    async def samplers(self, _request: web.Request) -> web.Response:
        """List the samplers as JSON."""
        return _json(samplers_document(self._agent))

    async def targets(self, _request: web.Request) -> web.Response:
        """List the targets as JSON."""
        return _json(targets_document(self._agent))

    async def reload(self, request: web.Request) -> web.Response:
        """Read the configuration again, where that is enabled."""
        if not self._reload_enabled:
            return web.Response(status=403, text=HOW_TO_ENABLE)
        if _is_cross_site(request):
            return web.Response(status=403, text=CROSS_SITE)
        problems = await self._agent.reload()
        if problems:
            return web.Response(status=400, text="".join(f"{printable(problem)}\n" for problem in problems))
        return web.Response(text="reloaded\n")


def _json(document: object) -> web.Response:
    headers = {hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(body=to_json(document), content_type="application/json", headers=headers)


def _header(request: web.Request, name: str) -> str:
    """Return a header that may stand several times, which means the same as one list."""
    return ",".join(request.headers.getall(name, ()))


def _is_cross_site(request: web.Request) -> bool:
    """Return whether a browser sends this on behalf of another site's page: it would not ask its user."""
    if request.headers.get("Sec-Fetch-Site", "none").strip().lower() not in OWN_SITES:
        return True
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is None:
        return False
    try:
        host = urlsplit(origin).netloc
    except ValueError:
        return True
    return host.lower() != request.headers.get(hdrs.HOST, "").lower()
