"""Settings of the crawl: Scrapy's own, and those of the scheduler, which begin with RECRAWL."""

SPIDER_MODULES = ["recrawl.spiders"]
USER_AGENT = "my-crawler (+https://my.example/crawler)"  # tell sites who you are
ROBOTSTXT_OBEY = True
DOWNLOAD_TIMEOUT = 30  # seconds
DOWNLOAD_MAXSIZE = 10_000_000  # bytes
LOG_LEVEL = "INFO"
TELNETCONSOLE_ENABLED = False

# These four make it a crawl that never ends.
SCHEDULER = "policies.live.adapters.scrapy.RecrawlScheduler"
DOWNLOADER_MIDDLEWARES = {"policies.live.adapters.scrapy.RecrawlMiddleware": 500}
RECRAWL_FOLDER = "state"  # pages, copies and what is learned; delete it to begin again
RECRAWL_BANDWIDTH = 10_000  # fetches per day; with a gap of 5 s a host has 17,280 at most

# Be polite, and name the feeds and sitemaps of your sites.
RECRAWL_HOST_GAP = 5  # seconds between two fetches of a host
RECRAWL_FEEDS = {}  # {"https://a.example/feed.xml": 0, "https://a.example/sitemap.xml": 1}
