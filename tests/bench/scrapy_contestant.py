"""Scrapy as a contestant: follows every link of the corpus's hosts, keeps nothing. Run by the
interpreter of its own venv.

Links are taken by an XPath and sorted out before they become requests: its `LinkExtractor` takes
several times as long.

Usage: scrapy_contestant.py START CONNECTIONS HOST:PORT…
"""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess

START, CONNECTIONS = sys.argv[1], int(sys.argv[2])
SITES = tuple(f"http://{host}/" for host in sys.argv[3:])


class Docs(scrapy.Spider):
    name = "docs"
    start_urls = (START,)

    def parse(self, response):
        hrefs = (href.partition("#")[0] for href in response.xpath("//a/@href").getall())
        for url in map(response.urljoin, dict.fromkeys(hrefs)):
            if url.startswith(SITES):
                yield scrapy.Request(url)


process = CrawlerProcess(
    {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": CONNECTIONS,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONNECTIONS,
        "DOWNLOAD_DELAY": 0,
        "DEPTH_LIMIT": 0,
        "AUTOTHROTTLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "RETRY_ENABLED": False,
        "LOG_LEVEL": "ERROR",
    }
)
process.crawl(Docs)
process.start()
