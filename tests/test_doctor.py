"""`doctor`: what works here, who set it, and whether the way out works; and the proxies it has to tell apart."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import types
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_internet import html, redirect

if TYPE_CHECKING:
    from conftest import Home, Result, Runner
    from fake_internet import FakeInternet
    from worlds import World

DOI = "10.1103/physrevlett.130.200601"
PROBE = "10.1038/nphys1170"
SECRET = "s3cret-9f2"
BLOCK_PAGE = "<!DOCTYPE html><html><title>Web filter</title>Blocked by policy</html>"


def rows(result: Result) -> dict[str, dict[str, str]]:
    """The lines of a doctor's answer by name; of several with one name the worst."""
    order = ("ok", "warning", "fault")
    checks = sorted(result.json()["checks"], key=lambda check: order.index(check["status"]))
    return {check["name"]: check for check in checks}


def everything(folder: Path) -> dict[str, Any]:
    """All that is below a folder: names, contents, dates."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        found[str(path)] = (facts.st_mode, facts.st_mtime_ns, path.read_bytes() if path.is_file() else None)
    return found


@pytest.fixture
def healthy(world: World) -> World:
    """A world in which doi.org knows the DOI that doctor asks for."""
    world.doi_org.register(PROBE, "Crossref")
    return world


# ---------------------------------------------------------------- the screen


@pytest.mark.usefixtures("healthy")
def test_all_that_is_looked_at_on_one_screen(run: Runner, home: Home, net: FakeInternet) -> None:
    result = run("doctor", "--json")
    assert result.rc == 0, result
    found = rows(result)
    names = "python file store log settings trust sources proxy cache locks sqlite certificates network"
    assert set(names.split()) <= set(found)
    assert {check["status"] for check in found.values()} == {"ok"}
    for name, said in (
        ("python", sys.executable),
        ("store", f"{home.store} (set by DOIGET_STORE in the environment)"),
        ("log", f"{home.config / 'access.log'} (default)"),
        ("sources", "unpaywall off: needs email"),
        ("proxy", f"{net.proxy_url} (set by HTTPS_PROXY in the environment); it connects us"),
        ("cache", f"{home.cache}; locks work"),
        ("locks", "locks work"),
        ("sqlite", "with FTS5"),
        ("certificates", f"1 in {net.ca_file} (set by SSL_CERT_FILE in the environment); the handshake with doi.org"),
        ("network", "doi.org answers"),
    ):
        assert said in found[name]["detail"], name
    shown = run("doctor").out
    assert len(shown.splitlines()) <= 20
    assert all(check["detail"] in shown for check in found.values())
    assert [request.url for request in net.requests()] == [f"https://doi.org/doiRA/{PROBE.replace('/', '%2F')}"] * 2


def test_the_file_says_where_it_was_unpacked_and_why(run: Runner, unpacked: Path) -> None:
    found = rows(run("doctor", "--offline", "--json"))
    if run.pyz.suffix != ".pyz":
        assert "run from source" in found["file"]["detail"]
        return
    assert f"unpacked into {unpacked}" in found["file"]["detail"]
    assert "as DOIGET_PYZ_ROOT asks" in found["file"]["detail"]
    assert "mcp-config" in found["serve"]["detail"]
    assert (
        "in the user's cache"
        in rows(run("doctor", "--offline", "--json", env={"DOIGET_PYZ_ROOT": None}))["file"]["detail"]
    )


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize("used", [False, True])
def test_doctor_leaves_nothing_behind(run: Runner, world: World, home: Home, *, used: bool) -> None:
    """On a fresh machine and on a used one: not a file, not a folder, not a date of one."""
    if used:
        world.paper(DOI)
        assert run("fetch", DOI).rc == 0
    before = everything(home.root)
    for form in ([], ["--json"], ["--offline"]):
        assert run("doctor", *form).rc == 0
    after = everything(home.root)
    assert after.keys() == before.keys()
    # a probe came and went in the folder of the cache, which moved its date
    moved = {path for path in before if after[path] != before[path]}
    assert moved <= {str(home.cache), str(home.cache.parent)}


def test_a_cache_that_cannot_be_written_is_no_fault(run: Runner, home: Home) -> None:
    home.cache.parent.rmdir()
    home.cache.parent.write_text("in the way")
    result = run("doctor", "--offline", "--json")
    assert result.rc == 0, result
    assert rows(result)["cache"]["status"] == "warning"
    assert "Every run asks" in rows(result)["cache"]["detail"] or "every run asks" in rows(result)["cache"]["detail"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc here")
def test_a_store_where_only_the_kernel_makes_folders_is_a_fault(run: Runner) -> None:
    """Root may write below /proc, or so the system says."""
    result = run("doctor", "--offline", "--json", "--store", "/proc/papers")
    assert (result.rc, rows(result)["store"]["status"]) == (10, "fault")


def test_who_set_what(run: Runner, home: Home, net: FakeInternet) -> None:
    """Environment, config.toml, command line; every value that is no default; what is overruled; other programs'."""
    home.write_config(
        f'timeout_s = 7\nstore = "/elsewhere"\n[network]\nproxy = "{net.proxy_url}"\n[keys]\nncbi = "{SECRET}"\n'
    )
    env = {
        "HTTPS_PROXY": f"http://me:{SECRET}@127.0.0.1:9",
        "DOIGET_EMAIL": "me@uni.example.net",
        "REQUESTS_CA_BUNDLE": "/some/other.pem",
        "SSLKEYLOGFILE": str(home.root / "keys"),
        "PYTHONPATH": str(home.root / "modules"),
        "SSL_CERT_DIR": "/etc/certs",
        "DOIGET_POSSIBLY": "not ours",
    }
    for form in (["--json"], []):
        result = run("doctor", "--offline", *form, env=env)
        assert SECRET not in result.out + result.err
    found = rows(run("doctor", "--offline", "--json", env=env))
    settings = found["settings"]["detail"]
    for said in (
        str(home.config / "config.toml"),
        f"network.proxy={net.proxy_url} (set by config.toml)",
        "timeout_s=7.0 (set by config.toml)",
        "keys.ncbi=set (set by config.toml)",
        "email=me@uni.example.net (set by DOIGET_EMAIL in the environment)",
        "offline=true (set by argument)",
        f"store={home.store} (set by DOIGET_STORE in the environment)",
    ):
        assert said in settings
    trust = found["trust"]["detail"]
    for said in (
        "network.proxy (set by config.toml)",
        "HTTPS_PROXY (overruled by config.toml)",
        "network.ca_file (set by SSL_CERT_FILE in the environment)",
        "REQUESTS_CA_BUNDLE (overruled by SSL_CERT_FILE)",
        "store (set by DOIGET_STORE in the environment)",
        "SSLKEYLOGFILE (ignored",
        "PYTHONPATH (",
        "SSL_CERT_DIR (",
    ):
        assert said in trust
    assert not (home.root / "keys").exists()


