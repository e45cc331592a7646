"""Another writer, faster than the one under test."""

from tensorlake_spark.writing import transaction_commit


def before_commit(monkeypatch, work):
    """Have some work done, once, when the next transaction is about to commit: after its last look at the table."""
    commit = transaction_commit.commit

    def late(*args):
        monkeypatch.setattr(transaction_commit, "commit", commit)
        work()
        return commit(*args)

    monkeypatch.setattr(transaction_commit, "commit", late)
