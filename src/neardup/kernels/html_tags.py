"""Properties of the tags of HTML: empty tags, tags that close others, tags of raw text.

A tag is represented by the 64-bit FNV-1a hash of its lower-case name, its properties by the bits of
`flags_of`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neardup.kernels.compiled import I64, U64, kernel
from neardup.kernels.mixing import FNV_OFFSET, FNV_PRIME, find_slot

# Bits of `flags_of`, explained by `_NAMES`.
VOID = 1
RAW_TEXT = 2
METADATA = 4
CLOSES_P = 8
SPECIAL = 16
SCOPE = 32
BREAKS_OUT = 64
HEADING = 128
LOOSE = 256
FORMATTING = 512
TABLE_PART = 1024
ROWS = 2048
INTEGRATION = 4096
FOREIGN = 8192
LIST = 16384
LINE = 32768
APART = 65536
HIDDEN = 131072
PAGE_PART = 262144

# The HTML standard, 13.1.2 (kinds of elements), 13.2.4.2 (stack of open elements), 13.2.6.4
# (insertion modes) and 13.2.6.5 (the tags that break out of SVG and MathML). LINE, APART and HIDDEN
# define how text is shown (15.3): on a line of its own, as in all of CLOSES_P; beside a gap; not at
# all, or as part of a picture or a form's field.
_NAMES = {
    VOID: (
        "area base basefont bgsound br col embed frame hr img input keygen link meta param source "
        "track wbr"
    ),
    RAW_TEXT: "iframe noembed noframes script style textarea title xmp",
    METADATA: "base basefont bgsound link meta noframes noscript script style template title",
    CLOSES_P: "address article aside blockquote center dd details dialog dir div dl dt fieldset "
    "figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext "
    "pre search section "
    "summary table ul xmp",
    SPECIAL: "address applet area article aside base basefont bgsound blockquote body br button "
    "caption center col "
    "colgroup dd details dir div dl dt embed fieldset figcaption figure footer form frame "
    "frameset h1 h2 h3 h4 h5 h6 "
    "head header hgroup hr html iframe img input keygen li link listing main marquee menu "
    "meta nav noembed noframes "
    "noscript object ol p param plaintext pre script search section select source style "
    "summary table tbody td "
    "template textarea tfoot th thead title tr track ul wbr xmp",
    SCOPE: "applet caption foreignobject html marquee object table td template th",
    BREAKS_OUT: "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i "  # noqa: E501
    "img li listing "
    "menu meta nobr ol p pre ruby s small span strike strong sub sup table tt u ul var",
    HEADING: "h1 h2 h3 h4 h5 h6",
    LOOSE: "address div p",
    FORMATTING: "a b big code em font i nobr s small strike strong tt u",
    TABLE_PART: "caption col colgroup tbody td tfoot th thead tr",
    ROWS: "tbody tfoot thead",
    INTEGRATION: "annotation-xml desc foreignobject title",
    FOREIGN: "math svg",
    LIST: "ol ul",
    LINE: "body br caption frame frameset html legend optgroup option tbody tfoot thead tr",
    APART: (
        "audio button canvas embed iframe img input meter object progress select svg td textarea "
        "th video"
    ),
    HIDDEN: "audio canvas datalist iframe noembed noframes noscript script select style svg template "  # noqa: E501
    "textarea title "
    "video",
    PAGE_PART: "body frame frameset head html",
}
VOID_NAMES = frozenset(_NAMES[VOID].split())
"""The elements without content, which have no end tags."""

NUM_SLOTS = 512


def hash_name(name: str) -> U64:
    """Return the hash of a name in ASCII, as the kernel computes it from a page."""
    state = int(FNV_OFFSET)
    for byte in name.encode("ascii"):
        state = ((state ^ byte) * int(FNV_PRIME)) % 2**64
    return U64(state)


def _fill_slots() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return an open-addressing table, a third full: keys and their bits, both 0 in a free slot."""
    keys = np.zeros(NUM_SLOTS, U64)
    flags = np.zeros(NUM_SLOTS, I64)
    for bit, names in _NAMES.items():
        for name in names.split():
            key = hash_name(name)
            slot = int(key) % NUM_SLOTS
            while keys[slot] not in (0, key):
                slot = (slot + 1) % NUM_SLOTS
            keys[slot] = key
            flags[slot] |= bit
    return keys, flags


KEYS, FLAGS = _fill_slots()


@kernel
def flags_of(tag):
    """Return the bits of a tag; 0 for a tag that HTML does not name."""
    return FLAGS[find_slot(KEYS, KEYS, U64(0), tag)]
