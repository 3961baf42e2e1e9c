"""The page at `/`: what this is, where everything is, and how the samplers and the targets are doing."""

import base64
import hashlib
import html
from collections.abc import Iterator
from importlib import resources
from string import Template
from typing import Final

from inferwatch import __version__
from inferwatch.web.targets_view import TargetView, target_views
from inferwatch.web.view import AgentView, SamplerView, printable, sampler_views

NO_TARGETS: Final = (
    '<tr><td colspan="4" class="dim">No serving process was found; a [[targets]] rule in the configuration names one.'
    "</td></tr>"
)


class Landing:
    """Makes the page from the template beside this file; it needs no script and no other file.

    Args:
        agent: Whose samplers and targets are shown.
    """

    def __init__(self, agent: AgentView) -> None:
        self._agent = agent
        text = resources.files(__package__).joinpath("landing.html").read_text(encoding="utf-8")
        self._template = Template(text)
        self.headers = {"Content-Security-Policy": _policy(text), "Cache-Control": "no-store"}

    def page(self) -> str:
        """Return the page as HTML."""
        ready = self._agent.scheduler.first_round_done.is_set()
        rows = (row for view in sampler_views(self._agent) for row in _rows(view))
        problems = "".join(f"<li>{_text(problem)}</li>\n" for problem in self._agent.discovery.problems)
        return self._template.substitute(
            version=_text(__version__),
            ready="ready" if ready else "not ready yet: the first round is going on",
            targets="\n".join(_target_row(view) for view in target_views(self._agent)) or NO_TARGETS,
            rows="\n".join(rows),
            problems=f"<h2>Samplers left out</h2>\n<ul>\n{problems}</ul>" if problems else "",
        )


def _policy(text: str) -> str:
    """Return a policy that allows the page's own style by its hash, and nothing else."""
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _rows(view: SamplerView) -> Iterator[str]:
    """Yield one table row per instance, or one that says why there is none."""
    if not view.enabled:
        yield _row(view.spec.name, "disabled", view.spec.summary, "")
    elif view.idle_reason is not None:
        yield _row(view.spec.name, "idle", view.spec.summary, view.idle_reason)
    for unit in view.units:
        yield _row(unit.label, unit.state.value, view.spec.summary, "; ".join(unit.problems.values()))


def _row(label: str, state: str, summary: str, detail: str) -> str:
    more = f'<br><span class="dim detail">{_text(detail)}</span>' if detail else ""
    return (
        f'<tr><th scope="row">{_text(label)}</th><td class="{state}">{state}</td><td>{_text(summary)}{more}</td></tr>'
    )


def _target_row(view: TargetView) -> str:
    roles = ", ".join(f"{number} {role}" for role, number in view.roles.items())
    model = f'<br><span class="dim detail">{_text(view.model)}</span>' if view.model else ""
    page = view.page
    metrics = _text(page.url) if page.url else f'<span class="dim">{_text(page.missing_reason)}</span>'
    return (
        f'<tr><th scope="row">{_text(view.target.name)}</th><td>{_text(view.target.engine)}{model}</td>'
        f'<td>{_text(roles)}</td><td class="detail">{metrics}</td></tr>'
    )


def _text(text: str) -> str:
    """Make text of any origin safe between tags and in attributes."""
    return html.escape(printable(text))
