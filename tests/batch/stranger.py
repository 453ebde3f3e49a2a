"""Another user of this machine, who looks for a way into a cluster: ``stranger ADDRESS``.

Prints the outcome of each attempt to run code there.
"""

import os
import sys

import distributed

address = sys.argv[1]
other = distributed.Security.temporary()
bare = address.replace("tls://", "tcp://")
with distributed.LocalCluster(  # loads all modules while this is root
    n_workers=0, dashboard_address=None, security=distributed.Security.temporary()
):
    pass
if os.name == "posix" and os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for where, security in ((bare, None), (address, other)):
    try:
        client = distributed.Client(where, security=security, timeout=3, set_as_default=False)
        print("in:", client.submit(os.getuid).result(timeout=5))
    except Exception as error:
        print("refused:", type(error).__name__)
