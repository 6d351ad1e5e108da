"""Make the files of datatrove 0.10 in this folder, with datatrove[processing] installed.

datatrove removes three documents of three files: a copy in the same file, and two in another one.
"""

import json
import random
import shutil
import tempfile
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupBuckets, MinhashDedupCluster
from datatrove.pipeline.readers import JsonlReader

HERE = Path(__file__).parent
rng = random.Random(1)
# Without digits, which datatrove replaces before it compares.
words = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(6)) for _ in range(500)]


def made_up() -> str:
    return " ".join(rng.choice(words) for _ in range(60))


if __name__ == "__main__":
    texts = [[made_up() for _ in range(4)] for _ in range(3)]
    texts[0][3] = texts[0][1]
    texts[2][0] = texts[1][2]
    texts[2][3] = texts[0][0] + " more"
    texts[1][1] = ""  # the readers of datatrove leave it out, and do not count it
    for number, part in enumerate(texts):
        rows = [{"id": f"{number}-{row}", "text": text} for row, text in enumerate(part)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (HERE / "original" / f"{number}.jsonl").write_text(lines)
    work = Path(tempfile.mkdtemp())
    config = MinhashConfig()
    reader = JsonlReader(str(HERE / "original"))
    stages = [
        (3, [reader, MinhashDedupSignature(str(work / "signatures"), config)]),
        (14, [MinhashDedupBuckets(str(work / "signatures"), str(work / "buckets"), config=config)]),
        (
            1,
            [
                MinhashDedupCluster(
                    str(work / "buckets"), str(work / "out"), config, save_cluster_id=True
                )
            ],
        ),
    ]
    for number, (tasks, pipeline) in enumerate(stages):
        LocalPipelineExecutor(pipeline, tasks=tasks, logging_dir=str(work / f"log{number}")).run()
    shutil.rmtree(HERE / "datatrove", ignore_errors=True)
    shutil.copytree(work / "out", HERE / "datatrove")
    shutil.rmtree(work)
