# The first code that runs in doiget.pyz (its __main__). It picks a folder, unpacks the bundle there once, puts it first
# on sys.path and calls doiget.main(). It must parse on any Python, 2.7 included, to be able to say that it is too old.
#
# What doiget may ask:  boot = sys.modules.get("_doiget_boot")  is this module, or None when not started from the file.
#   boot.PYZ       absolute path of the file that was started (for mcp-config; sys.argv[0] stays as typed)
#   boot.BUILD     {"commit", "digest", "pythons", "platforms"}, all strings: what the builder wrote
#   boot.FOLDER    the unpacked folder in use, or None when running straight from the file (nothing was written)
#   boot.SOURCE    "DOIGET_PYZ_ROOT", "cache" or "temp": whose choice FOLDER was; None with FOLDER
#   boot.NATIVE    True if native code can be loaded; when False, serve cannot run and boot.WHY says why in one line
#   boot.WHY       "" or why a better folder was passed over
#   boot.mark_used()  renew the folder's stamp, which keeps it from being cleared away (serve: once an hour)
#   boot.damaged()    unpacked files that differ from the digests in the file; [PYZ] if that is damaged or gone (doctor)
import sys

BUILD = {"commit": "unknown", "digest": "", "pythons": "", "platforms": ""}
NAMES = ""  # of all modules and packages in the bundle


def refuse_old_python(version):
    # type: (tuple[int, ...]) -> None
    if version < (3, 10):
        text = "doiget needs Python 3.10 or newer, this is %d.%d (%s)\n"
        sys.stderr.write(text % (version[0], version[1], sys.executable or "unknown path"))
        sys.exit(2)


refuse_old_python(tuple(sys.version_info[:2]))

import gc  # noqa: E402
import marshal  # noqa: E402
import os  # noqa: E402
import stat  # noqa: E402
import time  # noqa: E402

if False:  # for type checkers only
    from typing import Callable, Iterator, Tuple  # noqa: F401

DAY_S = 24 * 3600
FILE_TIME = 631152000  # every unpacked file is dated 1990: another date or size means that somebody touched it
LISTING = ".files"  # in the folder: marshalled [(path, size)] of what was unpacked
STAMP = ".used"  # in the folder: its date says when the folder was last used
PYZ = os.path.dirname(os.path.abspath(__file__))
FOLDER = None  # type: str | None
SOURCE = None  # type: str | None
NATIVE = False
WHY = ""


class Unusable(Exception):
    """A folder that must not or cannot be used; the text says why."""


def note(text):
    # type: (str) -> None
    global WHY
    if text not in WHY:
        WHY += ("; " if WHY else "") + text


# ---------------------------------------------------------------- who we are


def python_tag():
    # type: () -> str
    name = "cp" if sys.implementation.name == "cpython" else sys.implementation.name
    return "%s%d%d%s" % (name, sys.version_info[0], sys.version_info[1], getattr(sys, "abiflags", ""))


def platform_tag():
    # type: () -> str
    if os.name == "nt":
        return "win_arm64" if "ARM64" in sys.version else "win_amd64" if "AMD64" in sys.version else "win32"
    return "%s_%s" % ("macosx" if sys.platform == "darwin" else sys.platform, os.uname().machine)


def refuse_younger_file():
    # type: () -> None
    oldest = min(int(tag[3:].rstrip("t")) for tag in BUILD["pythons"].split() if tag.startswith("cp3"))
    if sys.version_info[1] < oldest:  # it lacks what older Pythons need, exceptiongroup for one
        text = "this doiget.pyz was built for Python 3.%d or newer, this is 3.%d (%s)\n"
        sys.stderr.write(text % (oldest, sys.version_info[1], sys.executable or "unknown path"))
        sys.exit(2)


def has_native_code():
    # type: () -> bool
    return python_tag() in BUILD["pythons"].split() and platform_tag() in BUILD["platforms"].split()


def folder_in(root):
    # type: (str) -> str
    return os.path.join(root, "%s-%s-%s" % (BUILD["digest"][:10], python_tag(), platform_tag()))


# ---------------------------------------------------------------- where to unpack


def setting(name):
    # type: (str) -> str
    # A host that was not told a value passes on "" or its own placeholder, ${...}: both mean unset.
    value = os.environ.get(name, "").strip()
    return "" if "${" in value else value


