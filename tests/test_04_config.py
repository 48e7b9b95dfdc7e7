"""Settings: where each comes from, who may override whom, and what is never shown of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import doiget

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conftest import Home, Runner
    from fake_internet import FakeInternet
    from worlds import World

ROOT = Path(__file__).resolve().parent.parent
DOI = "10.1371/journal.fake.0000001"
SECRET = "sk-9f8e7d6c5b4a"  # must never be seen
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")

#: Every variable of spec §10, as the spec names them.
VARIABLES = (
    *(
        "DOIGET_STORE",
        "DOIGET_EMAIL",
        "DOIGET_SOURCE_POLICY",
        "DOIGET_OFFLINE",
        "DOIGET_TIMEOUT_S",
        "DOIGET_ACCESS_LOG",
    ),
    *("DOIGET_LOG", "DOIGET_LOG_FORMAT", "DOIGET_PYZ_ROOT", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"),
)


class Place:
    """One user's configuration, in this process."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.patch = root, patch
        self.folder = root / "config" / "doiget"
        self.policy_file = root / "policy.toml"
        for name in list(os.environ):
            if (
                name.upper().startswith("DOIGET_")
                or name.upper().endswith("_PROXY")
                or name in {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}
            ):
                patch.delenv(name)
        for name, value in {"HOME": "home", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}.items():
            (root / value).mkdir()
            patch.setenv(name, str(root / value))

    def config(self, text: str) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "config.toml").write_text(text, encoding="utf-8")

    def policy(self, text: str, mode: int = 0o644) -> None:
        self.policy_file.write_text(text, encoding="utf-8")
        self.policy_file.chmod(mode)

    def load(self, arguments: Mapping[str, Any] | None = None, **env: str) -> doiget.Config:
        with self.patch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            return doiget.load_config(arguments, self.policy_file)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    if sys.platform in {"win32", "darwin"}:
        pytest.skip("the folders of this system are not moved by XDG variables")
    return Place(tmp_path, monkeypatch)


def toml_line(key: str, value: str) -> str:
    table, _, name = key.rpartition(".")
    return f"[{table}]\n{name} = {value}\n" if table else f"{name} = {value}\n"


# ---- who says what ----

#: setting: (in config.toml, its value), (in the variable, its value), a value as an argument
WORDS: dict[str, tuple[tuple[str, Any], tuple[str, Any], Any]] = {
    "store": (('"/in/config"', "/in/config"), ("/in/env", "/in/env"), "/in/argument"),
    "email": (('"c@uni.test"', "c@uni.test"), ("e@uni.test", "e@uni.test"), "a@uni.test"),
    "timeout_s": (("11", 11.0), ("12", 12.0), 13.0),
    "access_log": (('"/c.log"', "/c.log"), ("/e.log", "/e.log"), "/a.log"),
    "log": (('"debug"', "debug"), ("WARNING", "warning"), "error"),
    "log_format": (('"json"', "json"), ("text", "text"), "json"),
    "keys.openalex": (('"config-key"', "config-key"), ("env-key", "env-key"), "arg-key"),
    "keys.ncbi": (('"config-key"', "config-key"), ("env-key", "env-key"), "arg-key"),
    "keys.elsevier": (('"config-key"', "config-key"), ("env-key", "env-key"), "arg-key"),
    "agree_tdm.elsevier": (("true", True), ("0", False), True),
    "agree_tdm.aps": (("false", False), ("1", True), False),
}


@pytest.mark.parametrize("key", WORDS)
def test_argument_before_environment_before_config_before_default(place: Place, key: str) -> None:
    """Each setting, each origin, and the origin is named."""
    (written, from_config), (variable, from_env), argument = WORDS[key]
    name = doiget.SETTING_BY_KEY[key].env
    assert place.load().origins[key].startswith("default")
    place.config(toml_line(key, written))
    found = place.load()
    assert (found.values[key], found.origins[key]) == (from_config, "config.toml")
    found = place.load(**{name: variable})
    assert (found.values[key], found.origins[key]) == (from_env, name)
    found = place.load({key: argument}, **{name: variable})
    assert (found.values[key], found.origins[key]) == (argument, "argument")


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("network.proxy", ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")),
        ("network.no_proxy", ("NO_PROXY", "no_proxy")),
        ("network.ca_file", ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")),
    ],
)
def test_config_comes_first_where_the_variable_serves_every_program(
    place: Place, key: str, names: tuple[str, ...]
) -> None:
    """Proxy and CA: config.toml speaks to doiget alone; among the variables the first that is set counts."""
    for name in names:
        assert place.load(**{name: "/env/value"}).origins[key] == name
    both = place.load(**dict.fromkeys(reversed(names), "/env/value"))
    assert both.origins[key] == names[0]
    place.config(toml_line(key, '"/config/value"'))
    found = place.load(**dict.fromkeys(names, "/env/value"))
    assert (found.values[key], found.origins[key]) == ("/config/value", "config.toml")


