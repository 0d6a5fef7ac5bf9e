"""Frozen numbers of claim support. Written by train_support.py; do not edit."""

COEFFICIENTS: dict[str, float] = {
    "anywhere_share": 1.1278,
    "inference": 0.0806,
    "missing_words": -0.1247,
    "negation": -0.5511,
    "numbers_outside_window": -0.4072,
    "one_sentence_share": 0.8901,
    "unknown_names": -0.4541,
    "weakest_share": 1.1,
    "words": 0.3189,
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

INTERCEPT = -2.2174

THRESHOLD = 0.51
