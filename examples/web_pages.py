"""Which pages of a crawl share a template, and which share their text?"""

from pathlib import Path

import neardup

CRAWL = Path(__file__).parent / "data" / "crawl.warc.gz"

# The structure: start tags with their classes, regardless of the text.
templates = neardup.cluster(CRAWL, method=neardup.method("structure"))
print(
    f"{templates.documents.num_rows} pages, {templates.clusters.num_rows} templates with two pages "
    "or more:"
)
for cluster in templates.clusters.to_pylist():
    print(f"  {cluster['size']} like {cluster['first_id']}: {cluster['name']}")

# The content: the main text, regardless of the template.
articles = neardup.dedup(CRAWL, method=neardup.method("content"))
for copy in articles.removed.to_pylist():
    print(f"{copy['id']} has the text of {copy['kept_id']}, similarity {copy['similarity']:.0%}")

# Both: only a copy with the same template would be removed, and there is none.
print(neardup.dedup(CRAWL, method=neardup.method("page")))
