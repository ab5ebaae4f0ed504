"""Numbers of the wire are found in the source."""

import unittest

from kit import wire


class Wire(unittest.TestCase):
    def test_the_kind_of_links_is_found_by_its_name(self):
        self.assertTrue(wire.kind("LINKS").isdigit())

    def test_a_name_that_the_source_lacks_is_named(self):
        with self.assertRaisesRegex(AssertionError, "0 kinds of message named WASPS"):
            wire.kind("WASPS")


if __name__ == "__main__":
    unittest.main()
