"""The JSON document at /api/v1/targets, which `inferwatch targets --format json` prints too."""

from typing import Final

from inferwatch.model import Event
from inferwatch.targets.model import Endpoint, TargetProcess
from inferwatch.web.targets_view import TargetView, newest_oom_kills, target_views
from inferwatch.web.view import AgentView

NS: Final = 1_000_000_000


def targets_document(agent: AgentView) -> dict[str, object]:
    """Return every target, how old the table is and what is missing from it.

    What is not known is null. The newest OOM kill of all stands apart as well: a target seldom outlives its own.
    """
    now_ns = agent.clock.monotonic_ns()
    table = agent.targets.current()
    kills = sorted(newest_oom_kills(agent.events).values(), key=lambda event: event.monotonic_ns)
    return {
        "age_seconds": (now_ns - table.monotonic_ns) / NS if table.monotonic_ns else None,
        "permission_denied": table.permission_denied,
        "processes_hidden": table.hidden,
        "left_out": dict(table.left_out),
        "targets": [_target(view, now_ns) for view in target_views(agent)],
        "last_oom_kill": {"target": kills[-1].target or None, **_oom_kill(kills[-1], now_ns)} if kills else None,
    }


def _target(view: TargetView, now_ns: int) -> dict[str, object]:
    target, page = view.target, view.page
    return {
        "name": target.name,
        "engine": target.engine,
        "model": view.model or None,
        "processes": [_process(process) for process in target.processes],
        "endpoints": [_endpoint(endpoint) for endpoint in target.endpoints],
        "container_id": target.container_id or None,
        "pod_uid": target.pod_uid or None,
        "pod": target.pod or None,
        "pod_namespace": target.pod_namespace or None,
        "metrics_page": {
            "url": page.url or None,
            "engine": page.engine or None,
            "found_by": page.found_by or None,
            "missing_reason": page.missing_reason or None,
        },
        "last_oom_kill": _oom_kill(view.oom_kill, now_ns) if view.oom_kill else None,
    }


def _process(process: TargetProcess) -> dict[str, object]:
    return {
        "pid": process.id.pid,
        "container_pid": process.container_pid,
        "role": process.role,
        "comm": process.comm,
        "start_ticks": process.id.start_ticks,
    }


def _endpoint(endpoint: Endpoint) -> dict[str, object]:
    return {
        "url": endpoint.url or None,
        "port": endpoint.port,
        "unreachable_reason": endpoint.unreachable_reason or None,
        "front": endpoint.front,
    }


def _oom_kill(event: Event, now_ns: int) -> dict[str, object]:
    return {"age_seconds": (now_ns - event.monotonic_ns) / NS, "attributes": dict(event.attributes)}
