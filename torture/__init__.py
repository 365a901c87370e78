"""Torture: what odd input, kills, full disks, shells and processors can do, and a harness that keeps it so."""
