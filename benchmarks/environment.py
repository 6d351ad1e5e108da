"""The machine, the versions, and the virtual environment of the peers."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements-peers.txt"
_VERSIONS = """
import importlib.metadata, json, sys
print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))
"""


def peers_python(folder: Path, base_python: str, requirements: Path = REQUIREMENTS) -> str:
    """Return the interpreter of an environment of peers, made when its requirements changed."""
    python = folder / "bin" / "python"
    installed = folder / requirements.name
    if not installed.exists() or installed.read_text() != requirements.read_text():
        print(f"installing the peers into {folder.name} ...", flush=True)
        subprocess.run([base_python, "-m", "venv", "--clear", str(folder)], check=True)
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--requirement",
            str(requirements),
        ]
        if subprocess.run(install).returncode:
            sys.exit(
                f"The peers did not install. {requirements.name} says which Python they need: pass "
                "--peers-base."
            )
        installed.write_text(requirements.read_text())
    return str(python)


def versions(python: str, packages: list[str]) -> dict[str, str]:
    """Return the versions of installed packages, as that interpreter sees them."""
    answer = subprocess.run(
        [python, "-c", _VERSIONS, *packages], check=True, capture_output=True, text=True
    )
    found: dict[str, str] = json.loads(answer.stdout)
    return found


def first_line(command: list[str]) -> str:
    """Return the first line that a command prints, or "unknown"."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return (answer.stdout.splitlines() or ["unknown"])[0]


def machine() -> dict[str, str]:
    """Return processor, cores, memory, system and Python of this machine."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.M)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "processor": model.group(1).strip() if model else platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
    }


def slug(facts: dict[str, str]) -> str:
    """Return a file name for a machine: its processor and cores."""
    name = re.sub(r"\((r|tm)\)|cpu|@.*", " ", facts["processor"].lower())
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-") + f"-{facts['cores']}c"


def commit() -> str:
    """Return the commit of this tree, with a mark if it has changes."""
    tree = ["git", "-C", str(HERE)]
    changed = first_line([*tree, "status", "--porcelain", "--untracked-files=no"]) != "unknown"
    return first_line([*tree, "rev-parse", "--short", "HEAD"]) + (" and changes" if changed else "")
