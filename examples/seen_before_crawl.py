"""Which pages of today's crawl were already in an earlier crawl, possibly at another address?

The index compares the main text of pages, not their templates. It needs the extra `web`.
"""

import json
import tempfile
from pathlib import Path

import neardup

DATA = Path(__file__).parent / "data"

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "pages.index"
    with neardup.Index.create(path, method="content", storage="text") as index:
        # Monday's crawl, from its WARC file. Its documents belong to a named import.
        answers = index.add_many_if_new(
            DATA / "crawl.warc.gz", payload_column=["url", "date"], import_name="monday"
        )
        print(f"Monday: {len(answers)} pages, {len(index)} different ones")

        # Tuesday's pages are staged as they are fetched, and enter the index together.
        index.open_import("tuesday")
        index.stage("tuesday", sorted((DATA / "pages").glob("*.html")))
        print("Open:", [(staged.name, staged.num_documents) for staged in index.imports()])
        for answer in index.commit_import("tuesday").to_pylist():
            name = Path(answer["id"]).name
            earlier = json.loads(answer["payload"]) if answer["payload"] else {}
            print(
                f"  {name}: "
                + ("new" if answer["kept"] else f"{answer['similarity']:.0%} of {earlier['url']}")
            )

        # Forget a failed crawl as a whole.
        print(
            f"Without Monday: {index.remove_import('monday')} documents forgotten, {len(index)} "
            "pages left"
        )
