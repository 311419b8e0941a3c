"""Profile what runs: time and memory by module and by operator.

with burnish.profile() as profile:
    model(images)
print(profile)
profile.save_trace("trace.json")
"""

from burnish.profiling.profiler import Profile, profile
from burnish.profiling.rows import Row
from burnish.profiling.spans import Span

__all__ = ["Profile", "Row", "Span", "profile"]
