"""The screen kit: lists, panes, windows, keys, tables, and foreign text made safe to show."""
