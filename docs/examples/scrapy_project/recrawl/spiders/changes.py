"""A spider that yields an item for each page that is new or has changed."""

from urllib.parse import urlsplit

import scrapy
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor


class Changes(scrapy.Spider):
    """Follows the links of one site: ``scrapy crawl changes -a start=https://a.example/``."""

    name = "changes"

    def __init__(self, start, **arguments):
        super().__init__(**arguments)
        self.start_urls = [start]
        self.links = LinkExtractor(allow_domains=[urlsplit(start).netloc])

    def parse(self, response):
        """Yield what you want of a page; called at its first fetch and after each change."""
        if not isinstance(response, HtmlResponse):
            return  # a picture or a document
        self.logger.info("new or changed: %s", response.url)
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)  # known links cost nothing