@pytest.mark.parametrize("blank", ["", "  ", "${user_config.x}", " ${HOME} ", "${user_config.api_key}"])
def test_blank_and_unfilled_mean_unset(place: Place, blank: str) -> None:
    """An MCP host fills in its form fields as variables; an empty field must not become a value (spec §10)."""
    place.config('store = "/in/config"\ntimeout_s = 9\n[keys]\nopenalex = "k"\n')
    names = [name for setting in doiget.SETTINGS for name in doiget.ENV_ALIASES.get(setting.key, (setting.env,))]
    variables = [name for name in names if name]  # one setting is config.toml's alone
    found = place.load(**dict.fromkeys(variables, blank))
    assert {found.origins[key] for key in ("store", "timeout_s", "keys.openalex")} == {"config.toml"}
    assert not any(origin in variables for origin in found.origins.values())
    place.config("".join(f"{key} = {json.dumps(blank)}\n" for key in doiget.SETTING_BY_KEY))
    assert set(place.load().origins.values()) <= {"default", "argument"}


@pytest.mark.parametrize("blank", ["", " ", "${user_config.proxy}"])
def test_a_blank_proxy_variable_is_no_proxy(place: Place, monkeypatch: pytest.MonkeyPatch, blank: str) -> None:
    """Nor does the system's own reading of the same variable bring it back."""
    monkeypatch.setenv("HTTPS_PROXY", blank)
    monkeypatch.setenv("all_proxy", blank)
    assert doiget.find_proxy(place.load()) == ("", "direct")


def test_a_blank_store_argument_is_not_the_working_directory(place: Place) -> None:
    """`--store "$UNSET"` must not fill whatever folder one stands in."""
    with contextlib.suppress(doiget.DoigetError):  # refusing it is as good as ignoring it
        assert place.load({"store": ""}).store == place.root / "home" / "papers"


@pytest.mark.parametrize(
    ("text", "is_on"),
    [*((w, True) for w in ("1", "true", "YES", "On")), *((w, False) for w in ("0", "FALSE", "no", "off"))],
)
def test_flags_are_read_in_words(place: Place, text: str, *, is_on: bool) -> None:
    assert place.load(DOIGET_OFFLINE=text).offline is is_on


@pytest.mark.parametrize(
    ("key", "env", "toml"),
    [
        ("offline", "s3cret-value", '"s3cret-value"'),
        ("timeout_s", "s3cret-value", '"s3cret-value"'),
        ("timeout_s", "nan", "nan"),
        ("timeout_s", "inf", "-1"),
        ("timeout_s", "0", "0"),
        ("timeout_s", "99999", "true"),
        ("source_policy", "s3cret-value", '"s3cret-value"'),
        ("log", "s3cret-value", "['s3cret-value']"),
        ("store", "", "5"),
        ("keys.openalex", "", "1357924680"),
        ("keys.ncbi", "s3cret\r\nX-Evil: 1", r'"s3cret\r\nX-Evil: 1"'),
        ("keys.ncbi", "s3cret\u2026", '"s3cret value"'),
        ("agree_tdm.aps", "s3cret-value", '"s3cret-value"'),
        ("network.proxy", "", "{ s3cret-value = 1357924680 }"),
    ],
)
def test_an_invalid_value_names_its_setting_and_not_itself(place: Place, key: str, env: str, toml: str) -> None:
    tries: list[tuple[str, dict[str, str]]] = [(toml_line(key, toml), {})]
    tries += [("", {doiget.SETTING_BY_KEY[key].env: env})] if env else []
    for config, variables in tries:
        place.config(config)
        with pytest.raises(doiget.DoigetError) as refused:
            place.load(**variables)
        assert (refused.value.code, refused.value.reason) == (doiget.Code.INVALID_ARGUMENT, "schema")
        assert key in refused.value.message
        assert not any(value in str(refused.value) for value in ("s3cret", "1357924680", "99999"))


