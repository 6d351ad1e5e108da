"""Find items in a corpus, whose documents are read once."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256

from neardup import schemas
from neardup.arrays import flatten_strings, join_arrays
from neardup.candidates.items import ItemTable
from neardup.documents.batch import DocumentBatch
from neardup.files import JsonObject
from neardup.formats.reading import Task, known_total
from neardup.output.job import Job
from neardup.runs.found_items import FoundItems, ItemCollection, ItemSearch, ItemsInTexts
from neardup.runs.reading import Reading, locations, read_all
from neardup.runs.run import Found
from neardup.runs.scratch import prepare


def find_items(job: Job, inputs: Found, table: ItemTable) -> FoundItems:
    """Read the corpus once, and decide which items it contains.

    inputs : the files of the corpus.
    """
    run = job.run
    scratch = job.scratch
    tasks = [task.identified() for task in inputs.tasks]
    prepare(scratch, tasks, _settings_of(table), run.folder.resume, job.folder)
    reading = Reading(tasks, inputs.method, scratch, run.selection, run.settings, stores_sets=False)
    collection = ItemCollection(table, scratch)
    search = ItemSearch(table, collection.num_documents)

    def find(batches: list[DocumentBatch], _: list[Task]) -> ItemsInTexts:
        return search.find(join_arrays([batch.text for batch in batches]))

    def add(found: ItemsInTexts) -> None:
        collection.add(found, reading.tally.documents)

    with job.stages.stage("search", known_total(tasks)) as progress:
        corpus = read_all(reading, progress, find, add)
    corpus.tally.without_features = int(scratch.column(schemas.NUM_TEXTLESS).sum())
    with job.stages.stage("decide"):
        return collection.finish(tasks, corpus, locations(tasks, corpus, scratch))


def _settings_of(table: ItemTable) -> JsonObject:
    """Return the settings of a scratch folder: a run with other items must not continue this
    one.
    """
    digest = sha256()
    arrays = (*flatten_strings(table.texts), table.field_items, table.kinds, table.weights)
    for values in arrays:
        digest.update(values.tobytes())
    return asdict(table.settings) | {"items": digest.hexdigest()}
