"""Frozen numbers of claim support. Written by train_support.py; do not edit."""

COEFFICIENTS: dict[str, float] = {
    "anywhere_share": 1.13,
    "inference": 0.0804,
    "missing_words": -0.1251,
    "negation": -0.5805,
    "numbers_outside_window": -0.4079,
    "one_sentence_share": 0.9023,
    "unknown_names": -0.4528,
    "weakest_share": 1.1011,
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

INTERCEPT = -2.2197

THRESHOLD = 0.51
