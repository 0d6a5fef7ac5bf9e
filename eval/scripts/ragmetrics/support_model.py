"""Frozen numbers of claim support. Written by train_support.py; do not edit."""

COEFFICIENTS: dict[str, float] = {
    "anywhere_share": 1.4488,
    "names_outside_window": -0.5337,
    "numbers_outside_window": -0.4635,
    "one_sentence_share": 0.966,
    "unknown_names": -0.2948,
    "weakest_share": 1.3361,
    "words": 0.3169,
}

THRESHOLDS: dict[str, float] = {
    "ar": 0.46,
    "de": 0.44,
    "el": 0.44,
    "es": 0.56,
    "fr": 0.51,
    "hi": 0.47,
    "ro": 0.53,
    "ru": 0.45,
    "th": 0.61,
    "tr": 0.39,
    "vi": 0.58,
    "zh": 0.36,
}

STRENGTHS: dict[str, tuple[float, ...]] = {
    "RAGTruth QA": (0.021, 0.046, 0.087, 0.142, 0.222, 0.324, 0.51, 0.791, 1.0),
    "RAGTruth summaries": (0.01, 0.019, 0.051, 0.116, 0.24, 0.398, 0.617, 0.871, 1.0),
    "RAGTruth data-to-text": (0.031, 0.098, 0.245, 0.44, 0.635, 0.783, 0.903, 0.988, 1.0),
    "AttributionBench": (0.152, 0.216, 0.317, 0.404, 0.499, 0.583, 0.681, 0.86, 1.0),
    "ExpertQA": (0.03, 0.076, 0.225, 0.411, 0.602, 0.746, 0.868, 0.955, 1.0),
    "FActScore": (0.116, 0.184, 0.255, 0.348, 0.407, 0.492, 0.62, 0.926, 1.0),
    "WiCE": (0.194, 0.278, 0.423, 0.556, 0.694, 0.819, 0.899, 0.98, 1.0),
    "BEGIN": (0.206, 0.238, 0.294, 0.351, 0.417, 0.482, 0.591, 0.757, 1.0),
    "Factcheck-GPT stance": (0.139, 0.279, 0.499, 0.7, 0.828, 0.903, 0.947, 0.986, 1.0),
}
"""By training set: claims with a strength below each tenth / claims."""

INTERCEPT = -2.8098

THRESHOLD = 0.52
