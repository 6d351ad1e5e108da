"""Open the stages of a run, with the progress that its caller asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from neardup.progress import Progress, Stages, check_progress
from neardup.report.progress_lines import StageLines


@contextmanager
def open_stages(progress: bool | Progress) -> Iterator[Stages]:
    """Open the stages of a run that reports to `progress`; True draws bars on stderr, or lines if
    it is no terminal.

    Raises
    ------
    SettingError
        If it is neither True or False nor has the methods of Progress.
    """
    check_progress(progress)
    if progress is False:
        yield Stages()
    elif progress is True:
        from rich.console import Console

        from neardup.report.progress_bars import StageBars

        console = Console(stderr=True)
        # A notebook is no terminal, but Rich can draw bars in it.
        if console.is_terminal or console.is_jupyter:
            with StageBars(console) as bars:
                yield Stages(bars)
        else:
            yield Stages(StageLines())
    else:
        yield Stages(progress)
