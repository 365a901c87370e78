"""Kills and failing disks: what every verb that writes leaves behind."""
