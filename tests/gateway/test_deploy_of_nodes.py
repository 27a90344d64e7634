"""What stands in `deploy/` for several nodes: the unit, the compose file and the manifests fit the command."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from dragoman.cluster.metrics import _COUNTERS
from tests.gateway.test_deploy import DEPLOY, parsed, unit
from tests.support.needs import ROOT

UNIT = "dragoman-node@.service"


def node_of(words: list[str]) -> Any:
    """The options of a node's command line, checked for what every node needs."""
    given: Any = parsed(words)
    assert given.store.startswith("postgresql://")
    assert given.node and given.node_url and given.node_secret_file
    assert given.home == "shared"
    return given


def node_unit() -> configparser.SectionProxy:
    return unit(UNIT)["Service"]


def test_the_unit_starts_a_node_of_its_name() -> None:
    command = node_unit()["ExecStart"].replace("${DATABASE_URL}", "postgresql://db/d").replace("%i", "node-1")
    given = node_of(shlex.split(command)[1:])
    assert (given.node, given.node_url) == ("node-1", "https://node-1.example.org:8790")
    assert given.certificate and given.key
    assert node_unit()["Restart"] == "always"


def test_the_unit_of_a_node_may_do_no_more_than_that_of_one_server() -> None:
    one = unit()["Service"]
    different = {name for name in {*one, *node_unit()} if one.get(name) != node_unit().get(name)}
    assert different == {"ExecStart", "EnvironmentFile", "Restart", "TimeoutStopSec"}


def test_systemd_takes_the_unit_of_a_node(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return  # where there is no systemd, it is enough that it can be read
    copy = tmp_path / "dragoman-node@node-1.service"
    copy.write_text((DEPLOY / UNIT).read_text().replace("/opt/dragoman/bin/dragoman", sys.executable))
    verified = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True, timeout=50, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")


def entrypoint() -> list[str]:
    """What the image starts, before the words of a container."""
    (line,) = re.findall(r"^ENTRYPOINT (\[.*\])$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    words: list[str] = yaml.safe_load(line)
    return words[1:]


def test_the_compose_file_starts_two_nodes_that_reach_each_other() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    nodes = {name: one for name, one in services.items() if one["image"] == "dragoman"}
    assert len(nodes) == 2
    for name, one in nodes.items():
        given = node_of([*entrypoint(), *one["command"]])
        assert (given.node, given.node_url) == (name, f"http://{name}:{given.port}")
        assert given.store == "postgresql://dragoman@database/dragoman"
        assert one["ports"][0].startswith("127.0.0.1:")


def test_the_manifests_start_nodes_by_the_names_of_their_pods() -> None:
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    (state,) = [one["spec"] for one in manifests if one["kind"] == "StatefulSet"]
    services = {one["metadata"]["name"]: one["spec"] for one in manifests if one["kind"] == "Service"}
    spec = state["template"]["spec"]
    (container,) = spec["containers"]
    values = {"$(DATABASE_URL)": "postgresql://db/d", "$(POD_NAME)": "dragoman-0"}
    words = [re.sub(r"\$\(\w+\)", lambda found: values[found[0]], word) for word in container["args"]]
    given = node_of([*entrypoint(), *words])
    assert given.node_url == f"http://dragoman-0.{state['serviceName']}:{given.port}"
    assert services[state["serviceName"]]["clusterIP"] == "None"
    assert given.allowed_host == ["dragoman"]
    assert "dragoman" in services
    assert given.node_secret_file == spec["initContainers"][0]["command"][-1]
    assert spec["terminationGracePeriodSeconds"] > given.grace + 20
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted <= {one["name"] for one in spec["volumes"]}


def test_the_image_can_keep_sessions_in_a_database() -> None:
    assert re.search(r"^asyncpg==", (ROOT / "requirements" / "runtime.txt").read_text(), re.MULTILINE)


def test_every_figure_of_a_cluster_is_told_of() -> None:
    page = (DEPLOY / "cluster.md").read_text()
    told = [name for name, _ in _COUNTERS.values() if name not in ("entries_committed", "commits")]
    assert [name for name in told if f"`{name}_total`" not in page] == []


@pytest.mark.parametrize("number", range(1, 9))
def test_the_page_of_promises_has_each_with_its_condition(number: int) -> None:
    page = (ROOT / "docs" / "concepts" / "promises.md").read_text()
    (row,) = re.findall(rf"^\| G{number} \| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    assert all(row)
