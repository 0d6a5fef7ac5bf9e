"""Production watched through its traces: alarms, canaries, and draws of cases."""
