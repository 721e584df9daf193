"""Comments that were written on another system.

| module    | contents                                                                          |
|-----------|-----------------------------------------------------------------------------------|
| files     | readers of the files of Disqus, WordPress, Remark42, Isso, Cusdis and Commento    |
| markup    | HTML as plain text; XML without entities                                          |
| threads   | which comment stands in whose thread, whatever the order of a file                |
| store     | adding them: their products, authors and ids                                      |
"""
