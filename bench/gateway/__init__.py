"""The gateway: the one place where provider keys live, calls are counted and limits bite.

`bench.gateway.client.Lease` is how other rooms reach it; `bench.gateway.script` checks scripts of the
scripted model. Everything else runs in the gateway's own process, `python -m bench.gateway`.
"""
