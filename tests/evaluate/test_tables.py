"""The document has a place for every figure of an evaluation."""

import dataclasses
import unittest

import tables
from kit import ROOT, document, swarm

SIMULATED = {
    "peers": 1,
    "pages": 9,
    "expected": 10,
    "repeats": 0,
    "seconds_for_most": 3,
    "urls_per_page": 1,
    "batches_per_page": 1,
    "bytes_per_page": 3,
    "most_hosts": 1,
    "most_pages": 1,
    "idle": 0,
}


def crawl(peers):
    """A result in which everything is the number of peers."""
    figures = {field.name: peers for field in dataclasses.fields(swarm.Result)}
    return swarm.Result(**{**figures, "timeline": [1], "shares": [1] * peers, "fetched": [2]})


class Tables(unittest.TestCase):
    def test_every_figure_has_its_block_in_the_document(self):
        done = tables.Evaluation(
            pages=1600,
            by_peers=[crawl(1), crawl(4), crawl(16)],
            apart={4: 0.5, 16: 0.75},
            by_hosts={25: crawl(4)},
            narrow=crawl(8),
            by_load={0.5: crawl(4)},
            simulated=[SIMULATED],
        )
        blocks = tables.blocks(done)
        self.assertEqual(tuple(blocks), tables.NAMES)
        self.assertIn("| 0.50 | 0.75 | 1.50 |", blocks["growth"])
        page = document.filled(ROOT / "docs/evaluation.md", blocks)
        self.assertIn("<!-- pages -->1,600<!-- /pages --> pages of 6 kB", page)


if __name__ == "__main__":
    unittest.main()
