"""Does it work for Chinese, which has no spaces between words, and across its two scripts?"""

from pathlib import Path

import neardup

DATA = Path(__file__).parent / "data"

# A Chinese character is a token, so ngram counts characters. Laws are long, so the default of 5
# works.
print("Laws:  ", neardup.dedup(DATA / "laws.parquet"))

# Poems are short, and one different character changes five 5-grams. Shorter shingles tolerate more.
for ngram in (5, 3, 2):
    print(
        f"Poems, {ngram} characters:",
        neardup.dedup(DATA / "poems.jsonl.zst", method=neardup.MinHash(ngram=ngram)),
    )

simplified = "汉字简化后，同一篇文章的两种写法几乎没有共同的字串。"
traditional = "漢字簡化後，同一篇文章的兩種寫法幾乎沒有共同的字串。"
for fold in ([], ["chinese"]):
    method = neardup.MinHash(ngram=3, fold=fold)
    similarity = neardup.compare(simplified, traditional, method=method).similarity
    print(f"One sentence in two scripts, fold={fold}: {similarity:.2f}")
