"""Make the pictures of the README and the docs from a real run: docs/pictures/*.svg and *.png.

`python tools/make_pictures.py` runs the commands below on examples/data, exports the terminal as
SVG with Rich, and photographs report.html with a headless Chromium. It needs `chromium` on the
path.
"""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

import neardup

REPOSITORY = Path(__file__).resolve().parent.parent
PICTURES = REPOSITORY / "docs" / "pictures"
COLUMNS = 88
DEDUP = "neardup dedup examples/data/licenses.parquet -o out/"
COMPARE = "neardup compare firefox-terms-2025-02-28.txt firefox-terms-2025-03-01.txt"
BANDS_OF = ("firefox-terms-2025-02-28.txt", "firefox-terms-2025-03-01.txt")
BAND_WIDTH = 68  # of five squares, and the space to the next band
# The colours of the first and the second text.
EQUAL = ("#2f78bd", "#2f78bd")
DIFFERENT = ("#c3ccd5", "#d2722a")
SHOWN = "mit-old-style-no-advert_18.RULE"  # a removed licence whose difference fits on a screen

sys.path.insert(0, str(REPOSITORY / "tests"))
from reference.browser import Browser  # noqa: E402 - the browser that the tests drive


def run_in(folder: Path, command: str) -> str:
    """Run a command as on a colour terminal and return its output with the escape codes."""
    environment = os.environ | {
        "PYTHONPATH": str(REPOSITORY / "src"),
        "COLUMNS": str(COLUMNS),
        "FORCE_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    called = [sys.executable, "-m", *command.split()]
    done = subprocess.run(called, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode("utf-8")


def draw_terminal(name: str, shown: list[tuple[str, str]]) -> None:
    """Write commands and their outputs as an SVG without a font to download."""
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False
    )
    for command, output in shown:
        console.print(Text("$ ", "green") + Text(command, "bold"))
        console.print(Text.from_ansi(output.strip("\n")))
        console.print()
    svg = console.export_svg(title="neardup", unique_id="neardup")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas")
    (PICTURES / name).write_text(svg, encoding="utf-8")


def photograph(browser: Browser, name: str, *, top: float, height: float, width: int) -> None:
    """Write a strip of the page that is shown as PNG."""
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    taken = browser.call(
        "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
    )
    (PICTURES / name).write_bytes(base64.b64decode(taken["data"]))


def photograph_report(report: Path, profile: Path) -> None:
    """Write the head of the report, and one removed document beside the kept one."""
    program = shutil.which("chromium") or sys.exit(
        "chromium is not on the path. Install it and run this again."
    )
    browser = Browser(program, profile)
    width = 1280
    try:
        browser.show(report, width=width)
        photograph(browser, "report.png", top=0, height=700, width=width)
        top, height = browser.run(_OPEN.replace("SHOWN", SHOWN))
        photograph(browser, "removed.png", top=top, height=min(height, 640), width=width)
    finally:
        browser.process.terminate()
        browser.process.wait()


_OPEN = """
(() => {
    const items = [...document.querySelectorAll("#removed-list > li")];
    const item = items.find((e) => e.textContent.includes("SHOWN")) ?? items[0];
    item.querySelector("details").open = true;
    const box = item.getBoundingClientRect();
    return [box.top + window.scrollY, box.height];
})()
"""


def draw_bands(name: str, folder: Path) -> None:
    """Write the signatures of two texts as SVG: a square for each hash, in bands."""
    texts = [(folder / file).read_text("utf-8") for file in BANDS_OF]
    method = neardup.MinHash()
    bands = neardup.lsh.choose_bands(threshold=method.threshold, recall=method.recall)
    signatures = neardup.sign(texts, method=neardup.MinHash(num_hashes=bands.num_hashes))
    equal = (signatures.values[0] == signatures.values[1]).reshape(-1, bands.rows_per_band)
    similarity = neardup.compare(*texts, method=method).similarity
    parts = []
    for band, rows in enumerate(equal):
        x = 12 + band * BAND_WIDTH
        if rows.all():
            parts.append(
                f'<rect x="{x - 4}" y="34" width="{BAND_WIDTH - 6}" height="52" rx="4" '
                'fill="#dcebf9" stroke="#22639f"/>'
            )
        for row, is_equal in enumerate(rows):
            for text, colour in enumerate(EQUAL if is_equal else DIFFERENT):
                parts.append(
                    f'<rect x="{x + 11 * row}" y="{40 + 22 * text}" width="9" height="18" '
                    f'fill="{colour}"/>'
                )
    width = 12 + BAND_WIDTH * len(equal)
    agreeing = int(equal.all(axis=1).sum())
    title = (
        f"Similarity {similarity:.2f}: {int(equal.sum())} of {equal.size} hashes are equal, and "
        f"all {bands.rows_per_band} rows in {agreeing} of {len(equal)} bands. One is enough."
    )
    (PICTURES / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 96" role="img">'
        f'<title>{title}</title><rect width="{width}" height="96" fill="#ffffff"/>'
        '<text x="10" y="22" font-family="system-ui, sans-serif" font-size="15" '
        f'fill="#17202a">{title}</text>{"".join(parts)}</svg>\n',
        encoding="utf-8",
    )


def main() -> None:
    """Run the commands in an empty folder beside a copy of the examples, and write every
    picture.
    """
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").symlink_to(REPOSITORY / "examples", target_is_directory=True)
        run_in(folder, DEDUP + " --overwrite")  # compiles, so that the picture shows a later run
        run_in(folder, DEDUP + " --overwrite")
        compare = run_in(folder / "examples" / "data", COMPARE)
        draw_terminal("compare.svg", [(COMPARE, compare)])
        photograph_report(folder / "out" / "report.html", folder / "profile")
        draw_bands("bands.svg", folder / "examples" / "data")


if __name__ == "__main__":
    main()