def test_nothing_redirects_trust_on_a_plain_machine(run: Runner) -> None:
    bare = dict.fromkeys(("HTTPS_PROXY", "SSL_CERT_FILE", "DOIGET_STORE", "DOIGET_PYZ_ROOT", "XDG_CONFIG_HOME"))
    found = rows(run("doctor", "--offline", "--json", env=bare))
    assert found["trust"]["detail"] == "nothing redirects it"
    assert found["proxy"]["detail"] == "none: direct connection"
    assert found["certificates"]["detail"].startswith("the system's trust store")


# ---------------------------------------------------------------- the way out


def dead(net: FakeInternet, run: Runner) -> dict[str, str | None]:  # noqa: ARG001
    return {"HTTPS_PROXY": net.dead_proxy_url}


def wants_password(net: FakeInternet, run: Runner) -> dict[str, str | None]:  # noqa: ARG001
    net.require_auth("me", "another")
    return {"HTTPS_PROXY": net.proxy_url.replace("//", f"//me:{SECRET}@")}


def forbids(net: FakeInternet, run: Runner) -> dict[str, str | None]:  # noqa: ARG001
    net.refuse("doi.org")
    return {}


def socks(net: FakeInternet, run: Runner) -> dict[str, str | None]:  # noqa: ARG001
    return {"HTTPS_PROXY": "socks5://127.0.0.1:1080"}


