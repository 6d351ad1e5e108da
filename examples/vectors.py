"""How do I remove near-duplicates by vectors, and how does the result differ from MinHash?"""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import neardup

DATA = Path(__file__).parent / "data"
table = pq.read_table(DATA / "licenses.parquet")

# Any model will do. This one needs NumPy alone: TF-IDF weights of words, reduced to 64 numbers by
# an SVD (latent semantic analysis, Deerwester et al. 1990).
counts = [Counter(re.findall(r"\w+", text.lower())) for text in table["text"].to_pylist()]
documents_with = Counter(word for count in counts for word in count)
words = {
    word: column for column, word in enumerate(word for word, n in documents_with.items() if n > 1)
}
weights = np.zeros((len(counts), len(words)))
for row, count in enumerate(counts):
    for word, times in count.items():
        if word in words:
            weights[row, words[word]] = (1 + np.log(times)) * np.log(
                len(counts) / documents_with[word]
            )
left, singular, _ = np.linalg.svd(weights, full_matrices=False)
embeddings = (left[:, :64] * singular[:64]).astype(np.float32)

column = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), 64)
table = table.append_column("embedding", column)

by_vectors = neardup.dedup(table, method="vectors", threshold=0.95, text_column="embedding")
print(
    f"By the cosine of vectors, {by_vectors.removed.num_rows} of {table.num_rows} texts are "
    "removed."
)

by_shingles = neardup.dedup(table, method="minhash", threshold=0.8)
print(f"By the Jaccard similarity of word 5-grams, {by_shingles.removed.num_rows}.")

# Vectors forget the order of words, and names that few texts contain: pairs that MinHash keeps
# apart can be close.
removed = set(by_shingles.removed["id"].to_pylist())
texts = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
print(
    "\nRemoved by vectors only, the least similar first, and the Jaccard similarity of the texts:"
)
for row in by_vectors.removed.sort_by("similarity").to_pylist():
    if row["id"] not in removed:
        jaccard = neardup.compare(texts[row["id"]], texts[row["kept_id"]]).similarity
        print(
            f"  cosine {row['similarity']:.3f}  Jaccard {jaccard:.3f}  {row['id']}  ->  "
            f"{row['kept_id']}"
        )
        removed.add(row["id"])
    if len(removed) >= by_shingles.removed.num_rows + 5:
        break
