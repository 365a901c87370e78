"""Answers that a survey of random pairs makes right, whatever decides what people log and say."""
