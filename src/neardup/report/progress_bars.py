"""Show the stages of a run as bars on a terminal or in a notebook, with rates and the time left."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TaskID
from rich.text import Text

from neardup.progress import compile_seconds, is_compiling
from neardup.report.progress_lines import stage_label
from neardup.report.wording import duration, say, short

_OTHER_COLUMNS = 62  # characters of a line without its bar


class _Counts(ProgressColumn):
    """Documents done, documents a second, megabytes of text a second."""

    def __init__(self) -> None:
        super().__init__()
        # Looked up here: the language is not set in the thread that draws.
        self._unit = say("progress.unit")

    def render(self, task: Task) -> Text:
        """Return the figures of a stage; no text for a stage that counts no documents."""
        documents = task.fields["documents"]
        num_bytes = task.fields["num_bytes"]
        if not documents:
            return Text("")
        # Compilation happens once, so the rate leaves its time out.
        compiling = compile_seconds() - task.fields["compiled"]
        seconds = max(task.fields["seconds"] or (task.elapsed or 0.0) - compiling, 1e-3)
        text = Text(f"{documents:>11,.0f} {self._unit} {short(documents / seconds):>5}/s")
        if num_bytes:
            text.append(f" {num_bytes / 1e6 / seconds:>5,.0f} MB/s")
        return text


class _Time(ProgressColumn):
    """The time left of a stage, and the time that it took when it is over."""

    def __init__(self) -> None:
        super().__init__()
        self._compiling = say("progress.compiling")
        self._left = say("progress.left", time="{time}")

    def render(self, task: Task) -> Text:
        """Return the time left if it is known, otherwise the time since the stage began."""
        seconds = task.fields["seconds"]  # None until the stage is over
        if seconds is not None:
            return Text(duration(round(seconds, 2)), style="dim")
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
            BarColumn(bar_width=min(max(18, console.width - _OTHER_COLUMNS), 60)),
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
        # Without a total, the bar moves to and fro; a total of 0 would be full at once.
        total = total_documents or None
        self._task = self._progress.add_task(stage_label(stage), total=total, **fields)

    def advance(self, documents: int, num_bytes: int) -> None:
        """Move the bar of the stage by some documents.

        Only `end` fills it: a stage may pass over its documents twice.
        """
        task = self._progress.tasks[self._task]
        done = task.fields["documents"] + documents
        num_bytes += task.fields["num_bytes"]
        # Half a document less than the total is never full.
        completed = done if task.total is None else min(done, task.total - 0.5)
        self._progress.update(self._task, completed=completed, documents=done, num_bytes=num_bytes)

    def tasks(self, done: int, total: int) -> None:
        """Move the bar of the stage to the finished tasks of a cluster."""
        self._progress.update(self._task, completed=min(done, total - 0.5), total=total)

    def end(self, stage: str, seconds: float) -> None:
        """Fill the bar: rejected rows are in the total, but are never done."""
        done = max(1, self._progress.tasks[self._task].fields["documents"])
        self._progress.update(self._task, total=done, completed=done, seconds=seconds)


def clock(seconds: float) -> str:
    """Return seconds as 0:05, 12:34 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
