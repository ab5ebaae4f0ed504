"""The release as a whole: sums, bills of materials, one version everywhere."""

import hashlib
import json
import tomllib

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import limits
import shell

# Licences that let us give the programs away; a new one is looked at by a person.
WELCOME = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC-BY-4.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "ZPL-2.1",
    "Zlib",
    "bzip2-1.0.6",
}


def check(dist, _work):
    check_version()
    sums = dict(
        reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines()
    )
    files = {file.name for file in dist.iterdir()} - {"SHA256SUMS"}
    assert set(sums) == files, set(sums) ^ files
    for name, expected in sums.items():
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == expected, name
        assert shell.version() in name, f"{name} does not say which version it is"
        limits.check_download(dist / name)
    boms = [file.read_text() for file in dist.glob("*.cdx.json")]
    assert boms
    for bom in boms:
        wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(bom)
        assert wrong is None, wrong
        check_bom(json.loads(bom))


def check_version():
    """It is written down once: nothing else may name one of its own."""
    manifest = tomllib.loads((shell.TOP / "Cargo.toml").read_text())
    assert manifest["workspace"]["package"]["version"] == shell.version()
    for file in [*shell.TOP.glob("crates/*/Cargo.toml"), shell.TOP / "src-tauri/Cargo.toml"]:
        assert tomllib.loads(file.read_text())["package"]["version"] == {"workspace": True}, file
    assert "version" not in json.loads((shell.TOP / "src-tauri/tauri.conf.json").read_text())


def check_bom(bom):
    assert bom["metadata"]["component"]["version"] == shell.version()
    references = [component["bom-ref"] for component in bom["components"]]
    assert len(references) == len(set(references)) > 100
    for component in bom["components"]:
        expression = component["licenses"][0]["expression"]
        for terms in expression.split(" AND "):
            alternatives = [term.strip("() ") for term in terms.split(" OR ")]
            assert any(term in WELCOME for term in alternatives), (
                f"{component['name']} is under {expression}"
            )
