"""What is given away: wheels and sources are the same to the byte wherever they are built, and their bill is right."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import pdrisk
from paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MOMENT = 1_700_000_000  # SOURCE_DATE_EPOCH


def name_of(requirement):
    """Name of a package, as registries compare it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


RUNTIME = sorted(map(name_of, PROJECT["project"]["dependencies"]))


def copied(folder, mode, moment):
    """The sources in another folder, readable by others or not, and changed at another time."""
    wanted = ["pyproject.toml", ".gitignore", *PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]]
    folder.mkdir()
    for each in filter(Path.exists, (ROOT / name for name in wanted)):
        if each.is_dir():
            shutil.copytree(
                each, folder / each.name, ignore=shutil.ignore_patterns("__pycache__", "_executed", "_build")
            )
        else:
            shutil.copyfile(each, folder / each.name)
    for each in [folder, *folder.rglob("*")]:
        each.chmod((0o700 if each.is_dir() else 0o600) | mode)
        os.utime(each, (moment, moment))
    return folder


def built(folder, umask, **environment):
    """The files that hatchling builds, without a network, and their bytes."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "out")]
    said = os.environ | {"SOURCE_DATE_EPOCH": str(MOMENT)} | environment
    done = subprocess.run(command, cwd=folder, env=said, umask=umask, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {each.name: each.read_bytes() for each in sorted((folder / "out").iterdir())}


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    pytest.importorskip("hatchling", reason="the builder is not installed: pip install hatchling")
    base = tmp_path_factory.mktemp("built")
    one = built(copied(base / "one", 0o055, 1_000_000_000), 0o022, TZ="UTC", PYTHONHASHSEED="1", LC_ALL="C")
    two = built(copied(base / "in another folder", 0, 1_600_000_000), 0o077, TZ="Asia/Tokyo", PYTHONHASHSEED="2")
    return one, two


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no umask")
class TestBuiltTwice:
    def test_the_same_bytes(self, twice):
        one, two = twice
        assert sorted(one) == [f"pdrisk-{pdrisk.__version__}-py3-none-any.whl", f"pdrisk-{pdrisk.__version__}.tar.gz"]
        assert {name: hashlib.sha256(found).hexdigest() for name, found in one.items()} == {
            name: hashlib.sha256(found).hexdigest() for name, found in two.items()
        }

    def test_the_wheel_has_all_of_src_and_nothing_else(self, twice, tmp_path):
        (name,) = (each for each in twice[0] if each.endswith(".whl"))
        (tmp_path / name).write_bytes(twice[0][name])
        with zipfile.ZipFile(tmp_path / name) as wheel:
            inside = {each for each in wheel.namelist() if ".dist-info/" not in each}
        own = {
            each.relative_to(ROOT / "src").as_posix()
            for each in (ROOT / "src").rglob("*")
            if each.is_file() and "__pycache__" not in each.parts
        }
        assert inside == own

    def test_the_sources_say_no_name_of_who_built_them(self, twice, tmp_path):
        (name,) = (each for each in twice[0] if each.endswith(".tar.gz"))
        (tmp_path / name).write_bytes(twice[0][name])
        with tarfile.open(tmp_path / name) as sources:
            assert {(each.uname, each.gname, each.uid, each.mtime) for each in sources} == {("", "", 0, MOMENT)}


BILL = os.environ.get("PDRISK_TEST_SBOM", "")


@pytest.mark.skipif(not BILL, reason="no bill of materials: .ci/sbom FILE makes one, and PDRISK_TEST_SBOM names it")
class TestBillOfMaterials:
    @pytest.fixture
    def bill(self):
        return json.loads(Path(BILL).read_text(encoding="utf-8"))

    def test_it_is_of_this_version(self, bill):
        assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
        own = bill["metadata"]["component"]
        assert (own["name"], own["version"], own["type"]) == ("pdrisk", pdrisk.__version__, "library")

    def test_it_lists_exactly_the_dependencies(self, bill):
        names = {each["bom-ref"]: name_of(each["name"]) for each in bill["components"]}
        (direct,) = (each for each in bill["dependencies"] if each["ref"] == bill["metadata"]["component"]["bom-ref"])
        assert sorted(names[each] for each in direct["dependsOn"]) == RUNTIME

    def test_and_what_these_need_and_nothing_else(self, bill):
        """Not pip, nor what tests need: every component is reached from pdrisk."""
        needs = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
        found, left = set(), [bill["metadata"]["component"]["bom-ref"]]
        while left:
            left += [each for each in needs.get(left.pop(), []) if each not in found and not found.add(each)]
        assert found == {each["bom-ref"] for each in bill["components"]}

    def test_each_has_a_version_a_licence_and_a_place(self, bill):
        for each in bill["components"]:
            assert each["version"] and each["licenses"] and each["purl"].startswith("pkg:pypi/")
