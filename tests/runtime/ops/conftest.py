"""Fixtures of operators' tests."""

from __future__ import annotations

import pytest

from burnish.kernels import direct, library
from burnish.ops._cpu import call, norm, pool
from burnish.plan.single import Single


@pytest.fixture
def launched(monkeypatch):
    """The kernels that a test used; small arrays are worth one, and threads too."""
    if library() is None:
        pytest.skip("no C compiler here")
    names = []
    run = direct.run

    def noted(kernel, calls):
        names.append(kernel)
        run(kernel, calls)

    run_one = direct.run_one

    def noted_alone(kernel, parts, fields):
        names.append(kernel)
        run_one(kernel, parts, fields)

    program = direct.program

    def also_noted(steps, *given, **options):
        names.append("program")
        program(steps, *given, **options)

    prepared = direct.prepared

    def noted_later(calls, *later):
        made, kernels = prepared(calls, *later), [kernel for kernel, *_ in calls]

        def call(*arrays):
            names.extend(kernels)
            made(*arrays)

        return call

    planned = Single.__call__

    def noted_plan(plan, *arrays):
        names.extend(plan.kernels)
        return planned(plan, *arrays)

    monkeypatch.setattr(Single, "__call__", noted_plan)
    monkeypatch.setattr(direct, "prepared", noted_later)
    monkeypatch.setattr(direct, "run", noted)
    monkeypatch.setattr(direct, "run_one", noted_alone)
    monkeypatch.setattr(direct, "program", also_noted)
    monkeypatch.setattr(direct, "_ENOUGH", 1)
    monkeypatch.setattr(call, "FEW", 0)
    monkeypatch.setattr(norm, "_FEW_PLACES", 0)
    for name in ("_SHORT", "_CACHED", "_SEEN"):
        monkeypatch.setattr(pool, name, 0)
    return names
