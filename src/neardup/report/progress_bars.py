"""Show the stages of a run as bars on a terminal or in a notebook, with rates and the time left."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TaskID
from rich.text import Text

from neardup.progress import compile_seconds, is_compiling
from neardup.report.progress_lines import stage_label
from neardup.report.wording import duration, say, short

_BESIDE = 62  # characters of a line beside its bar


class _Counts(ProgressColumn):
    """Documents done, documents a second, megabytes of text a second."""

    def __init__(self) -> None:
        super().__init__()
        self._unit = say("progress.unit")  # the thread that draws knows no language

    def render(self, task: Task) -> Text:
        """Return the figures of a stage; nothing for one that does not count."""
        documents = task.fields["documents"]
        num_bytes = task.fields["num_bytes"]
        if not documents:
            return Text("")
        # Time of compilation does not count, so that the rate is the rate of the stage.
        compiling = compile_seconds() - task.fields["compiled"]
        seconds = max(task.fields["seconds"] or (task.elapsed or 0.0) - compiling, 1e-3)
        text = Text(f"{documents:>11,.0f} {self._unit} {short(documents / seconds):>5}/s")
        if num_bytes:
            text.append(f" {num_bytes / 1e6 / seconds:>5,.0f} MB/s")
        return text


class _Time(ProgressColumn):
    """The time that a stage took, or the time left."""

    def __init__(self) -> None:
        super().__init__()
        self._compiling = say("progress.compiling")
        self._left = say("progress.left", time="{time}")

    def render(self, task: Task) -> Text:
        """Return the time left if it is known, otherwise the time passed."""
        if task.fields["seconds"] is not None:
            return Text(duration(float(f"{task.fields['seconds']:.2f}")), style="dim")
        if is_compiling():
            return Text(self._compiling, style="cyan")
        if task.time_remaining is not None:
            return Text(self._left.format(time=clock(task.time_remaining)), style="cyan")
        return Text(clock(task.elapsed or 0.0), style="dim")


class StageBars:
    """Progress bars on the terminal, a line for each stage, erased at the end."""

    def __init__(self, console: Console) -> None:
        unicode = console.encoding.lower().startswith("utf")
        self._progress = Progress(
            SpinnerColumn(
                "dots" if unicode else "line", finished_text="[green]✓" if unicode else "+"
            ),
            "{task.description:<7}",
            BarColumn(bar_width=min(max(18, console.width - _BESIDE), 60)),
            _Counts(),
            _Time(),
            console=console,
            transient=True,
            expand=False,
        )
        self._task = TaskID(0)

    def __enter__(self) -> StageBars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, stage: str, total_documents: int | None) -> None:
        """Add the bar of a stage."""
        fields: dict[str, Any] = {
            "documents": 0,
            "num_bytes": 0,
            "seconds": None,
            "compiled": compile_seconds(),
        }
        self._task = self._progress.add_task(
            # 0 is not known, too: the bar moves to and fro.
            stage_label(stage),
            total=total_documents or None,
            **fields,
        )

    def advance(self, documents: int, num_bytes: int) -> None:
        """Move the bar of the stage; only `end` fills it, as a stage may pass over its documents
        twice.
        """
        task = self._progress.tasks[self._task]
        done = task.fields["documents"] + documents
        num_bytes += task.fields["num_bytes"]
        # Never full before `end`.
        completed = done if task.total is None else min(done, task.total - 0.5)
        self._progress.update(self._task, completed=completed, documents=done, num_bytes=num_bytes)

    def tasks(self, done: int, total: int) -> None:
        """Move the bar of the stage to the finished tasks of a cluster."""
        self._progress.update(self._task, completed=min(done, total - 0.5), total=total)

    def end(self, stage: str, seconds: float) -> None:
        """Fill the bar: rejected rows count in the total and are never done."""
        done = max(1, self._progress.tasks[self._task].fields["documents"])
        self._progress.update(self._task, total=done, completed=done, seconds=seconds)


def clock(seconds: float) -> str:
    """Return seconds as 0:05, 12:34 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
