"""Where there is no Chromium: CI must not pass without looking, a laptop may."""

import pytest

from tests.admin.browsing import find_chromium


def test_ci_without_a_chromium_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CI", "true")

    with pytest.raises(RuntimeError, match="apt-get install chromium"):
        find_chromium()


def test_elsewhere_the_tests_that_need_one_are_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"):
        find_chromium()
