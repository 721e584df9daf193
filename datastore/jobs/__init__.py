"""Long work: jobs, and the leases that say which process does a piece of work.

| module | contents                                             |
|--------|------------------------------------------------------|
| jobs   | jobs, with their progress and outcome; their texts   |
| leases | which process does a piece of work                   |
"""