def test_unknown_keys_warn_and_change_nothing(place: Place) -> None:
    place.config('stroe = "/typo"\n[network]\nproxi = "x"\n[strange]\na = 1\n')
    found = place.load()
    assert found.origins["store"] == "default"
    for name in ("stroe", "network.proxi", "strange.a"):
        assert any(name in warning for warning in found.warnings), found.warnings


@pytest.mark.parametrize(
    ("address", "used"),
    [
        ("me@uni.test", True),
        ("me@example.com", False),
        ("your@email.org", False),
        ("me", False),
        ("@x.org", False),
        ("a@b", False),
        ("a@b.c,d@e.f", False),
    ],
)
def test_a_placeholder_address_is_not_shown_to_anybody(place: Place, address: str, *, used: bool) -> None:
    """Unpaywall answers 422 to those; a warning says that it is not used."""
    found = place.load(DOIGET_EMAIL=address)
    assert (found.email == address) is used
    assert any("e-mail" in warning for warning in found.warnings) is not used


def test_the_strictest_word_wins(place: Place) -> None:
    """Offline and strict can be asked for by anyone and taken back by no one (spec §5)."""
    place.config('offline = true\nsource_policy = "strict"\n')
    found = place.load(
        {"offline": False, "source_policy": "lenient"}, DOIGET_OFFLINE="0", DOIGET_SOURCE_POLICY="lenient"
    )
    assert found.offline
    assert found.is_strict
    place.config("offline = false\n")
    assert place.load(DOIGET_OFFLINE="1").offline
    assert place.load({"offline": True}).offline
    assert place.load({"source_policy": "strict"}, DOIGET_SOURCE_POLICY="lenient").is_strict


def test_half_a_text_mining_consent_is_none_and_warns(place: Place) -> None:
    """A key without the yes, or the yes without a key: off, with a word about what is missing (spec §5)."""
    for env in ({"DOIGET_KEY_APS": "k"}, {"DOIGET_AGREE_TDM_APS": "1"}):
        found = place.load(**env)
        assert not found.tdm_enabled("aps")
        assert any("DOIGET_KEY_APS" in warning and "DOIGET_AGREE_TDM_APS" in warning for warning in found.warnings)
    found = place.load(DOIGET_KEY_APS="k", DOIGET_AGREE_TDM_APS="1")
    assert found.tdm_enabled("aps")
    assert found.warnings == ()
    assert not found.tdm_enabled("elsevier")


@pytest.mark.parametrize("text", ["~/shelf", "~", "~nosuchuser/x"])
def test_a_tilde_is_the_home_folder_and_never_a_folder_of_that_name(place: Place, text: str) -> None:
    store = place.load(DOIGET_STORE=text).store
    assert store.is_absolute()
    assert "~" not in str(store)


# ---- the administrator's word ----


def test_without_a_policy_file_nothing_is_pinned(place: Place) -> None:
    found = place.load()
    assert (found.policy, found.policy_error) == ({}, "")


def test_a_policy_pins_against_everybody(place: Place) -> None:
    place.policy(
        'source_policy = "strict"\noffline = true\nstore = "/srv/papers"\naccess_log = "/srv/log"\n'
        'proxy = "http://p:1"\nca_file = "/srv/ca"\n'
    )
    place.config('store = "/c"\n[network]\nproxy = "http://c:1"\n')
    arguments = {"store": "/a", "offline": False, "source_policy": "lenient"}
    found = place.load(
        arguments, DOIGET_STORE="/e", HTTPS_PROXY="http://e:1", DOIGET_ACCESS_LOG="/e", SSL_CERT_FILE="/e", NO_PROXY="*"
    )
    assert found.text("network.no_proxy") == "", "nobody goes around a proxy that is pinned"
    assert found.is_strict
    assert found.offline
    assert (str(found.store), str(found.access_log)) == ("/srv/papers", "/srv/log")
    assert (found.text("network.proxy"), found.text("network.ca_file")) == ("http://p:1", "/srv/ca")
    assert {found.origins[key] for key in ("store", "access_log", "network.proxy", "offline")} == {"policy"}