def cache_folder():
    # type: () -> str
    if os.name == "nt":
        return setting("LOCALAPPDATA")
    asked = setting("XDG_CACHE_HOME")
    if os.path.isabs(asked) and sys.platform != "darwin":
        return asked
    if os.environ.get("HOME") == "":
        del os.environ["HOME"]  # an empty HOME would turn ~/papers into /papers, here and in all that follows
        note("HOME is empty, so the home folder of the user database stands in")
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return ""  # "~" itself: no HOME, and a user id that nobody knows
    if not os.path.isdir(home):
        note("the home folder %s does not exist" % home)
        return ""
    return os.path.join(home, "Library/Caches" if sys.platform == "darwin" else ".cache")


def roots():
    # type: () -> list[tuple[str, str]]
    found = []
    asked = setting("DOIGET_PYZ_ROOT")
    if os.path.isabs(asked):
        found.append(("DOIGET_PYZ_ROOT", without_links(asked)))
    elif asked:
        note("DOIGET_PYZ_ROOT=%s is not an absolute path" % asked)
    cache = cache_folder()
    if cache:
        found.append(("cache", without_links(os.path.join(cache, "doiget", "app"))))
    if os.name != "nt":  # application control on Windows blocks what is loaded from %TEMP%
        temps = [setting("TMPDIR"), "/tmp", "/var/tmp"]
        mine = "doiget-%d" % os.getuid()
        found += [("temp", os.path.join(without_links(temp), mine)) for temp in temps if os.path.isabs(temp)]
    return found


def without_links(path):
    # type: (str) -> str
    # SECURITY: a link that others can set anew would lead to other code after the look at where it leads now.
    return path if os.name == "nt" else os.path.realpath(path)


# ---------------------------------------------------------------- whether it can be used


def refuse_untrusted(source, root):
    # type: (str, str) -> None
    # SECURITY: code is loaded from here, so nobody but the user and root may be able to change it.
    if os.name == "nt":
        return
    mode = os.lstat(root).st_mode
    if mode & 0o022:
        raise Unusable("%s is writable by others" % root)
    if source == "temp" and (mode & 0o077 or os.path.islink(root) or os.lstat(root).st_uid != os.getuid()):
        raise Unusable("%s is not private to this user" % root)
    path = folder_in(root) if os.path.lexists(folder_in(root)) else root
    while path:
        refuse_writable(path)
        path = os.path.dirname(path) if path != os.path.dirname(path) else ""
    if os.statvfs(root).f_flag & getattr(os, "ST_NOEXEC", 0):
        raise Unusable("%s is mounted noexec" % root)


def refuse_writable(path):
    # type: (str) -> None
    what = os.lstat(path)
    if what.st_uid not in (0, os.getuid()):
        raise Unusable("%s belongs to another user" % path)
    shared = what.st_mode & 0o022
    if shared == 0o020 and what.st_gid == what.st_uid != 0:
        shared = 0  # the user's own private group, the default on most Linux systems
    if shared and not what.st_mode & stat.S_ISVTX:
        raise Unusable("%s is writable by others" % path)


def is_intact(folder):
    # type: (str) -> bool
    """Compare sizes and dates; digests are compared once a day (see use_existing)."""
    try:
        with open(os.path.join(folder, LISTING), "rb") as listing:
            entries = marshal.loads(listing.read())
        for path, size in entries:
            seen = os.stat(folder + "/" + path)  # dir_fd would save 1 ms, but not on Windows
            if seen.st_size != size or int(seen.st_mtime) != FILE_TIME:
                return False
    except (OSError, ValueError, EOFError, TypeError):
        return False
    return True


def unused_s(folder):
    # type: (str) -> float
    try:
        return time.time() - os.stat(os.path.join(folder, STAMP)).st_mtime
    except OSError:
        return 365 * DAY_S


def use_existing(source, root):
    # type: (str, str) -> bool
    folder = folder_in(root)
    if not os.path.isdir(folder):
        return False
    refuse_untrusted(source, root)
    if not is_intact(folder):
        return False
    if unused_s(folder) > DAY_S and os.access(folder, os.W_OK):
        load_rest()
        mark_used(folder)
        fill(folder, write)
        tidy(root, folder)
    return True


def choose():
    # type: () -> None
    """Use the first folder that is ready or can be made ready; where there is none, run straight from the file."""
    global FOLDER, SOURCE, NATIVE
    for source, root in roots():
        if is_ready(source, root):
            FOLDER, SOURCE, NATIVE = folder_in(root), source, has_native_code()
            return
    if not WHY:
        note("no folder to unpack into is known")


