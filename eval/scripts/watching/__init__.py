"""Production watched through its traces: reading them, their figures, and draws of cases."""