def test_a_policy_frees_nobody(place: Place) -> None:
    """`offline = false` in it does not take back the user's own caution."""
    place.policy('offline = false\nsource_policy = "lenient"\n')
    found = place.load({"offline": True}, DOIGET_SOURCE_POLICY="strict")
    assert found.offline
    assert found.is_strict


@pytest.mark.parametrize(
    "text",
    [
        "offline = ",
        "ofline = true\n",
        "offline = 'perhaps'\n",
        "source_policy = 3\n",
        'hosts = "arxiv.org"\n',
        "hosts = [1]\n",
        "tools = {}\n",
        'store = ""\n',
        "[network]\nproxy = 'http://p:1'\n",
        "\ufffe\x00",
    ],
)
def test_a_policy_that_cannot_be_understood_stops_all_fetching(place: Place, text: str) -> None:
    """Fail closed: a typing error in it must not mean that there is none (spec §5)."""
    place.policy(text)
    found = place.load()
    assert found.policy_error
    client = doiget.Client(found, doiget.Pacer(place.root / "pace"))
    with pytest.raises(doiget.DoigetError) as refused:
        client._check_allowed("api.crossref.org")
    assert refused.value.reason == "policy_file"


@POSIX
@pytest.mark.parametrize("mode", [0o666, 0o646, 0o664])
def test_a_policy_that_others_may_write_is_no_policy_and_no_fetching(place: Place, mode: int) -> None:
    place.policy('store = "/elsewhere"\n', mode)
    found = place.load()
    assert "written by others" in found.policy_error
    assert str(found.store) != "/elsewhere"


@POSIX
def test_a_policy_that_others_may_exchange_is_none(place: Place) -> None:
    place.policy_file.parent.chmod(0o777)
    assert not place.load().policy_error, "an empty folder pins nothing"
    place.policy('store = "/elsewhere"\n')
    assert "written by others" in place.load().policy_error


@POSIX
@pytest.mark.skipif(os.name != "nt" and os.geteuid() != 0, reason="only root can give a file away")
def test_a_policy_owned_by_another_user_is_refused(place: Place) -> None:
    place.policy("offline = true\n")
    os.chown(place.policy_file, 12345, 12345)
    assert place.load().policy_error


@POSIX
def test_a_policy_that_cannot_be_read_is_no_permission(place: Place) -> None:
    place.policy_file.mkdir()
    assert place.load().policy_error
    place.policy_file.rmdir()
    place.policy_file.symlink_to(place.policy_file)
    assert place.load().policy_error


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("arxiv.org", True),
        ("export.arxiv.org", True),
        ("api.crossref.org", False),
        ("xarxiv.org", False),
        ("plos.org", False),
        ("a.plos.org", True),
    ],
)
def test_pinned_hosts_narrow_the_list(place: Place, host: str, *, allowed: bool) -> None:
    place.policy('hosts = ["ARXIV.org", "export.arxiv.org", "*.plos.org"]\n')
    client = doiget.Client(place.load(), doiget.Pacer(place.root / "pace"))
    if allowed:
        client._check_allowed(host)
        return
    with pytest.raises(doiget.DoigetError) as refused:
        client._check_allowed(host)
    assert refused.value.reason == "policy_file"


def test_an_empty_list_of_hosts_allows_none(place: Place) -> None:
    place.policy("hosts = []\n")
    client = doiget.Client(place.load(), doiget.Pacer(place.root / "pace"))
    with pytest.raises(doiget.DoigetError):
        client._check_allowed("arxiv.org")


# ---- changing config.toml ----

