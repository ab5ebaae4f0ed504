"""Every Python script is formatted and checked, also those whose name does not tell."""

import fnmatch
import subprocess
import tomllib
import unittest

from kit import ROOT


class Scripts(unittest.TestCase):
    def test_ruff_looks_at_every_python_script(self):
        search = ["git", "grep", "-lI", "^#!.*python", "--", ":!*.py"]
        found = subprocess.run(search, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        scripts = {name for name in found.split() if is_script(name)}
        self.assertIn("tests/evaluate/run", scripts)
        included = tomllib.loads((ROOT / "ruff.toml").read_text())["include"]
        missing = {
            name
            for name in scripts
            if not any(fnmatch.fnmatch(name, pattern) for pattern in included)
        }
        self.assertEqual(missing, set(), "add them to `include` in ruff.toml")


def is_script(name):
    """Does the file begin with the line that was found, or only quote one?"""
    return (ROOT / name).read_bytes().startswith(b"#!")


if __name__ == "__main__":
    unittest.main()
