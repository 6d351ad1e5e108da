"""How similar are two texts, by which measures, and where do they differ?"""

from pathlib import Path

import neardup

DATA = Path(__file__).parent / "data"

before = (DATA / "firefox-terms-2025-02-28.txt").read_text(encoding="utf-8")
after = (DATA / "firefox-terms-2025-03-01.txt").read_text(encoding="utf-8")

result = neardup.compare(before, after)
measures = result.measures
print(f"Jaccard {measures.jaccard:.3f}: {measures.num_shared} shingles of five words are shared,")
print(f"of {measures.num_left} in the first text and {measures.num_right} in the second.")
print(f"A run at threshold {result.threshold} would call them duplicates: {result.duplicate}.")
print(f"It would compare them with a chance of {measures.candidate_probability:.2%}.")

print("\nWhat only the second text has:")
for start, end, shared in result.right_passages:
    if not shared:
        print("  +", " ".join(after[start:end].split()))
