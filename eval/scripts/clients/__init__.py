"""Asking servers: HTTP, the bot and its profile, a whole set of questions, the embedding model."""