BARE = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
COMMENT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).map(lambda text: f"# {text}")
VALUE = st.one_of(
    TEXT.map(lambda text: json.dumps(text).replace("\x7f", "\\u007f")),
    st.integers(-99, 99).map(str),
    st.booleans().map(lambda b: str(b).lower()),
)
TABLE = st.sampled_from(["network", "keys", "agree_tdm", "mine", "other.deep"])
HEAD = st.tuples(TABLE, st.sampled_from(["[{}]", "[ {} ]", "  [{}]  # here", "[{}]"])).map(
    lambda pair: pair[1].format(pair[0])
)
ENTRY = st.tuples(st.one_of(BARE, st.sampled_from(["store", "email", "proxy", "openalex", "ncbi"])), VALUE).map(
    " = ".join
)
LINE = st.one_of(
    ENTRY,
    COMMENT,
    st.just(""),
    st.just("list = [\n  1, # one\n  2,\n]"),
    st.just("network.proxy = 'http://old:1'"),
    HEAD,
    st.just("[[many]]"),
)
FILE = st.lists(LINE, max_size=8).map("\n".join)
NEW = st.one_of(
    st.tuples(st.sampled_from(["store", "email", "network.proxy", "network.ca_file", "keys.openalex"]), TEXT),
    st.tuples(st.just("timeout_s"), st.floats(1, 100)),
    st.tuples(st.sampled_from(["offline", "agree_tdm.aps"]), st.booleans()),
)


def parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def with_change(data: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """The data as it should be after the change; tables that are empty count as absent."""
    changed = json.loads(json.dumps(data))
    table, _, name = key.rpartition(".")
    spot = changed.setdefault(table, {}) if table else changed
    spot.pop(name, None)
    if value is not None:
        spot[name] = value
    return {k: v for k, v in changed.items() if v not in ({}, [])}


@settings(max_examples=300, deadline=None)
@given(text=FILE, new=NEW, removed=st.booleans())
@example(text="# only a comment", new=("email", "a@b.c"), removed=False)
@example(text="[ network ]\nno_proxy = 'x'", new=("network.proxy", "http://p:1"), removed=False)
@example(text="network.no_proxy = 'x'", new=("network.proxy", "http://p:1"), removed=False)
@example(text="network = { no_proxy = 'x' }", new=("network.proxy", "http://p:1"), removed=False)
@example(text="a = 1 # one\u2028two", new=("email", "x"), removed=False)
@example(text="a = 1\n[[many]]\nb = 2", new=("email", "x"), removed=False)
@example(text="[network]\nproxy = 'x'\n[[many]]\nproxy = 'mine'", new=("network.proxy", ""), removed=True)
@example(text="email = '''\nold\n'''\n", new=("email", "x"), removed=False)
@example(text="note = '''\nemail = 1\n'''\n", new=("email", "x"), removed=False)
@example(text="", new=("email", "del \x7f"), removed=False)
def test_one_setting_changes_and_every_other_line_stays(text: str, new: tuple[str, Any], *, removed: bool) -> None:
    """Whatever a person wrote around it: the file stays TOML, says the new thing, and else what it said before.

    Where an edit by lines cannot do that, leaving the file alone with an error is the other right answer.
    """
    key, value = new[0], None if removed else new[1]
    before = parsed(text)
    assume(before is not None)
    assume(all(isinstance(before.get(table, {}), dict) for table in ("network", "keys", "agree_tdm")))
    try:
        after = doiget.edit_toml(text, key, value)
    except doiget.DoigetError:
        return
    data = parsed(after)
    assert data is not None, after
    assert with_change(data, "nothing", None) == with_change(before, key, value)
    comments = [line for line in text.split("\n") if line.startswith("#")]
    assert sorted(line for line in after.split("\n") if line in comments) == sorted(comments)


def test_setting_twice_is_setting_once() -> None:
    once = doiget.edit_toml("# mine\n[network]\nno_proxy = 'x' # why\n", "network.proxy", "http://a:1")
    twice = doiget.edit_toml(once, "network.proxy", "http://b:2")
    assert twice == once.replace("http://a:1", "http://b:2")
    assert doiget.edit_toml(twice, "network.proxy", None) == "# mine\n[network]\nno_proxy = 'x' # why\n"


def test_config_set_get_and_path(run: Runner, home: Home) -> None:
    """On a fresh machine too; comments stay; the file is the user's alone, for it may hold keys."""
    file = home.config / "config.toml"
    assert run("config", "path").out.strip() == str(file)
    made = run("config", "set", "timeout_s", "30", "--json")
    assert made.rc == 0, made
    assert made.json()["key"] == "timeout_s"
    assert "timeout_s = 30.0  (config.toml)" in run("config", "get", "timeout_s").out
    home.write_config("# only words so far\n")
    assert run("config", "set", "email", "me@uni.test").rc == 0
    assert file.read_text().splitlines()[0] == "# only words so far"
    assert 'email = "me@uni.test"' in file.read_text()
    if os.name != "nt":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("config", "set", "email", "").rc == 0
    assert run("config", "get", "email", "--json").json()["settings"] == [
        {"key": "email", "value": "", "origin": "default"}
    ]
    assert file.read_text() == "# only words so far\n"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("nonsense", "1"), "nonsense"),
        (("timeout_s", "soon"), "timeout_s"),
        (("pyz_root", "/x"), "pyz_root"),
        (("offline", "perhaps"), "offline"),
        ((), "setting"),
    ],
)
def test_config_set_refuses_what_it_does_not_know(run: Runner, home: Home, words: tuple[str, ...], named: str) -> None:
    result = run("config", "set", *words)
    assert result.rc == 2
    assert named in result.err
    assert not (home.config / "config.toml").exists()


