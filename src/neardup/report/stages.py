"""Open the stages of a run, with the progress that its caller asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from neardup.errors import SettingError
from neardup.progress import Progress, Stages
from neardup.report.progress_lines import StageLines


@contextmanager
def open_stages(progress: bool | Progress) -> Iterator[Stages]:
    """Open the stages of a run that reports to `progress`; True draws bars on stderr, or lines if it is no terminal.

    Raises
    ------
    SettingError
        If it is neither True or False nor has the methods of Progress.
    """
    if progress is False:
        yield Stages()
    elif progress is True:
        from rich.console import Console

        from neardup.report.progress_bars import StageBars

        console = Console(stderr=True)
        if console.is_terminal or console.is_jupyter:
            with StageBars(console) as bars:
                yield Stages(bars)
        else:
            yield Stages(StageLines())
    elif all(callable(getattr(progress, name, None)) for name in ("begin", "advance", "end")):
        yield Stages(progress)
    else:
        raise SettingError(
            "progress must be True, False or an object with the methods begin, advance and end: got "
            f"{progress!r:.80}. Use True for progress bars on stderr; neardup.Progress documents the methods."
        )
