"""version.py - the version and the date of a release, of the places that have them; and small helpers of the packagers."""
import datetime
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(*command, **options):
    print("+", *command, flush=True)
    return subprocess.run([str(c) for c in command], check=True, **options)


def version():
    return re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]


def abi():
    """The number in the SONAME."""
    return re.search(r"^abi_version = '(\d+)'", (ROOT / "meson.build").read_text(), re.M)[1]


def changelog():
    """The version and the date of CHANGELOG.md's newest section that has them."""
    return re.search(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M).groups()


def unreleased():
    """Whether CHANGELOG.md begins with changes that are of no version yet."""
    return (ROOT / "CHANGELOG.md").read_text().partition("\n## ")[2].startswith("Unreleased\n")


def changelog_date():
    """Seconds since 1970 of the release's day, None before it."""
    day = changelog()[1]
    return None if unreleased() or day == "unreleased" else int(datetime.datetime.fromisoformat(day + "T00:00:00+00:00").timestamp())


def source_archive(out, suffix=".tar.gz", separator="-"):
    """The committed tree as OUT/lockstep-VERSION.tar.gz, with a folder of that name in it."""
    made = out / f"lockstep{separator}{version()}{suffix}"
    run("git", "-C", ROOT, "archive", "--format=tar.gz", f"--prefix=lockstep-{version()}/", "-o", made, "HEAD")
    return made
