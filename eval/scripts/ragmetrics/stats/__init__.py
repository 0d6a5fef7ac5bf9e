"""Statistics: means with intervals, tallies, tests of differences, agreement with people."""