# ---- what is never shown ----


def broken(home: Home) -> None:
    home.write_config(f'timeout_s = 9\n[keys]\nopenalex = "{SECRET}\n')


@pytest.mark.parametrize(
    "words",
    [("info", DOI), ("fetch", DOI), ("config", "get"), ("info", DOI, "--json"), ("config", "set", "timeout_s", "3")],
)
def test_a_broken_config_file_is_named_and_not_quoted(
    run: Runner, home: Home, net: FakeInternet, words: tuple[str, ...]
) -> None:
    """Fail closed, with file and line: it may have said `strict`. Its text, which may be a key, is not shown."""
    broken(home)
    before = (home.config / "config.toml").read_bytes()
    result = run(*words, env={"DOIGET_LOG": "debug"})
    assert result.rc == 2
    assert "config.toml" in result.out + result.err
    assert "line 3" in result.out + result.err
    assert SECRET not in result.out + result.err
    assert "Traceback" not in result.err
    assert (home.config / "config.toml").read_bytes() == before
    assert net.connects() == []


@pytest.mark.parametrize("trouble", ["not toml", "bad value", "bad variable"])
def test_doctor_and_config_path_work_when_the_configuration_does_not(run: Runner, home: Home, trouble: str) -> None:
    """They are how a person finds out what is wrong, and where the file is: doctor reports the fault, exit 10."""
    env: dict[str, str | None] = {}
    if trouble == "not toml":
        broken(home)
    elif trouble == "bad value":
        home.write_config(f'offline = "{SECRET}"\n')
    else:
        env = {"DOIGET_TIMEOUT_S": SECRET}
    result = run("doctor", "--offline", "--json", env=env)
    assert result.rc == 10, result
    faults = [check for check in result.json()["checks"] if check["status"] == "fault"]
    assert any("config.toml" in fault["detail"] or "timeout_s" in fault["detail"] for fault in faults)
    assert run("config", "path", env=env).out.strip() == str(home.config / "config.toml")
    assert run("--version", env=env).rc == 0
    assert SECRET not in result.out + result.err


