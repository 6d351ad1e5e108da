"""The container file and the systemd unit: their commands are commands, and what they promise is in
them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from neardup.cli.main import cli
from neardup.settings.service import ServiceSettings

DEPLOY = Path(__file__).parents[2] / "deploy"


def container() -> list[tuple[str, str]]:
    """Return the instructions of the container file with their arguments."""
    lines = [
        line
        for line in (DEPLOY / "Containerfile").read_text().splitlines()
        if not line.startswith("#")
    ]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        (word, rest.strip())
        for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)
    ]


def unit() -> dict[str, list[str]]:
    """Return the settings of the section Service; a setting may have several values."""
    text = (DEPLOY / "neardup.service").read_text().split("[Service]\n")[-1].split("[Install]")[0]
    settings: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, separator, value = line.partition("=")
            assert separator, line
            settings.setdefault(name, []).append(value)
    return settings


def parsed(arguments: list[str]) -> dict:
    """Return the parameters of a command line of neardup."""
    command: click.Command = cli
    while isinstance(command, click.Group):
        command = command.commands[arguments[0]]
        arguments = arguments[1:]
    context = click.Context(
        command, resilient_parsing=True
    )  # does not look whether files are there
    values, rest, _ = command.make_parser(context).parse_args(args=list(arguments))
    assert not rest
    return values


def test_the_container_runs_the_service_as_a_user_without_rights():
    instructions = container()
    assert {word for word, _ in instructions} <= {
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "LABEL",
        "ENV",
        "USER",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    }
    last = dict(instructions)
    user, _, group = last["USER"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    order = [word for word, _ in instructions]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert all("slim" in rest for word, rest in instructions if word == "FROM")
    arguments = json.loads(last["ENTRYPOINT"]) + json.loads(last["CMD"])
    assert arguments[0] == "neardup"
    values = parsed(arguments[1:])
    assert (values["host"], values["token_files"]) == ("0.0.0.0", ["/run/secrets/tokens"])
    assert int(last["EXPOSE"]) == ServiceSettings().port
    assert f":{last['EXPOSE']}/readyz" in last["HEALTHCHECK"]
    assert (last["STOPSIGNAL"], last["VOLUME"]) == ("SIGTERM", "/data")


def test_the_container_copies_what_is_there():
    sources = [rest for word, rest in container() if word == "COPY" and "--from" not in rest]
    names = [name for rest in sources for name in rest.split()[:-1]]
    assert "src" in names
    assert not [name for name in names if not (DEPLOY.parent / name).exists()]


def test_the_unit_stops_later_than_the_service_and_starts_it_on_this_host():
    settings = unit()
    [start] = settings["ExecStart"]
    program, *arguments = start.split()
    assert Path(program).name == "neardup"
    assert parsed(arguments) == {
        "index": "${STATE_DIRECTORY}/news.index"
    }  # on this host: nothing else is named
    assert float(settings["TimeoutStopSec"][0]) > ServiceSettings().stop_timeout_s
    [before] = settings["ExecStartPre"]
    create = re.findall(r"neardup (index create \S+)'", before)[0].replace('"', "")
    assert parsed(create.split()) == {"address": "$STATE_DIRECTORY/news.index"}


def test_the_unit_can_write_its_state_alone():
    settings = unit()
    for name, value in {
        "DynamicUser": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        "IPAddressDeny": "any",
        "UMask": "0077",
        "StateDirectory": "neardup",
        "StateDirectoryMode": "0700",
    }.items():
        assert settings[name] == [value], name


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="no systemd-analyze on the path"
)
def test_systemd_accepts_the_unit_and_finds_it_hardened(tmp_path):
    file = tmp_path / "neardup.service"
    text = (DEPLOY / "neardup.service").read_text()
    file.write_text(text.replace("/opt/neardup/bin/neardup", sys.executable))
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(file)]
    rated = subprocess.run(command, capture_output=True, text=True, check=False)
    assert rated.returncode == 0, rated.stdout  # an exposure of 2.0 of 10 at most
