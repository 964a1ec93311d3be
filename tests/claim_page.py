"""A claim of two facts, and a page that states each of them once."""

CLAIM = "Oriel Tamsett studied chemistry and made windows for the cathedral."
TITLE = "Oriel Tamsett"
PAGE = [
    "Oriel Tamsett was a glassmaker from Lowmere.",
    "She read the chemistry of metals at Aldrick College.",
    "Tamsett's windows are known for a deep blue.",
    "For four years she made the seven windows of the cathedral.",
    "She never married.",
]
