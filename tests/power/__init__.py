"""Power loss: what a traced gitmem had on the disk at any moment, and whether that is enough."""
