"""The test run's own rule: as root a `real` test may not be skipped."""

import os

import pytest

pytest_plugins = ["pytester"]


SKIPPED = """
import pytest

@pytest.mark.real("prometheus")
def test_real():
    pytest.skip("no prometheus here")

def test_other():
    pytest.skip("no second NUMA node here")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the rule holds for root only")
def test_skipped_real_test_fails_the_run_as_root(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> None:
    pytester.makepyfile(SKIPPED)
    pytester.path.joinpath("plugin_of_tests.py").write_text(
        (request.config.rootpath / "tests" / "conftest.py").read_text(), encoding="utf-8"
    )
    pytester.makeconftest(
        "from plugin_of_tests import RealSkips, pytest_configure as register\n"
        "def pytest_configure(config):\n"
        '    config.addinivalue_line("markers", "real(what): needs it")\n'
        "    register(config)\n"
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["*1 x Skipped: no prometheus here*", "*may not be skipped as root*test_real*"])
