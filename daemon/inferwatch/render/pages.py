"""A sampler's page: the generated parts of it, and the page as the program prints it."""

import sys
from collections.abc import Mapping
from pathlib import Path

from inferwatch.render.markdown import metrics_table, options_table
from inferwatch.render.options import section_of
from inferwatch.spec import SamplerSpec


def page_of(spec: SamplerSpec) -> str:
    """Return a sampler's page: the file beside its module, or its tables where there is none."""
    module = sys.modules.get(getattr(spec.create, "__module__", ""))
    file = getattr(module, "__file__", None)
    page = Path(file).with_name(f"{spec.name}.md") if file else None
    if page is not None and page.is_file():
        return page.read_text(encoding="utf-8")
    parts = tables(spec)
    head = f"# {spec.name}\n\n{spec.summary} Read from {spec.source}."
    return f"{head}\n\n## Metrics\n\n{parts['metrics']}\n\n## Options\n\n{parts['options']}\n"


def tables(spec: SamplerSpec) -> Mapping[str, str]:
    """Return the generated parts of a sampler's page, by marker."""
    return {
        "metrics": metrics_table(spec.families),
        "options": options_table(section_of(spec.options, f"samplers.{spec.name}", spec.summary)),
    }
