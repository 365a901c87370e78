"""The speed benchmark: what is timed is data (`cases`), and one runner times it all.

    make bench                          # the default set, about five minutes on two cores
    make bench AGAINST=other.json       # and what got slower or faster since

`python -m benchmarks.speed --help` has the rest: groups, large cases, the page and its picture.
"""
