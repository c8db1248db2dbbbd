"""Impact of events on instances, by timelines. Pure."""