def test_keys_are_never_printed_by_any_command(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    """Every setting that is a secret, every command, both forms, stdout and stderr, and the provenance log."""
    world.paper(DOI)
    net.require_auth("me", f"p{SECRET}")
    secret_env: dict[str, str | None] = {
        setting.env: f"{SECRET}{n}" for n, setting in enumerate(doiget.SETTINGS) if setting.secret
    }
    assert len(secret_env) >= 5
    secret_env |= {"HTTPS_PROXY": net.proxy_url.replace("http://", f"http://me:p{SECRET}@"), "DOIGET_LOG": "debug"}
    commands = (
        ["capabilities"],
        ["config", "get"],
        ["doctor"],
        ["fetch", DOI],
        ["log", "show"],
        ["info", DOI],
        ["resolve", DOI, "--refresh"],
    )
    for form in ([], ["--json"]):
        for words in commands:
            result = run(*words, *form, env=secret_env)
            assert SECRET not in result.out + result.err, words
            assert result.rc == 0, result
    shown = run("config", "get", "--json", env=secret_env).json()["settings"]
    assert {row["value"] for row in shown if row["key"].startswith("keys.")} == {"set"}
    for path in [*home.root.rglob("*.log"), *home.root.rglob("*.toml"), *home.root.rglob("*.json")]:
        assert SECRET not in path.read_text(errors="replace"), path


@pytest.mark.parametrize(
    "proxy",
    [
        "http://me:{}@127.0.0.1:9",
        "me:{}@127.0.0.1:9",
        "http://me:a/{}@127.0.0.1:9",
        "http://me:a@{}@127.0.0.1:9",
        "//me:{}@127.0.0.1:9",
        "socks5://me:{}@x:1",
        "http://me:a {}\n@127.0.0.1:9",
    ],
)
def test_a_proxy_password_is_hidden_however_it_is_written(run: Runner, proxy: str) -> None:
    """With and without a scheme, and with the characters a password should not hold but does."""
    env: dict[str, str | None] = {"HTTPS_PROXY": proxy.format(SECRET)}
    for words in (["config", "get"], ["doctor", "--offline"], ["resolve", DOI], ["mcp-config", "cursor"]):
        result = run(*words, env=env)
        assert SECRET not in result.out + result.err, words
        assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "text",
    [
        "https://api.example/x?api_key=s3cret&q=1",
        "key=s3cret",
        "https://a.example/?mailto=s3cret@x.example",
        "https://bucket.example/f?X-Amz-Signature=s3cret",
        "https://reader:s3cret@proxy.example:8080",
        "http://reader:s3@cret/s3cret@proxy.example",
        "token=s3cret password=s3cret",
    ],
)
def test_what_is_shown_holds_no_secret(text: str) -> None:
    shown = doiget.redact(f"It failed: {text} (again)")
    assert "cret" not in shown
    assert shown.startswith("It failed: ")
    assert shown.endswith(" (again)")


@pytest.mark.parametrize(
    "text", ["/" * 100_000, "a@" + "/" * 100_000, "x-amz-" * 20_000, "key=" * 30_000, "//@" * 40_000]
)
def test_hiding_takes_time_by_length(text: str) -> None:
    began = time.process_time()
    doiget.redact(text)
    assert time.process_time() - began < 1


@POSIX
@pytest.mark.parametrize("trouble", ["device", "giant", "folder", "pipe"])
def test_settings_are_a_plain_file_of_a_sane_size(place: Place, trouble: str) -> None:
    """Whatever else stands there is an error and not waited for; a link to a plain file is one's own affair."""
    place.config("offline = true\n")
    path = place.folder / "config.toml"
    kept = path.rename(place.folder / "kept.toml")
    if trouble == "pipe":
        os.mkfifo(path)
    elif trouble == "device":
        path.symlink_to(os.devnull)
    elif trouble == "giant":
        path.touch()
        os.truncate(path, 2**21)
    else:
        path.mkdir()
    with pytest.raises(doiget.DoigetError, match=r"config\.toml cannot be read"):
        place.load()
    path.rmdir() if trouble == "folder" else path.unlink()
    path.symlink_to(kept)
    assert place.load().offline


def test_a_key_without_consent_is_a_warning_of_doctor(run: Runner) -> None:
    result = run("doctor", "--offline", "--json", env={"DOIGET_KEY_SPRINGER": SECRET})
    warnings = [check["detail"] for check in result.json()["checks"] if check["status"] == "warning"]
    assert any("DOIGET_AGREE_TDM_SPRINGER" in warning for warning in warnings)
    assert result.rc == 0, "a warning is no fault"
    assert SECRET not in result.out + result.err


# ---- where files go ----


def test_the_log_goes_into_the_store_where_the_config_folder_cannot_be_written(
    run: Runner, world: World, home: Home
) -> None:
    """A locked-down machine may allow the store and nothing else; the log is not given up (spec §7)."""
    paper = world.paper(DOI)
    home.config.parent.rmdir()
    home.config.parent.write_text("a file in the way")
    answer = run("fetch", DOI, "--json").json()
    assert answer.get("sha256") == paper.sha256, answer
    assert run("log", "verify", "--json").json()["healthy"] is True
    logs = list(home.store.rglob("access.log"))
    assert len(logs) == 1
    assert "fetch" in logs[0].read_text()
    said = run("doctor", "--offline", "--json").json()
    assert said["log"] == str(logs[0])


