"""What several layouts share: `elements` of all sparse ones, `runs`, `compressed` (CSR, CSC), `blocks`, `offsets`.

May import ``layouts.base`` and ``layouts.coding``, no layout. `verification` holds rows against their checksums
before anything is decoded. Begin with `elements`.
"""
