"""Reference detectors of attacks in prompts and of leaks in answers: pure functions of texts."""
