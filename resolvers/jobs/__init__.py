"""Jobs: work that goes on beside requests and after restarts.

| module  | contents                                                     |
|---------|--------------------------------------------------------------|
| running | the fields that show a job, and the runner that works on one |
| kinds   | what each kind of job does                                   |
"""