def test_a_config_file_with_a_byte_order_mark_is_read(place: Place) -> None:
    place.config("\ufefftimeout_s = 7\n")
    assert place.load().timeout_s == 7.0


def test_nothing_in_the_working_directory_counts(run: Runner, world: World, home: Home, net: FakeInternet) -> None:
    """Neither settings nor code: whoever can write the folder one stands in must not steer doiget (spec §5)."""
    paper = world.paper(DOI)
    trap = home.root / "trapped"
    plants = {
        "config.toml": "offline = true\nstore = '/planted'\n",
        "doiget/config.toml": "offline = true\n",
        "policy.toml": "offline = true\n",
        "doiget/policy.toml": "offline = true\n",
        ".env": "DOIGET_OFFLINE=1\n",
        "pyproject.toml": "[tool.doiget]\noffline = true\n",
        ".netrc": "machine api.crossref.org login planted password planted\n",
        "openssl.cnf": "planted\n",
    }
    for module in ("doiget", "httpx", "anyio", "json", "tomllib", "sitecustomize", "usercustomize", "platformdirs"):
        plants[f"{module}.py"] = f"import sys; sys.stderr.write('planted {module}\\n'); sys.exit(77)\n"
    for folder in (home.cwd, home.cwd / ".metadata"):
        folder.mkdir(exist_ok=True)
        for name, text in plants.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
    result = run("fetch", DOI, "--json", cwd=home.cwd)
    assert result.json().get("sha256") == paper.sha256, result
    assert "planted" not in result.out + result.err
    assert not trap.exists()
    assert not any("authorization" in request.headers for request in net.requests())
    settings_ = run("config", "get", "--json", cwd=home.cwd).json()["settings"]
    assert {row["origin"] for row in settings_ if row["key"] in {"offline", "email", "source_policy"}} == {"default"}


# ---- every setting is told of, and used ----


def test_the_table_holds_the_variables_of_the_contract() -> None:
    assert set(VARIABLES) <= {setting.env for setting in doiget.SETTINGS}
    assert "REQUESTS_CA_BUNDLE" in doiget.ENV_ALIASES["network.ca_file"]
    for name in doiget.TDM_SOURCES:
        assert {f"keys.{name}", f"agree_tdm.{name}"} <= set(doiget.SETTING_BY_KEY)
    assert (
        len({setting.key for setting in doiget.SETTINGS})
        == len({setting.env for setting in doiget.SETTINGS})
        == len(doiget.SETTINGS)
    )


def test_the_documentation_names_every_setting() -> None:
    """docs/CONFIG.md: each key, its variable, what it does, and its default."""
    page = (ROOT / "docs" / "CONFIG.md").read_text(encoding="utf-8")
    for setting in doiget.SETTINGS:
        for said in (f"`{setting.key}`", setting.env, setting.help, setting.default):
            assert said in page, setting.key
    assert "REQUESTS_CA_BUNDLE" in page


@pytest.mark.parametrize("setting", [setting.key for setting in doiget.SETTINGS if setting.key != "pyz_root"])
def test_every_setting_is_read_somewhere(setting: str) -> None:
    """A setting that is documented and never read is a lie; the module must use each, from wherever it was set."""
    source = (ROOT / "doiget.py").read_text(encoding="utf-8").partition("class Config(")[2]
    table, _, name = setting.rpartition(".")
    ways = [rf"""(?:text\(|values\[|values\.get\(|env_value\(|origins\[)"{re.escape(setting)}\""""]
    ways += [rf'"{re.escape(setting)}"'] if table else []
    ways += [rf"""{table}\.\{{name\}}"""] if name in doiget.TDM_SOURCES else []
    ways += [rf"""text\(f"{table}\.\{{source\}}"\)"""] if name in doiget._KEY_HEADERS else []
    assert any(re.search(way, source) for way in ways), f"nothing reads {setting}"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe with a name")
def test_a_pipe_is_no_settings(tmp_path: Path) -> None:
    """To open one is to wait for who writes into it, and every command reads its settings."""
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.load_toml(tmp_path / "config.toml")
    assert (caught.value.reason, "cannot be read" in caught.value.message) == ("schema", True)
