"""A run replaces its figures and no words."""

import pathlib
import tempfile
import unittest

from kit import document

TEXT = """# Title

Words before.  \tTrailing blanks stay.\r
Pages: <!-- pages -->16,000<!-- /pages --> of 6 kB \\1 \\g<0>.

<!-- peers: written by a run -->
| a | b |
| --- | --- |
| 1 | 2 |
<!-- /peers -->

<!-- peers-apart -->
<!-- /peers-apart -->
Words after, without a newline"""
BLOCKS = {"pages": "7", "peers": "| new \\1 |\n| é |", "peers-apart": "x"}


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "page.md"
        self.path.write_bytes(TEXT.encode())

    def test_everything_outside_the_blocks_stays_byte_for_byte(self):
        document.write(self.path, BLOCKS)
        expected = TEXT.replace("16,000", "7").replace(
            "| a | b |\n| --- | --- |\n| 1 | 2 |", "| new \\1 |\n| é |"
        )
        expected = expected.replace("<!-- peers-apart -->\n", "<!-- peers-apart -->\nx\n")
        self.assertEqual(self.path.read_bytes(), expected.encode())

    def test_a_second_run_with_the_same_figures_changes_nothing(self):
        document.write(self.path, BLOCKS)
        once = self.path.read_bytes()
        document.write(self.path, BLOCKS)
        self.assertEqual(self.path.read_bytes(), once)

    def test_a_missing_mark_is_named_and_nothing_is_written(self):
        for lost in ("<!-- /peers -->", "<!-- pages -->"):
            broken = TEXT.replace(lost, "").encode()
            self.path.write_bytes(broken)
            with self.assertRaisesRegex(document.MarkMissing, f"page.md: {lost} stands 0 times"):
                document.write(self.path, BLOCKS)
            with self.assertRaisesRegex(document.MarkMissing, lost):
                document.require(self.path, BLOCKS)
            self.assertEqual(self.path.read_bytes(), broken)

    def test_a_mark_that_stands_twice_or_after_its_end_is_an_error(self):
        for broken in (f"{TEXT}\n<!-- pages -->", "<!-- /pages --> 1 <!-- pages -->"):
            with self.assertRaises(document.MarkMissing):
                document.replaced(broken, "pages", "1")

    def test_a_table_has_a_line_for_its_head_and_each_row(self):
        self.assertEqual(
            document.table(["a", "b"], [(1, 2)]), "| a | b |\n| --- | --- |\n| 1 | 2 |"
        )


if __name__ == "__main__":
    unittest.main()
