"""Text rules that the metrics share: words, sentences, numbers, languages, quotes."""
