"""Jobs: work that continues in the background and across restarts.

| module  | contents                                                     |
|---------|--------------------------------------------------------------|
| running | the fields that show a job, and the runner that works on one |
"""
