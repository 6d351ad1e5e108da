"""Which pages of a crawl share a template, and which say the same?"""

from pathlib import Path

import neardup

CRAWL = Path(__file__).parent / "data" / "crawl.warc.gz"

# The structure: start tags with their classes. The text plays no part.
templates = neardup.cluster(CRAWL, method=neardup.structure())
print(f"{templates.documents.num_rows} pages, {templates.clusters.num_rows} templates with two pages or more:")
for cluster in templates.clusters.to_pylist():
    print(f"  {cluster['size']} like {cluster['first_id']}: {cluster['name']}")

# The content: the main text. The template plays no part.
articles = neardup.dedup(CRAWL, method=neardup.content())
for copy in articles.removed.to_pylist():
    print(f"{copy['id']} says what {copy['kept_id']} says, {copy['similarity']:.0%} of it")

# Both: only a copy in the same template would go, and there is none.
print(neardup.dedup(CRAWL, method=neardup.page()))
