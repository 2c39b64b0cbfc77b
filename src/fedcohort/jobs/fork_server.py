"""Ends the fork server of a local sweep with the sweep's process, and its workers with it.

Only that server imports this module. A worker without a job would otherwise wait for one. The kernel ends the whole
chain, on Linux; elsewhere each worker watches the sweep's process from its first job on (`host.orphan`).

Garbage collection is disabled until a worker's first run (`host.memory.enable_garbage_collection`): it writes to the
header of every object, and the pages that are written to are no longer shared with the server.
"""

import gc
import os

from fedcohort.host.orphan import end_when_forking_thread_ends

end_when_forking_thread_ends()
gc.disable()
os.register_at_fork(after_in_child=end_when_forking_thread_ends)