def inspects(net: FakeInternet, run: Runner) -> dict[str, str | None]:  # noqa: ARG001
    net.distrust("doi.org")
    return {}


def blocks(net: FakeInternet, run: Runner) -> dict[str, str | None]:  # noqa: ARG001
    net.route("doi.org", None, html(BLOCK_PAGE))
    return {}


def has_no_ca(net: FakeInternet, run: Runner) -> dict[str, str | None]:  # noqa: ARG001
    return {"SSL_CERT_FILE": str(run.home.root / "none.pem")}


@pytest.mark.parametrize(
    ("trouble", "faults", "said"),
    [
        (dead, {"proxy", "network"}, "does not answer"),
        (wants_password, {"proxy", "network"}, "407 from proxy 127.0.0.1:"),
        (forbids, {"proxy", "network"}, "The proxy refused the connection to doi.org (403)."),
        (socks, {"proxy", "network"}, "HTTPS_PROXY names a socks5 proxy"),
        (inspects, {"certificates", "network"}, "certificate verify failed for doi.org"),
        (blocks, {"network"}, "A web page came"),
        (has_no_ca, {"certificates", "network"}, "cannot be read as PEM"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_where_the_way_out_ends(
    run: Runner, healthy: World, net: FakeInternet, trouble: Any, faults: set[str], said: str
) -> None:  # fmt: skip
    """Proxy, certificate and answer are told apart, exit 10, the next step is named, no password is shown."""
    assert healthy
    env = trouble(net, run)
    result = run("doctor", "--json", env=env)
    assert (result.rc, result.json()["healthy"]) == (10, False)
    found = rows(result)
    assert {name for name, check in found.items() if check["status"] == "fault"} == faults
    assert said in found["network"]["detail"]
    assert SECRET not in result.out + result.err
    if "proxy" in faults:
        assert found["certificates"]["detail"].endswith("not tried")
    else:
        assert "it connects us" in found["proxy"]["detail"] or trouble is has_no_ca


def test_a_direct_connection_that_fails_is_no_fault_of_a_proxy(run: Runner) -> None:
    env = {"HTTPS_PROXY": None, "RES_OPTIONS": "timeout:1 attempts:1"}
    found = rows(run("doctor", "--json", env=env))
    assert (found["proxy"]["status"], found["network"]["status"]) == ("ok", "fault")


# ---------------------------------------------------------------- what the proxy does to a command


BLOCKS = {
    "page": html(BLOCK_PAGE),
    "403": html(BLOCK_PAGE, 403),
    "400": html(BLOCK_PAGE, 400),
    "elsewhere": redirect("https://block.corp.example/why"),
    "unencrypted": redirect("http://block.corp.example/why"),
    "login": html("<html>Log in</html>", 511),
}
ARXIV = "arXiv:2401.12345"


@pytest.mark.parametrize(
    ("how", "ref"),
    [
        *(("page", ref) for ref in (DOI, "10.5281/zenodo.123", ARXIV, "pmid:123456", "PMC123456")),
        *((how, DOI) for how in ("403", "elsewhere", "unencrypted", "login")),
        ("400", ARXIV),
    ],
)
def test_a_block_page_is_intercepted_and_never_a_miss(run: Runner, net: FakeInternet, how: str, ref: str) -> None:
    net.route("*", None, BLOCKS[how])
    result = run("resolve", ref, "--json")
    error = result.json()["error"]
    assert (result.rc, error["code"], error["reason"]) == (8, "NETWORK_ERROR", "intercepted")
    assert error["disposition"] == "configure"
    assert "block.corp.example" not in net.connect_hosts()
    assert not list(run.home.cache.glob("resolver/*")), "a block page is not remembered"


def test_a_proxy_that_forbids_every_api(run: Runner, net: FakeInternet) -> None:
    for host in ("api.crossref.org", "api.datacite.org", "api.openalex.org", "doi.org"):
        net.refuse(host)
    result = run("resolve", DOI)
    assert result.rc == 8
    first, *_, last = result.err.splitlines()
    assert "proxy_blocked" in first
    assert "capabilities --hosts" in last
    assert "<h1>" not in result.err, "the proxy's page is not passed on"


def test_a_password_the_proxy_does_not_take_names_the_proxy_only(run: Runner, world: World, net: FakeInternet) -> None:
    """Case PX-02."""
    world.crossref_work(DOI)
    net.require_auth("me", "another")
    env = {"HTTPS_PROXY": net.proxy_url.replace("//", f"//me:{SECRET}@"), "DOIGET_LOG": "debug"}
    result = run("resolve", DOI, "--json", env=env)
    assert f"407 from proxy 127.0.0.1:{net.port}" in result.json()["error"]["message"]
    assert SECRET not in result.out + result.err


# ---------------------------------------------------------------- the settings of the system


@pytest.fixture(scope="module")
def module() -> Any:
    """doiget from its source: `DOIGET_TEST_PYZ` if that is one."""
    given = os.environ.get("DOIGET_TEST_PYZ", "")
    path = Path(given if given.endswith(".py") else Path(__file__).parent.parent / "doiget.py")
    spec = importlib.util.spec_from_file_location("doiget_of_doctor", path)
    assert spec
    assert spec.loader
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def system(module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """`system(proxies, pac)`: find_proxy's answer on a Windows of those settings."""
    for name in module.ENV_ALIASES["network.proxy"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    config = module.load_config()

    def ask(proxies: dict[str, str], pac: str = "") -> Any:
        class Key:
            def __enter__(self) -> None: ...
            def __exit__(self, *_: object) -> None: ...

        def value(_key: object, name: str) -> tuple[str, int]:
            if not pac:
                raise FileNotFoundError(name)
            return pac, 1

        registry = types.SimpleNamespace(HKEY_CURRENT_USER=0, OpenKey=lambda *_: Key(), QueryValueEx=value)
        monkeypatch.setitem(sys.modules, "winreg", registry)
        monkeypatch.setattr(urllib.request, "getproxies", lambda: proxies)
        monkeypatch.setattr(module.sys, "platform", "win32")
        return module.find_proxy(config)

    return ask


def test_the_settings_of_the_system_come_last(system: Any) -> None:
    assert system({"https": "http://proxy.corp.example:8080"}) == (
        "http://proxy.corp.example:8080",
        "the operating system",
    )
    assert system({"http": "http://only-for-http:1"}) == ("", "direct")
    assert system({}) == ("", "direct")


@pytest.mark.parametrize(
    ("proxies", "pac", "kind"),
    [({"socks": "socks://127.0.0.1:1080"}, "", "socks proxy"), ({}, "http://wpad.corp.example/proxy.pac", "PAC file")],
)
def test_a_system_that_names_socks_or_a_pac_file(
    module: Any, system: Any, proxies: dict[str, str], pac: str, kind: str
) -> None:  # fmt: skip
    with pytest.raises(module.DoigetError) as refused:
        system(proxies, pac)
    assert refused.value.reason == "proxy_blocked"
    assert f"the operating system names a {kind}" in refused.value.message
    assert "HTTPS_PROXY" in refused.value.hint
    assert "NO_PROXY=*" in refused.value.hint


# ---------------------------------------------------------------- over MCP


def test_health_is_quick_and_silent_unless_asked(run: Runner, healthy: World, net: FakeInternet, home: Home) -> None:
    """Without `network` no socket, no probe, not a line of the costly checks; with it all of doctor's."""
    assert healthy

    def call(number: int, **arguments: Any) -> str:
        params = {"name": "doiget_health", "arguments": arguments}
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}), call(2)]
    result = run("serve", input="\n".join(lines) + "\n")
    answer = json.loads(result.out.splitlines()[1])["result"]["structuredContent"]
    assert answer["healthy"] is True
    names = {check["name"] for check in answer["checks"]}
    assert {"python", "file", "store", "log", "settings", "trust", "proxy", "sources"} <= names
    assert not {"cache", "network", "certificates"} & names
    assert net.connects() == []
    assert not home.cache.exists()
    result = run("serve", input="\n".join([*lines[:1], call(2, network=True)]) + "\n")
    answer = json.loads(result.out.splitlines()[1])["result"]["structuredContent"]
    assert {"cache", "network", "certificates"} <= {check["name"] for check in answer["checks"]}
    assert len(net.requests()) == 1
