"""The verb of the studies: verirec reproduce."""