def is_ready(source, root):
    # type: (str, str) -> bool
    try:
        if not use_existing(source, root):
            load_rest()
            make(source, root)
    except Unusable as error:
        note(str(error))
        return False
    except OSError as error:
        note("%s: %s" % (root, error.strerror or error))
        return False
    return True


# ---------------------------------------------------------------- using it


def mark_used(folder=None):
    # type: (str | None) -> None
    """Renew the stamp that keeps a folder from being removed as unused."""
    stamp = os.path.join(folder or FOLDER or "", STAMP)
    try:
        with open(stamp, "ab"):
            os.utime(stamp)
    except OSError:
        pass  # an administrator's read-only folder needs no stamp


def damaged():
    # type: () -> list[str]
    load_rest()
    try:
        return [] if FOLDER is None else wrong_files(FOLDER)
    except (OSError, Unusable):
        return [PYZ]


def explain():
    # type: () -> None
    if not has_native_code():
        need = "%s on %s" % (python_tag(), platform_tag())
        note("native code in this file is for %s on %s, not for %s" % (BUILD["pythons"], BUILD["platforms"], need))
    if WHY and sys.stderr is not None and "--quiet" not in sys.argv:
        place = "unpacked into %s" % FOLDER if FOLDER else "running straight from the file, without serve"
        sys.stderr.write("doiget: %s; %s\n" % (WHY, place))


def put_first(bundle):
    # type: (str) -> None
    # SECURITY: before PYTHONPATH, so nothing there shadows the bundle. No site.addsitedir: no .pth line is executed.
    # What this Python has installed stays out, too: libraries pick up extras where they find them, untested and slow.
    installed = ("site-packages", "dist-packages")
    others = [path for path in sys.path if os.path.basename(path) not in installed and os.path.abspath(path) != PYZ]
    sys.path[:] = others
    sys.path.insert(0, bundle)
    if os.name == "nt" and FOLDER is not None:  # what pywin32.pth would have done
        sys.path[1:1] = [os.path.join(bundle, "win32"), os.path.join(bundle, "win32", "lib")]
        getattr(os, "add_dll_directory")(os.path.join(bundle, "pywin32_system32"))
    own = set(NAMES.split())
    for name in [name for name in sys.modules if name.partition(".")[0] in own]:
        del sys.modules[name]  # a .pth line of this Python's own site-packages was quicker


def load_rest():
    # type: () -> None
    """Load the second half of this file, which the builder cuts off: compiling it costs 3 ms that few starts need."""
    if "make" not in globals():
        source = globals()["__loader__"].get_data("launcher_rest.py")
        exec(compile(source, os.path.join(PYZ, "launcher_rest.py"), "exec"), globals())


def main():
    # type: () -> None
    refuse_younger_file()
    choose()
    explain()
    put_first(FOLDER or os.path.join(PYZ, "site-packages"))
    sys.modules["_doiget_boot"] = sys.modules[__name__]
    if FOLDER is not None:
        sys.dont_write_bytecode = False  # the folder is ours; without compiled files each start takes 0.4 s longer
    gc.disable()  # nothing that is loaded here is garbage; to look for some costs 2 ms
    import doiget  # type: ignore[import-not-found,unused-ignore]

    gc.enable()
    sys.exit(doiget.main())


# ================================================================ cut here
# The rest of launcher.py: unpacking, repairing and clearing up. Runs in the launcher's own namespace (load_rest).


def make(source, root):
    # type: (str, str) -> None
    """Unpack into a new folder, or repair a damaged one in place."""
    folder = folder_in(root)
    mask = os.umask(0o022 if source == "DOIGET_PYZ_ROOT" else 0o077)
    try:
        os.makedirs(root, exist_ok=True)
        refuse_untrusted(source, root)
        if os.path.isdir(folder):
            fill(folder, write)
        else:
            unpack(folder)
        mark_used(folder)
        if has_native_code():
            prove_loadable(folder)
        tidy(root, folder)
    finally:
        os.umask(mask)


