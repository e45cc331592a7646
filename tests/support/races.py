"""Another writer, faster than the one under test."""

from tensorlake_spark.writing import transaction_commit


def before_call(monkeypatch, owner, name, work):
    """Have some work done, once, right before the next call of a function of a module."""
    function = getattr(owner, name)

    def late(*arguments):
        monkeypatch.setattr(owner, name, function)
        work()
        return function(*arguments)

    monkeypatch.setattr(owner, name, late)


def before_commit(monkeypatch, work):
    """Have some work done, once, when the next transaction is about to commit: after its last look at the table."""
    before_call(monkeypatch, transaction_commit, "commit", work)
