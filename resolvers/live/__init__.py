"""What goes on without a request: subscriptions' topics, and work in the background.

| module     | contents                                                          |
|------------|-------------------------------------------------------------------|
| topics     | the topics that subscriptions listen to                           |
| feed       | records as they arrive, from a point at which a listener resumes  |
| background | work that nobody waits for                                        |
| watch      | what every process keeps whole, read again once it has changed    |
"""
