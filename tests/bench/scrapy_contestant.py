"""Scrapy as a contestant: follows every link of the corpus's hosts, keeps nothing. Run by the interpreter of its own venv.

Usage: scrapy_contestant.py START CONNECTIONS HOST:PORT…
"""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

START, CONNECTIONS, HOSTS = sys.argv[1], int(sys.argv[2]), sys.argv[3:]


class Docs(scrapy.Spider):
    name = "docs"
    start_urls = [START]
    links = LinkExtractor(allow_domains=HOSTS, tags=("a",), attrs=("href",))

    def parse(self, response):
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)


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
