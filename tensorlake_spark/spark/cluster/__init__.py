"""What work on a cluster needs: `s3a` (one store, two names), `tasks` (who takes what), `runner` (work of tables).

May import nothing else of ``spark``. Begin with `tasks`.
"""
