"""Run the tools that measure, and put what they print into the pages, between the marks that name
them.

    python tools/fill_tables.py ../shared/data [measure_methods measure_estimators ...]

A mark is a line `<!-- made by: tools/NAME.py ARGUMENTS -->`; what follows, up to `<!-- end -->`, is
replaced. The tool is given the folder of the labelled sets before its arguments. All marks when no
tool is named. The commit, the machine and its load stand below each table.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
from environment import conditions

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDERS = ("docs", "benchmarks/results")
MARK = re.compile(
    r"(?<=<!-- made by: )(tools/(\w+)\.py[^\n]*) -->\n(.*?)(?=<!-- end -->)", re.DOTALL
)


def fill(page: Path, folder: str, names: list[str]) -> None:
    """Run the tools of a page one after the other; each leaves a page that is whole."""
    for command, name, _ in MARK.findall(page.read_text()):
        if names and name not in names:
            continue
        tool, *arguments = command.split()
        print(f"{page.name}: {command}", file=sys.stderr)
        called = [sys.executable, str(REPOSITORY / tool), folder, *arguments]
        printed = subprocess.run(
            called, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()

        def replaced(found: re.Match[str], command: str = command, printed: str = printed) -> str:
            filled = f"{command} -->\n\n{printed}\n\n{conditions()}\n\n"
            return filled if found[1] == command else found[0]

        page.write_text(MARK.sub(replaced, page.read_text()))


if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Give the folder of the labelled sets: python tools/fill_tables.py ../shared/data")
    pages = [page for folder in FOLDERS for page in sorted((REPOSITORY / folder).glob("*.md"))]
    known = {name for page in pages for _, name, _ in MARK.findall(page.read_text())}
    if unknown := set(sys.argv[2:]) - known:
        sys.exit(
            f"No page has a table by {', '.join(sorted(unknown))}. There are "
            f"{', '.join(sorted(known))}."
        )
    for page in pages:
        fill(page, sys.argv[1], sys.argv[2:])
