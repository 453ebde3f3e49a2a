"""The bench: compares filters, levels, devices and libraries.

    plan = Plan(sweeps=grid(["median"], sizes=[512, 4096], masks=[3, 9]), peers=True)
    plan = presets.get("F tables").plan          # or one of the sources' experiments
    plan = Plan(sweeps=grid([], [], [3, 9], Data.of(image)))  # all filters on the open picture

    rows = []
    for row in measure(plan, backends, token, announce):
        rows.append(row)                         # kept if the run is cancelled
    report = Report(facts(backends), plan, tuple(rows))
    save(report, Path("results.json"))

`measure` is a generator that works on the calling thread, which must be the one that may use the
backends. In the window that is the engine's worker, where it runs as a `Job`:

    def work(backends, token, report):
        for row in measure(plan, backends, token, report):
            report(row)

    worker.submit(Job(work))               # Reported(job, BenchProgress or Row), then Finished

It calls ``announce(progress)`` before each part of the work with a `BenchProgress`: finished rows,
all rows, the current case, and the seconds left. Setting the token ends it with `Cancelled`, after
the rows in progress were yielded. `verify` takes the same backends and token.

`rules` has the rules of timing. A series is ``row.series``; rows with the same ``row.subject`` can
be compared. A row may have been timed on a part, ``row.timed_size`` of ``row.size``: show both, and
≈ before every scaled value (``full_time``). Rows with a ``row.reason`` have no times. Published
figures stand next to the same quantity of ours (``figures.comparable``, ``figures.absent``). Runs
of several machines are drawn together as ``merge(reports)``, and the same run on two as
``beside_each_other(first, second)``.
"""