def unpack(folder):
    # type: (str) -> None
    """Unpack beside the folder and rename: of many first starts at once one wins, and a killed one leaves no half."""
    import shutil

    part = "%s.%s.tmp" % (folder, os.urandom(4).hex())
    os.mkdir(part)
    try:
        fill(part, write_new)
        rename(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def rename(part, folder):
    # type: (str, str) -> None
    for wait_s in (0.1, 0.3, 1.0, 0):
        try:
            return os.rename(part, folder)
        except OSError:
            if is_intact(folder):
                return None  # another start was quicker
            if os.name != "nt" or not wait_s:
                raise
        time.sleep(wait_s)  # a virus scanner still looks at what was written
    return None


def fill(folder, put):
    # type: (str, Callable[[str, bytes], None]) -> None
    """Write what is missing or differs from its digest."""
    import hashlib

    entries = []
    for path, digest, read in bundled():
        target = os.path.join(folder, path)
        data = content(target) if put is write else None
        if data is None or hashlib.sha256(data).hexdigest() != digest:
            data = read()
            if hashlib.sha256(data).hexdigest() != digest:
                raise Unusable("%s is damaged: %s has the wrong digest" % (PYZ, path))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            put(target, data)
        elif int(os.stat(target).st_mtime) != FILE_TIME:
            os.utime(target, (FILE_TIME, FILE_TIME))
        entries.append((path, len(data)))
    listing = marshal.dumps(entries, 2)  # version 2: the same bytes for the same entries
    if content(os.path.join(folder, LISTING)) != listing:
        put(os.path.join(folder, LISTING), listing)


def bundled():
    # type: () -> Iterator[Tuple[str, str, Callable[[], bytes]]]
    """Yield (path, digest, read) for each file of the bundle that this Python needs on disk."""
    import hashlib
    import zipfile
    from functools import partial

    own = ("_native/%s/" % platform_tag(), "_native/%s-%s/" % (platform_tag(), python_tag()))
    with zipfile.ZipFile(PYZ) as archive:
        listing = archive.read("digests.txt")
        if hashlib.sha256(listing).hexdigest() != BUILD["digest"]:
            raise Unusable("%s is damaged, or was replaced while running" % PYZ)
        for line in listing.decode("utf-8").splitlines():
            digest, path = line.split("  ", 1)
            target = path.split("/", 2)[2] if path.startswith(own) else path
            if not target.startswith("_native/") and "/licenses/" not in target and "/sboms/" not in target:
                yield target, digest, partial(archive.read, "site-packages/" + path)


def content(path):
    # type: (str) -> bytes | None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def write_new(target, data):
    # type: (str, bytes) -> None
    with open(target, "wb") as file:
        file.write(data)
    os.utime(target, (FILE_TIME, FILE_TIME))


def write(target, data):
    # type: (str, bytes) -> None
    """Replace a file in one step, so a doiget that is using the folder never notices."""
    part = "%s.%s.part" % (target, os.urandom(4).hex())
    try:
        write_new(part, data)
        os.replace(part, target)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def wrong_files(folder):
    # type: (str) -> list[str]
    import hashlib

    found = ((path, digest, content(os.path.join(folder, path))) for path, digest, _ in bundled())
    return [path for path, digest, data in found if data is None or hashlib.sha256(data).hexdigest() != digest]


def prove_loadable(folder):
    # type: (str) -> None
    # A noexec mount says so, but application control and security modules show only when a library is loaded.
    import shutil

    try:
        import ctypes
    except ImportError:
        return
    with open(os.path.join(folder, LISTING), "rb") as listing:
        native = sorted((size, path) for path, size in marshal.loads(listing.read()) if path.endswith((".so", ".pyd")))
    try:
        for _, path in native[:1]:
            ctypes.CDLL(os.path.join(folder, path))
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Unusable("native code cannot be loaded from %s (%s)" % (folder, error))


def tidy(root, current):
    # type: (str, str) -> None
    """Remove this user's builds that nobody used for 30 days, and what killed first starts left behind."""
    import shutil

    for name in os.listdir(root):
        path = os.path.join(root, name)
        try:
            if path != current and is_own_leftover(path, name):
                doomed = os.path.join(root, "%s-.%s.tmp" % (name[:10], os.urandom(4).hex()))
                os.rename(path, doomed)  # atomic: no start can pick up a folder that is half gone
                shutil.rmtree(doomed, ignore_errors=True)
        except OSError:
            pass  # somebody else was quicker, or it will be tried again tomorrow


def is_own_leftover(path, name):
    # type: (str, str) -> bool
    # SECURITY: only a real folder, with a name as folder_in gives, of this user.
    if name[10:11] != "-" or name[:10].strip("0123456789abcdef") or os.path.islink(path) or not os.path.isdir(path):
        return False
    if hasattr(os, "getuid") and os.lstat(path).st_uid != os.getuid():
        return False
    if name.endswith(".tmp"):
        return time.time() - os.stat(path).st_mtime > 3600
    return unused_s(path) > 30 * DAY_S
